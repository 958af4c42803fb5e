"""Driving one run: phases begin as the graph allows, side by side, until none is left; then the run is ended.

The driver keeps nothing that the store does not have: it may be killed between any two lines, and the next process
that claims the run goes on from there. Its last steps are then done again to the same effect.
"""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import structlog

from tasklore.contracts.errors import NotAccepted
from tasklore.contracts.session_keys import read_key
from tasklore.contracts.traces import spelled_context
from tasklore.memory.sessions.pipeline_records import PhaseState
from tasklore.runtime import tracing
from tasklore.runtime.claim_loop import LeaseLost, NotYet
from tasklore.supervisor.makers import spell_hold, until_look
from tasklore.supervisor.pipelines.declaration.graph import keys_read
from tasklore.supervisor.pipelines.declaration.phase_reader import (
    Gone,
    find_lost_results,
)
from tasklore.supervisor.pipelines.live import (
    RUN_ROLE,
    DriverDependencies,
    InnerRunDriver,
    LiveRun,
)
from tasklore.supervisor.pipelines.outcome import end_run
from tasklore.supervisor.pipelines.phase_run import (
    CancelRequested,
    PhaseEnd,
    PhaseRun,
    Restart,
)
from tasklore.supervisor.pipelines.planning import next_steps

log = structlog.get_logger(__name__)

#: Times that one phase runs again because entries it wrote are gone: their time to live may be shorter than the run.
MOST_RESTARTS = 3


class Drive:
    """Drives the run of *session_id* under the lease number *fence*; *driver* drives those of its phases."""

    def __init__(
        self,
        parts: DriverDependencies,
        session_id: str,
        fence: int,
        driver: InnerRunDriver | None = None,
    ) -> None:
        self.session_id = session_id
        self.fence = fence
        self._parts = parts
        self._driver = driver
        self._cancelled: asyncio.Future[str] = (
            asyncio.get_running_loop().create_future()
        )
        self._restarts: Counter[str] = Counter()
        #: Phases that another driver had begun when the run was taken up.
        self._adopted: set[str] = set()
        self._error = ""
        #: What its maker's key lost, while phases wait for that alone.
        self._loss: str | None = None

    def cancel(self, reason: str) -> None:
        """Cancel the run: its tasks for good, and then it ends."""
        if not self._cancelled.done():
            self._cancelled.set_result(reason)

    async def run(self) -> None:
        """Drive to the end.

        Raises:
            LeaseLost: another process drives it.
            NotYet: the key of its maker is not there; no phase runs.
            UnknownSession: the session was removed meanwhile.
            MemoryUnavailable: the store did not answer; claim it again later.
        """
        record = await self._parts.runs.read(self.session_id)
        if record is None or record.state != "running":
            return
        if record.cancel_reason is not None:
            self.cancel(record.cancel_reason)
        live = LiveRun.of(record, self.fence)
        live.driver = self._driver
        self._adopted = {
            name for name, state in record.phases.items() if state.status == "running"
        }
        if self._adopted:
            # Phases began by the store's clock; their time is measured by ours.
            live.ahead = self._parts.now() - datetime.fromtimestamp(
                await self._parts.runs.now_ms() / 1000, UTC
            )
        attributes: Mapping[str, str | int | float | bool] = {
            "tasklore.session_id": live.session_id,
            "tasklore.run": record.run,
        }
        name = f"pipeline {record.pipeline.name}"
        parent = spelled_context(record.trace)
        with tracing.span(name, parent=parent, attributes=dict(attributes)):
            try:
                reason = await self._work(live)
            except ExceptionGroup as group:
                lost = group.subgroup(LeaseLost)
                raise (lost or group).exceptions[0] from group
            if reason is None and self._loss is not None:
                raise await self._hold(live, self._loss)
            if reason is None or all(state.is_over for state in live.phases.values()):
                # Once everything is through nothing is left to cancel.
                await end_run(self._parts, live, error=self._error)
            else:
                await self._cancel_run(live, reason)

    async def fail(self, error: str) -> None:
        """End the run as failed because of *error*: it cannot be driven.

        Raises:
            MemoryUnavailable: the store did not answer.
        """
        record = await self._parts.runs.read(self.session_id)
        if record is not None and record.state == "running":
            await end_run(self._parts, LiveRun.of(record, self.fence), error=error)

    async def _work(self, live: LiveRun) -> str | None:
        """Run phases until nothing is left to run; return why the run is to be cancelled, None where it is not."""
        under_way: dict[asyncio.Task[PhaseEnd], str] = {}
        async with asyncio.TaskGroup() as group:
            live.meanwhile = group.create_task
            while not self._cancelled.done():
                steps = next_steps(live.graph, live.statuses)
                ready = await self._take_ready(live, steps.ready)
                for name in (*steps.running, *ready):
                    if name not in under_way.values():
                        under_way[
                            group.create_task(self._begin(live, name).perform())
                        ] = name
                if not under_way:
                    if steps.outcome == "completed" and await self._restore_results(
                        live
                    ):
                        continue
                    break
                awaited: set[asyncio.Future[Any]] = {*under_way, self._cancelled}
                await asyncio.wait(
                    awaited,
                    timeout=self._mark_late(live),
                    return_when=asyncio.FIRST_COMPLETED,
                )
                for task in [task for task in under_way if task.done()]:
                    await self._heed(live, under_way.pop(task), task.result())
                for task in [
                    task
                    for task, name in under_way.items()
                    if live.phases[name].status == "pending"
                ]:
                    # Its parameters do not hold any more, and it begins anew.
                    del under_way[task]
                    task.cancel()
            for task in under_way:
                task.cancel()
        return self._cancelled.result() if self._cancelled.done() else None

    async def _take_ready(
        self, live: LiveRun, ready: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Return the phases of *ready* that may begin: none while the key of the run's maker is not there."""
        self._loss = await self._find_loss(live) if ready else None
        return ready if self._loss is None else ()

    async def _find_loss(self, live: LiveRun) -> str | None:
        """Return what the key of the run's maker lost, None where its phases may begin; a new maker is heeded."""
        loss = self._parts.makers.find_loss(live.record.caller, RUN_ROLE)
        if loss is None and not live.record.held:
            return None
        record = await self._parts.runs.read(self.session_id)
        if record is not None:
            live.record = replace(live.record, caller=record.caller, held=record.held)
            loss = self._parts.makers.find_loss(record.caller, RUN_ROLE)
        if loss is None and live.record.held:
            await self._parts.runs.hold(self.session_id, "")
            live.record = replace(live.record, held="")
        return loss

    async def _hold(self, live: LiveRun, loss: str) -> NotYet:
        """Note that the run rests because of *loss*, and return for how long until it is looked at again."""
        why = spell_hold(loss, f"tasklore pipelines resume {self.session_id}")
        if why != live.record.held:
            log.warning("pipeline_paused", session=self.session_id, why=why)
            await self._parts.runs.hold(self.session_id, why)
        missed_at = datetime.fromtimestamp(live.record.updated_ms / 1000, UTC)
        pause = until_look(self._parts.now(), missed_at)
        return NotYet(why, pause.total_seconds())

    async def _heed(self, live: LiveRun, name: str, end: PhaseEnd) -> None:
        if isinstance(end, CancelRequested):
            self.cancel(end.reason)
        elif isinstance(end, Restart):
            await self._restart(live, name, end.gone)
        else:
            self._adopted.discard(name)

    def _begin(self, live: LiveRun, name: str) -> PhaseRun:
        is_adopted = name in self._adopted
        before = live.phases[name]
        run = PhaseRun(self._parts, live, live.by_name[name], adopted=is_adopted)
        live.began[name] = self._parts.now()
        if is_adopted and before.since_ms is not None:
            live.began[name] = (
                datetime.fromtimestamp(before.since_ms / 1000, UTC) + live.ahead
            )
        live.late.discard(name)
        # Here only, so that it is not begun twice; the store is told once it does begin.
        live.phases[name] = replace(before, status="running")
        return run

    def _mark_late(self, live: LiveRun) -> float | None:
        """Note which phases that run are late; return seconds until the next look at them, None when none will be."""
        left_s: list[float] = []
        for name, began in live.began.items():
            late_after = live.by_name[name].late_after
            if (
                late_after is None
                or name in live.late
                or live.phases[name].status != "running"
            ):
                continue
            left_s.append((began + late_after - self._parts.now()).total_seconds())
            if left_s[-1] <= 0:
                live.late.add(name)
                live.meanwhile(self._note_late(live, name))
                text = f"late after {late_after.total_seconds():g} s: the phases after it continue without it"
                self._parts.tell(
                    live.event("phase_progress", self._parts.now(), name, text=text)
                )
        return max(0.0, min(left_s)) if left_s else None

    async def _note_late(self, live: LiveRun, name: str) -> None:
        if not await self._parts.runs.note_late(self.session_id, self.fence, name):
            raise live.lost()

    async def _restart(self, live: LiveRun, name: str, gone: Gone) -> None:
        """Run the phases in *gone* again, and *name* after them; too often, and *name* has failed."""
        # Two phases may miss the same: it runs again once for both.
        lost = {
            phase: why
            for phase, why in gone.items()
            if live.phases[phase].status == "done"
        }
        if not (error := self._count_restarts(lost)):
            live.phases[name] = replace(live.phases[name], status="pending")
            await self._run_again(live, lost)
            return
        before = live.phases[name]
        task_id = before.task_id if name in self._adopted else None
        state = PhaseState(
            "failed",
            run=before.run,
            task_id=task_id,
            error_type="CacheIncomplete",
            error=error,
        )
        if not await self._parts.runs.settle_phase(
            self.session_id, self.fence, name, state
        ):
            raise live.lost()
        live.phases[name] = state
        self._parts.meter.count_phase("failed")
        self._parts.tell(
            live.event(
                "phase_failed",
                self._parts.now(),
                name,
                text=f"CacheIncomplete: {error}",
            )
        )

    async def _restore_results(self, live: LiveRun) -> bool:
        """Run phases again whose result entries are gone; too often, and the run has failed. False: none are gone.

        A run that ended without its result would have to be computed as a whole.
        """
        lost = await find_lost_results(self._parts, live)
        self._error = self._count_restarts(lost)
        if self._error or not lost:
            return False
        await self._run_again(live, lost)
        return True

    def _count_restarts(self, lost: Gone) -> str:
        """Count that *lost* phases run once more; return why they do not, "" when they do."""
        self._restarts.update(lost.keys())
        phase = next(
            (phase for phase in lost if self._restarts[phase] > MOST_RESTARTS), None
        )
        if phase is None:
            return ""
        return (
            f"cache incomplete: phase {phase!r} ran {MOST_RESTARTS} times more, and still {lost[phase]}; let it write "
            "that entry, or raise its `keep_for`"
        )

    async def _run_again(self, live: LiveRun, lost: Gone) -> None:
        """Begin *lost* phases anew, and those that have read of them: two generations of an entry do not mix.

        Raises:
            LeaseLost: another process drives the run.
        """
        if not lost:
            return
        why = {
            phase: f"the cache is incomplete: {gone}" for phase, gone in lost.items()
        }
        for phase in live.graph.dependents(lost):
            read = {
                live.owner(read_key(key).phase)
                for key in keys_read(live.by_name[phase])
            }
            upstream = next((one for one in read if one in why), None)
            if upstream is not None and live.phases[phase].status in (
                "running",
                "done",
                "skipped",
            ):
                why[phase] = f"it has read of {upstream!r}, which runs again"
        record = await self._parts.runs.reset_phases(
            self.session_id, why, restart=False, fence=self.fence
        )
        if record is None:
            raise live.lost()
        live.corrected.clear()
        live.corrected.update(record.corrected)
        for phase in why:
            live.phases[phase] = record.phases[phase]
            self._parts.meter.count_phase("restarted")
            self._parts.tell(
                live.event("phase_stale", self._parts.now(), phase, text=why[phase])
            )

    async def _cancel_run(self, live: LiveRun, reason: str) -> None:
        """Cancel the tasks that run for good, and end the run."""
        record = await self._parts.runs.read(self.session_id)
        if record is None:
            return

        async def cancel(task_id: str) -> None:
            try:
                await self._parts.canceller.cancel(task_id, reason)
            except NotAccepted as error:
                # It is cancelled; only this driver would wait for its report, and ends the run.
                log.info(
                    "cancelled_report_not_stored", task_id=task_id, error=str(error)
                )

        async with asyncio.TaskGroup() as group:
            for state in record.phases.values():
                if state.status == "running" and state.task_id:
                    group.create_task(cancel(state.task_id))
        live.phases.update(record.phases)
        await end_run(self._parts, live, cancelled=reason)
