"""Where a sentence speaks of days and times, for readers of amounts who must leave their digits alone."""

from quantities.times.languages import FOREIGN_UNITS, end_of_openings, may_open
from quantities.times.moments import ANY_DAY, moment_at
from quantities.times.periods import span_at
from quantities.times.reckoning import Reckoning
from quantities.times.tokens import Sentence, sentence_of
from quantities.times.words import UNITS

_RECKONING = Reckoning(ANY_DAY)


def stretches(text: str) -> tuple[tuple[int, int], ...]:
    """Return the (start, end) of every date, time of day and period in *text*, in order and without overlaps.

    Counts of time stay amounts ("3 months", "in 3 days", "2 weeks ago"), and so do bare years.
    """
    sentence = sentence_of(text)
    found: list[tuple[int, int]] = []
    place, last = 0, end_of_openings(sentence)
    while place < last:
        end = _end_of(sentence, place) if may_open(sentence, place) else None
        if end is None:
            place += 1
            continue
        found.append(sentence.cut(place, end)[:2])
        place = end
    return tuple(found)


def _end_of(sentence: Sentence, place: int) -> int | None:
    """Return the place after the date, time or period at *place*, None when there is none."""
    try:
        span = span_at(sentence, place, _RECKONING)
    except OverflowError:
        span = None
    if span is not None and _is_dated(sentence, place, span.end):
        return span.end
    moment = moment_at(sentence, place, _RECKONING)
    return moment.end if moment and not moment.is_offset else None


def _is_dated(sentence: Sentence, place: int, end: int) -> bool:
    """False for "last 3 days" and for bare years, whose numbers may be amounts."""
    words = [sentence.word(one) for one in range(place, end)]
    is_counted = any(word in UNITS or word in FOREIGN_UNITS for word in words)
    kinds = {sentence.kind(one) for one in range(place, end)}
    is_bare = kinds <= {"number", "symbol", "word"} and all(word in {"", "s", "to", "and", "until", "from", "between",
                                                                     "since", "through"} for word in words)  # fmt: skip
    return not is_counted and not is_bare
