"""The desk of analyses: takes wishes up, finds analyses that nobody looks after, and drives them side by side.

A supervisor that dies leaves its analyses listed; whoever of the same id looks next, once the lease has lapsed, goes on
from what is written.
"""

import asyncio
import contextlib
import random
from weakref import WeakValueDictionary

import structlog

from contracts.errors import ConfigurationError, MemoryUnavailable, TaskloreError
from supervisor.analyses.coordinator import Coordinator, Moved
from supervisor.analyses.parts import Parts
from supervisor.analyses.wishes import Wish

log = structlog.get_logger(__name__)

#: Seconds between looks for analyses that nobody looks after.
LOOK_S = 0.5
#: Renewals within one lease: two may be lost before somebody else takes the analysis up.
RENEWALS = 3
#: Analyses taken up at one look; each mostly waits for reports.
_AT_ONCE = 100
#: Leases renewed at once: as many as there are turns on the connections.
_RENEWED_AT_ONCE = 16
#: Seconds between attempts to reach a store that is away.
_AWAY_S = 1.0
#: Milliseconds for which an analysis rests after a mistake of our own: another version may know how to go on.
_MISTAKE_MS = 60_000
#: Seconds for giving leases back at the end.
_FAREWELL_S = 5.0

Key = tuple[str, int]


class AnalysisDesk:
    """Drives the analyses of one supervisor id, in this process; `run` until `drain`.

    Args:
        parts: What they are worked on with.
        lease_s: Seconds after which somebody else goes on with the analyses of a process that fell silent.
    """

    def __init__(self, parts: Parts, *, lease_s: float) -> None:
        self._parts = parts
        self._lease_s = lease_s
        self._lease_ms = max(1, int(lease_s * 1000))
        self._loop = asyncio.get_running_loop()
        self._group: asyncio.TaskGroup | None = None
        self._live: dict[Key, Coordinator] = {}
        self._serving: dict[Key, asyncio.Task[None]] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._wake = asyncio.Event()
        self._stopping = False
        self._turned_at = self._loop.time()

    @property
    def driven(self) -> tuple[Key, ...]:
        """The responses, by story and number, whose analyses are driven here."""
        return tuple(self._live)

    def vital_sign(self) -> tuple[bool, str]:
        """Return whether the loop turns, and a word on it."""
        silent_s = self._loop.time() - self._turned_at
        is_alive = self._stopping or silent_s < 10 * LOOK_S + _AWAY_S + self._lease_s
        return is_alive, f"drives {len(self._live)} analyses, last looked {silent_s:.1f} s ago"

    def look_soon(self) -> None:
        """Look at once."""
        self._wake.set()

    def wish(self, story_id: str, number: int, wish: Wish) -> None:
        """Have *wish* for a response fulfilled.

        Raises:
            ConfigurationError: this desk does not work yet, or not any more.
        """
        live = self._live.get((story_id, number))
        if live is None or live.is_closed:
            live = self._take_up((story_id, number), is_known=False)
        live.wish(wish)

    async def drain(self) -> None:
        """Take nothing more up, and let others go on with what is driven here."""
        self._stopping = True
        self._wake.set()
        serving = list(self._serving.values())
        for task in serving:
            task.cancel()
        if serving:
            await asyncio.wait(serving, timeout=_FAREWELL_S)

    async def run(self) -> None:
        """Drive until `drain`; cancelled, it lets others go on."""
        async with asyncio.TaskGroup() as group:
            self._group = group
            renewing = group.create_task(self._renew_leases())
            try:
                while not self._stopping:
                    self._turned_at = self._loop.time()
                    pause_s = await self._take_some()
                    with contextlib.suppress(TimeoutError):
                        async with asyncio.timeout(pause_s):
                            await self._wake.wait()
                    self._wake.clear()
            finally:
                self._group = None
                renewing.cancel()

    async def _take_some(self) -> float:
        """Go on with what nobody looks after; return seconds until the next look."""
        try:
            due = await self._parts.analyses.due(self._parts.supervisor_id, self._lease_ms, _AT_ONCE)
        except MemoryUnavailable as error:
            log.info("analyses_wait_for_store", error=str(error))
            return _jittered(_AWAY_S)
        for key in due:
            if key not in self._live and not self._stopping:
                log.info("analysis_taken_up", story=key[0], number=key[1])
                self._take_up(key, is_known=True)
        return _jittered(LOOK_S)

    def _take_up(self, key: Key, *, is_known: bool) -> Coordinator:
        if self._group is None or self._stopping:
            raise ConfigurationError("this supervisor takes up no analyses now; ask again")
        turn = self._turns.setdefault(key[0], asyncio.Lock())
        live = Coordinator(self._parts, *key, turn, lease_ms=self._lease_ms, is_known=is_known)
        self._live[key] = live
        self._serving[key] = self._group.create_task(self._serve(key, live))
        return live

    async def _serve(self, key: Key, live: Coordinator) -> None:
        gone: TaskloreError = ConfigurationError("the supervisor ends; ask again")
        try:
            await live.run()
        except (MemoryUnavailable, Moved) as error:
            # What is listed is due again once its lease has lapsed.
            log.info("analysis_waits_for_store", story=key[0], number=key[1], error=str(error))
            gone = error
        except TaskloreError as error:
            log.info("analysis_ended", story=key[0], number=key[1], error=str(error))
            gone = error
            await self._forget(key, live)
        except asyncio.CancelledError:
            await asyncio.shield(self._give_back(key, live, 0))
            raise
        except Exception:
            log.exception("analysis_left_alone", story=key[0], number=key[1])
            await self._give_back(key, live, _MISTAKE_MS)
            gone = TaskloreError("something went wrong here, not with what you asked; the supervisor's log says why")
        finally:
            live.forgo(gone)
            if self._live.get(key) is live:
                del self._live[key], self._serving[key]

    async def _forget(self, key: Key, live: Coordinator) -> None:
        """Let nobody look after what cannot be driven."""
        if live.is_known:
            with contextlib.suppress(MemoryUnavailable):
                await self._parts.analyses.end(self._parts.supervisor_id, *key)

    async def _give_back(self, key: Key, live: Coordinator, rest_ms: int) -> None:
        """Let whoever looks in *rest_ms* from now go on."""
        if live.is_known:
            try:
                await self._parts.analyses.rest(self._parts.supervisor_id, *key, rest_ms)
            except MemoryUnavailable as error:
                # Its lease lapses.
                log.info("analysis_not_given_back", story=key[0], number=key[1], error=str(error))

    async def _renew_leases(self) -> None:
        turns = asyncio.Semaphore(_RENEWED_AT_ONCE)
        while True:
            await asyncio.sleep(self._lease_s / RENEWALS)
            async with asyncio.TaskGroup() as group:
                for key, live in list(self._live.items()):
                    if live.is_known:
                        group.create_task(self._renew(key, turns))

    async def _renew(self, key: Key, turns: asyncio.Semaphore) -> None:
        try:
            async with turns:
                await self._parts.analyses.renew(self._parts.supervisor_id, *key, self._lease_ms)
        except MemoryUnavailable as error:
            log.info("analysis_lease_not_renewed", story=key[0], number=key[1], error=str(error))


def _jittered(seconds: float) -> float:
    return random.uniform(0.5, 1.0) * seconds  # noqa: S311 - jitter
