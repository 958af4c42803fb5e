"""The loop of claims: whose rows are due, each user's claimed under a lease, worked in order, users side by side.

A row whose run ended without a word, as when the process was killed, runs alone next time: if it is what kills, it
takes no other row with it.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import structlog

from tasklore.memory.queues.claims import Claim
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.claim_loop import ClaimLoop, NotYet, jitter
from tasklore.workers.execution.crash_isolation import CrashIsolation, StillBusy

log = structlog.get_logger(__name__)

#: Seconds for which a user rests whose row is to run alone, where something else runs for long.
_BUSY_S = 10.0


class QueueWork(Protocol):
    """Works on the rows of one user."""

    async def work(
        self, claim: Claim, is_leaving: Callable[[], bool], rests: int
    ) -> float:
        """Work on the rows of *claim* in order and return for how many seconds their user is to rest, 0 for none.

        No further row begins once *is_leaving* returns True; *rests* is how often the user has rested in a row.

        Raises:
            LeaseLost: another process has claimed the rows.
            MemoryUnavailable: the store did not answer.
        """


@dataclass(frozen=True, slots=True)
class ListenLimits:
    """Rows of one user and users at once, and the seconds of a lease."""

    items: int
    users: int
    lease_s: float


class Outflow(ClaimLoop[str, Claim]):
    """Works on one queue, in this process; `run` until `stop`. Its keys are users.

    Args:
        queue: The table of waiting rows.
        work: Works on them.
        pace: How much at once.
        holder: Names this process in leases.
        exclusive: Decides which runs of this process may overlap.
        now_ms: The clock, in milliseconds since 1970.
    """

    # A look costs as much as a claim.
    ahead: ClassVar[int] = 4
    names_keys: ClassVar[bool] = False

    def __init__(
        self,
        queue: PersonalQueue,
        work: QueueWork,
        pace: ListenLimits,
        *,
        holder: str,
        exclusive: CrashIsolation,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        super().__init__("listener", at_once=pace.users, lease_s=pace.lease_s)
        self._queue = queue
        self._rows = work
        self._items = pace.items
        self._holder = holder
        self._exclusive = exclusive
        self._now_ms = now_ms
        self._entering: set[str] = set()
        self._suspects: set[str] = set()

    def stop(self) -> None:
        """Claim nothing more; running work goes on to the end of its row."""
        super().stop()
        for owner in self._entering:
            self._serving[owner].cancel()

    async def attend(self, key: str) -> float | None:
        """Claim and work beside others, or alone with rows that ended a run without a word before."""
        is_alone = key in self._suspects
        self._entering.add(key)
        try:
            await self._exclusive.enter(alone=is_alone)
        except StillBusy as error:
            raise NotYet(str(error), jitter(_BUSY_S)) from error
        finally:
            self._entering.discard(key)
        try:
            return await super().attend(key)
        finally:
            if is_alone:
                self._suspects.discard(key)
            self._exclusive.leave(alone=is_alone)

    async def due(self, limit: int) -> Sequence[str]:
        """Return users whose rows are due."""
        return await self._queue.owners_due(self._now_ms(), limit)

    async def claim(self, key: str) -> Claim | None:
        """Return a claim on the first rows of a user."""
        return await self._queue.claim(
            key,
            holder=self._holder,
            limit=self._items,
            lease_ms=self._lease_ms,
            now_ms=self._now_ms(),
        )

    async def work(self, key: str, lease: Claim) -> float:
        """Work on the claimed rows, unless they have to be claimed alone first."""
        if lease.rows[0].crashes and key not in self._suspects:
            self._suspects.add(key)
            return 0.0
        return await self._rows.work(lease, lambda: self._stopping, self.rests_of(key))

    async def renew(self, lease: Claim) -> bool:
        """Let the claim last."""
        return await self._queue.renew(lease, self._lease_ms)

    async def give_back(self, lease: Claim) -> None:
        """Let other workers claim the rows that still wait."""
        await self._queue.release(lease)
