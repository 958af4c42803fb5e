"""Cancelling a task for good: the ledger takes no other report any more, the worker is told, and it is reported.

The order makes it safe: once the request is in the ledger no run begins and no success is taken, so that it does not
matter which worker hears of it, or when. A task that waits gives up what others wait for behind it: its turn under a
limit on models is taken from it here, and one that waits for a place is woken, so that a worker leaves the places that
it kept.
"""

import asyncio
from datetime import UTC, datetime
from typing import Literal, NamedTuple

import structlog
from nats.aio.client import Client
from pydantic import ValidationError

from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import RunWait
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import (
    Cancellation,
    CompletionReport,
    ErrorNote,
    TaskAssignment,
)
from tasklore.memory.budgets.waiting_tasks import WaitingTasks
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import CancelOutcome, ReportExpired
from tasklore.runtime.messaging.jetstream import ask_or_none
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.supervisor.reports.closed_tasks import Reporter
from tasklore.supervisor.wake_up import wake_up

log = structlog.get_logger(__name__)

#: Seconds that the worker of a task has to end and report it, with its cost, before that is done without it.
_GRACE_S = 2.0
_LOOK_S = 0.05

Outcome = Literal["cancelled", "too_late", "noted"]


class Cancelling(NamedTuple):
    """The result of a cancel request: `cancelled`; `too_late`, it had ended as *status*; `noted`, it is no task yet."""

    outcome: Outcome
    status: str | None = None

    @classmethod
    def by(cls, report: CompletionReport) -> "Cancelling":
        """Return the result for a task that ended with *report*."""
        return cls(
            "cancelled" if report.status == "cancelled" else "too_late", report.status
        )


def _may_keep_places(wait: RunWait) -> bool:
    """Return whether a task that waits so may keep places under bounds: it waits for one more, or for a limit on runs.

    Any other is not woken: each would be one more delivery, for which workers may have to be started.
    """
    return wait.kind in ("bound", "limit") and not wait.model


class Canceller:
    """Cancels tasks under the name *reporter*, which stands in the reports of those that did not run."""

    def __init__(
        self,
        client: Client,
        outbox: Outbox,
        ledger: Ledger,
        reporter: str,
        *,
        waiting: WaitingTasks,
    ) -> None:
        self._client = client
        self._outbox = outbox
        self._ledger = ledger
        self._waiting = waiting
        self._reporter = Reporter(outbox, ledger, reporter)

    async def cancel(
        self, task_id: str, reason: str, *, grace_s: float = _GRACE_S
    ) -> Cancelling:
        """Cancel the newest generation of *task_id* and return the result.

        Its children are cancelled by the workers, as they hear of it or are to begin.

        Raises:
            MemoryUnavailable: the ledger does not answer: nothing is sure.
            NotAccepted: it is cancelled, but its report was not stored yet; do it again.
        """
        task_id = await self._ledger.name(task_id)
        found = await self._ledger.cancel(task_id, None, reason)
        if isinstance(found, ReportExpired):
            return Cancelling("too_late", found.state)
        if isinstance(found, bytes):
            report = CompletionReport.model_validate_json(found)
            if report.status == "cancelled":
                # Once more: the first process may have died before it was stored.
                await self._reporter.publish(found)
            return Cancelling.by(report)
        request = Cancellation(task_id=task_id, reason=reason)
        await self._client.publish(
            subjects.cancel(task_id), request.model_dump_json().encode()
        )
        return await self.conclude(task_id, found, reason, grace_s=grace_s)

    async def heed(self, request: Cancellation) -> None:
        """Make a cancel request of another program final; without the ledger it reaches running tasks only."""
        try:
            task_id = await self._ledger.name(request.task_id)
            found = await self._ledger.cancel(task_id, None, request.reason)
            if isinstance(found, CancelOutcome):
                await self.conclude(task_id, found, request.reason)
        except MemoryUnavailable as error:
            log.warning(
                "cancellation_not_noted", task_id=request.task_id, error=str(error)
            )

    async def conclude(
        self,
        task_id: str,
        found: CancelOutcome,
        reason: str,
        *,
        grace_s: float = _GRACE_S,
    ) -> Cancelling:
        """Report *found* as cancelled, unless its worker does so within *grace_s* seconds."""
        report = (
            await self._await_report(task_id, found.generation, grace_s)
            if found.state == "running"
            else None
        )
        if report is not None:
            return Cancelling.by(CompletionReport.model_validate_json(report))
        try:
            assignment = TaskAssignment.model_validate_json(found.assignment or b"")
        except ValidationError:
            return Cancelling("noted")
        error = ErrorNote(
            type="TaskCancelled", message=reason or "cancelled on request"
        )
        own = self._reporter.report(
            assignment, found.generation, "cancelled", error=error
        )
        report = await self._reporter.conclude(assignment, own)
        await self._give_up_turns(assignment, found)
        return Cancelling.by(CompletionReport.model_validate_json(report))

    async def _give_up_turns(
        self, assignment: TaskAssignment, found: CancelOutcome
    ) -> None:
        """Let those go on that wait behind *found*, which was reported; what is missed ends by itself, if later."""
        task_id = assignment.task_id
        try:
            await self._waiting.forget(f"{task_id}:{found.generation}")
            if found.waits_for is not None and _may_keep_places(found.waits_for):
                await self._wake(assignment, found)
            else:
                # A scheduled run that stays in LATER is found cancelled when it is due.
                subject = subjects.schedule(task_id, found.generation)
                await ask_or_none(
                    self._client,
                    f"STREAM.PURGE.{subjects.LATER}",
                    {"filter": subject},
                )
        except Exception as failure:  # noqa: BLE001 - it would only have tidied up
            log.info("turns_not_given_up", task_id=task_id, error=str(failure))

    async def _wake(self, assignment: TaskAssignment, found: CancelOutcome) -> None:
        """Have a worker find the report of *found*: it leaves the places that the task waited for, or kept."""
        now = datetime.now(UTC)
        await wake_up(
            self._outbox,
            task_id=assignment.task_id,
            generation=found.generation,
            attempt=1,
            agent_id=assignment.agent_id,
            task_name=assignment.task.name,
            assignment=found.assignment or b"",
            trace="",
            now=now,
            why="cancelled",
        )

    async def _await_report(
        self, task_id: str, generation: int, grace_s: float
    ) -> bytes | None:
        try:
            async with asyncio.timeout(grace_s):
                while True:
                    entry = await self._ledger.read(task_id)
                    known = (
                        entry.generations.get(generation) if entry is not None else None
                    )
                    if known is not None and known.report is not None:
                        return known.report
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            return None
