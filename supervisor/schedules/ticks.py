"""The ticks of a timing: whole seconds in UTC, by the clocks of its time zone.

As in Debian's cron a time of day that a change of the clocks leaves out comes right after the change, and one that
comes twice is a tick once; `*` and `*/n` go on by the seconds that pass.
"""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile

from cronsim import CronSim, CronSimError

from tasklore.contracts.admission.schedules import Timing
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.zones import read_zone

#: Seconds between two ticks at least, and at most; characters of a cron expression.
_SHORTEST_S = 1
_LONGEST_S = 366 * 86_400
_LONGEST_CRON = 100
_SECOND = timedelta(seconds=1)


def find_faults(timing: Timing, now: datetime) -> list[tuple[str, str]]:
    """Return the faults of *timing*: the name of a field, and a complaint that says the cure."""
    given = [
        name for name in ("cron", "every_s", "at") if getattr(timing, name) is not None
    ]
    if len(given) != 1:
        return [(given[-1] if given else "cron", "say one of cron, every and at")]
    if timing.every_s is not None and not _SHORTEST_S <= timing.every_s <= _LONGEST_S:
        return [
            (
                "every",
                f"is {timing.every_s} s; it must be whole seconds from {_SHORTEST_S} to {_LONGEST_S:,}",
            )
        ]
    try:
        read_zone(timing.time_zone)
    except InvalidInput as error:
        return [("time_zone", str(error))]
    if timing.cron is not None and len(timing.cron) > _LONGEST_CRON:
        return [
            (
                "cron",
                f"has {len(timing.cron):,} characters; {_LONGEST_CRON} are enough for any",
            )
        ]
    try:
        if next(ticks_after(timing, now, now), None) is not None:
            return []
    except InvalidInput as error:
        return [("cron", str(error))]
    return [(given[0], "never comes; correct the day, month or year")]


def ticks_after(
    timing: Timing, after: datetime, anchor: datetime
) -> Iterator[datetime]:
    """Yield the ticks of *timing* later than *after*, in order; `every_s` counts from *anchor*.

    Raises:
        InvalidInput: the cron expression is none.
    """
    if timing.at is not None:
        if timing.at > after:
            yield timing.at.astimezone(UTC)
    elif timing.every_s is not None:
        every = timedelta(seconds=timing.every_s)
        tick = _whole(anchor) + max(1, (after - _whole(anchor)) // every) * every
        while True:
            if tick > after:
                yield tick
            tick += every
    else:
        for tick in _cron_ticks(timing, after):
            # Where the clocks are set back, an hour of the first pass may be found from within the second.
            if tick > after:
                yield tick


def last_tick(
    timing: Timing, since: datetime, until: datetime, anchor: datetime
) -> datetime | None:
    """Return the last tick of *timing* from *since* to *until*, both included, None when there is none."""
    # Searching backwards finds other ticks where clocks change: forwards from ever longer before finds the same ones.
    span = timedelta(minutes=1)
    while True:
        begin = max(since - _SECOND, until - span)
        found = list(
            takewhile(lambda tick: tick <= until, ticks_after(timing, begin, anchor))
        )
        if found:
            return found[-1]
        if begin < since:
            return None
        span *= 8


def next_five(timing: Timing, after: datetime, anchor: datetime) -> list[datetime]:
    """Return the first five ticks later than *after*."""
    return list(islice(ticks_after(timing, after, anchor), 5))


def _cron_ticks(timing: Timing, after: datetime) -> Iterator[datetime]:
    try:
        for tick in CronSim(
            timing.cron or "", after.astimezone(read_zone(timing.time_zone))
        ):
            yield tick.astimezone(UTC)
    except (CronSimError, AssertionError, ValueError, OverflowError) as error:
        words = str(error) or "it cannot be read"
        msg = f"{words[:200]}; write five fields, minute to day of the week, such as '0 9 * * mon-fri'"
        raise InvalidInput(msg) from error


def _whole(moment: datetime) -> datetime:
    """Return the whole second at or after *moment*, in UTC: there the server is punctual."""
    return moment.astimezone(UTC).replace(microsecond=0) + (
        _SECOND if moment.microsecond else timedelta(0)
    )
