"""The driver of analyses: drives requested ones, and goes on with those that no process drives."""

import asyncio
import contextlib
from collections.abc import Collection, Sequence
from typing import ClassVar

import structlog

from tasklore.contracts.errors import (
    ConfigurationError,
    MemoryUnavailable,
    TaskloreError,
)
from tasklore.contracts.faults import OUR_FAULT
from tasklore.runtime.claim_loop import ClaimLoop, NotYet
from tasklore.supervisor.pipelines.analysis.fold import AnalysisParts
from tasklore.supervisor.pipelines.analysis.run import AnalysisRun

log = structlog.get_logger(__name__)

#: Analyses that are driven at once when they are found; each mostly waits for reports.
_AT_ONCE = 1000
#: Analyses taken up at one look: the store leases each with the look.
_LOOKED_UP = 100
#: Seconds between looks at an analysis that rests.
_LOOK_S = 0.25
Key = tuple[str, int]


class AnalysisDriver(ClaimLoop[Key, AnalysisRun]):
    """Drives the analyses of one supervisor id, in this process; `run` until `drain`. Keys are story and response."""

    #: Every step is stored once: two processes that drive one analysis do no harm.
    is_exclusive: ClassVar[bool] = False
    # Another version may know how to go on.
    mistake_s: ClassVar[float] = 60.0

    def __init__(self, parts: AnalysisParts) -> None:
        lease_s = parts.lease_s
        super().__init__("analysis", at_once=_AT_ONCE, lease_s=lease_s, slack_s=lease_s)
        self._parts = parts
        self._runs: dict[Key, AnalysisRun] = {}

    def demand_ready(self) -> None:
        """Check that this process drives analyses.

        Raises:
            ConfigurationError: it does not yet, or not any more.
        """
        if self._group is None or self._stopping:
            raise ConfigurationError(
                "this supervisor takes up no analyses now; ask again"
            )

    def begin(self, key: Key, new_tasks: Collection[str] = ()) -> AnalysisRun:
        """Drive an analysis that a request was written to; its *new_tasks* were not sent yet.

        Raises:
            ConfigurationError: this process drives none now.
        """
        run = self._runs.get(key)
        if run is None or run.is_closed:
            self.demand_ready()
            run = self._runs[key] = AnalysisRun(self._parts, *key)
            self.serve(key)
        run.look(new_tasks)
        return run

    async def drive(self, run: AnalysisRun) -> AnalysisRun:
        """Wait for the next turn of *run*, or a while where it rests, and return the run that goes on.

        Raises:
            ConfigurationError: this process drives none any more.
            TaskloreError: it cannot be analysed.
        """
        key = run.key
        serving = self._serving.get(key)
        if self._runs.get(key) is run and serving is not None:
            await asyncio.wait([serving, run.news], return_when=asyncio.FIRST_COMPLETED)
            if run.error is None:
                return run
        if run.error is not None:
            raise run.error
        if (rest_s := self.rest_s_of(key)) > 0:
            await asyncio.sleep(min(_LOOK_S, rest_s))
            return run
        if self._stopping:
            raise ConfigurationError("the supervisor ends; ask again")
        return self.begin(key)

    async def is_idle(self) -> bool:
        """Return whether no analysis is listed."""
        return await self._parts.analyses.is_idle(self._parts.supervisor_id)

    async def due(self, limit: int) -> Sequence[Key]:
        """Return analyses that no process drives, leased from then on."""
        # The look leases them, so that no more are taken than begin at once.
        room = max(1, self._at_once - self.busy)
        return await self._parts.analyses.due(
            self._parts.supervisor_id, self._lease_ms, min(limit, room, _LOOKED_UP)
        )

    async def claim(self, key: Key) -> AnalysisRun:
        """Return the driver of an analysis."""
        run = self._runs.get(key)
        if run is None or run.is_closed:
            log.info("analysis_taken_up", story=key[0], number=key[1])
            run = self._runs[key] = AnalysisRun(self._parts, *key)
        return run

    async def work(self, key: Key, lease: AnalysisRun) -> float:
        """Drive an analysis to its end."""
        try:
            await lease.run()
        except (MemoryUnavailable, NotYet):
            raise
        except TaskloreError as error:
            lease.error = error
            log.info("analysis_ended", story=key[0], number=key[1], error=str(error))
            with contextlib.suppress(MemoryUnavailable):
                await self._parts.analyses.end(self._parts.supervisor_id, *key)
        except Exception:
            lease.rest_ms = int(self.mistake_s * 1000)
            lease.error = TaskloreError(OUR_FAULT)
            raise
        finally:
            if self._runs.get(key) is lease:
                del self._runs[key]
        return 0.0

    async def renew(self, lease: AnalysisRun) -> bool:
        """Renew the lease, and list the analysis again where another process ended it just as it was begun anew."""
        analysis = self._parts.supervisor_id, *lease.key
        is_listed = await self._parts.analyses.renew(*analysis, self._lease_ms)
        if not is_listed and not lease.is_through:
            await self._parts.analyses.begin(*analysis, self._lease_ms)
        return True

    async def give_back(self, lease: AnalysisRun) -> None:
        """Let another process go on with an analysis that has not ended."""
        if not lease.is_through and lease.key not in self._runs:
            await self._parts.analyses.renew(
                self._parts.supervisor_id, *lease.key, lease.rest_ms
            )
