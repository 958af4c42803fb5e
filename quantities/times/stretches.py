"""Where a sentence speaks of days and times, for readers of amounts who leave their digits alone."""

from quantities.times.moments import ANY_DAY, find_moments
from quantities.times.periods import find_periods
from quantities.times.words import UNITS


def stretches(text: str) -> tuple[tuple[int, int], ...]:
    """Return the (start, end) of every date, time of day and period in *text*, in order and without overlaps.

    Counts of time stay amounts ("3 months", "in 3 days", "2 weeks ago"), and so do bare years.
    """
    found = [(one.start, one.end) for one in find_moments(text, ANY_DAY) if not one.is_offset]
    for one in find_periods(text, ANY_DAY, lean="future"):
        is_counted = one.period.start < one.period.end and set(one.text.lower().split()) & UNITS.keys()
        is_bare = not any(letter.isalpha() for letter in one.text)
        if not is_bare and not (is_counted and any(letter.isdigit() for letter in one.text)):
            found.append((one.start, one.end))
    apart: list[tuple[int, int]] = []
    for start, end in sorted(set(found), key=lambda one: (one[0], -one[1])):
        if not apart or start >= apart[-1][1]:
            apart.append((start, end))
    return tuple(apart)
