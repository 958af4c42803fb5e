"""Moments and spans of time as every word about a task has them."""

from datetime import UTC, datetime


def spell_moment(moment: datetime) -> str:
    """Return *moment* to the second, in UTC; one without a zone is in UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    try:
        return f"{aware.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    except OverflowError:
        # In UTC it lies before the first year or behind the last.
        return aware.isoformat()


def describe_time(duration_ms: float) -> str:
    """Return a duration as a person says it: "3 ms", "1.5 s", "2 minutes", "3 days"."""
    if duration_ms < 1_000:
        return f"{int(duration_ms)} ms" if duration_ms >= 1 else "under 1 ms"
    seconds = duration_ms / 1_000
    if seconds < 60:
        return f"{seconds:.1f} s"
    for size, name in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if seconds >= size:
            count = int(seconds // size)
            return f"{count} {name}" if count == 1 else f"{count} {name}s"
    raise AssertionError("sixty seconds are a minute")


def describe_deadline(deadline: datetime) -> str:
    """Return how each sentence about a task begins whose *deadline* passed."""
    return f"the deadline, {spell_moment(deadline)}, passed"
