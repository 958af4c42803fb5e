"""Weeks, months and "3 days ago" in a few languages beside English, as far as tables of words go."""

from datetime import timedelta
from typing import NamedTuple

from quantities.times.calendar import Grain, Period, around, shifted, vague_period
from quantities.times.languages import (
    AFTER_AGO,
    BEFORE_AGO,
    FOREIGN_GRAINS,
    FOREIGN_STEPS,
    FOREIGN_UNITS,
    FOREIGN_VAGUE,
    WEEKENDS,
)
from quantities.times.reckoning import Reckoning
from quantities.times.tokens import Sentence
from quantities.times.words import LengthUnit


class _Noun(NamedTuple):
    grain: Grain
    end: int


def foreign_period(sentence: Sentence, place: int, reckoning: Reckoning) -> tuple[Period, int] | None:
    """Return the period at *place* and its end: "letzte Woche", "el mes pasado", "il y a 5 jours", or None.

    Raises:
        OverflowError: days outside the years 1 to 9999.
    """
    word = sentence.word(place)
    step = FOREIGN_STEPS.get(word)
    if step is not None:
        noun = _noun(sentence, place + 1)
        return (around(reckoning.today, noun.grain, step), noun.end) if noun else None
    if noun := _noun(sentence, place):
        step = FOREIGN_STEPS.get(sentence.word(noun.end))
        if step is not None:
            return around(reckoning.today, noun.grain, step), noun.end + 1
    return _ago(sentence, place, reckoning)


def _noun(sentence: Sentence, place: int) -> _Noun | None:
    for words in WEEKENDS:
        if all(sentence.word(place + step) == word or sentence.symbol(place + step) == word
               for step, word in enumerate(words)):  # fmt: skip
            return _Noun("weekend", place + len(words))
    grain = FOREIGN_GRAINS.get(sentence.word(place))
    return _Noun(grain, place + 1) if grain else None


def _ago(sentence: Sentence, place: int, reckoning: Reckoning) -> tuple[Period, int] | None:
    before = next((words for words in BEFORE_AGO if _reads(sentence, place, words)), ())
    at = place + len(before)
    unit = FOREIGN_UNITS.get(sentence.word(at + 1))
    if unit is None:
        return None
    is_after = sentence.word(at + 2) in AFTER_AGO
    if not before and not is_after:
        return None
    end = at + 2 + is_after
    if vague := FOREIGN_VAGUE.get(sentence.word(at)):
        return vague_period(reckoning.today, vague, unit), end
    count = sentence.whole(at)
    return None if count is None else (_day_ago(reckoning, count, unit), end)


def _reads(sentence: Sentence, place: int, words: tuple[str, ...]) -> bool:
    return all(sentence.word(place + step) == word for step, word in enumerate(words))


def _day_ago(reckoning: Reckoning, count: int, unit: LengthUnit) -> Period:
    day = shifted(reckoning.today, -count * unit.months) - timedelta(days=count * int(unit.seconds // 86_400))
    return Period(day, day)
