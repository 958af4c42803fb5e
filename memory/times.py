"""Times of stored things: ms since 1970, and their spelling in files."""

from datetime import UTC, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND = timedelta(milliseconds=1)


def milliseconds(at: datetime) -> int:
    """Return *at* in ms since 1970; a time without a zone is in UTC."""
    zoned = at if at.tzinfo is not None else at.replace(tzinfo=UTC)
    return (zoned - EPOCH) // MILLISECOND


def spell_time(ms: int) -> str:
    """Return *ms* since 1970 as ISO 8601 in UTC, such as `2025-11-19T10:00:00.000Z`."""
    return f"{EPOCH + ms * MILLISECOND:%Y-%m-%dT%H:%M:%S}.{ms % 1000:03d}Z"
