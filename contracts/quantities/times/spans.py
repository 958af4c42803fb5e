"""Two days of one month, said once: "3 to 7 May", "May 3-7, 2026", "the 3rd and 4th of May"."""

from datetime import date
from typing import NamedTuple

from tasklore.contracts.quantities.sentence import Sentence
from tasklore.contracts.quantities.times.calendar import day_of, nearest
from tasklore.contracts.quantities.times.days import (
    Reckoning,
    counts_something,
    day_at,
    number_of_day,
    year_at,
)
from tasklore.contracts.quantities.times.words import MONTHS, ordinal_at

_TO = frozenset({"to", "until", "till", "through", "thru", "and"})


class TwoDays(NamedTuple):
    """A *first* and a *last* day: the words of the first end before token *joint*, those of the last before *end*."""

    first: date
    last: date
    joint: int
    after_joint: int
    end: int
    is_relative: bool


def _after_joint(sentence: Sentence, place: int, end: int) -> int | None:
    """Return the place after the "to" or dash at *end* that joins two ends of a period which opens at *place*.

    An "and" joins them only after "between".
    """
    before = sentence.word(place - 1)
    is_between = (sentence.word(place - 2) if before == "the" else before) == "between"
    word = sentence.word(end)
    if word in _TO and is_between == (word == "and"):
        return end + 1
    return end + 1 if sentence.symbol(end) == "-" else None


def two_days_at(sentence: Sentence, place: int, reckoning: Reckoning) -> TwoDays | None:
    """Return the two days that *place* opens, the month being named before the first or after the last."""
    place += sentence.word(place) == "the"
    month = MONTHS.get(sentence.word(place))
    at = place + (month is not None)
    first = number_of_day(sentence, at)
    joint = _after_joint(sentence, place, first[1]) if first else None
    if first and sentence.word(first[1]) in {"and", "or"} and ordinal_at(sentence, at):
        joint = first[1] + 1
    if first is None or joint is None:
        return None
    try:
        if month is None:
            return _month_last(sentence, first, joint, reckoning)
        return _month_first(
            sentence, month=month, first=first, joint=joint, reckoning=reckoning
        )
    except OverflowError:
        return None


def _month_last(
    sentence: Sentence, first: tuple[int, int], joint: int, reckoning: Reckoning
) -> TwoDays | None:
    at = joint + (sentence.word(joint) == "the")
    last = day_at(sentence, joint, reckoning) if number_of_day(sentence, at) else None
    if last is None or not any(
        sentence.word(one) in MONTHS for one in range(at, last.end)
    ):
        return None
    end = last.readings[0]
    start = day_of(end.year, end.month, first[0])
    if start is None or start > end:
        return None
    return TwoDays(
        start,
        last=end,
        joint=first[1],
        after_joint=joint,
        end=last.end,
        is_relative=last.is_relative,
    )


def _month_first(
    sentence: Sentence,
    month: int,
    first: tuple[int, int],
    joint: int,
    reckoning: Reckoning,
) -> TwoDays | None:
    second = number_of_day(sentence, joint)
    if second is None or counts_something(sentence, second[1]):
        return None
    year = year_at(sentence, second[1])
    end = (
        day_of(year[0], month, second[0])
        if year
        else nearest(reckoning.today, month, second[0], reckoning.lean)
    )
    start = day_of(end.year, month, first[0]) if end else None
    if start is None or end is None or start > end:
        return None
    return TwoDays(
        start,
        last=end,
        joint=first[1],
        after_joint=joint,
        end=year[1] if year else second[1],
        is_relative=year is None,
    )
