"""The loop of every process that works under leases: claim due items, work on them side by side, renew, give back.

A process that dies leaves leases that lapse; one that is asked to end gives its own back. Runs of pipelines, analyses
and the rows of listeners are worked on by it; each subclass names its due items and their leases.
"""

import asyncio
import contextlib
import math
import random
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

import structlog

from tasklore.contracts.cadence import until_look
from tasklore.contracts.errors import MemoryUnavailable, TaskloreError

log = structlog.get_logger(__name__)

#: Seconds between looks at what is due, when nobody calls `look_soon`: what other processes made due is seen by then.
LOOK_S = 0.5
#: The same while nothing is listed that could be due: what another process adds meanwhile is seen by then, before the
#: lease under which that one works on it may lapse.
IDLE_LOOK_S = 1.0
#: Renewals within one lease: two may be lost before another process takes the work.
RENEWALS = 3
#: Leases renewed at once: as many as there are turns on the connections.
_RENEWED_AT_ONCE = 16
#: Seconds between attempts to reach a store that is away: first, and at most.
_PAUSE_S = 0.1
PAUSE_CAP_S = 2.0
#: Seconds for which a key rests that another process works on.
ELSEWHERE_S = 0.5
#: Seconds for giving leases back at the end.
_FAREWELL_S = 5.0

Key = TypeVar("Key", bound=Hashable)
Lease = TypeVar("Lease")


class LeaseLost(TaskloreError):
    """Another process holds the lease, or will: stop, because nothing more of this work is accepted."""


class NotYet(TaskloreError):
    """The key cannot be worked on before *pause_s* seconds are over, for no fault of a server: no rest is counted."""

    def __init__(self, message: str, pause_s: float) -> None:
        super().__init__(message)
        self.pause_s = pause_s


@dataclass(slots=True)
class _Held(Generic[Lease]):
    """A lease that lasts `until` by the loop's clock unless it is renewed; `timer` fires once it may have lapsed."""

    lease: Lease
    until: float
    timer: asyncio.TimerHandle | None = None


@dataclass(frozen=True, slots=True)
class _Rest:
    """A key that is left alone `until` then, for the `count`-th time in a row."""

    until: float
    count: int


class ClaimLoop(ABC, Generic[Key, Lease]):
    """Claims due items and works on them in this process; `run` until `stop` or `drain`.

    Args:
        what: One piece of work, as logs and the vital sign name it.
        at_once: Keys worked on at once.
        lease_s: Seconds after which another process goes on with the work of one that fell silent.
        slack_s: Seconds that a look may take beyond the deadline of one round trip.
    """

    #: Keys that are looked up at once for each that there is room for.
    ahead: ClassVar[int] = 1
    #: Whether logs may name keys: ids of users stay out of them.
    names_keys: ClassVar[bool] = True
    #: Whether work ends once its lease may have lapsed; else two processes that work on one key do no harm.
    is_exclusive: ClassVar[bool] = True
    #: Seconds for which a key rests after a mistake of our own.
    mistake_s: ClassVar[float] = 5.0

    def __init__(
        self, what: str, *, at_once: int, lease_s: float, slack_s: float = 0.0
    ) -> None:
        self._what = what
        self._at_once = at_once
        self._lease_s = lease_s
        self._lease_ms = max(1, int(lease_s * 1000))
        self._slack_s = slack_s
        self._loop = asyncio.get_running_loop()
        self._group: asyncio.TaskGroup | None = None
        self._serving: dict[Key, asyncio.Task[None]] = {}
        self._held: dict[Key, _Held[Lease]] = {}
        self._unreturned: deque[Lease] = deque()
        self._rests: dict[Key, _Rest] = {}
        self._due: deque[Key] = deque()
        self._failures = 0
        self._is_idle = False
        #: When the store was last found to be away, by the loop's clock.
        self._away_at = float("-inf")
        self._wake = asyncio.Event()
        self._emptied = asyncio.Event()
        self._stopping = False
        self._turned_at = self._loop.time()

    async def is_idle(self) -> bool:
        """Return whether nothing is listed, be it due now or later: it is to cost less than `due`."""
        return False

    @abstractmethod
    async def due(self, limit: int) -> Sequence[Key]:
        """Return up to *limit* keys that it pays to claim, the one that waits longest first."""

    @abstractmethod
    async def claim(self, key: Key) -> Lease | None:
        """Return a lease on *key*, None when there is nothing to claim."""

    @abstractmethod
    async def work(self, key: Key, lease: Lease) -> float:
        """Work on *key* and return for how many seconds it is to rest then, 0 for none.

        Raises:
            LeaseLost: another process works on it.
            NotYet: it is not its turn.
            MemoryUnavailable: the store did not answer.
        """

    @abstractmethod
    async def renew(self, lease: Lease) -> bool:
        """Let *lease* last a whole time from now; False when it is lost."""

    @abstractmethod
    async def give_back(self, lease: Lease) -> None:
        """End *lease*: another process may claim its key at once."""

    @property
    def driven(self) -> tuple[Key, ...]:
        """The keys that are held here."""
        return tuple(self._held)

    @property
    def busy(self) -> int:
        """How many keys that take room are worked on, or about to be."""
        return len(self._serving)

    def vital_sign(self) -> tuple[bool, str]:
        """Return whether the loop turns, and a word on it."""
        silent_s = self._loop.time() - self._turned_at
        is_alive = (
            self._stopping or silent_s < 10 * LOOK_S + PAUSE_CAP_S + self._slack_s
        )
        return (
            is_alive,
            f"works on {len(self._held)} ({self._what}), last looked {silent_s:.1f} s ago",
        )

    def look_soon(self, key: Key | None = None) -> None:
        """Look at once; *key* rests no longer."""
        if key is not None:
            self._rests.pop(key, None)
        self._wake.set()

    def stop(self) -> None:
        """Claim nothing more; running work goes on to its end."""
        self._stopping = True
        self._wake.set()

    async def emptied(self) -> None:
        """Return when nothing is worked on any more; `stop` first."""
        while self._serving:
            self._emptied.clear()
            await self._emptied.wait()

    async def drain(self) -> None:
        """Claim nothing more, stop working, and give every lease back."""
        self.stop()
        serving = list(self._serving.values())
        for task in serving:
            task.cancel()
        if serving:
            await asyncio.wait(serving, timeout=_FAREWELL_S)

    async def run(self) -> None:
        """Work until `stop` and the end of running work; cancelled, give every lease back."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            renewing = group.create_task(self._renew_all())
            try:
                while not self._stopping:
                    self._turned_at = self._loop.time()
                    pause_s = await self._begin_some()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(pause_s):
                            await self._wake.wait()
                    self._wake.clear()
                await self.emptied()
            finally:
                self._group = None
                renewing.cancel()

    def serve(self, key: Key) -> None:
        """Begin to work on *key*, within `run`."""
        if self._group is None:
            raise RuntimeError("nothing is worked on before `run` and after its end")
        task = self._serving[key] = self._group.create_task(self._serve(key))
        # One that is cancelled before its first step runs nothing of its own.
        task.add_done_callback(lambda ended: self._note_end(key, ended))

    async def attend(self, key: Key) -> float | None:
        """Claim *key*, work on it and give it back; return as `work`, None when there was nothing to claim."""
        asked_at = self._loop.time()
        lease = await self.claim(key)
        if lease is None:
            return None
        held = self._held[key] = _Held(lease, asked_at + self._lease_s)
        if self.is_exclusive:
            self._let_lapse(key, held)
        try:
            return await self.work(key, lease)
        finally:
            if held.timer is not None:
                held.timer.cancel()
            if self._held.get(key) is held:
                del self._held[key]
            await self._return(key, lease)

    def rest_s_of(self, key: Key) -> float:
        """Return for how many seconds *key* still rests, 0 when it does not."""
        return (
            max(0.0, self._rests[key].until - self._loop.time())
            if key in self._rests
            else 0.0
        )

    def rests_of(self, key: Key) -> int:
        """Return how often *key* has rested in a row."""
        return self._rests[key].count if key in self._rests else 0

    async def _begin_some(self) -> float:
        """Begin to work on due items, as far as there is room; return seconds until the next look."""
        room = self._at_once - self.busy
        if self._unreturned or (room > 0 and not self._due):
            try:
                while self._unreturned:
                    # Its lease may last, and would be taken for that of a process that died.
                    await self.give_back(self._unreturned[0])
                    self._unreturned.popleft()
                if room > 0 and not self._due:
                    await self._look(room)
            except MemoryUnavailable as error:
                self._failures = self._failures + 1
                self._away_at = self._loop.time()
                log.info(f"{self._what}_waits_for_store", error=str(error))
                return backoff(self._failures)
            self._failures = 0
        while room > 0 and self._due and not self._stopping:
            key = self._due.popleft()
            if key not in self._serving:
                self.serve(key)
                room -= 1
        now = self._loop.time()
        rested_s = min(
            (rest.until - now for rest in self._rests.values() if rest.until > now),
            default=math.inf,
        )
        look_s = IDLE_LOOK_S if self._is_idle else LOOK_S
        return min(until_look(now, look_s), max(0.01, rested_s))

    async def _look(self, room: int) -> None:
        self._is_idle = await self.is_idle()
        most = room * self.ahead + len(self._serving) + len(self._rests)
        found = () if self._is_idle else await self.due(most)
        now = self._loop.time()
        waiting = set(found)
        # How often a key rested is forgotten once it is not due any more.
        self._rests = {
            key: rest
            for key, rest in self._rests.items()
            if rest.until > now or key in waiting
        }
        rests = {key for key, rest in self._rests.items() if rest.until > now}
        self._due.extend(
            key for key in found if key not in self._serving and key not in rests
        )

    async def _serve(self, key: Key) -> None:
        rests = self.rests_of(key)
        try:
            rest_s = await self.attend(key)
        except MemoryUnavailable as error:
            log.info(
                f"{self._what}_waits_for_store", key=self._label(key), error=str(error)
            )
            self._let_rest(key, backoff(rests + 1), rests + 1)
        except LeaseLost as error:
            log.warning(
                f"{self._what}_lease_lost", key=self._label(key), error=str(error)
            )
            self._let_rest(key, jitter(ELSEWHERE_S), rests)
        except NotYet as error:
            log.info(f"{self._what}_waits", key=self._label(key), error=str(error))
            self._let_rest(key, error.pause_s, rests)
        except Exception:
            log.exception(f"{self._what}_left_alone", key=self._label(key))
            self._let_rest(key, jitter(self.mistake_s), rests)
        else:
            if rest_s is None:
                self._let_rest(key, jitter(ELSEWHERE_S), rests)
            elif rest_s > 0:
                self._let_rest(key, rest_s, rests + 1)
            else:
                self._rests.pop(key, None)

    def _note_end(self, key: Key, ended: asyncio.Task[None]) -> None:
        if self._serving.get(key) is ended:
            del self._serving[key]
        if not self._serving:
            self._emptied.set()
        self._wake.set()

    def _label(self, key: Key) -> str:
        return str(key) if self.names_keys else ""

    def _let_rest(self, key: Key, pause_s: float, count: int) -> None:
        self._rests[key] = _Rest(self._loop.time() + pause_s, count)

    async def _return(self, key: Key, lease: Lease) -> None:
        """Give *lease* back, also while this task is being cancelled."""
        returning = asyncio.ensure_future(self._give_back_or_keep(key, lease))
        try:
            await asyncio.shield(returning)
        except asyncio.CancelledError:
            await asyncio.wait([returning])
            raise

    async def _give_back_or_keep(self, key: Key, lease: Lease) -> None:
        try:
            await self.give_back(lease)
        except MemoryUnavailable as error:
            log.info(
                f"{self._what}_lease_not_given_back",
                key=self._label(key),
                error=str(error),
            )
            self._unreturned.append(lease)

    async def _renew_all(self) -> None:
        turns = asyncio.Semaphore(_RENEWED_AT_ONCE)
        while True:
            await asyncio.sleep(self._lease_s / RENEWALS)
            async with asyncio.TaskGroup() as group:
                for key, held in list(self._held.items()):
                    group.create_task(self._renew(key, held, turns))

    async def _renew(
        self, key: Key, held: _Held[Lease], turns: asyncio.Semaphore
    ) -> None:
        """Renew one lease, and stop the work on it when it is lost."""
        asked_at = self._loop.time()
        try:
            async with turns:
                is_held = await self.renew(held.lease)
        except Exception as error:  # noqa: BLE001 - what cannot be read of one key must not end the work on others
            log.warning(
                f"{self._what}_lease_not_renewed",
                key=self._label(key),
                error=repr(error),
            )
            return
        held.until = asked_at + self._lease_s if is_held else float("-inf")
        if not is_held:
            self._let_lapse(key, held)

    def _let_lapse(self, key: Key, held: _Held[Lease]) -> None:
        """Stop the work on *key* when its lease ends without a renewal: another process may have it from then on."""
        if held.timer is not None:
            held.timer.cancel()
        if self._loop.time() < held.until:
            held.timer = self._loop.call_at(held.until, self._let_lapse, key, held)
        elif self._held.get(key) is held:
            log.warning(f"{self._what}_lease_lost", key=self._label(key))
            self._let_rest(key, jitter(ELSEWHERE_S), self.rests_of(key))
            self._serving[key].cancel()


def jitter(seconds: float) -> float:
    """Return a random time of up to *seconds*, at least half of it."""
    return random.uniform(0.5, 1.0) * seconds  # noqa: S311 - jitter


def backoff(failures: int) -> float:
    """Return for how many seconds to leave a store alone that has failed so often in a row."""
    return jitter(min(PAUSE_CAP_S, _PAUSE_S * 2 ** min(failures, 10)))
