"""Stretches of days in sentences: "last week", "in March 2025", "between 3 and 7 May", "the first half of 2026"."""

from datetime import date, datetime, timedelta
from typing import NamedTuple

from quantities.numerals.numbers import number_at
from quantities.numerals.whole import Numbers
from quantities.sentence import Sentence
from quantities.times import days, words
from quantities.times.calendar import Lean, Period, around, nearest, shifted
from quantities.times.days import Reach, Reckoning
from quantities.times.moments import moment_at
from quantities.times.spans import after_span_joint, two_days_at
from quantities.times.words import MONTHS, STEPS

_BEFORE_MONTH = frozenset({"in", "during", "since", "for", "of", "from", "until", "this", "by", "last", "next"})
_BEFORE_YEAR = frozenset({"in", "during", "since", "year", "until"})
#: Bare numbers that may be the two ends of a period.
_YEARS = range(1900, 2101)
_A_WEEK = timedelta(days=7)


class FoundPeriod(NamedTuple):
    """A stretch of days, `sentence[start:end]` being *text*; *is_relative* when it is reckoned from now."""

    period: Period
    start: int
    end: int
    text: str
    is_relative: bool


def find_periods(
    text: str, now: datetime, *, lean: Lean = "past", day_first: bool | None = None
) -> tuple[FoundPeriod, ...]:
    """Return every stretch of days in *text*, in order and without overlaps; a day or a time is the period of its day.

    Weeks begin on Monday. "last 3 days" and "next 3 days" hold today. What has two readings is left out, and so is
    what no calendar tells ("this morning", "soon"). Linear in the length of *text*.

    Args:
        text: any sentence.
        now: what the words are reckoned from.
        lean: a month or a day without a year is the latest one gone, or with "future" the next one to come.
        day_first: what the writer puts first in "01/03/2026" when that is known.
    """
    sentence, reckoning = Sentence(text), Reckoning(now, lean, day_first)
    found: list[FoundPeriod] = []
    place = 0
    while place < len(sentence.tokens):
        reach = _period_at(sentence, place, reckoning) if words.may_open(sentence, place) else None
        if reach is not None:
            found.append(FoundPeriod(reach.period, *sentence.cut(place, reach.end), reach.is_relative))
        place = reach.end if reach else place + 1
    return tuple(found)


def _period_at(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    try:
        return _span_at(sentence, place, reckoning) or _day(sentence, place, reckoning)
    except OverflowError:
        return None


def _span_at(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Return a period of several days at *place*, None for a single day."""
    kind, word = sentence.kind(place), sentence.word(place)
    if kind == "number":
        return _between(sentence, place, reckoning) or _year(sentence, place)
    if word in {"between", "from"}:
        return _between(sentence, place + 1, reckoning)
    if word == "since":
        first = _end_at(sentence, place + 1, reckoning)
        is_gone = first is not None and first.period.start <= reckoning.today
        return Reach(Period(first.period.start, reckoning.today), first.end, True) if first and is_gone else None
    if word in MONTHS and _is_plain_word(sentence, place):
        return None
    found = _part_of_year(sentence, place, reckoning) or _stepped(sentence, place, reckoning)
    found = found or (_between(sentence, place, reckoning) if kind in {"word", "iso", "date"} else None)
    return found or (_month(sentence, place, reckoning) if word in MONTHS else None)


def _day(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    moment = moment_at(sentence, place, reckoning)
    told = {one.date() if isinstance(one, datetime) else one for one in moment.readings} if moment else set()
    if moment is None or len(told) != 1:
        return None
    day = told.pop()
    return Reach(Period(day, day), moment.end, moment.is_relative)


def _is_plain_word(sentence: Sentence, place: int) -> bool:
    """True for the "may" and "march" that are verbs: no year, day or "in" stands beside them."""
    word = sentence.word(place)
    if word not in words.UNSURE_MONTHS or days.year_at(sentence, place + 1):
        return False
    is_named = sentence.word(place - 1) in _BEFORE_MONTH or days.year_said_later(sentence, place + 1, MONTHS[word])
    return not is_named and sentence.kind(place + 1) != "number"


def _month(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Read "March 2025" and "March"; no month when a day stands beside it, be it one that the calendar lacks."""
    number, after = MONTHS[sentence.word(place)], place + 1
    year = days.year_at(sentence, after)
    is_dated = days.number_of_day(sentence, place - 1) or sentence.whole(after) == 0
    is_unsure = sentence.word(place) in words.UNSURE_MONTHS and sentence.kind(after) == "number" and year is None
    if is_dated or is_unsure or days.day_at(sentence, place, reckoning) is not None:
        return None
    if year is None and (shared := days.year_said_later(sentence, after, number)):
        return Reach(around(date(shared, number, 1), "month"), after, is_relative=False)
    return days.stretch_of(sentence, place, reckoning)


def _year(sentence: Sentence, place: int) -> Reach | None:
    """Read the 2025 of "in 2025" and "year 2025"."""
    number = sentence.whole(place)
    if not number or len(sentence.tokens[place].text) != 4 or sentence.word(place - 1) not in _BEFORE_YEAR:
        return None
    if days.counts_something(sentence, place + 1):
        return None
    return Reach(around(date(number, 1, 1), "year"), place + 1, is_relative=False)


def _part_of_year(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Read "Q3 2025", "H1", "first half of 2026", "the last quarter of last year"."""
    place += sentence.word(place) == "the"
    word, name = sentence.word(place), sentence.word(place + 1)
    if word in {"q", "h"} and sentence.is_glued(place + 1):
        number, end, size = sentence.whole(place + 1), place + 2, 3 if word == "q" else 6
    elif word == "last" and name in {"half", "quarter"} and sentence.word(place + 2) == "of":
        number, end, size = (4, place + 2, 3) if name == "quarter" else (2, place + 2, 6)
    elif (which := words.ordinal_at(sentence, place)) and sentence.word(which[1]) in {"half", "quarter"}:
        number, end, size = which[0], which[1] + 1, 6 if sentence.word(which[1]) == "half" else 3
    else:
        return None
    if number is None or not 1 <= number <= 12 // size:
        return None
    year, is_relative = reckoning.today.year, True
    if said := days.year_at(sentence, end):
        (year, end), is_relative = said, False
    elif sentence.word(end) == "of":
        whole = days.stretch_of(sentence, end + 1, reckoning)
        if whole is None or around(whole.period.start, "year") != whole.period:
            return None
        year, end = whole.period.start.year, whole.end
    elif word not in {"q", "h"}:
        return None
    first = date(year, (number - 1) * size + 1, 1)
    return Reach(Period(first, shifted(first, size) - timedelta(days=1)), end, is_relative)


def _stepped(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Read "last week", "next month", "the past two weeks", "last March", "next 3 days"."""
    place += sentence.word(place) == "the"
    step = STEPS.get(sentence.word(place))
    if step is None or days.weekday_of_week(sentence, place, reckoning):
        return None
    if grain := days.GRAINS.get(sentence.word(place + 1)):
        if sentence.word(place) == "past" and grain not in {"weekend", "day"}:
            return _counted(sentence, place + 1, reckoning, -1)
        return Reach(around(reckoning.today, grain, step), place + 2, is_relative=True)
    if not step:
        return None
    if month := MONTHS.get(sentence.word(place + 1)):
        today = around(reckoning.today, "month").start
        near = nearest(shifted(today, step), month, 1, "past" if step < 0 else "future")
        is_free = near is not None and sentence.kind(place + 2) != "number"
        return Reach(around(near, "month"), place + 2, is_relative=True) if is_free and near else None
    found = number_at(Numbers(sentence), place + 1)
    if found is None or len(found[0]) != 1 or found[0][0] != int(found[0][0]) or found[0][0] < 1:
        return None
    return _counted(sentence, found[1], reckoning, step * int(found[0][0]))


def _counted(sentence: Sentence, place: int, reckoning: Reckoning, count: int) -> Reach | None:
    """Return the last or next *count* units up to today; None for units below a day."""
    unit = words.UNITS.get(sentence.word(place))
    if unit is None or unit.rank < words.DAY.rank:
        return None
    today = reckoning.today
    other = shifted(today, unit.months * count) + timedelta(days=int(unit.seconds // 86_400) * count)
    return Reach(Period(min(today, other), max(today, other)), place + 1, is_relative=True)


def _between(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Read "3 and 7 May", "March to June 2025", "May 3-7", "2020 until 2023" from the first of the two ends."""
    if two := two_days_at(sentence, place, reckoning):
        return Reach(Period(two.first, two.last), two.end, two.is_relative)
    first = _end_at(sentence, place, reckoning)
    joint = after_span_joint(sentence, place, first.end) if first else None
    last = _end_at(sentence, joint, reckoning) if joint else None
    if first is None or last is None:
        return None
    start, end = first.period.start, last.period.end
    if first.is_relative and not last.is_relative:
        # "March to June 2025": the year is said once
        moved = shifted(start, 12 * (end.year - start.year))
        start = moved if moved <= end else shifted(moved, -12)
    elif start > end and sentence.word(place) in words.WEEKDAYS and start - end < _A_WEEK:
        # "from monday to friday", said between them
        end, start = (end + _A_WEEK, start) if reckoning.lean == "future" else (end, start - _A_WEEK)
    elif start > end and last.is_relative:
        end = shifted(end, 12) if reckoning.lean == "future" else end
        start = shifted(start, -12) if start > end else start
    return Reach(Period(start, end), last.end, first.is_relative and last.is_relative) if start <= end else None


def _end_at(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Return a day, a month or a year that can be one end of a period."""
    if sentence.word(place) in MONTHS and (month := _month(sentence, place, reckoning)):
        return month
    number = sentence.whole(place)
    if number is not None and number in _YEARS and not days.counts_something(sentence, place + 1):
        return Reach(around(date(number, 1, 1), "year"), place + 1, is_relative=False)
    return _day(sentence, place, reckoning) or _stepped(sentence, place, reckoning)
