"""Period in words and digits: "1 March 2026", "01/03/2026", "next friday", "the end of the month"; every reading.

A day that is reckoned from now ("tomorrow", "5 May") says so, whatever now is.
"""

from collections.abc import Callable
from datetime import date, timedelta

from quantities.times.calendar import around, day_of, nearest
from quantities.times.clocks import clock_at
from quantities.times.languages import MONTHS, OF, RELATIVE_DAYS
from quantities.times.numbers import ordinal_at
from quantities.times.reckoning import (
    Day,
    Reckoning,
    counts_something,
    full_year,
    step_at,
    stretch_of,
    year_at,
    year_said_later,
)  # fmt: skip
from quantities.times.tokens import Sentence
from quantities.times.weekdays import coming_weekday, counted_weekday, weekday_at, weekday_of_week, weeks_on
from quantities.times.words import FEASTS, STEPS, WEEKDAYS

#: The part of a day between its name and an hour ("friday morning at 9").
DAY_PARTS = frozenset({"morning", "afternoon", "evening", "night"})
#: Beside a "may" they make it a verb.
_WHO = frozenset({"i", "you", "we", "they", "he", "she", "it", "who", "that", "this", "which", "people", "one"})
_DOES = frozenset({"be", "have", "not", "also", "still", "well", "work", "need", "want", "cost", "take", "go", "come",
                   "get", "do", "help", "seem", "fit", "like", "times", "people"})  # fmt: skip
_ENDS = {"end": True, "close": True, "last": True, "start": False, "beginning": False, "first": False}
#: What may follow all of an answer.
_MARKS = frozenset(".!?")
#: Days that share a month; more are no sentence.
_MOST_SHARED = 8
_COMING = frozenset({"coming", "upcoming"})
#: After "on the 5th" they show that the day of the month is meant, and no fifth floor.
_AFTER_DAY = frozenset(
    {"at", "or", "and", "for", "to", "until", "till", "in", "with", "i", "we", "please", "by", "from"}
)


def day_at(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Return the day at *place*, None when no day, or no day of the calendar, is there.

    Raises:
        OverflowError: a day outside the years 1 to 9999.
    """
    kind = sentence.kind(place)
    if kind == "iso":
        found = _iso_day(sentence.tokens[place].text)
        return Day((found,), place + 1) if found else None
    if kind == "date":
        return _slashed(sentence, place, reckoning.day_first)
    if kind == "number":
        return _day_month(sentence, place, reckoning)
    if kind != "word":
        return None
    word = sentence.tokens[place].text
    if word in MONTHS:
        return _month_day(sentence, place, reckoning)
    if word in WEEKDAYS:
        return _weekday(sentence, place, reckoning)
    if word in RELATIVE_DAYS:
        day = reckoning.today + timedelta(days=RELATIVE_DAYS[word])
        return weeks_on(sentence, Day((day,), place + 1, is_relative=True))
    if word in FEASTS:
        return _feast(sentence, place, reckoning)
    reader = _READERS.get(word)
    return reader(sentence, place, reckoning) if reader else _day_month(sentence, place, reckoning)


def _feast(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "christmas eve 2026" and "new year's day": the day of the month that is called so."""
    last = place + 1
    if sentence.word(place) == "new":
        if sentence.word(last) not in {"year", "years"}:
            return None
        last += 1
    feast = FEASTS[sentence.word(place)].get(sentence.word(last))
    return _dated(sentence, last + 1, *feast, reckoning) if feast else None


def _iso_day(text: str) -> date | None:
    return day_of(int(text[:4]), int(text[5:7]), int(text[8:10])) if len(text) == len("2026-01-01") else None


def _slashed(sentence: Sentence, place: int, day_first: bool | None) -> Day | None:
    """Read "2026/03/01" and "01/03/2026", the second both ways unless a part is above 12 or the order is known."""
    text = sentence.tokens[place].text
    mark = next(letter for letter in text if not letter.isdigit())
    parts = text.split(mark)
    numbers = [int(part) for part in parts]
    if len(parts[0]) == 4:
        found = day_of(*numbers)
        return Day((found,), place + 1) if found else None
    first, second, year = numbers
    year = full_year(year) if len(parts[2]) == 2 else year
    # with points it is day, month, year wherever it is written so
    day_first = True if mark == "." else day_first
    orders = (
        [(second, first), (first, second)] if day_first is None else [(second, first) if day_first else (first, second)]
    )
    days = dict.fromkeys(day for month, day_number in orders if (day := day_of(year, month, day_number)))
    return Day(tuple(days), place + 1) if days else None


def _day_month(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "5 May", "the 5th of May, 2026", "twenty-first March"."""
    number, end = _day_number(sentence, place)
    if number is None:
        return counted_weekday(sentence, place, reckoning)
    is_dashed = sentence.symbol(end) == "-" and sentence.after_hyphen(end) > end
    end += is_dashed or sentence.word(end) in OF
    month = MONTHS.get(sentence.word(end))
    if month is None:
        return (
            counted_weekday(sentence, place, reckoning)
            or _of_said_month(sentence, place, end, number, reckoning)
            or _of_shared_month(sentence, place, end, number, reckoning)
        )
    if _is_verb(sentence, end, end + 1):
        return None
    if is_dashed:
        return _dashed(sentence, end + 1, month, number, reckoning)
    end += sentence.symbol(end + 1) == "." and sentence.is_glued(end + 1) and sentence.whole(end + 2) is not None
    return _dated(sentence, end + 1, month, number, reckoning)


def _dashed(sentence: Sentence, end: int, month: int, number: int, reckoning: Reckoning) -> Day | None:
    """Read the year of "20-Nov-2026", dashes and all."""
    year = sentence.whole(end + 1) if sentence.after_hyphen(end) > end else None
    if year is None:
        return _dated(sentence, end, month, number, reckoning)
    found = day_of(full_year(year) if year < 100 else year, month, number)
    return Day((found,), end + 2) if found else None


def _of_said_month(sentence: Sentence, place: int, end: int, number: int, reckoning: Reckoning) -> Day | None:
    """Read "the 3rd of next month" and "the first of the month" from the ordinal on; *end* is behind its "of"."""
    said = sentence.token(end + 1)
    is_possessive = said is not None and sentence.text.endswith("'s", said.start, said.end)
    if ordinal_at(sentence, place) is None or sentence.word(end + 1) != "month" or is_possessive:
        return None
    if sentence.word(end) == "the":
        return _of_month(number, end + 2, reckoning)
    step = step_at(sentence, end)
    if step is None:
        return None
    first = around(reckoning.today, "month", step).start
    found = day_of(first.year, first.month, number)
    return Day((found,), end + 2, is_relative=True) if found else None


def _day_number(sentence: Sentence, place: int) -> tuple[int | None, int]:
    if ordinal := ordinal_at(sentence, place):
        return ordinal if 1 <= ordinal[0] <= 31 else (None, place)
    number = sentence.whole(place)
    if number is None or not 1 <= number <= 31 or len(sentence.tokens[place].text) > 2:
        return None, place
    # "3. März" has a point
    return number, place + 1 + (sentence.symbol(place + 1) == "." and sentence.is_glued(place + 1))


def _month_day(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "May 5", "March 1st, 2026", "Sept. 3", "May the fourth"."""
    after = place + 1 + (sentence.symbol(place + 1) == "." and sentence.is_glued(place + 1))
    after += sentence.word(after) == "the"
    number, end = (None, after) if sentence.is_glued(after) else _day_number(sentence, after)
    is_other = counts_something(sentence, end) or _is_decimal_place(sentence, end) or _is_verb(sentence, place, end)
    if number is None or is_other:
        return None
    end = end - 1 if sentence.symbol(end - 1) == "." else end
    return _dated(sentence, end, MONTHS[sentence.tokens[place].text], number, reckoning)


def _is_verb(sentence: Sentence, place: int, end: int) -> bool:
    """True for the "may" and "march" of "I may 5 times" and "5 may work": a doer or a deed is beside them."""
    if sentence.word(place) not in {"may", "march"}:
        return False
    return sentence.word(place - 1) in _WHO or sentence.word(end) in _DOES


def _is_decimal_place(sentence: Sentence, place: int) -> bool:
    return sentence.symbol(place) in {"-", "/"} and sentence.is_glued(place) and sentence.kind(place + 1) == "word"


def _dated(sentence: Sentence, end: int, month: int, number: int, reckoning: Reckoning) -> Day | None:
    if year := year_at(sentence, end):
        found = day_of(year[0], month, number)
        return Day((found,), year[1]) if found else None
    if shared := year_said_later(sentence, end, month):
        found = day_of(shared, month, number)
        return Day((found,), end) if found else None
    found = nearest(reckoning.today, month, number, reckoning.lean)
    return Day((found,), end, is_relative=True) if found else None


def _weekday(sentence: Sentence, place: int, reckoning: Reckoning, step: int | None = None) -> Day | None:
    """Read "friday", and "friday, 5 May" as the day that it names."""
    after = place + 1 + (sentence.symbol(place + 1) in {",", "."})
    after += sentence.word(after) == "the"
    if step is None and (day := day_at(sentence, after, reckoning) if _opens_date(sentence, after) else None):
        return day
    return weekday_at(sentence, place, reckoning, step)


def _opens_date(sentence: Sentence, place: int) -> bool:
    return sentence.kind(place) in {"iso", "date", "number"} or (
        sentence.kind(place) == "word" and (sentence.word(place) in MONTHS or ordinal_at(sentence, place) is not None)
    )


def _stepped(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "next friday", "last 5 May" no further than the weekday; "last day of the month"."""
    if sentence.word(place) == "last":
        day = _edge(sentence, place, reckoning) or counted_weekday(sentence, place, reckoning)
        if day:
            return day
    if day := weekday_of_week(sentence, place, reckoning):
        return day
    coming = place + (sentence.word(place) in {"this", "the"})
    if sentence.word(coming) in _COMING and (day := coming_weekday(sentence, coming + 1, reckoning)):
        return day
    if sentence.word(place + 1) in WEEKDAYS:
        return _weekday(sentence, place + 1, reckoning, STEPS[sentence.word(place)])
    # "this morning at 9": the hour decides, and "morning" alone has none
    is_part = sentence.word(place) == "this" and sentence.word(place + 1) in DAY_PARTS
    has_hour = sentence.word(place + 2) == "at" and sentence.kind(place + 3) in {"number", "clock"}
    return Day((reckoning.today,), place + 1, is_relative=True) if is_part and has_hour else None


def _edge(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "end of the month", "the first day of next year", "the beginning of March 2026"."""
    word = sentence.word(place)
    after = place + 1
    if word in {"first", "last"}:
        if sentence.word(after) != "day":
            return None
        after += 1
    if sentence.word(after) not in {"of", "in"}:
        return None
    stretch = stretch_of(sentence, after + 1, reckoning)
    if stretch is None:
        return None
    days, end, is_relative = stretch
    return Day((days.end if _ENDS[word] else days.start,), end, is_relative)


def _the(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "the day after tomorrow", "the 5th of May", "the end of the month" and the bare "on the 5th"."""
    word = sentence.word(place + 1)
    if word == "day" and sentence.word(place + 2) in {"after", "before"}:
        return _beside(sentence, place + 1, reckoning)
    if word in _ENDS and (day := _edge(sentence, place + 1, reckoning)):
        return day
    if day := _day_month(sentence, place + 1, reckoning):
        return day
    ordinal = ordinal_at(sentence, place + 1)
    if ordinal is None:
        return None
    number, end = ordinal
    # "the 25th at 6pm"; "the 1st" is all of an answer
    is_all = all(sentence.symbol(one) in _MARKS for one in range(end, min(end + 3, len(sentence.tokens))))
    is_day = place == 0 and (is_all or clock_at(sentence, end, has_day=True) is not None)
    if not is_day and sentence.word(place - 1) not in {"on", "by", "until", "from", "to", "since"}:
        return None
    if sentence.kind(end) in {"number", "fraction"} or (sentence.word(end) and sentence.word(end) not in _AFTER_DAY):
        return None
    return _of_month(number, end, reckoning)


def _month_said_later(sentence: Sentence, place: int) -> int | None:
    """Return where the month stands that the days from *place* share with the one before: "the 3rd and 4th of May"."""
    for _ in range(_MOST_SHARED):
        if sentence.word(place) not in {"and", "or"} and sentence.symbol(place) not in {",", "&"}:
            return None
        place += 1 + (sentence.symbol(place) == "," and sentence.word(place + 1) in {"and", "or"})
        place += sentence.word(place) == "on"
        number, end = _day_number(sentence, place + (sentence.word(place) == "the"))
        if number is None:
            return None
        place = end
        month = place + (sentence.word(place) in OF)
        if sentence.word(month) in MONTHS and not _is_verb(sentence, month, month + 1):
            return month
    return None


def _of_shared_month(sentence: Sentence, place: int, end: int, number: int, reckoning: Reckoning) -> Day | None:
    """Read the "3rd" of "the 3rd and 4th of May"; a number without its ending may be of the name before it."""
    month = _month_said_later(sentence, end) if ordinal_at(sentence, place) else None
    if month is None:
        return None
    day = _dated(sentence, month + 1, MONTHS[sentence.word(month)], number, reckoning)
    return day._replace(end=end) if day else None


def _of_month(number: int, end: int, reckoning: Reckoning) -> Day | None:
    step = 1 if reckoning.lean == "future" else -1
    for months in range(3):
        first = around(reckoning.today, "month", step * months).start
        day = day_of(first.year, first.month, number)
        if day and (day >= reckoning.today if step > 0 else day <= reckoning.today):
            return Day((day,), end, is_relative=True)
    return None


def _beside(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "day after tomorrow" and "day before 5 May"."""
    sign = {"after": 1, "before": -1}.get(sentence.word(place + 1))
    at = place + 2
    # "the day after the day after ..." would never end
    is_again = "day" in {sentence.word(at), sentence.word(at + 1)}
    day = day_at(sentence, at, reckoning) if sign is not None and not is_again else None
    if sign is None:
        return None
    if day is None:
        return None
    return Day(tuple(one + timedelta(days=sign) for one in day.readings), day.end, day.is_relative)


_READERS: dict[str, Callable[[Sentence, int, Reckoning], Day | None]] = {
    "the": _the, "day": _beside, "end": _edge, "close": _edge, "start": _edge, "beginning": _edge, "last": _stepped,
    "next": _stepped, "this": _stepped, "coming": _stepped, "previous": _stepped, "past": _stepped,
    "upcoming": _stepped,
}  # fmt: skip
