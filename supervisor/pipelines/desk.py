"""The desk of pipelines: claims the runs that nobody drives, each under a lease, and drives them side by side.

A supervisor that dies leaves leases that lapse; one that is asked to end gives its own back, and any other of the same
id goes on from there.
"""

import asyncio
import contextlib
import math
import random
from collections import Counter
from collections.abc import Awaitable
from dataclasses import dataclass

import structlog

from contracts.errors import MemoryUnavailable, RunSetAside, UnknownSession
from memory.sessions.pipeline_records import MOST_LAPSES
from memory.sessions.pipeline_runs import PipelineRuns
from supervisor.pipelines.driver import Drive
from supervisor.pipelines.live import LeaseLost, Parts

log = structlog.get_logger(__name__)

#: Seconds between looks for runs that nobody drives, when nobody tells of one.
LOOK_S = 0.5
#: Renewals within one lease: two may be lost before somebody else takes the run.
RENEWALS = 3
#: Runs driven at once by one process; each mostly waits for reports.
RUNS_AT_ONCE = 1_000
#: Those of one user among them, so that nobody shuts others out, and seconds until another one of theirs is looked at.
RUNS_OF_ONE, _CROWDED_S = 500, 10.0
#: Leases renewed at once: as many as there are turns on the connections.
_AT_ONCE = 16
#: Seconds between attempts to reach a store that is away: first, and at most.
_PAUSE_S, _PAUSE_CAP_S = 0.1, 2.0
#: Seconds for which a run rests that somebody else drives, or after a mistake of our own.
_ELSEWHERE_S, _MISTAKE_S = 0.5, 2.0
#: Seconds for which a run rests that cannot even be ended: a newer version may have made it, and drives it elsewhere.
_BROKEN_S = 60.0
#: Times that our own mistakes are tried again before the run ends as failed because of them.
_MOST_MISTAKES = 3
#: Seconds for giving leases back at the end.
_FAREWELL_S = 5.0


@dataclass(slots=True)
class _Held:
    """A run that is driven here under the lease *fence*, which lasts `until` by the loop's clock unless renewed."""

    fence: int
    drive: Drive
    until: float


class PipelineDesk:
    """Drives the runs of one supervisor id, in this process; `run` until `drain`.

    Args:
        parts: What drivers work with.
        holder: Names this process in leases, unlike any other process there ever is.
        lease_s: Seconds after which somebody else goes on with the runs of a process that fell silent.
    """

    def __init__(self, parts: Parts, *, holder: str, lease_s: float) -> None:
        self._parts = parts
        self._runs: PipelineRuns = parts.runs
        self._holder = holder
        self._lease_s = lease_s
        self._lease_ms = max(1, int(lease_s * 1000))
        self._loop = asyncio.get_running_loop()
        self._serving: dict[str, asyncio.Task[None]] = {}
        self._held: dict[str, _Held] = {}
        self._rests: dict[str, float] = {}
        self._mistakes: Counter[str] = Counter()
        self._of_user: Counter[str] = Counter()
        self._failures = 0
        self._away_at = -math.inf
        self._wake = asyncio.Event()
        self._stopping = False
        self._turned_at = self._loop.time()

    @property
    def driven(self) -> tuple[str, ...]:
        """The sessions whose runs are driven here."""
        return tuple(self._held)

    def vital_sign(self) -> tuple[bool, str]:
        """Return whether the loop turns, and a word on it."""
        silent_s = self._loop.time() - self._turned_at
        is_alive = self._stopping or silent_s < 10 * LOOK_S + _PAUSE_CAP_S + self._lease_s
        return is_alive, f"drives {len(self._held)} runs, last looked {silent_s:.1f} s ago"

    def look_soon(self, session_id: str | None = None) -> None:
        """Look at once: a run was made, of *session_id*, or goes on."""
        if session_id is not None:
            self._rests.pop(session_id, None)
        self._wake.set()

    def wish(self, session_id: str, reason: str) -> bool:
        """Let the run of *session_id* be cancelled; False when it is not driven here."""
        held = self._held.get(session_id)
        if held is not None:
            held.drive.wish(reason)
        return held is not None

    async def drain(self) -> None:
        """Claim nothing more, stop driving, and give every lease back."""
        self._stopping = True
        self._wake.set()
        serving = list(self._serving.values())
        for task in serving:
            task.cancel()
        if serving:
            await asyncio.wait(serving, timeout=_FAREWELL_S)
        await self._parts.fingerprints.close()

    async def run(self) -> None:
        """Claim and drive until `drain`; cancelled, it gives its leases back."""
        async with asyncio.TaskGroup() as group:
            renewing = group.create_task(self._renew_leases())
            while not self._stopping:
                self._turned_at = self._loop.time()
                pause_s = await self._take_some(group)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause_s):
                        await self._wake.wait()
                self._wake.clear()
            renewing.cancel()

    async def _take_some(self, group: asyncio.TaskGroup) -> float:
        """Begin to drive what nobody drives, as far as there is room; return seconds until the next look."""
        now = self._loop.time()
        self._rests = {one: until for one, until in self._rests.items() if until > now}
        room = RUNS_AT_ONCE - len(self._serving)
        if room <= 0:
            return LOOK_S
        try:
            due = await self._runs.due(self._parts.supervisor_id, room + len(self._rests))
        except MemoryUnavailable as error:
            self._failures, self._away_at = min(self._failures + 1, 10), self._loop.time()
            log.info("pipelines_wait_for_store", error=str(error))
            return _jittered(min(_PAUSE_CAP_S, _PAUSE_S * 2**self._failures))
        self._failures = 0
        for session_id in due[:]:
            if session_id not in self._serving and session_id not in self._rests and not self._stopping:
                self._serving[session_id] = group.create_task(self._serve(session_id))
        rested_s = min((until - now for until in self._rests.values()), default=LOOK_S)
        return min(_jittered(LOOK_S), max(0.01, rested_s))

    async def _serve(self, session_id: str) -> None:
        try:
            rest_s = await self._claim_with_room(session_id)
        except MemoryUnavailable as error:
            log.info("pipeline_waits_for_store", session=session_id, error=str(error))
            rest_s = _PAUSE_CAP_S
        except LeaseLost as error:
            log.info("pipeline_lease_lost", session=session_id, error=str(error))
            rest_s = _ELSEWHERE_S
        except RunSetAside as error:
            log.warning("pipeline_set_aside", session=session_id, error=str(error))
            self._parts.meter.count_pipeline("set_aside")
            rest_s = _ELSEWHERE_S
        except UnknownSession as error:
            log.warning("pipeline_session_gone", session=session_id, error=str(error))
            rest_s = _MISTAKE_S
        except Exception:
            log.exception("pipeline_left_alone", session=session_id)
            rest_s = _BROKEN_S
        finally:
            del self._serving[session_id]
            self._wake.set()
        if rest_s:
            self._rests[session_id] = self._loop.time() + _jittered(rest_s)

    async def _claim_with_room(self, session_id: str) -> float:
        """Return for how many seconds the run is to rest here, 0 when it has ended."""
        user_id = await self._runs.user_of(session_id)
        if user_id is None:
            return await self._claim_and_drive(session_id)
        if self._of_user[user_id] >= RUNS_OF_ONE:
            await self._runs.postpone(self._parts.supervisor_id, session_id, int(_jittered(_CROWDED_S) * 1000))
            return 0.0
        self._of_user[user_id] += 1
        try:
            return await self._claim_and_drive(session_id)
        finally:
            # Adding leaves out who has none any more.
            self._of_user += Counter({user_id: -1})

    async def _claim_and_drive(self, session_id: str) -> float:
        asked_at = self._loop.time()
        # A lease that lapsed while the store was away says nothing of whoever held it.
        was_there = asked_at - self._away_at > self._lease_s + _PAUSE_CAP_S
        fence = await self._runs.claim(session_id, self._holder, self._lease_ms, MOST_LAPSES if was_there else 0)
        if fence is None:
            return _ELSEWHERE_S
        held = _Held(fence, Drive(self._parts, session_id, fence), asked_at + self._lease_s)
        self._held[session_id] = held
        try:
            await self._drive(session_id, held)
        finally:
            del self._held[session_id]
            await self._shielded(self._give_back(session_id, fence))
        return _MISTAKE_S if self._mistakes[session_id] else 0.0

    async def _drive(self, session_id: str, held: _Held) -> None:
        try:
            await held.drive.run()
        except (MemoryUnavailable, LeaseLost, UnknownSession):
            raise
        except Exception as error:
            log.exception("driving_failed", session=session_id)
            self._mistakes[session_id] += 1
            if self._mistakes[session_id] > _MOST_MISTAKES:
                await held.drive.fail(f"it cannot be driven: {type(error).__name__}: {error}")
                self._mistakes.pop(session_id)
        else:
            self._mistakes.pop(session_id, None)

    async def _give_back(self, session_id: str, fence: int) -> None:
        try:
            await self._runs.give_back(session_id, self._holder, fence)
        except MemoryUnavailable as error:
            # It lapses.
            log.info("pipeline_lease_not_given_back", session=session_id, error=str(error))

    async def _shielded(self, work: Awaitable[None]) -> None:
        """Do *work* to its end, also while this task is being cancelled."""
        doing = asyncio.ensure_future(work)
        try:
            await asyncio.shield(doing)
        except asyncio.CancelledError:
            await doing
            raise

    async def _renew_leases(self) -> None:
        """Lease anew what is driven, hear of wishes to cancel, and stop driving what was lost."""
        turns = asyncio.Semaphore(_AT_ONCE)
        while True:
            await asyncio.sleep(self._lease_s / RENEWALS)
            async with asyncio.TaskGroup() as group:
                for session_id, held in list(self._held.items()):
                    group.create_task(self._renew(session_id, held, turns))

    async def _renew(self, session_id: str, held: _Held, turns: asyncio.Semaphore) -> None:
        asked_at = self._loop.time()
        try:
            async with turns:
                is_held = await self._runs.renew(session_id, self._holder, held.fence, self._lease_ms)
                wish = await self._runs.wish(session_id) if is_held else None
        except Exception as error:  # noqa: BLE001 - what a worker wrote into a session is to end no other run
            log.warning("pipeline_lease_not_renewed", session=session_id, error=repr(error))
            is_held, wish = self._loop.time() < held.until, None
        else:
            held.until = asked_at + self._lease_s
        if self._held.get(session_id) is not held:
            return
        if not is_held:
            log.warning("pipeline_lease_lost", session=session_id)
            self._rests[session_id] = self._loop.time() + _jittered(_ELSEWHERE_S)
            self._serving[session_id].cancel()
        elif wish is not None:
            held.drive.wish(wish)


def _jittered(seconds: float) -> float:
    return random.uniform(0.5, 1.0) * seconds  # noqa: S311 - jitter
