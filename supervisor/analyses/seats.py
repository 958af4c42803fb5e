"""One seat: its task goes out, and its report is awaited until it is late, and then for as long as the late are.

Nothing is decided here: what is known is told as arrivals, and every step may be done again by another supervisor.
"""

import asyncio
from collections.abc import Callable

import structlog

from contracts.errors import MemoryUnavailable, NotAccepted
from contracts.messages import CompletionReport, TaskAssignment
from contracts.traces import spelled_context
from runtime import tracing
from supervisor.analyses.findings import said
from supervisor.analyses.folding import Arrival
from supervisor.analyses.parts import Parts
from supervisor.analyses.records import AnalysisRecord, SeatRecord

log = structlog.get_logger(__name__)

#: Least seconds before a task that was not accepted is sent again.
_AGAIN_S = 0.1
#: Seconds for the report of a task that was just cancelled, with what it cost.
_LAST_LOOK_S = 2.0


class SeatWatch:
    """Sends the task of *seat* and tells *tell* what becomes of it; *is_new* says that nobody sent it before."""

    def __init__(
        self, parts: Parts, record: AnalysisRecord, seat: SeatRecord, tell: Callable[[Arrival], None], *, is_new: bool
    ) -> None:
        self._parts = parts
        self._seat = seat
        self._tell = tell
        self._is_new = is_new
        self._assignment = record.assignment(seat, parts.supervisor_id)
        self._late_at = record.deadline_of(seat)
        self._lateness_s = record.lateness_s(seat)
        self._trace = spelled_context(record.trace)

    @property
    def task_id(self) -> str:
        """The task that is watched."""
        return self._assignment.task_id

    async def watch(self) -> None:
        """Return when nothing more can be told."""
        try:
            # Whoever goes on after another supervisor was told by nobody what it belongs to.
            with tracing.within(self._trace or tracing.current()):
                report = await self._watched()
        except Exception as error:
            # One agent's trouble is not that of the others.
            log.exception("seat_left", section=self._seat.section)
            self._say(error=said(type(error).__name__, str(error)))
        else:
            self._say(report)

    async def _watched(self) -> CompletionReport | None:
        assignment = self._assignment
        if not self._is_new and (report := await self._parts.reports.report_of(assignment, 0.0)) is not None:
            return report
        # Awaited from before it is sent: a quick task is done by the time its acceptance is noted.
        sending = asyncio.ensure_future(self._send(assignment))
        try:
            report = await self._parts.reports.report_of(assignment, self._left_s(), is_new=self._is_new)
            if report is None:
                self._say(is_awaited=True)
                report = await self._parts.reports.report_of(assignment, self._left_s() + self._lateness_s)
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
        return report or await self._give_up()

    async def _send(self, assignment: TaskAssignment) -> None:
        """Send *assignment* until it is durably stored."""
        while True:
            try:
                await self._parts.dispatch.assign(assignment)
            except NotAccepted as error:
                log.warning("analysis_task_not_accepted", section=self._seat.section, error=str(error))
                await asyncio.sleep(max(_AGAIN_S, error.retry_after_s))
            else:
                return

    async def _give_up(self) -> CompletionReport | None:
        """Let nobody run the task any more; return its report, which says what it cost."""
        try:
            await self._parts.canceller.cancel(self.task_id, "it is late, and its analysis goes on without it")
        except (NotAccepted, MemoryUnavailable) as error:
            # It ends at its deadline.
            log.info("late_task_not_cancelled", task_id=self.task_id, error=str(error))
            return None
        return await self._parts.reports.report_of(self._assignment, _LAST_LOOK_S)

    def _left_s(self) -> float:
        return (self._late_at - self._parts.now()).total_seconds()

    def _say(
        self, report: CompletionReport | None = None, *, is_awaited: bool = False, error: str | None = None
    ) -> None:
        at_ms = self._parts.now_ms()
        self._tell(Arrival(self._seat.section, self.task_id, at_ms, report, is_awaited, error))
