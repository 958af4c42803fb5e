"""Driving the analysis of one response: agents are asked as planning allows, and their reports are folded at once."""

import asyncio
import contextlib
from collections.abc import Collection

import structlog

from tasklore.contracts.errors import MemoryUnavailable, TaskloreError
from tasklore.contracts.traces import spelled_context
from tasklore.runtime import tracing
from tasklore.supervisor.pipelines.analysis.fold import (
    AnalysisFold,
    AnalysisParts,
    abandon,
)
from tasklore.supervisor.pipelines.analysis.records import (
    AnalysisRecord,
    SectionRecord,
)
from tasklore.supervisor.pipelines.analysis.reducer import SectionReport
from tasklore.supervisor.pipelines.phase_task import Failure, PhaseTask

log = structlog.get_logger(__name__)


class AnalysisRun:
    """Drives the analysis of a response; `run` it, and `look` when others wrote to it.

    `record` is its last one, None before the first turn; `news` is done with each turn. `error` is why it ended, None
    when it came to its end or another run goes on. Once it `is_closed` nothing more is looked at.
    """

    def __init__(self, parts: AnalysisParts, story_id: str, number: int) -> None:
        self.key = story_id, number
        self.record: AnalysisRecord | None = None
        self.news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.error: TaskloreError | None = None
        self.is_closed = False
        #: Milliseconds from the end of its lease until another process may go on.
        self.rest_ms = 0
        self._parts = parts
        self._fold = AnalysisFold(parts, story_id, number)
        self._reports: list[SectionReport] = []
        self._away: MemoryUnavailable | None = None
        self._wake = asyncio.Event()
        #: Tasks that were asked for here, so that they have no report yet.
        self._new_tasks: set[str] = set()
        self._watches: dict[str, asyncio.Task[None]] = {}

    @property
    def is_through(self) -> bool:
        """Whether nothing more will come, as far as is known here."""
        return self.record is not None and self.record.is_final

    def look(self, new_tasks: Collection[str] = ()) -> None:
        """Look at once at what others wrote, who may have asked for *new_tasks*."""
        self._new_tasks.update(new_tasks)
        self._wake.set()

    async def run(self) -> None:
        """Drive until nothing more will come.

        Raises:
            UnknownStory: the story is gone.
            InvalidInput: the response or its analysis is gone, or the story's settings contradict each other.
            StoryMoved: others write to the story all the time.
            MemoryUnavailable: the store did not answer; the next run finds every report again.
        """
        problem: TaskloreError | None = None
        async with asyncio.TaskGroup() as group:
            try:
                await self._take_turns(group)
            except TaskloreError as error:
                problem = error
            finally:
                self.is_closed = True
                for watch in self._watches.values():
                    watch.cancel()
        if problem is not None:
            raise problem

    async def _take_turns(self, group: asyncio.TaskGroup) -> None:
        while self._away is None:
            reports = self._reports
            self._reports = []
            self._wake.clear()
            turn = await self._fold.take(reports)
            self.record = turn.record
            self._new_tasks |= turn.new_tasks
            self._watch_asked(group, turn.record)
            group.create_task(abandon(self._parts, turn))
            self.news.set_result(None)
            self.news = asyncio.get_running_loop().create_future()
            if turn.record.is_final and not self._wake.is_set():
                return
            await self._fold.foresee()
            await self._rest(turn.record.next_look_ms())
        raise self._away

    async def _rest(self, look_ms: int | None) -> None:
        """Return with the next report, when others wrote, or at *look_ms*, None: time changes nothing."""
        left_s = (
            None
            if look_ms is None
            else max(0.0, (look_ms - self._parts.now_ms()) / 1000)
        )
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(left_s):
                await self._wake.wait()

    def _watch_asked(self, group: asyncio.TaskGroup, record: AnalysisRecord) -> None:
        """Watch the task of every section that is asked for, and no other."""
        asked = record.asked()
        for task_id in self._watches.keys() - asked.keys():
            self._watches.pop(task_id).cancel()
        for task_id, seat in asked.items():
            if task_id not in self._watches:
                self._watches[task_id] = group.create_task(self._watch(record, seat))

    async def _watch(self, record: AnalysisRecord, seat: SectionRecord) -> None:
        """Send the task of *seat*, wait for its report, and let the next turn fold it."""
        assignment = record.assignment(seat, self._parts.supervisor_id)
        report = None
        error = None
        try:
            # A process that goes on after another one has the trace from the record alone.
            with tracing.within(spelled_context(record.trace) or tracing.current()):
                task = PhaseTask(
                    self._parts,
                    record.phase(seat),
                    assignment,
                    is_new=assignment.task_id in self._new_tasks,
                    overdue_s=0.0,
                )
                found = await task.report()
            if not isinstance(found, Failure):
                report = found
            elif found.error_type == "TaskExpired":
                report = found.report
            else:
                error = f"{found.error_type}: {found.error}"
        except MemoryUnavailable as away:
            # What came of it is found again once the ledger is back.
            self._away = away
            self._wake.set()
            return
        except Exception as problem:
            # One agent's trouble is not that of the others.
            log.exception("section_left", section=seat.section)
            error = f"{type(problem).__name__}: {problem}"
        self._reports.append(
            SectionReport(
                section=seat.section,
                task_id=assignment.task_id,
                at_ms=self._parts.now_ms(),
                report=report,
                error=error,
            )
        )
        self._wake.set()
