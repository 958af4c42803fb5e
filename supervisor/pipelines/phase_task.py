"""One task of a phase: sent until it is stored, its report awaited, and cancelled when it is overdue."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta

import structlog

from contracts import subjects
from contracts.errors import MessageTooLarge, NotAccepted
from contracts.messages import CompletionReport, TaskAssignment
from contracts.pipelines import Phase
from supervisor.pipelines.live import Parts

log = structlog.get_logger(__name__)

#: Seconds for which a report is awaited at a time; the desk of reports looks for it all the while.
_WAIT_S = 3600.0
#: Seconds past a phase's timeout until one that runs is ended here: whoever runs it says so itself, with what it cost.
_OVERDUE_S = 5.0
#: Seconds for the report of a task that was just cancelled.
_LAST_LOOK_S = 2.0
#: Least seconds before a task that was not accepted is sent again.
_AGAIN_S = 0.1


@dataclass(frozen=True, slots=True)
class Failure:
    """Why there is no report: the type of the error and its words."""

    error_type: str
    error: str


class PhaseTask:
    """The task of *assignment* for *phase*; *is_new* when nobody can have reported it."""

    def __init__(self, parts: Parts, phase: Phase, assignment: TaskAssignment, *, is_new: bool) -> None:
        self._parts = parts
        self._phase = phase
        self._assignment = assignment
        self._is_new = is_new
        #: Whether a worker ran it when its timeout was over.
        self._was_begun = False

    async def report(self) -> CompletionReport | Failure:
        """Return its report, sent now; or, where none can come, why."""
        # Awaited from before it is sent: a quick task is done by the time its acceptance is noted.
        awaited = asyncio.ensure_future(self._awaited())
        try:
            if await self._send() and (report := await awaited) is not None:
                return report
        except MessageTooLarge as error:
            return Failure(
                "MessageTooLarge",
                f"the parameters of phase {self._phase.name!r} do not fit into a message of {subjects.MAX_BODY:,} "
                f"bytes ({error}); name the entries in `reads` and let the agent read them by `context.session.get`",
            )
        finally:
            awaited.cancel()
            await asyncio.gather(awaited, return_exceptions=True)
        return await self._expire()

    async def _awaited(self) -> CompletionReport | None:
        """Return its report, None when it is overdue."""
        is_new = self._is_new
        while not self._is_overdue():
            report = await self._parts.reports.report_of(self._assignment, self._wait_s(), is_new=is_new)
            if report is not None:
                return report
            is_new = False
        # What nobody runs has nobody to report it.
        self._was_begun = await self._parts.reports.is_under_way(self._assignment.task_id)
        return await self._parts.reports.report_of(self._assignment, _OVERDUE_S if self._was_begun else 0.0)

    async def _send(self) -> bool:
        """Return whether it is durably stored before it is overdue."""
        while not self._is_overdue():
            try:
                await self._parts.dispatch.assign(self._assignment)
            except NotAccepted as error:
                log.warning("phase_not_accepted", phase=self._phase.name, error=str(error))
                await asyncio.sleep(max(_AGAIN_S, error.retry_after_s))
            else:
                return True
        return False

    async def _expire(self) -> CompletionReport | Failure:
        """End it when it is overdue, so that it does not run any more; nobody may be there to take it."""
        phase = self._phase
        field = "its timeout of" if phase.longest == phase.timeout else "its `late_after` and `cancel_after`,"
        span = f"{field} {(phase.longest or timedelta(0)).total_seconds():g} s"
        words = f"no worker began it within {span}; is one of {phase.agent} up?"
        if self._was_begun:
            words = f"the worker that began it did not finish it within {span}"
        try:
            await self._parts.canceller.cancel(self._assignment.task_id, words)
        except NotAccepted as error:
            log.info("overdue_report_not_stored", phase=phase.name, error=str(error))
        report = await self._parts.reports.report_of(self._assignment, _LAST_LOOK_S)
        return report if report is not None and report.status != "cancelled" else Failure("TaskExpired", words)

    def _is_overdue(self) -> bool:
        return self._wait_s() <= 0

    def _wait_s(self) -> float:
        if self._assignment.deadline is None:
            return _WAIT_S
        return min(_WAIT_S, (self._assignment.deadline - self._parts.now()).total_seconds())
