"""Days in words and digits: "1 March 2026", "01/03/2026", "next friday", "the end of the month"; every reading.

A day that is reckoned from now ("tomorrow", "5 May") says so, whatever now is.
"""

from collections.abc import Callable
from datetime import date, datetime, timedelta
from typing import NamedTuple, get_args

from tasklore.contracts.quantities.sentence import Sentence
from tasklore.contracts.quantities.times.calendar import (
    Grain,
    Lean,
    Period,
    around,
    day_of,
    nearest,
    weekdays_meant,
)
from tasklore.contracts.quantities.times.clocks import clock_at
from tasklore.contracts.quantities.times.words import (
    MONTHS,
    RELATIVE_DAYS,
    STEPS,
    UNSURE_WEEKDAYS,
    WEEKDAYS,
    ordinal_at,
)
from tasklore.contracts.quantities.units import unit_named

_GRAINS: dict[str, Grain] = {grain: grain for grain in get_args(Grain)}
#: Two digits from here on are a year of the last century, as POSIX has it.
_FIRST_OF_1900S = 69
#: Of weekdays in a month there are five at most; "the second tuesday" is no day without its month.
_MOST_WEEKS = 5
#: Beside a "may" they make it a verb.
_WHO = frozenset(
    {
        "i",
        "you",
        "we",
        "they",
        "he",
        "she",
        "it",
        "who",
        "that",
        "this",
        "which",
        "people",
        "one",
    }
)
_DOES = frozenset({"be", "have", "not", "also", "still", "well", "work", "need", "want", "cost", "take", "go", "come",
                   "get", "do", "help", "seem", "fit", "like", "times", "people"})  # fmt: skip
_EDGES = {"end": True, "last": True, "start": False, "beginning": False, "first": False}
#: A short name of a weekday that is another word too counts after these.
_BEFORE_SHORT = frozenset({"on", "by", "until", "from", "till", "for"})
#: After "on the 5th" they show that the day of the month is meant, and no fifth floor.
_AFTER_DAY = frozenset(
    {
        "at",
        "or",
        "and",
        "for",
        "to",
        "until",
        "till",
        "in",
        "with",
        "i",
        "we",
        "please",
        "by",
    }
)
_WEEK = timedelta(days=7)
#: Between two days or months of which the second says the year of both.
_SHARING = frozenset({"and", "or", "to", "until", "till", "through"})
_BEFORE_DAY = frozenset({"on", "by", "until", "from", "to", "since"})


class Reckoning(NamedTuple):
    """What a day is reckoned from, which way it leans, and whether the day or the month is written first, if known."""

    now: datetime
    lean: Lean = "future"
    day_first: bool | None = None

    @property
    def today(self) -> date:
        """The day of now, where now is told."""
        return self.now.date()


class Day(NamedTuple):
    """The days that some words can mean, before token *end*; *is_relative* when another now would give another day."""

    readings: tuple[date, ...]
    end: int
    is_relative: bool = False


class Reach(NamedTuple):
    """A period that ends before token *end*; *is_relative* when another now would give another one."""

    period: Period
    end: int
    is_relative: bool


def day_at(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Return the day at *place*, None when no day, or no day of the calendar, is there.

    Raises:
        OverflowError: a day outside the years 1 to 9999.
    """
    kind = sentence.kind(place)
    if kind == "iso":
        text = sentence.tokens[place].text
        found = (
            day_of(int(text[:4]), int(text[5:7]), int(text[8:10]))
            if len(text) == len("2026-01-01")
            else None
        )
        return Day((found,), place + 1) if found else None
    if kind == "date":
        return _read_slashes(sentence, place, reckoning.day_first)
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
        return _weeks_on(
            sentence,
            (reckoning.today + timedelta(days=RELATIVE_DAYS[word]),),
            place + 1,
        )
    reader = _READERS.get(word)
    return (
        reader(sentence, place, reckoning)
        if reader
        else _day_month(sentence, place, reckoning)
    )


def full_year(short: int) -> int:
    """Return the year that the two digits *short* stand for."""
    return short + (1900 if short >= _FIRST_OF_1900S else 2000)


def year_at(sentence: Sentence, place: int) -> tuple[int, int] | None:
    """Return the year at *place*, after a comma, "of" or "in", or "'26", and the place after it."""
    if sentence.symbol(place) == "'" and sentence.is_glued(place + 1):
        short = sentence.whole(place + 1)
        is_short = short is not None and len(sentence.tokens[place + 1].text) == 2
        return (full_year(short), place + 2) if is_short and short is not None else None
    at = place + (sentence.symbol(place) == "," or sentence.word(place) in {"of", "in"})
    year = sentence.whole(at)
    if (
        year is None
        or len(sentence.tokens[at].text) != 4
        or year == 0
        or counts_something(sentence, at + 1)
    ):
        return None
    return year, at + 1


def counts_something(sentence: Sentence, place: int) -> bool:
    """True when a unit, a mark of money or more letters at *place* make the number before it something else."""
    token = sentence.token(place)
    if token is None or token.kind not in {"word", "symbol"}:
        return False
    if token.kind == "symbol":
        return token.text in {"%", "$", "€", "£", "¥", "₹"}
    return token.is_glued or unit_named(token.text) is not None


def number_of_day(sentence: Sentence, place: int) -> tuple[int, int] | None:
    """Return the day of the month at *place*, "3" or "3rd", and the place after it."""
    if found := ordinal_at(sentence, place):
        return found if 1 <= found[0] <= 31 else None
    number = sentence.whole(place)
    is_day = (
        number is not None
        and 1 <= number <= 31
        and len(sentence.tokens[place].text) <= 2
    )
    return (number, place + 1) if number and is_day else None


def stretch_of(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Return the week, month or year at *place* ("next year", "March 2026", "the month").

    Raises:
        OverflowError: days outside the years 1 to 9999.
    """
    at = place + (sentence.word(place) == "the")
    if month := MONTHS.get(sentence.word(at)):
        if year := year_at(sentence, at + 1):
            return Reach(
                around(date(year[0], month, 1), "month"), year[1], is_relative=False
            )
        near = nearest(around(reckoning.today, "month").start, month, 1, reckoning.lean)
        return Reach(around(near, "month"), at + 1, is_relative=True) if near else None
    if year := year_at(sentence, at):
        return Reach(around(date(year[0], 1, 1), "year"), year[1], is_relative=False)
    step = STEPS.get(sentence.word(at))
    grain = _GRAINS.get(sentence.word(at + (step is not None)))
    if grain is None or (step is None and at == place):
        return None
    return Reach(
        around(reckoning.today, grain, step or 0),
        at + 1 + (step is not None),
        is_relative=True,
    )


def _read_slashes(sentence: Sentence, place: int, day_first: bool | None) -> Day | None:
    """Read "2026/03/01" and "01/03/2026", the second both ways unless a part is above 12 or the order is known."""
    text = sentence.tokens[place].text
    mark = next(letter for letter in text if not letter.isdigit())
    parts = text.split(mark)
    first, second, third = map(int, parts)
    if len(parts[0]) == 4:
        found = day_of(first, second, third)
        return Day((found,), place + 1) if found else None
    year = full_year(third) if len(parts[2]) == 2 else third
    # with points it is day, month, year wherever it is written so
    day_first = True if mark == "." else day_first
    orders = [(second, first), (first, second)]
    orders = orders if day_first is None else orders[:1] if day_first else orders[1:]
    days = dict.fromkeys(
        day for month, number in orders if (day := day_of(year, month, number))
    )
    return Day(tuple(days), place + 1) if days else None


def _day_month(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "5 May", "the 5th of May, 2026", "twenty-first March", "20-Nov-2026", "the 3rd of next month"."""
    found = number_of_day(sentence, place)
    if found is None:
        return None
    number, end = found
    end += sentence.symbol(end) == "." and sentence.is_glued(end)
    is_dashed = sentence.symbol(end) == "-" and sentence.after_hyphen(end) > end
    end += is_dashed or sentence.word(end) == "of"
    month = MONTHS.get(sentence.word(end))
    if month is None:
        return _of_said_month(
            sentence, place=place, end=end, number=number, reckoning=reckoning
        )
    if _is_verb(sentence, end, end + 1):
        return None
    end += 1
    year = (
        sentence.whole(end + 1)
        if is_dashed and sentence.after_hyphen(end) > end
        else None
    )
    if year is not None:
        day = day_of(full_year(year) if year < 100 else year, month, number)
        return Day((day,), end + 2) if day else None
    end += (
        sentence.symbol(end) == "."
        and sentence.is_glued(end)
        and sentence.whole(end + 1) is not None
    )
    return _date_of(sentence, end=end, month=month, number=number, reckoning=reckoning)


def _of_said_month(
    sentence: Sentence, place: int, end: int, number: int, reckoning: Reckoning
) -> Day | None:
    """Read "the 3rd of next month" and "the first of the month" from the ordinal on; *end* is behind its "of"."""
    said = sentence.token(end + 1)
    # "this month's bills" are no month
    if (
        ordinal_at(sentence, place) is None
        or said is None
        or sentence.text[said.start : said.end] != "month"
    ):
        return None
    if sentence.word(end) == "the":
        return _of_month(number, end + 2, reckoning)
    step = STEPS.get(sentence.word(end))
    if step is None:
        return None
    first = around(reckoning.today, "month", step).start
    found = day_of(first.year, first.month, number)
    return Day((found,), end + 2, is_relative=True) if found else None


def _month_day(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "May 5", "March 1st, 2026", "Sept. 3", "May the fourth"."""
    after = (
        place + 1 + (sentence.symbol(place + 1) == "." and sentence.is_glued(place + 1))
    )
    after += sentence.word(after) == "the"
    found = (
        None
        if sentence.is_glued(after) and sentence.symbol(after - 1) != "."
        else number_of_day(sentence, after)
    )
    if found is None:
        return None
    number, end = found
    is_decimal = (
        sentence.symbol(end) in {"-", "/"}
        and sentence.is_glued(end)
        and sentence.kind(end + 1) == "word"
    )
    if is_decimal or counts_something(sentence, end) or _is_verb(sentence, place, end):
        return None
    return _date_of(
        sentence,
        end=end,
        month=MONTHS[sentence.tokens[place].text],
        number=number,
        reckoning=reckoning,
    )


def _is_verb(sentence: Sentence, place: int, end: int) -> bool:
    """True for the "may" and "march" of "I may 5 times" and "5 may work": a doer or a deed is beside them."""
    if sentence.word(place) not in {"may", "march"}:
        return False
    return sentence.word(place - 1) in _WHO or sentence.word(end) in _DOES


def _date_of(
    sentence: Sentence, end: int, month: int, number: int, reckoning: Reckoning
) -> Day | None:
    if year := year_at(sentence, end):
        found = day_of(year[0], month, number)
        return Day((found,), year[1]) if found else None
    if shared := year_said_later(sentence, end, month):
        found = day_of(shared, month, number)
        return Day((found,), end) if found else None
    found = nearest(reckoning.today, month, number, reckoning.lean)
    return Day((found,), end, is_relative=True) if found else None


def year_said_later(sentence: Sentence, place: int, month: int) -> int | None:
    """Return the year that a *month* before *place* shares with the next one: "3 May to 10 June 2025"."""
    if sentence.word(place) not in _SHARING and sentence.symbol(place) != "-":
        return None
    place += 1 + (sentence.word(place + 1) == "the")
    first = number_of_day(sentence, place)
    place = first[1] if first else place
    place += sentence.word(place) == "of"
    later = MONTHS.get(sentence.word(place))
    second = number_of_day(sentence, place + 1)
    year = year_at(sentence, second[1] if second else place + 1) if later else None
    return year[0] - (later < month) if year and later else None


def _of_month(number: int, end: int, reckoning: Reckoning) -> Day | None:
    step = 1 if reckoning.lean == "future" else -1
    for months in range(3):
        first = around(reckoning.today, "month", step * months).start
        day = day_of(first.year, first.month, number)
        if day and (day >= reckoning.today if step > 0 else day <= reckoning.today):
            return Day((day,), end, is_relative=True)
    return None


def _weekday(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "friday", "friday of next week", and "friday, 5 May" as the day that it names."""
    after = place + 1 + (sentence.symbol(place + 1) in {",", "."})
    after += sentence.word(after) == "the"
    is_dated = (
        sentence.kind(after) in {"iso", "date", "number"}
        or sentence.word(after) in MONTHS
    )
    if (is_dated or ordinal_at(sentence, after)) and (
        day := day_at(sentence, after, reckoning)
    ):
        return day
    word = sentence.word(place)
    counted = ordinal_at(sentence, place - 1 - sentence.is_glued(place - 1))
    is_counted = (
        counted is not None and counted[1] == place and counted[0] <= _MOST_WEEKS
    )
    if (
        word in UNSURE_WEEKDAYS and sentence.word(place - 1) not in _BEFORE_SHORT
    ) or is_counted:
        return None
    if week := _week_at(sentence, place + 1):
        first = around(reckoning.today, "week", week[0]).start
        return Day((first + timedelta(days=WEEKDAYS[word]),), week[1], is_relative=True)
    if (sentence.word(place + 1), sentence.word(place + 2)) == ("after", "next"):
        days = tuple(weekdays_meant(reckoning.today, WEEKDAYS[word], 1, reckoning.lean))
        return Day(tuple(one + _WEEK for one in days), place + 3, is_relative=True)
    return _weeks_on(
        sentence,
        tuple(weekdays_meant(reckoning.today, WEEKDAYS[word], None, reckoning.lean)),
        place + 1,
    )


def _weeks_on(sentence: Sentence, days: tuple[date, ...], end: int) -> Day:
    """Return *days* with the weeks that a word at *end* adds: "friday week", "tomorrow fortnight"."""
    weeks = {"week": 1, "fortnight": 2}.get(sentence.word(end), 0)
    follows = sentence.word(end + 1)
    is_added = (
        weeks
        and (not follows or follows in _AFTER_DAY)
        and sentence.kind(end + 1) != "number"
    )
    return Day(
        tuple(one + weeks * _WEEK for one in days) if is_added else days,
        end + bool(is_added),
        is_relative=True,
    )


def _week_at(sentence: Sentence, place: int) -> tuple[int, int] | None:
    """Return which week "next week", "of last week" at *place* says, and the place after it."""
    at = place + (sentence.word(place) == "of")
    step = STEPS.get(sentence.word(at))
    return (
        (step, at + 2) if step is not None and sentence.word(at + 1) == "week" else None
    )


def weekday_of_week(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Return the day of "next week on friday" and "last week friday", from the "next" on."""
    week = _week_at(sentence, place)
    if week is None:
        return None
    at = week[1] + (sentence.word(week[1]) == "on")
    weekday = WEEKDAYS.get(sentence.word(at))
    if weekday is None or _week_at(sentence, at + 1):
        return None
    return Day(
        (around(reckoning.today, "week", week[0]).start + timedelta(days=weekday),),
        at + 1,
        is_relative=True,
    )


def _read_step(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "next friday", "last week on friday" and "last day of the month"."""
    word = sentence.word(place)
    if word == "last" and (day := _edge(sentence, place, reckoning)):
        return day
    if day := weekday_of_week(sentence, place, reckoning):
        return day
    at = (
        place
        + 1
        + (word == "this" and sentence.word(place + 1) in {"coming", "upcoming"})
    )
    weekday = WEEKDAYS.get(sentence.word(at))
    if (
        weekday is not None
        and sentence.word(at + 1) in {"of", "in"}
        and stretch_of(sentence, at + 2, reckoning)
    ):
        # "the last friday of May" is counted from its month, which nothing here does
        return None
    if weekday is not None:
        today = reckoning.today
        if sentence.word(at - 1) in {"coming", "upcoming"}:
            return Day(
                (today + timedelta(days=(weekday - today.weekday()) % 7 or 7),),
                at + 1,
                is_relative=True,
            )
        return Day(
            tuple(weekdays_meant(today, weekday, STEPS[word], reckoning.lean)),
            at + 1,
            is_relative=True,
        )
    # "this morning at 9": the hour decides, and "morning" alone has none
    is_part = word == "this" and sentence.word(place + 1) in {
        "morning",
        "afternoon",
        "evening",
    }
    has_hour = sentence.word(place + 2) == "at" and sentence.kind(place + 3) in {
        "number",
        "clock",
    }
    return (
        Day((reckoning.today,), place + 1, is_relative=True)
        if is_part and has_hour
        else None
    )


def _edge(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "end of the month", "the first day of next year", "the beginning of March 2026"."""
    word = sentence.word(place)
    after = place + 1
    if word in {"first", "last"}:
        if sentence.word(after) != "day":
            return None
        after += 1
    reach = (
        stretch_of(sentence, after + 1, reckoning)
        if sentence.word(after) in {"of", "in"}
        else None
    )
    if reach is None:
        return None
    return Day(
        (reach.period.end if _EDGES[word] else reach.period.start,),
        reach.end,
        reach.is_relative,
    )


def _the(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "the day after tomorrow", "the 5th of May", "the end of the month" and the bare "on the 5th"."""
    word = sentence.word(place + 1)
    if word == "day":
        return _beside(sentence, place + 1, reckoning)
    if word in _EDGES and (day := _edge(sentence, place + 1, reckoning)):
        return day
    if day := _day_month(sentence, place + 1, reckoning):
        return day
    ordinal = ordinal_at(sentence, place + 1)
    if ordinal is None:
        return None
    number, end = ordinal
    # "the 25th at 6pm"; "the 1st" is all of an answer
    is_last = all(
        sentence.symbol(one) in {".", "!", "?"}
        for one in range(end, min(end + 3, len(sentence.tokens)))
    )
    is_all = place == 0 and (
        is_last or clock_at(sentence, end, has_day=True) is not None
    )
    if not is_all and sentence.word(place - 1) not in _BEFORE_DAY:
        return None
    if sentence.kind(end) in {"number", "fraction"} or (
        sentence.word(end) and sentence.word(end) not in _AFTER_DAY
    ):
        return None
    return _of_month(number, end, reckoning)


def _beside(sentence: Sentence, place: int, reckoning: Reckoning) -> Day | None:
    """Read "day after tomorrow" and "day before 5 May"."""
    sign = {"after": 1, "before": -1}.get(sentence.word(place + 1))
    at = place + 2
    # "the day after the day after ..." would never end
    is_again = "day" in {sentence.word(at), sentence.word(at + 1)}
    day = day_at(sentence, at, reckoning) if sign is not None and not is_again else None
    if sign is None or day is None:
        return None
    return Day(
        tuple(one + timedelta(days=sign) for one in day.readings),
        day.end,
        day.is_relative,
    )


_READERS: dict[str, Callable[[Sentence, int, Reckoning], Day | None]] = {
    "the": _the, "day": _beside, "end": _edge, "start": _edge, "beginning": _edge, "last": _read_step,
    "next": _read_step, "this": _read_step, "coming": _read_step, "previous": _read_step,
    "past": _read_step, "upcoming": _read_step,
}  # fmt: skip
