"""Lengths of time, days, clocks and periods found in sentences, with where they stand, as plain values.

The types that keep them (`Duration`, `Moment`) are in `contracts.amounts`; nothing here reads a clock.
"""

from contracts.times.calendar import Period
from contracts.times.durations import FoundDuration, Length, find_durations
from contracts.times.moments import FoundMoment, find_moments
from contracts.times.periods import FoundPeriod, find_periods
from contracts.times.stretches import stretches

__all__ = [
    "FoundDuration", "FoundMoment", "FoundPeriod", "Length", "Period", "find_durations", "find_moments", "find_periods",
    "stretches",
]  # fmt: skip
