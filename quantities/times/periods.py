"""Stretches of days in sentences: "last week", "in March 2025", "between 3 and 7 May", "the first half of 2026"."""

from collections.abc import Iterator
from datetime import date, datetime, timedelta
from typing import NamedTuple

from quantities.times.calendar import Lean, Period, around, nearest, shifted, vague_period
from quantities.times.chinese import chinese_periods
from quantities.times.days import day_at
from quantities.times.foreign import foreign_period
from quantities.times.joint import after_joint, number_of_day, two_days_at
from quantities.times.languages import MONTHS, UNSURE_MONTHS, may_open
from quantities.times.moments import moment_at
from quantities.times.numbers import cardinal_at, ordinal_at
from quantities.times.reckoning import (
    Reckoning,
    counts_something,
    grain_at,
    step_at,
    stretch_of,
    year_at,
    year_said_later,
)
from quantities.times.tokens import Sentence, fold, sentence_of
from quantities.times.weekdays import weekday_of_week
from quantities.times.words import DAY, UNITS, WEEKDAYS, LengthUnit

_BEFORE_MONTH = frozenset(
    {"in", "during", "since", "for", "of", "from", "until", "this", "by", "through", "throughout"}
)
_BEFORE_YEAR = frozenset({"in", "during", "since", "year", "until", "throughout"})
#: Bare numbers that may be the two ends of a period.
_YEARS = range(1900, 2101)
_WEEK = 7
_A_WEEK = timedelta(days=_WEEK)
_GRAINS_SO_FAR = frozenset({"week", "weekend", "month", "quarter", "year"})
#: What joins a week to the day that tells which one.
_OF_DAY = frozenset({"of", "beginning", "starting", "commencing"})
_FEW = {"few": "few", "several": "few", "couple": "couple"}


class FoundPeriod(NamedTuple):
    """A stretch of days, `sentence[start:end]` being *text*; *is_relative* when it is reckoned from now."""

    period: Period
    start: int
    end: int
    text: str
    is_relative: bool


class Reach(NamedTuple):
    """A period that ends before token *end*; *is_relative* when another now would give another one."""

    period: Period
    end: int
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
    reckoning = Reckoning(now, lean, day_first)
    found = list(scan_periods(sentence_of(text), reckoning))
    chinese = list(chinese_periods(fold(text), reckoning))
    if not chinese:
        return tuple(found)
    covered = {place for one in chinese for place in range(one.start, one.end)}
    found = [one for one in found if covered.isdisjoint(range(one.start, one.end))]
    for period, start, end, is_relative in chinese:
        found.append(FoundPeriod(period, start, end, text[start:end], is_relative))
    return tuple(sorted(found, key=lambda one: one.start))


def scan_periods(sentence: Sentence, reckoning: Reckoning) -> Iterator[FoundPeriod]:
    """Yield every period of *sentence*."""
    place = 0
    while place < len(sentence.tokens):
        reach = period_at(sentence, place, reckoning) if may_open(sentence, place) else None
        if reach is None:
            place += 1
            continue
        yield FoundPeriod(reach.period, *sentence.cut(place, reach.end), reach.is_relative)
        place = reach.end


def period_at(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Return the period that starts at *place*, None when there is none that the calendar holds."""
    try:
        return span_at(sentence, place, reckoning) or _day(sentence, place, reckoning)
    except OverflowError:
        return None


def span_at(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Return a period of several days at *place*, None for a single day.

    Raises:
        OverflowError: days outside the years 1 to 9999.
    """
    token = sentence.token(place)
    if token is None or token.kind not in {"word", "number", "iso", "date"}:
        return None
    if token.kind == "word" and (found := _worded(sentence, place, token.text, reckoning)):
        return found
    if found := _between(sentence, place, reckoning):
        return found
    if token.kind != "number":
        return None
    foreign = foreign_period(sentence, place, reckoning)
    return Reach(*foreign, is_relative=True) if foreign else _year(sentence, place)


def _worded(sentence: Sentence, place: int, word: str, reckoning: Reckoning) -> Reach | None:
    if word in {"between", "from"}:
        return _between(sentence, place + 1, reckoning)
    if word == "since":
        return _since(sentence, place, reckoning)
    if word in _GRAINS_SO_FAR and (found := _around_day(sentence, place, reckoning)):
        return found
    if found := _part_of_year(sentence, place, reckoning) or _stepped(sentence, place, reckoning):
        return found
    if found := _few_ago(sentence, place, reckoning):
        return found
    if word in MONTHS and not _is_plain_word(sentence, place):
        return _between(sentence, place, reckoning) or _month(sentence, place, reckoning)
    foreign = foreign_period(sentence, place, reckoning)
    return Reach(*foreign, is_relative=True) if foreign else None


def _around_day(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Read "week of 2 November", the week that holds the day, and "year to date"."""
    grain, after = grain_at(sentence, place), place + 2
    if grain is None:
        return None
    if sentence.word(place + 1) == "to" and sentence.word(after) == "date":
        return Reach(Period(around(reckoning.today, grain).start, reckoning.today), after + 1, is_relative=True)
    if grain not in {"week", "weekend"} or sentence.word(place + 1) not in _OF_DAY:
        return None
    day = day_at(sentence, after, reckoning)
    if day is None or len(day.readings) != 1:
        return None
    return Reach(around(day.readings[0], grain), day.end, day.is_relative)


def _day(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    moment = moment_at(sentence, place, reckoning)
    if moment is None:
        return None
    days = {one.date() if isinstance(one, datetime) else one for one in moment.readings}
    if len(days) != 1:
        return None
    day = days.pop()
    return Reach(Period(day, day), moment.end, moment.is_relative)


# -- months and years ---------------------------------------------------------------------------------------------


def _is_plain_word(sentence: Sentence, place: int) -> bool:
    """True for the "may" and "march" that are verbs: no year, day or "in" stands beside them."""
    if sentence.word(place) not in UNSURE_MONTHS or year_at(sentence, place + 1):
        return False
    if year_said_later(sentence, place + 1, MONTHS[sentence.word(place)]):
        return False
    is_named = sentence.word(place - 1) in _BEFORE_MONTH | {"last", "next"}
    return not is_named and sentence.kind(place + 1) != "number"


def _month(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Read "March 2025" and "March"; no month when a day stands beside it, be it one that the calendar lacks."""
    is_off_calendar = number_of_day(sentence, place - 1) or sentence.whole(place + 1) == 0
    if sentence.word(place) in UNSURE_MONTHS and sentence.kind(place + 1) == "number":
        is_off_calendar = is_off_calendar or year_at(sentence, place + 1) is None
    if is_off_calendar or day_at(sentence, place, reckoning) is not None:
        return None
    number = MONTHS[sentence.word(place)]
    if year_at(sentence, place + 1) is None and (year := year_said_later(sentence, place + 1, number)):
        return Reach(around(date(year, number, 1), "month"), place + 1, is_relative=False)
    stretch = stretch_of(sentence, place, reckoning)
    return Reach(*stretch) if stretch else None


def _year(sentence: Sentence, place: int) -> Reach | None:
    """Read the 2025 of "in 2025" and "year 2025", and "the 1990s"."""
    number = sentence.whole(place)
    if number is None or len(sentence.tokens[place].text) != 4 or number == 0:
        return None
    if sentence.word(place + 1) == "s" and sentence.is_glued(place + 1) and number % 10 == 0:
        return Reach(around(date(number, 1, 1), "decade"), place + 2, is_relative=False)
    is_whole = sentence.word(place - 1) == "of" and sentence.word(place - 2) in {"whole", "rest"}
    if not (is_whole or sentence.word(place - 1) in _BEFORE_YEAR) or counts_something(sentence, place + 1):
        return None
    return Reach(around(date(number, 1, 1), "year"), place + 1, is_relative=False)


def _part_of_year(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Read "Q3 2025", "H1", "first half of 2026", "the second quarter of last year"."""
    place += sentence.word(place) == "the"
    word = sentence.word(place)
    if word in {"q", "h"} and sentence.is_glued(place + 1):
        number, end, size = sentence.whole(place + 1), place + 2, 3 if word == "q" else 6
    elif (ordinal := _which(sentence, place)) and sentence.word(ordinal[1]) in {"half", "quarter"}:
        number, end, size = ordinal[0], ordinal[1] + 1, 6 if sentence.word(ordinal[1]) == "half" else 3
    else:
        return None
    if number is None or not 1 <= number <= 12 // size:
        return None
    year, is_relative = reckoning.today.year, True
    if said := year_at(sentence, end):
        (year, end), is_relative = said, False
    elif sentence.word(end) in {"of", "in"}:
        whole = stretch_of(sentence, end + 1, reckoning)
        if whole is None or around(whole[0].start, "year") != whole[0]:
            return None
        year, end = whole[0].start.year, whole[1]
    elif word not in {"q", "h"}:
        return None
    first = date(year, (number - 1) * size + 1, 1)
    return Reach(Period(first, shifted(first, size) - timedelta(days=1)), end, is_relative)


def _which(sentence: Sentence, place: int) -> tuple[int, int] | None:
    if sentence.word(place) == "last" and sentence.word(place + 1) == "half":
        return 2, place + 1
    if sentence.word(place) == "last" and (sentence.word(place + 1), sentence.word(place + 2)) == ("quarter", "of"):
        return 4, place + 1
    return ordinal_at(sentence, place)


# -- weeks and spans from now -------------------------------------------------------------------------------------


def _stepped(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Read "last week", "next month", "the past two weeks", "last March", "next 3 days"."""
    place += sentence.word(place) == "the"
    step = step_at(sentence, place)
    if step is None or weekday_of_week(sentence, place, reckoning):
        return None
    if grain := grain_at(sentence, place + 1):
        if sentence.word(place) == "past" and grain not in {"weekend", "day"}:
            return _counted(sentence, place + 1, reckoning, -1, 1)
        return Reach(around(reckoning.today, grain, step), place + 2, is_relative=True)
    if month := MONTHS.get(sentence.word(place + 1)):
        today = around(reckoning.today, "month").start
        near = nearest(shifted(today, step), month, 1, "past" if step < 0 else "future")
        is_free = step and near is not None and sentence.kind(place + 2) != "number"
        return Reach(around(near, "month"), place + 2, is_relative=True) if is_free and near else None
    if step and (sentence.word(place + 1) == "few" or sentence.word(place + 1) == "couple"):
        return None
    count = sentence.whole(place + 1)
    if count is None and (words := cardinal_at(sentence, place + 1)):
        return _counted(sentence, words.end, reckoning, step, int(words.value))
    return _counted(sentence, place + 2, reckoning, step, count) if count else None


def _counted(sentence: Sentence, place: int, reckoning: Reckoning, step: int, count: int) -> Reach | None:
    """Return the last or next *count* units up to today; None for units below a day."""
    unit = UNITS.get(sentence.word(place))
    if unit is None or unit.rank < DAY.rank or not step:
        return None
    today = reckoning.today
    other = _moved(today, unit, step * count)
    return Reach(Period(min(today, other), max(today, other)), place + 1, is_relative=True)


def _moved(day: date, unit: LengthUnit, count: int) -> date:
    return shifted(day, unit.months * count) + timedelta(days=int(unit.seconds // 86_400) * count)


def _few_ago(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Read "a few days ago" and "couple of weeks ago" as the days they may mean."""
    at = place + (sentence.word(place) == "a")
    vague = _FEW.get(sentence.word(at))
    if vague is None:
        return None
    at += 1 + (sentence.word(at + 1) == "of")
    unit = UNITS.get(sentence.word(at))
    if unit is None or unit.rank < DAY.rank or sentence.word(at + 1) != "ago":
        return None
    return Reach(vague_period(reckoning.today, vague, unit), at + 2, is_relative=True)


def _since(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    first = _end_at(sentence, place + 1, reckoning)
    today = reckoning.today
    return Reach(Period(first.period.start, today), first.end, is_relative=True) if (
        first and first.period.start <= today) else None  # fmt: skip


# -- from one day to another --------------------------------------------------------------------------------------


def _between(sentence: Sentence, place: int, reckoning: Reckoning) -> Reach | None:
    """Read "3 and 7 May", "March to June 2025", "May 3-7", "2020 until 2023" from the first of the two ends."""
    if two := two_days_at(sentence, place, reckoning):
        return Reach(Period(two.first, two.last), two.end, two.is_relative)
    first = _end_at(sentence, place, reckoning)
    joint = after_joint(sentence, place, first.end) if first else None
    last = _end_at(sentence, joint, reckoning) if joint else None
    if first is None or last is None:
        return None
    start, end = first.period.start, last.period.end
    if first.is_relative and not last.is_relative:
        # "March to June 2025": the year is said once
        moved = shifted(start, 12 * (end.year - start.year))
        start = moved if moved <= end else shifted(moved, -12)
    elif start > end and sentence.word(place) in WEEKDAYS and (start - end).days < _WEEK:
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
    if number is not None and number in _YEARS and not counts_something(sentence, place + 1):
        return Reach(around(date(number, 1, 1), "year"), place + 1, is_relative=False)
    if found := _day(sentence, place, reckoning):
        return found
    return _stepped(sentence, place, reckoning)
