"""Computing an entry once, however many callers in however many processes ask for it at the same time."""

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from datetime import timedelta
from typing import Protocol

from pydantic import JsonValue

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory import keys
from tasklore.memory.long_term.single_flight import FlightPlace, Joined, SingleFlight
from tasklore.memory.sessions.entries import FoundEntry, NewEntry, check_key


@dataclass(frozen=True, slots=True)
class Computed:
    """A value, which may be falsy, as it is handed to the other callers of a process."""

    value: JsonValue


class Sessions(Protocol):
    """The part of a session cache that is needed."""

    async def get(
        self, session_id: str, key: str, *, reader: str | None = None
    ) -> FoundEntry | None:
        """Return an entry and count the use, None when there is none."""
        ...

    async def set_many(
        self,
        session_id: str,
        entries: Sequence[NewEntry],
        *,
        task_id: str | None = None,
        phase: str | None = None,
    ) -> None:
        """Write entries, all or none."""
        ...


async def get_or_compute(
    cache: Sessions,
    flights: SingleFlight[Computed],
    session_id: str,
    key: str,
    compute: Callable[[], Awaitable[JsonValue]],
    *,
    wait_s: float,
    reader: str | None = None,
    agent: str | None = None,
    ttl: timedelta | None = None,
    task_id: str | None = None,
    phase: str | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> JsonValue:
    """Return the entry *key*, which counts as a use, or what *compute* returns, which is then that entry.

    One caller over all processes computes and the others wait for it; when it dies another one computes. An error of
    *compute* is its caller's own. A caller that has waited *wait_s*, or cannot reach the server, computes for itself:
    the first value that is kept stays.

    Args:
        cache: Where the session is.
        flights: Shared by all callers of this process.
        session_id: Of a session that exists.
        key: `{phase}:{data_type}` or `{phase}:{data_type}:{identifier}`.
        compute: Its time is measured, in milliseconds by *clock*, and becomes the entry's computation time.
        wait_s: Seconds to wait for another caller at most.
        reader: As for `SessionCache.get`.
        agent: Who computes.
        ttl: The entry's own time to live; None is that of the session.
        task_id: As for `SessionCache.set_many`.
        phase: As for `SessionCache.set_many`.
        clock: Monotonic seconds.

    Raises:
        InvalidInput: the key breaks the naming rule, or the value is no JSON or too large.
        UnknownSession: there is no such session, or its time to live is over.
        PhaseReplaced: the phase was invalidated or started anew since *task_id* began.
    """
    check_key(key)
    recalled = False

    async def recall() -> Computed | None:
        nonlocal recalled
        found = await cache.get(session_id, key, reader=reader)
        recalled = found is not None
        return None if found is None else Computed(found.value)

    with suppress(MemoryUnavailable):
        known = await recall()
        if known is not None:
            return known.value
    place = FlightPlace(
        keys.session(session_id).entries, key, keys.session_flight(session_id, key)
    )
    outcome = await flights.join(place, recall, wait_s=wait_s)
    if isinstance(outcome, Joined):
        return outcome.value.value if recalled else await _as_own(outcome.value, recall)
    async with outcome:
        began = clock()
        value = await compute()
        took_ms = round((clock() - began) * 1000)
        entry = NewEntry(
            key=key,
            value=value,
            agent=agent,
            computation_ms=took_ms,
            ttl=ttl,
            if_absent=True,
        )
        with suppress(MemoryUnavailable):
            await cache.set_many(session_id, [entry], task_id=task_id, phase=phase)
        outcome.share(Computed(value))
    return value


async def _as_own(
    theirs: Computed, recall: Callable[[], Awaitable[Computed | None]]
) -> JsonValue:
    """Return what another caller of this process computed, as a use of one's own and no part of the other's value."""
    with suppress(MemoryUnavailable):
        again = await recall()
        if again is not None:
            return again.value
    return deepcopy(theirs.value)
