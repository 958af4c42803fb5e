"""Lengths of time, days, clocks and periods found in sentences, with where they stand, as plain values.

The types that keep them (`Duration`, `Moment`) are in `quantities.amounts`; nothing here reads a clock.
"""

from quantities.times.calendar import Period
from quantities.times.durations import FoundDuration, Length, find_durations
from quantities.times.moments import FoundMoment, find_moments, parse_moment
from quantities.times.periods import FoundPeriod, find_periods
from quantities.times.stretches import stretches

__all__ = [
    "FoundDuration", "FoundMoment", "FoundPeriod", "Length", "Period", "find_durations", "find_moments", "find_periods",
    "parse_moment", "stretches",
]  # fmt: skip
