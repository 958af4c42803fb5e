"""The slot of one run, and its places: while it waits for tasks that it called, others have them, so these find room.

A worker whose every run waits for another one of its own still makes progress: what is lent is taken back before any
new task is taken, and too many that wait are handed back to the queue.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tasklore.runtime.messaging.pull import Delivery, PullEngine
from tasklore.workers.context.branches import RunParked
from tasklore.workers.execution.crash_isolation import CrashIsolation, StillBusy
from tasklore.workers.execution.running_jobs import RunningJob, RunningJobs

#: Seconds that a question waits in its slot for another task that computes it.
_LONG_S = 0.25


class RunSlot:
    """The slot of *running*, one of *jobs*, and its place among the runs that may overlap here, held until `leave`."""

    def __init__(
        self,
        running: RunningJob,
        jobs: RunningJobs,
        engine: PullEngine,
        exclusive: CrashIsolation,
        *,
        alone: bool,
        grouped: bool,
    ) -> None:
        self._jobs = jobs
        self._running = running
        self._engine = engine
        self._exclusive = exclusive
        self._alone = alone
        self._grouped = grouped
        self._is_inside = True
        self._waiting = 0
        self._returning = asyncio.Lock()

    def leave(self) -> None:
        """Give up its place among the runs here, unless that is given up already."""
        if self._is_inside:
            self._is_inside = False
            self._exclusive.leave(alone=self._alone, grouped=self._grouped)

    def park(self, waiting: RunParked) -> None:
        """End the run, which waits for something that may take days."""
        self._running.park(waiting)

    @asynccontextmanager
    async def lent(self) -> AsyncIterator[None]:
        """Lend the slot during the block, which only waits; several blocks of one run lend it once."""
        self._waiting += 1
        try:
            if not self._running.is_lending:
                await self._lend()
            yield
        finally:
            self._waiting -= 1
            if not self._is_waiting():
                await self._return()

    async def _lend(self) -> None:
        self.leave()
        if not self._running.lend(self._engine):
            self._jobs.make_room(self._running, self._engine)
        if self._running.places is not None:
            await self._running.places.lend()

    async def _return(self) -> None:
        """Wait for the slot and a place among the runs here, unless another block has begun to wait meanwhile."""
        delivery = self._running.job.delivery
        if self._running.is_cut_short:
            self._engine.reclaim_now(delivery)
            return
        async with self._returning:
            if self._is_inside or self._is_waiting():
                return
            try:
                # Before the slot: who holds a place may wait for a slot, and never the other way round.
                if self._running.places is not None:
                    await self._running.places.reclaim()
                await self._engine.reclaim(delivery)
                await self._exclusive.enter(alone=self._alone, grouped=self._grouped)
            except StillBusy as error:
                self._running.hand_back(str(error))
                # Until it is cancelled, which that has asked for.
                await asyncio.Event().wait()
            except BaseException:
                self._engine.reclaim_now(delivery)
                self._running.is_lending = False
                raise
            self._is_inside = True
            self._running.is_lending = False
            if self._is_waiting():
                await self._lend()

    def _is_waiting(self) -> bool:
        return self._waiting > 0


@asynccontextmanager
async def lent_when_long(engine: PullEngine, delivery: Delivery) -> AsyncIterator[None]:
    """Lend the slot of *delivery* when the block takes long: the awaited task may itself wait for a slot."""
    lending = asyncio.get_running_loop().call_later(_LONG_S, engine.lend, delivery)
    try:
        yield
        await engine.reclaim(delivery)
    finally:
        lending.cancel()
