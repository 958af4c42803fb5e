"""One task of a phase: sent until it is stored, its report awaited, and cancelled when it is overdue."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import structlog

from tasklore.contracts import subjects
from tasklore.contracts.errors import MessageTooLarge, NotAccepted
from tasklore.contracts.messages import CompletionReport, TaskAssignment
from tasklore.contracts.pipelines import Phase
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.task_caller import ExpectedReport, TaskCaller
from tasklore.supervisor.cancellation import Canceller
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.reports.reports import ReportWaiter

log = structlog.get_logger(__name__)

#: Seconds for which a report is awaited at a time; the report waiter looks for it all the while.
_WAIT_S = 3600.0
#: Seconds past a phase's timeout until one that runs is ended here: its worker says so itself, with what it cost.
_OVERDUE_S = 5.0
#: Seconds for the report of a task that was just cancelled.
_LAST_LOOK_S = 2.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseTaskDependencies:
    """The way to workers and back, a meter and a clock."""

    supervisor_id: str
    dispatch: Dispatch
    reports: ReportWaiter
    canceller: Canceller
    meter: Metrics
    now: Callable[[], datetime] = lambda: datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a task came to nothing: the type of the error, its words, and the report of its cancellation, if any."""

    error_type: str
    error: str
    report: CompletionReport | None = None

    @classmethod
    def of(cls, report: CompletionReport) -> "Failure":
        """Return the failure that *report*, of a task that did not complete, names."""
        error = report.error
        return cls(
            error.type if error else report.status,
            error.message if error else f"it is {report.status}",
            report,
        )


class PhaseTask:
    """The task of *assignment* for *phase*; *is_new* when it cannot have a report yet.

    With *has_looked* its report was looked for just now, and was not there.
    A worker that runs it past its deadline has *overdue_s* to report that itself, None: five seconds.
    """

    def __init__(
        self,
        parts: PhaseTaskDependencies,
        phase: Phase,
        assignment: TaskAssignment,
        *,
        is_new: bool,
        has_looked: bool = False,
        overdue_s: float | None = None,
    ) -> None:
        self._parts = parts
        self._phase = phase
        self._assignment = assignment
        self._is_new = is_new
        self._has_looked = is_new or has_looked
        self._overdue_s = _OVERDUE_S if overdue_s is None else overdue_s
        #: Whether a worker ran it when its timeout was over.
        self._is_under_way = False

    async def report(self) -> CompletionReport | Failure:
        """Return its report, sent now unless it is there; or, where none can come, why."""
        if (
            not self._has_looked
            and (report := await self._parts.reports.report_of(self._assignment, 0.0))
            is not None
        ):
            return report
        # It was looked for before; what comes from now on is heard, or seen with the driver's next look.
        with self._parts.reports.expect(self._assignment, is_new=True) as expected:
            found = await self._send_and_wait(expected)
        return await self._expire() if found is None else found

    async def _send_and_wait(
        self, expected: ExpectedReport
    ) -> CompletionReport | Failure | None:
        """Return its report, sent now, or why none can come; None when it is overdue."""
        waiting = asyncio.ensure_future(self._wait(expected))
        sending = asyncio.ensure_future(self._send())
        try:
            if not self._is_new:
                # Another process may have sent it, so that its report may come while this one is refused.
                await asyncio.wait(
                    (waiting, sending), return_when=asyncio.FIRST_COMPLETED
                )
                if waiting.done() and (report := waiting.result()) is not None:
                    return report
            return await waiting if await sending else None
        except MessageTooLarge as error:
            return Failure(
                "MessageTooLarge",
                f"the parameters of phase {self._phase.name!r} do not fit into a message of {subjects.MAX_BODY:,} "
                f"bytes ({error}); name the entries in `reads` and let the agent read them by `context.session.get`",
            )
        finally:
            waiting.cancel()
            sending.cancel()
            await asyncio.gather(waiting, sending, return_exceptions=True)

    async def _wait(self, expected: ExpectedReport) -> CompletionReport | None:
        """Return its report, None when it is overdue."""
        while (left_s := self._left_s()) > 0:
            report = await expected.report(left_s)
            if report is not None:
                return report
        # A task that no worker runs has none to report it.
        self._is_under_way = await self._parts.reports.is_under_way(
            self._assignment.named
        )
        return await expected.report(self._overdue_s if self._is_under_way else 0.0)

    async def _send(self) -> bool:
        """Return whether it is durably stored before it is overdue."""
        caller = TaskCaller(
            send=self._parts.dispatch.assign, reports=self._parts.reports
        )

        def refused(error: NotAccepted) -> None:
            log.warning("phase_not_accepted", phase=self._phase.name, error=str(error))

        return await caller.send_until_stored(
            self._assignment, left_s=self._left_s, refused=refused
        )

    async def _expire(self) -> CompletionReport | Failure:
        """Cancel it, so that it does not run any more; there may be no worker to take it."""
        phase = self._phase
        field = (
            "its timeout of"
            if phase.longest == phase.timeout
            else "its `late_after` and `cancel_after`,"
        )
        span = f"{field} {(phase.longest or timedelta(0)).total_seconds():g} s"
        words = f"no worker began it within {span}; is one of {phase.agent} up?"
        if self._is_under_way:
            words = f"the worker that began it did not finish it within {span}"
        try:
            await self._parts.canceller.cancel(self._assignment.named, words)
        except NotAccepted as error:
            # It ends at its deadline.
            log.info("overdue_task_not_cancelled", phase=phase.name, error=str(error))
        report = await self._parts.reports.report_of(self._assignment, _LAST_LOOK_S)
        if report is not None and report.status != "cancelled":
            return report
        return Failure("TaskExpired", words, report)

    def _left_s(self) -> float:
        """Return the seconds until it is overdue, those of one look at most."""
        deadline = self._assignment.deadline
        return (
            _WAIT_S
            if deadline is None
            else min(_WAIT_S, (deadline - self._parts.now()).total_seconds())
        )
