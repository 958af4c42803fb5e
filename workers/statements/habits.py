"""Times within a clause: of the day ("at 6:30"), in a rhythm ("every Friday"), or relative to today ("tomorrow")."""

import re
from collections.abc import Sequence

from contracts.errors import InvalidAmount
from quantities.numerals import parse_number
from workers.statements.datafiles import Table, strings_at

_CLOCK = re.compile(r"(?:[01]?\d|2[0-4])(?:[:.h][0-5]\d)?(?:am|pm)?")


class Habits:
    """The words of `dates.toml` that tell a habit from what happens once; all take words as they are compared."""

    def __init__(self, dates: Table) -> None:
        self._words = frozenset(strings_at(dates, "habit", "words"))
        self._phrases = phrases_of(strings_at(dates, "habit", "phrases"))
        self._every = frozenset(strings_at(dates, "habit", "every"))
        self._units = frozenset(strings_at(dates, "habit", "units"))
        self._instants = frozenset(strings_at(dates, "habit", "instants"))
        self._openers = frozenset(strings_at(dates, "habit", "openers"))
        self._before_clock = frozenset(strings_at(dates, "habit", "before_clock"))
        self._clock_words = frozenset(strings_at(dates, "habit", "clock_words"))
        self._weekdays = frozenset(strings_at(dates, "weekdays"))
        self._before_day = frozenset(strings_at(dates, "relative", "before_day"))
        self._relative_words = frozenset(strings_at(dates, "relative", "words"))
        self._relative_phrases = phrases_of(strings_at(dates, "relative", "phrases"))

    def has_clock(self, texts: Sequence[str]) -> bool:
        """True when a time of the day is told."""
        for place, text in enumerate(texts):
            if text in self._clock_words or (_CLOCK.fullmatch(text) and not text.isdigit()):
                return True
            before = texts[place - 1] if place else ""
            if before in self._before_clock and (_CLOCK.fullmatch(text) or is_number(text)):
                return True
        return False

    def has_rhythm(self, texts: Sequence[str], *, one_day: bool = False) -> bool:
        """True when something is told to happen again and again; with *one_day*, "on Sunday" is every Sunday."""
        if any(text in self._words for text in texts) or holds(texts, self._phrases):
            return True
        return self._has_every(texts) or (one_day and any(text in self._weekdays for text in texts))

    def is_relative(self, texts: Sequence[str], *, one_day: bool = False) -> bool:
        """True when the words mean another day whenever they are read: "tomorrow", or "on Friday" without *one_day*."""
        if any(text in self._relative_words for text in texts) or holds(texts, self._relative_phrases):
            return True
        days = (place for place, text in enumerate(texts) if text in self._weekdays and place)
        return not one_day and any(texts[place - 1] in self._before_day for place in days)

    def opens(self, texts: Sequence[str]) -> bool:
        """True for words that may stand before a clause and say when: "on Fridays", "at 6:30"."""
        return texts[0] in self._openers and (self.has_rhythm(texts) or self.has_clock(texts))

    def _has_every(self, texts: Sequence[str]) -> bool:
        for place, text in enumerate(texts[:-1]):
            if text in self._every and texts[place + 1] in self._units:
                # "Every second day" is one, "every second" and "every two minutes" are none.
                return texts[min(place + 2, len(texts) - 1)] not in self._instants
        return False


def is_number(text: str) -> bool:
    """True for one amount and nothing else, in digits or in words."""
    try:
        parse_number(text)
    except InvalidAmount:
        return False
    return True


def phrases_of(texts: Sequence[str]) -> frozenset[tuple[str, ...]]:
    """Return *texts* as sequences of words."""
    return frozenset(tuple(text.split()) for text in texts)


def holds(texts: Sequence[str], phrases: frozenset[tuple[str, ...]]) -> bool:
    """True when one of *phrases* stands somewhere in *texts*."""
    lengths = {len(phrase) for phrase in phrases}
    runs = (tuple(texts[place : place + length]) for length in lengths for place in range(len(texts) - length + 1))
    return any(run in phrases for run in runs)
