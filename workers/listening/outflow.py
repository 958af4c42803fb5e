"""The loop of claims: whose rows are due, each user's claimed under a lease, worked in order, users side by side.

A row whose run ended without a word, as when the process was killed, runs alone next time: if it is what kills, it
takes no other row with it.
"""

import asyncio
import contextlib
import random
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import structlog

from contracts.errors import MemoryUnavailable
from memory.queues.claims import Claim
from memory.queues.queue import PersonalQueue
from workers.execution.exclusive_runs import Solitude, StillBusy
from workers.listening.rows import LeaseLost

log = structlog.get_logger(__name__)

#: Seconds between looks at whose rows are due, when nobody tells: what other workers append is seen by then.
LOOK_S = 0.5
#: Renewals within one lease: two may be lost before the rows go to somebody else.
RENEWALS = 3
#: Users that are looked up at once for each that can be worked for: a look costs as much as a claim.
_AHEAD = 4
#: Seconds for which a user rests whose rows somebody else works on, or whose rows were just taken.
_ELSEWHERE_S = 0.5
#: Seconds between attempts to reach a store that is away: first, and at most.
_PAUSE_S, _PAUSE_CAP_S = 0.1, 2.0
#: Seconds for which a user rests after a mistake of our own.
_MISTAKE_S = 5.0
#: Seconds for which a user rests whose row is to run alone, where something else runs for long.
_BUSY_S = 10.0


class Work(Protocol):
    """What is done with the rows of one user."""

    async def work(self, claim: Claim, is_leaving: Callable[[], bool], rests: int) -> float:
        """Work on the rows of *claim* in order and return for how many seconds their user is to rest, 0 for none.

        *is_leaving* tells that no further row should be begun; *rests* is how often the user has rested in a row.

        Raises:
            LeaseLost: the rows are somebody else's.
            MemoryUnavailable: the store did not answer.
        """


@dataclass(frozen=True, slots=True)
class Pace:
    """How much a loop does at once, and for how long it leases, in seconds."""

    items: int
    users: int
    lease_s: float


@dataclass(slots=True)
class _Rest:
    until: float
    count: int


class Outflow:
    """Works on one queue, in this process; `run` until `stop`.

    Args:
        queue: The table of waiting rows.
        work: What is done with them.
        pace: How much at once.
        holder: Names this process in leases.
        solitude: Who may run beside whom in this process.
        now_ms: The clock, in milliseconds since 1970.
    """

    def __init__(
        self,
        queue: PersonalQueue,
        work: Work,
        pace: Pace,
        *,
        holder: str,
        solitude: Solitude,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._queue = queue
        self._work = work
        self._pace = pace
        self._holder = holder
        self._solitude = solitude
        self._now_ms = now_ms
        self._lease_ms = max(1, int(pace.lease_s * 1000))
        self._loop = asyncio.get_running_loop()
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._entering: set[str] = set()
        self._suspects: set[str] = set()
        self._held: dict[str, Claim] = {}
        self._unreleased: list[Claim] = []
        self._rests: dict[str, _Rest] = {}
        self._due: deque[str] = deque()
        self._failures = 0
        self._wake = asyncio.Event()
        self._emptied = asyncio.Event()
        self._stopping = False
        self._turned_at = self._loop.time()

    @property
    def busy(self) -> int:
        """How many users are worked for now."""
        return len(self._serving)

    def vital_sign(self) -> tuple[bool, str]:
        """Return whether the loop turns, and a word on it."""
        silent_s = self._loop.time() - self._turned_at
        # A look at the store has its own deadline; nothing else is waited for.
        return self._stopping or silent_s < 10 * LOOK_S + _PAUSE_CAP_S, f"last looked {silent_s:.1f} s ago"

    def look_soon(self) -> None:
        """Look at once: something was appended."""
        self._wake.set()

    def stop(self) -> None:
        """Claim nothing more; what is being worked on goes on to the end of its row."""
        self._stopping = True
        self._wake.set()
        for owner in self._entering:
            self._serving[owner].cancel()

    async def emptied(self) -> None:
        """Return when nobody is worked for any more; `stop` first."""
        while self._serving:
            self._emptied.clear()
            await self._emptied.wait()

    async def run(self) -> None:
        """Work until `stop` and the end of what is under way then; cancelled, it gives its rows back."""
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(self._renew_claims())
            while not self._stopping:
                self._turned_at = self._loop.time()
                pause_s = await self._begin_some(group)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._wake.wait()
                self._wake.clear()
            await self.emptied()
            renewing.cancel()

    async def _begin_some(self, group: asyncio.TaskGroup) -> float:
        """Begin to work for as many users as there is room for; return seconds until the next look."""
        room = self._pace.users - len(self._serving)
        if room > 0 and not self._due:
            try:
                await self._release_late()
                await self._find_due()
            except MemoryUnavailable as error:
                self._failures = min(self._failures + 1, 10)
                pause_s = _jittered(min(_PAUSE_CAP_S, _PAUSE_S * 2**self._failures))
                log.info("listener_waits_for_store", error=str(error), pause_s=round(pause_s, 2))
                return pause_s
            self._failures = 0
        while room > 0 and self._due:
            owner = self._due.popleft()
            if owner not in self._serving:
                self._serving[owner] = group.create_task(self._serve(owner))
                room -= 1
        now = self._loop.time()
        rested_s = min((rest.until - now for rest in self._rests.values() if rest.until > now), default=LOOK_S)
        return min(_jittered(LOOK_S), rested_s)

    async def _find_due(self) -> None:
        now = self._loop.time()
        limit = self._pace.users * _AHEAD + len(self._serving) + len(self._rests)
        found = await self._queue.owners_due(self._now_ms(), limit)
        waiting = set(found)
        # Of whom nothing waits any more, nothing needs to be known.
        self._rests = {owner: rest for owner, rest in self._rests.items() if rest.until > now or owner in waiting}
        self._due.extend(owner for owner in found if owner not in self._serving and not self._rests_now(owner, now))

    def _rests_now(self, owner: str, now: float) -> bool:
        rest = self._rests.get(owner)
        return rest is not None and rest.until > now

    async def _serve(self, owner: str) -> None:
        rest = self._rests.get(owner)
        rests = rest.count if rest is not None else 0
        try:
            pause_s = await self._work_for(owner, rests)
        except StillBusy as error:
            log.info("listener_waits_to_be_alone", error=str(error))
            self._let_rest(owner, _jittered(_BUSY_S), rests)
        except MemoryUnavailable as error:
            log.info("listener_waits_for_store", error=str(error))
            self._let_rest(owner, _jittered(min(_PAUSE_CAP_S, _PAUSE_S * 2 ** min(rests + 1, 10))), rests + 1)
        except LeaseLost as error:
            log.warning("listen_lease_lost", error=str(error))
            self._let_rest(owner, _jittered(_ELSEWHERE_S), rests)
        except Exception:
            log.exception("listening_failed")
            self._let_rest(owner, _MISTAKE_S, rests)
        else:
            if pause_s is None:
                self._let_rest(owner, _jittered(_ELSEWHERE_S), rests)
            elif pause_s > 0:
                self._let_rest(owner, pause_s, rests + 1)
            else:
                self._rests.pop(owner, None)
        finally:
            del self._serving[owner]
            if not self._serving:
                self._emptied.set()
            self._wake.set()

    async def _work_for(self, owner: str, rests: int) -> float | None:
        """Return for how many seconds *owner* is to rest, None when there was nothing to claim."""
        is_alone = owner in self._suspects
        self._entering.add(owner)
        try:
            await self._solitude.enter(alone=is_alone)
        finally:
            self._entering.discard(owner)
        self._suspects.discard(owner)
        try:
            return await self._claim_and_work(owner, rests, is_alone=is_alone)
        finally:
            self._solitude.leave(alone=is_alone)

    async def _claim_and_work(self, owner: str, rests: int, *, is_alone: bool) -> float | None:
        claim = await self._queue.claim(
            owner, holder=self._holder, limit=self._pace.items, lease_ms=self._lease_ms, now_ms=self._now_ms()
        )
        if claim is None:
            return None
        self._held[owner] = claim
        try:
            if claim.rows[0].crashes and not is_alone:
                self._suspects.add(owner)
                return 0.0
            return await self._work.work(claim, lambda: self._stopping, rests)
        finally:
            del self._held[owner]
            await self._release(claim)

    async def _release(self, claim: Claim) -> None:
        try:
            await self._queue.release(claim)
        except MemoryUnavailable as error:
            log.info("rows_not_released", error=str(error))
            self._unreleased.append(claim)

    async def _release_late(self) -> None:
        """Give back what could not be while the store was away: its lease may last, and would be taken for a crash."""
        while self._unreleased:
            await self._queue.release(self._unreleased[0])
            self._unreleased.pop(0)

    def _let_rest(self, owner: str, pause_s: float, count: int) -> None:
        self._rests[owner] = _Rest(self._loop.time() + pause_s, count)

    async def _renew_claims(self) -> None:
        """Lease anew what is worked on, and end the work on what was lost."""
        while True:
            await asyncio.sleep(self._pace.lease_s / RENEWALS)
            for owner, claim in list(self._held.items()):
                try:
                    is_held = await self._queue.renew(claim, self._lease_ms)
                except MemoryUnavailable as error:
                    log.info("listen_lease_not_renewed", error=str(error))
                    break
                if not is_held and self._held.get(owner) is claim:
                    log.warning("listen_lease_lost", queue=claim.queue)
                    self._serving[owner].cancel()


def _jittered(seconds: float) -> float:
    return random.uniform(0.5, 1.0) * seconds  # noqa: S311 - jitter
