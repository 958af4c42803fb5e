"""What a running task may read from, and write into, the session of the pipeline run that it is a phase of."""

import time
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.session_keys import read_key
from tasklore.memory.sessions.entries import NewEntry

if TYPE_CHECKING:
    from pydantic import JsonValue

    from tasklore.contracts.messages import TaskAssignment
    from tasklore.memory.sessions.entries import FoundEntry
    from tasklore.workers.context.services import Services

#: Seconds to wait for another task that computes the same entry; then this one computes it too.
WAIT_S = 300.0


class TaskSession:
    """The session of one task: what the phases of one pipeline run hand on to each other.

    A key is `{phase}:{data_type}` or `{phase}:{data_type}:{identifier}`; InvalidInput says what breaks that rule. What
    cannot do without the store raises MemoryUnavailable when it does not answer in time, which has the task run again.
    """

    def __init__(
        self,
        assignment: "TaskAssignment",
        session_id: str,
        services: "Services",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.session_id = session_id
        #: The step of the pipeline that this task is; None for one that only shares its session.
        self.phase = assignment.phase
        self._assignment = assignment
        self._services = services
        self._clock = clock
        self._waited_s = self._waited_until = 0.0

    @property
    def waited_ms(self) -> int:
        """Milliseconds in which it waited for values that other tasks computed."""
        return round(self._waited_s * 1000)

    async def get(self, key: str, default: "JsonValue" = None) -> "JsonValue":
        """Return the value of the entry *key*, *default* when there is none or its time to live is over.

        What a corrective phase wrote in its place is returned in its place. Reading counts as one use of the entry,
        however often this task reads it and is run.
        """
        found = await self._services.sessions.get(
            self.session_id, key, reader=self._assignment.task_id
        )
        if found is None:
            return default
        self._services.count_session_hits(1)
        return found.value

    async def set(
        self,
        key: str,
        value: "JsonValue",
        ttl: timedelta | None = None,
        *,
        took: timedelta | None = None,
    ) -> None:
        """Put *value* under *key*, which begins with this task's own phase; *ttl* None: as long as the session.

        *took* is how long computing it took, None where that was not measured.

        Raises:
            InvalidInput: the key belongs to another phase.
            UnknownSession: the session's time to live is over.
            EntryTooLarge: the value is larger than a session takes.
            PhaseReplaced: the phase was invalidated or started anew meanwhile.
        """
        self._demand_own(key)
        took_ms = None if took is None else max(0, took // timedelta(milliseconds=1))
        entry = NewEntry(
            key=key,
            value=value,
            agent=self._assignment.agent_id,
            computation_ms=took_ms,
            ttl=ttl,
        )
        await self._services.sessions.set_many(
            self.session_id, [entry], task_id=self._assignment.task_id
        )

    async def get_or_compute(
        self,
        key: str,
        compute: "Callable[[], Awaitable[JsonValue]]",
        ttl: timedelta | None = None,
    ) -> "JsonValue":
        """Return the entry *key*; when there is none, what *compute* returns, which then is the entry.

        Of all tasks that ask at once, in whatever process, one computes. The key may be of another phase: the entry is
        that phase's own, and goes when it is invalidated. When the store does not answer, it is computed and not kept.

        Raises:
            UnknownSession, EntryTooLarge, PhaseReplaced: as `set`.
            Exception: whatever *compute* raises; another task that waits computes next.
        """
        from tasklore.memory.sessions.once import get_or_compute

        began = self._clock()
        computed_s = 0.0

        async def compute_timed() -> "JsonValue":
            nonlocal computed_s
            began = self._clock()
            try:
                return await compute()
            finally:
                computed_s = self._clock() - began

        value = await get_or_compute(
            _CountedReads(self._services),
            flights=self._services.session_flights,
            session_id=self.session_id,
            key=key,
            compute=compute_timed,
            wait_s=WAIT_S,
            reader=self._assignment.task_id,
            agent=self._assignment.agent_id,
            ttl=ttl,
            # Under the key of another phase too, only while this task is still that of its own.
            task_id=self._assignment.task_id if self.phase is not None else None,
            phase=self.phase,
        )
        # It waited before it computed. What values that were asked for side by side waited together counts once.
        ended = self._clock() - computed_s
        self._waited_s += max(0.0, ended - max(began, self._waited_until))
        self._waited_until = max(ended, self._waited_until)
        return value

    async def keys(self, phase: str | None = None) -> tuple[str, ...]:
        """Return the keys of readable entries, sorted, of one *phase* when given; it counts as no use of them."""
        found = await self._services.sessions.entries(self.session_id)
        return tuple(
            sorted(
                entry.key
                for entry in found
                if entry.hidden_by is None and phase in (None, entry.phase)
            )
        )

    def _demand_own(self, key: str) -> None:
        parts = read_key(key)
        if self.phase is None:
            msg = f"context.session.set({key!r}) needs a phase, and this assignment names none; send it with a phase"
            raise InvalidInput(msg)
        if parts.phase != self.phase:
            msg = (
                f"session key {key!r} belongs to phase {parts.phase!r}, and this task runs as phase {self.phase!r}: "
                f"write it as {str(parts._replace(phase=self.phase))!r}, or share it by context.session.get_or_compute"
            )
            raise InvalidInput(msg)


class _CountedReads:
    """A session whose reads are counted as uses."""

    def __init__(self, services: "Services") -> None:
        self._services = services
        self.set_many = services.sessions.set_many

    async def get(
        self, session_id: str, key: str, *, reader: str | None = None
    ) -> "FoundEntry | None":
        found = await self._services.sessions.get(session_id, key, reader=reader)
        if found is not None:
            self._services.count_session_hits(1)
        return found
