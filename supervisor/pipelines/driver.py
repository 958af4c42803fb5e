"""Driving one run: phases begin as the graph allows, side by side, until none is left; then the run is ended.

The driver keeps nothing that the store does not have: it may be killed between any two lines, and whoever claims the
run next goes on from there. What it did since is done again to the same effect.
"""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import structlog

from contracts.errors import NotAccepted
from contracts.session_keys import read_key
from contracts.traces import spelled_context
from memory.sessions.pipeline_records import PhaseState
from runtime import tracing
from runtime.lease_loop import LeaseLost
from supervisor.pipelines.declaration.mentions import keys_read
from supervisor.pipelines.declaration.phase_reader import Gone, find_lost_results
from supervisor.pipelines.ending import end_run
from supervisor.pipelines.live import LiveRun, Parts
from supervisor.pipelines.phase_run import CancelRequested, PhaseEnd, PhaseRun, Restart
from supervisor.pipelines.planning import next_steps

log = structlog.get_logger(__name__)

#: Times that one phase runs again because entries it wrote are gone: their time to live may be shorter than the run.
MOST_RESTARTS = 3


class Drive:
    """Drives the run of *session_id* under the lease number *fence*."""

    def __init__(self, parts: Parts, session_id: str, fence: int) -> None:
        self._parts = parts
        self.session_id = session_id
        self.fence = fence
        self._cancelled: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._restarts: Counter[str] = Counter()
        self._adopted: set[str] = set()
        self._error = ""

    def cancel(self, reason: str) -> None:
        """Cancel the run: its tasks for good, and then it ends."""
        if not self._cancelled.done():
            self._cancelled.set_result(reason)

    async def run(self) -> None:
        """Drive to the end.

        Raises:
            LeaseLost: somebody else drives it.
            UnknownSession: the session was removed meanwhile.
            MemoryUnavailable: the store did not answer; claim it again later.
        """
        live = await self._take_up()
        if live is None:
            return
        named: dict[str, str | int | float | bool] = {
            "tasklore.session_id": live.session_id,
            "tasklore.run": live.record.run,
        }
        parent = spelled_context(live.record.trace)
        with tracing.span(f"pipeline {live.record.pipeline.name}", parent=parent, attributes=named):
            await self._drive(live)

    async def _drive(self, live: LiveRun) -> None:
        try:
            reason = await self._work(live)
        except ExceptionGroup as group:
            lost = group.subgroup(LeaseLost)
            raise (lost or group).exceptions[0] from group
        if reason is None or all(state.is_over for state in live.phases.values()):
            # A wish that comes once everything is through has nothing left to cancel.
            await end_run(self._parts, live, error=self._error)
        else:
            await self._cancel_run(live, reason)

    async def fail(self, error: str) -> None:
        """End the run as failed, because it cannot be driven: *error* says why.

        Raises:
            MemoryUnavailable: the store did not answer.
        """
        record = await self._parts.runs.read(self.session_id)
        if record is not None and record.state == "running":
            await end_run(self._parts, LiveRun.of(record, self.fence), error=error)

    async def _take_up(self) -> LiveRun | None:
        record = await self._parts.runs.read(self.session_id)
        if record is None or record.state != "running":
            return None
        if record.cancel_reason is not None:
            self.cancel(record.cancel_reason)
        self._adopted = {name for name, state in record.phases.items() if state.status == "running"}
        live = LiveRun.of(record, self.fence)
        if self._adopted:
            # When they began is told by the store's clock; how long they may take is measured by ours.
            there = datetime.fromtimestamp(await self._parts.runs.now_ms() / 1000, UTC)
            live.ahead = self._parts.now() - there
        return live

    async def _work(self, live: LiveRun) -> str | None:
        """Run phases until nothing is left to run; return why it is to be cancelled, None when nobody wishes that."""
        under_way: dict[asyncio.Task[PhaseEnd], str] = {}
        async with asyncio.TaskGroup() as group:
            live.meanwhile = group.create_task
            while not self._cancelled.done():
                steps = next_steps(live.graph, live.statuses)
                for name in (*steps.running, *steps.ready):
                    if name not in under_way.values():
                        under_way[group.create_task(self._start(live, name).perform())] = name
                if not under_way:
                    if not await self._lacks_result(live):
                        break
                    continue
                awaited: set[asyncio.Future[Any]] = {*under_way, self._cancelled}
                await asyncio.wait(awaited, timeout=self._mark_late(live), return_when=asyncio.FIRST_COMPLETED)
                for task in [task for task in under_way if task.done()]:
                    name = under_way.pop(task)
                    await self._heed(live, name, task.result())
                for task in [task for task, name in under_way.items() if live.phases[name].status == "pending"]:
                    # It was told what is no longer so, and begins anew.
                    del under_way[task]
                    task.cancel()
            for task in under_way:
                task.cancel()
        return self._cancelled.result() if self._cancelled.done() else None

    def _mark_late(self, live: LiveRun) -> float | None:
        """Note which phases that run are late; return seconds until the next look at them, None when none will be."""
        left_s: list[float] = []
        for name, began in live.began.items():
            late_after = live.by_name[name].late_after
            if late_after is None or name in live.late or live.phases[name].status != "running":
                continue
            left_s.append((began + late_after - self._parts.now()).total_seconds())
            if left_s[-1] <= 0:
                live.late.add(name)
                text = f"late after {late_after.total_seconds():g} s: the phases after it go on without it"
                self._parts.tell(live.event("phase_progress", self._parts.now(), name, text=text))
        return max(0.0, min(left_s)) if left_s else None

    def _start(self, live: LiveRun, name: str) -> PhaseRun:
        run = PhaseRun(self._parts, live, live.by_name[name], adopted=name in self._adopted)
        since_ms = live.phases[name].since_ms if name in self._adopted else None
        began = datetime.fromtimestamp(since_ms / 1000, UTC) + live.ahead if since_ms is not None else self._parts.now()
        live.began[name] = began
        live.late.discard(name)
        # Here only, so that it is not begun twice; the store is told once it does begin.
        live.phases[name] = replace(live.phases[name], status="running")
        return run

    async def _heed(self, live: LiveRun, name: str, end: PhaseEnd) -> None:
        if isinstance(end, CancelRequested):
            self.cancel(end.reason)
        elif isinstance(end, Restart):
            await self._restart(live, name, end.gone)
        else:
            self._adopted.discard(name)

    async def _restart(self, live: LiveRun, name: str, gone: Gone) -> None:
        """Run the phases in *gone* again, and *name* after them; too often, and *name* has failed."""
        # Two phases may miss the same: it runs again once for both.
        lost = {phase: why for phase, why in gone.items() if live.phases[phase].status == "done"}
        spent = self._spent(lost)
        if spent:
            await self._give_up(live, name, spent)
            return
        live.phases[name] = replace(live.phases[name], status="pending")
        await self._run_again(live, lost)

    async def _lacks_result(self, live: LiveRun) -> bool:
        """Let phases run again of whose result entries are gone; too often, and the run has failed.

        False: nothing is to be done. A run that ends without its result would have to be computed as a whole.
        """
        if next_steps(live.graph, live.statuses).outcome != "completed":
            return False
        lost = await find_lost_results(self._parts, live)
        self._error = self._spent(lost)
        if lost and not self._error:
            await self._run_again(live, lost)
            return True
        return False

    def _spent(self, lost: Gone) -> str:
        """Return why *lost* phases do not run once more, "" when they may."""
        self._restarts.update(lost.keys())
        phase = next((phase for phase in lost if self._restarts[phase] > MOST_RESTARTS), None)
        if phase is None:
            return ""
        return (
            f"cache incomplete: phase {phase!r} ran {MOST_RESTARTS} times more, and still {lost[phase]}; let it write "
            "that entry, or raise its `keep_for`"
        )

    async def _run_again(self, live: LiveRun, lost: Gone) -> None:
        """Let *lost* phases begin anew, and those that have read of them: two generations of an entry do not mix."""
        if not lost:
            return
        why = {phase: f"the cache is incomplete: {gone}" for phase, gone in lost.items()}
        for phase in live.graph.dependents(lost):
            read = {live.owner(read_key(key).phase) for key in keys_read(live.by_name[phase])}
            upstream = next((one for one in read if one in why), None)
            if upstream is not None and live.phases[phase].status in ("running", "done", "skipped"):
                why[phase] = f"it has read of {upstream!r}, which runs again"
        await self._reset(live, why)

    async def _reset(self, live: LiveRun, why: dict[str, str]) -> None:
        record = await self._parts.runs.reset_phases(self.session_id, why, restart=False, fence=self.fence)
        if record is None:
            raise LeaseLost(f"run {self.session_id!r} is driven by somebody else")
        live.corrected.clear()
        live.corrected.update(record.corrected)
        for phase in why:
            live.phases[phase] = record.phases[phase]
            self._parts.meter.count_phase("restarted")
            self._parts.tell(live.event("phase_stale", self._parts.now(), phase, text=why[phase]))

    async def _give_up(self, live: LiveRun, name: str, error: str) -> None:
        task_id = live.phases[name].task_id if name in self._adopted else None
        run = live.phases[name].run
        state = PhaseState(status="failed", run=run, task_id=task_id, error_type="CacheIncomplete", error=error)
        if not await self._parts.runs.settle_phase(self.session_id, self.fence, name, state):
            raise LeaseLost(f"run {self.session_id!r} is driven by somebody else")
        live.phases[name] = state
        self._parts.meter.count_phase("failed")
        self._parts.tell(live.event("phase_failed", self._parts.now(), name, text=f"CacheIncomplete: {error}"))

    async def _cancel_run(self, live: LiveRun, reason: str) -> None:
        """Cancel what runs for good, and end the run."""
        record = await self._parts.runs.read(self.session_id)
        if record is None:
            return
        running = [state.task_id for state in record.phases.values() if state.status == "running" and state.task_id]
        async with asyncio.TaskGroup() as group:
            for task_id in running:
                group.create_task(self._cancel_task(task_id, reason))
        live.phases.update(record.phases)
        await end_run(self._parts, live, cancelled=reason)

    async def _cancel_task(self, task_id: str, reason: str) -> None:
        try:
            await self._parts.canceller.cancel(task_id, reason)
        except NotAccepted as error:
            # It is cancelled; whoever misses the report of a task of ours is this driver, which ends the run.
            log.info("cancelled_report_not_stored", task_id=task_id, error=str(error))
