"""The driver of analyses: begins requested ones, and goes on with those that no process drives."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import ClassVar
from weakref import WeakValueDictionary

import structlog

from tasklore.contracts.errors import (
    ConfigurationError,
    MemoryUnavailable,
    TaskloreError,
)
from tasklore.runtime.lease_loop import LeaseLoop
from tasklore.supervisor.pipelines.analysis.pending import PendingAnalysis
from tasklore.supervisor.pipelines.analysis.run import (
    AnalysisParts,
    AnalysisRun,
    StoryMoved,
)

log = structlog.get_logger(__name__)

#: Analyses that are driven at once when they are found; each mostly waits for reports.
_AT_ONCE = 1000
#: Analyses taken up at one look: the store leases each with the look.
_LOOKED_UP = 100
#: What is answered when the fault is ours.
APOLOGY = (
    "something went wrong here, not with what you asked; the supervisor's log says why"
)

Key = tuple[str, int]


class AnalysisDriver(LeaseLoop[Key, AnalysisRun]):
    """Drives the analyses of one supervisor id, in this process; `run` until `drain`. Keys are story and response.

    Args:
        parts: The parts of their drivers.
        lease_s: Seconds after which another process goes on with the analyses of one that fell silent.
    """

    #: Every step is stored once: two processes that drive one analysis do no harm.
    is_exclusive: ClassVar[bool] = False
    # Another version may know how to go on.
    mistake_s: ClassVar[float] = 60.0

    def __init__(self, parts: AnalysisParts, *, lease_s: float) -> None:
        super().__init__("analysis", at_once=_AT_ONCE, lease_s=lease_s, slack_s=lease_s)
        self._parts = parts
        self._runs: dict[Key, AnalysisRun] = {}
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    def request(self, story_id: str, number: int, request: PendingAnalysis) -> None:
        """Have a response analysed as *request* says.

        Raises:
            ConfigurationError: this driver does not work yet, or not any more.
        """
        key = story_id, number
        run = self._runs.get(key)
        if run is None or run.is_closed:
            if self._group is None or self._stopping:
                raise ConfigurationError(
                    "this supervisor takes up no analyses now; ask again"
                )
            run = self._take_up(key, is_listed=False)
            self.serve(key)
        run.request(request)

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
            run = self._take_up(key, is_listed=True)
        return run

    async def work(self, key: Key, lease: AnalysisRun) -> float:
        """Drive an analysis to its end, and answer every request that waits for it."""
        gone: TaskloreError = ConfigurationError("the supervisor ends; ask again")
        try:
            await lease.run()
        except (MemoryUnavailable, StoryMoved) as error:
            gone = error
            log.info(
                "analysis_waits_for_store",
                story=key[0],
                number=key[1],
                error=str(error),
            )
        except TaskloreError as error:
            gone = error
            log.info("analysis_ended", story=key[0], number=key[1], error=str(error))
            with contextlib.suppress(MemoryUnavailable):
                await lease.end()
        except Exception:
            lease.rest_ms = int(self.mistake_s * 1000)
            gone = TaskloreError(APOLOGY)
            raise
        finally:
            lease.give_up(gone)
            if self._runs.get(key) is lease:
                del self._runs[key]
        return 0.0

    async def renew(self, lease: AnalysisRun) -> bool:
        """Renew the lease of an analysis that is listed."""
        if lease.is_listed:
            with contextlib.suppress(MemoryUnavailable):
                await self._parts.analyses.renew(
                    self._parts.supervisor_id, *lease.key, self._lease_ms
                )
        return True

    async def give_back(self, lease: AnalysisRun) -> None:
        """Let another process go on with an analysis that has not ended."""
        if lease.is_listed:
            await self._parts.analyses.renew(
                self._parts.supervisor_id, *lease.key, lease.rest_ms
            )

    def _take_up(self, key: Key, *, is_listed: bool) -> AnalysisRun:
        turn = self._turns.setdefault(key[0], asyncio.Lock())
        run = self._runs[key] = AnalysisRun(
            self._parts, *key, turn, lease_ms=self._lease_ms, is_listed=is_listed
        )
        return run
