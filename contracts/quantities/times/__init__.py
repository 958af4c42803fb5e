"""Lengths of time, days and times of day found in sentences, with where they stand, as plain values.

The types that keep them (`Duration`, `Moment`) are in `tasklore.contracts.quantities.amounts`; nothing here reads a
clock.
"""

from tasklore.contracts.quantities.times.durations import (
    FoundDuration,
    Length,
    find_durations,
)
from tasklore.contracts.quantities.times.moments import (
    FoundMoment,
    find_moments,
    parse_moment,
)

__all__ = [
    "FoundDuration",
    "FoundMoment",
    "Length",
    "find_durations",
    "find_moments",
    "parse_moment",
]
