"""What a day is reckoned from, and the words that say which week, month or year: "next month", "March 2026", "'26"."""

from datetime import date, datetime
from typing import NamedTuple

from quantities.times.calendar import Grain, Lean, Period, around, nearest
from quantities.times.languages import MONTHS, OF
from quantities.times.numbers import ordinal_at
from quantities.times.tokens import Sentence
from quantities.times.words import STEPS
from quantities.units import unit_named

_GRAINS: dict[str, Grain] = {
    "day": "day", "week": "week", "weekend": "weekend", "month": "month", "quarter": "quarter", "year": "year",
    "decade": "decade", "century": "century",
}  # fmt: skip
#: Two digits from here on are a year of the last century, as POSIX has it.
_FIRST_OF_1900S = 69
#: Between two days or months of which the second says the year of both.
_SHARING = frozenset({"and", "or", "to", "until", "till", "through"})


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


def grain_at(sentence: Sentence, place: int) -> Grain | None:
    """Return the "week", "month", "year", ... at *place*."""
    return _GRAINS.get(sentence.word(place))


def step_at(sentence: Sentence, place: int) -> int | None:
    """Return what "next" (1), "this" (0) and "last" (-1) at *place* say, None for anything else."""
    return STEPS.get(sentence.word(place))


def year_at(sentence: Sentence, place: int) -> tuple[int, int] | None:
    """Return the year at *place*, after a comma, "of" or "in", or "'26", and the place after it."""
    if sentence.symbol(place) == "'" and sentence.is_glued(place + 1):
        short = sentence.whole(place + 1)
        is_short = short is not None and len(sentence.tokens[place + 1].text) == 2
        return (full_year(short), place + 2) if is_short and short is not None else None
    at = place + (sentence.symbol(place) == "," or sentence.word(place) in OF or sentence.word(place) == "in")
    year = sentence.whole(at)
    if year is None or len(sentence.tokens[at].text) != 4 or year == 0 or counts_something(sentence, at + 1):
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


def full_year(short: int) -> int:
    """Return the year that the two digits *short* stand for."""
    return short + (1900 if short >= _FIRST_OF_1900S else 2000)


def stretch_of(sentence: Sentence, place: int, reckoning: Reckoning) -> tuple[Period, int, bool] | None:
    """Return the week, month or year at *place* ("next year", "March 2026"), its end, and whether it is relative.

    Raises:
        OverflowError: days outside the years 1 to 9999.
    """
    at = place + (sentence.word(place) == "the")
    if month := MONTHS.get(sentence.word(at)):
        if year := year_at(sentence, at + 1):
            return around(date(year[0], month, 1), "month"), year[1], False
        day = around(reckoning.today, "month")
        near = nearest(day.start, month, 1, reckoning.lean)
        return (around(near, "month"), at + 1, True) if near else None
    if year := year_at(sentence, at):
        return around(date(year[0], 1, 1), "year"), year[1], False
    step = step_at(sentence, at)
    grain = grain_at(sentence, at + (step is not None))
    if grain is None or (step is None and at == place):
        return None
    return around(reckoning.today, grain, step or 0), at + 1 + (step is not None), True


def year_said_later(sentence: Sentence, place: int, month: int) -> int | None:
    """Return the year that a *month* before *place* shares with the next one: "3 May to 10 June 2025"."""
    if sentence.word(place) not in _SHARING and sentence.symbol(place) != "-":
        return None
    place = _after_number(sentence, place + 1 + (sentence.word(place + 1) == "the"))
    place += sentence.word(place) in OF
    later = MONTHS.get(sentence.word(place))
    if later is None:
        return None
    year = year_at(sentence, place + 1) or year_at(sentence, _after_number(sentence, place + 1))
    return year[0] - (later < month) if year else None


def _after_number(sentence: Sentence, place: int) -> int:
    """Return the place after a day of the month at *place*, *place* when none is there."""
    if ordinal := ordinal_at(sentence, place):
        return ordinal[1]
    number = sentence.whole(place)
    return place + (number is not None and len(sentence.tokens[place].text) <= 2)
