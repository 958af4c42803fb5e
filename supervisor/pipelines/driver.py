"""The driver of pipelines: claims runs, each under a lease with a fence, and drives them side by side."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import ClassVar

import structlog

from tasklore.contracts.errors import MemoryUnavailable, RunSetAside, UnknownSession
from tasklore.memory.sessions.pipeline_records import MOST_LAPSES
from tasklore.runtime.claim_loop import (
    ELSEWHERE_S,
    PAUSE_CAP_S,
    ClaimLoop,
    LeaseLost,
    NotYet,
    jitter,
)
from tasklore.supervisor.pipelines.drive import Drive
from tasklore.supervisor.pipelines.live import DriverDependencies

log = structlog.get_logger(__name__)

#: Runs driven at once by one process; each mostly waits for reports.
RUNS_AT_ONCE = 1_000
#: Those of one user among them, so that nobody shuts others out, and seconds until another one of theirs is looked at.
RUNS_OF_ONE = 500
_CROWDED_S = 10.0
#: Seconds between looks whether an inner run that is driven elsewhere has ended.
_LOOK_S = 0.25
#: Seconds for which a run rests after a mistake of our own that may pass.
_MISTAKE_S = 2.0
#: Times that our own mistakes are tried again before the run ends as failed because of them.
_MOST_MISTAKES = 3


class PipelineDriver(ClaimLoop[str, Drive]):
    """Drives the runs of one supervisor id, in this process; `run` until `drain`. Its keys are sessions.

    Args:
        parts: What drivers work with.
        holder: Names this process in leases, unlike any other process there ever is.
        lease_s: Seconds after which another process goes on with the runs of one that fell silent.
    """

    # A run that cannot even be ended may be one of a newer version, which drives it elsewhere.
    mistake_s: ClassVar[float] = 60.0

    def __init__(
        self, parts: DriverDependencies, *, holder: str, lease_s: float
    ) -> None:
        super().__init__(
            "pipeline", at_once=RUNS_AT_ONCE, lease_s=lease_s, slack_s=lease_s
        )
        self._parts = parts
        self._runs = parts.runs
        self._holder = holder
        self._mistakes: Counter[str] = Counter()
        self._of_user: Counter[str] = Counter()
        #: Runs that a phase of another one here waits for.
        self._inner: set[str] = set()

    @property
    def busy(self) -> int:
        """How many runs that take room are driven; inner ones take none, so that no run waits for its own end."""
        return len(self._serving) - len(self._inner)

    async def drive_inner(self, session_id: str) -> None:
        """Drive the run of a phase of a run that is driven here, or wait a while where it is driven elsewhere."""
        serving = self._serving.get(session_id)
        if serving is None and (rest_s := self.rest_s_of(session_id)) > 0:
            await asyncio.sleep(min(_LOOK_S, rest_s))
            return
        if serving is None:
            self._inner.add(session_id)
            self.serve(session_id)
            serving = self._serving[session_id]
            serving.add_done_callback(lambda _: self._inner.discard(session_id))
        await asyncio.wait([serving])

    def cancel(self, session_id: str, reason: str) -> bool:
        """Cancel the run of *session_id*; False when it is not driven here."""
        held = self._held.get(session_id)
        if held is not None:
            held.lease.cancel(reason)
        return held is not None

    async def drain(self) -> None:
        """Claim nothing more, stop driving, and give every lease back."""
        await super().drain()
        await self._parts.fingerprints.close()

    async def attend(self, key: str) -> float | None:
        """Claim and drive a run, unless its user has too many here."""
        try:
            user_id = None if key in self._inner else await self._runs.user_of(key)
            if user_id is None:
                return await super().attend(key)
            if self._of_user[user_id] >= RUNS_OF_ONE:
                await self._runs.postpone(
                    self._parts.supervisor_id, key, int(jitter(_CROWDED_S) * 1000)
                )
                return 0.0
            self._of_user[user_id] += 1
            try:
                return await super().attend(key)
            finally:
                # Adding leaves out users without a run.
                self._of_user += Counter({user_id: -1})
        except RunSetAside as error:
            log.warning("pipeline_set_aside", session=key, error=str(error))
            self._parts.meter.count_pipeline("set_aside")
            return ELSEWHERE_S
        except UnknownSession as error:
            log.warning("pipeline_session_gone", session=key, error=str(error))
            return _MISTAKE_S

    async def is_idle(self) -> bool:
        """Return whether no run is listed."""
        return await self._runs.is_idle(self._parts.supervisor_id)

    async def due(self, limit: int) -> Sequence[str]:
        """Return sessions whose runs no supervisor drives."""
        return await self._runs.due(self._parts.supervisor_id, limit)

    async def claim(self, key: str) -> Drive | None:
        """Return the driver of a run, under a lease with a new fence."""
        # A lease that lapsed while the store was away says nothing of its holder.
        was_there = self._loop.time() - self._away_at > self._lease_s + PAUSE_CAP_S
        fence = await self._runs.claim(
            key, self._holder, self._lease_ms, MOST_LAPSES if was_there else 0
        )
        return Drive(self._parts, key, fence, self) if fence is not None else None

    async def work(self, key: str, lease: Drive) -> float:
        """Drive the run to its end; when that fails too often, end it as failed."""
        try:
            await lease.run()
        except (MemoryUnavailable, LeaseLost, NotYet, UnknownSession):
            raise
        except Exception as error:
            log.exception("driving_failed", session=key)
            self._mistakes[key] += 1
            if self._mistakes[key] <= _MOST_MISTAKES:
                return _MISTAKE_S
            await lease.fail(f"it cannot be driven: {type(error).__name__}: {error}")
        self._mistakes.pop(key, None)
        return 0.0

    async def renew(self, lease: Drive) -> bool:
        """Renew the lease, and cancel the run where that was requested in the store."""
        is_held = await self._runs.renew(
            lease.session_id, self._holder, lease.fence, self._lease_ms
        )
        if (
            is_held
            and (reason := await self._runs.cancel_reason(lease.session_id)) is not None
        ):
            lease.cancel(reason)
        return is_held

    async def give_back(self, lease: Drive) -> None:
        """End the lease."""
        await self._runs.give_back(lease.session_id, self._holder, lease.fence)
