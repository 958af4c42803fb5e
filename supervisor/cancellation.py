"""Cancelling a task for good: the ledger takes no other report any more, whoever runs it is told, and it is reported.

The order makes it safe: once the wish is in the ledger no run begins and no success is taken, so that it does not
matter who hears of it, or when.
"""

import asyncio
from typing import Literal, NamedTuple

import structlog
from nats.aio.client import Client
from pydantic import ValidationError

from contracts import subjects
from contracts.errors import MemoryUnavailable
from contracts.messages import Cancellation, CompletionReport, ErrorNote, TaskAssignment
from memory.ledger.ledger import Ledger
from memory.ledger.runs import CancelOutcome
from runtime.messaging.jetstream import ask_or_none
from runtime.messaging.outbox import Outbox
from supervisor.reports.closed_tasks import Reporter

log = structlog.get_logger(__name__)

#: Seconds that whoever runs a task has to end and report it, with what it cost, before that is done without it.
_GRACE_S = 2.0
_LOOK_S = 0.05

Outcome = Literal["cancelled", "too_late", "noted"]


class Cancelling(NamedTuple):
    """What came of a wish: `cancelled`; `too_late`, it had ended as *status*; `noted`, nobody knows the task yet."""

    outcome: Outcome
    status: str | None = None


class Canceller:
    """Cancels tasks under the name *reporter*, which stands in the reports of those that did not run."""

    def __init__(self, client: Client, outbox: Outbox, ledger: Ledger, reporter: str) -> None:
        self._client = client
        self._ledger = ledger
        self._reporter = Reporter(outbox, ledger, reporter)

    async def cancel(self, task_id: str, reason: str, *, grace_s: float = _GRACE_S) -> Cancelling:
        """Cancel the newest generation of *task_id* and return what came of it.

        What is part of it (its children) is cancelled by the workers, as they hear of it or are to begin.

        Raises:
            MemoryUnavailable: the ledger does not answer: nothing is sure.
            NotAccepted: it is cancelled, but its report was not stored yet; do it again.
        """
        found = await self._ledger.cancel(task_id, None, reason)
        if isinstance(found, bytes):
            return await self._repeat(found)
        wish = Cancellation(task_id=task_id, reason=reason)
        await self._client.publish(subjects.cancel(task_id), wish.model_dump_json().encode())
        return await self.conclude(task_id, found, reason, grace_s=grace_s)

    async def heed(self, wish: Cancellation) -> None:
        """Make a wish that somebody else has told of hold for good; without the ledger it reaches what runs only."""
        try:
            found = await self._ledger.cancel(wish.task_id, None, wish.reason)
            if isinstance(found, CancelOutcome):
                await self.conclude(wish.task_id, found, wish.reason)
        except MemoryUnavailable as error:
            log.warning("cancellation_not_noted", task_id=wish.task_id, error=str(error))

    async def conclude(
        self, task_id: str, found: CancelOutcome, reason: str, *, grace_s: float = _GRACE_S
    ) -> Cancelling:
        """Report *found* as cancelled, unless whoever runs it does so within *grace_s* seconds."""
        if found.state == "running" and (report := await self._await_report(task_id, found.generation, grace_s)):
            return _ended_as(report)
        assignment = _read_assignment(found.assignment)
        if assignment is None:
            return Cancelling("noted")
        error = ErrorNote(type="TaskCancelled", message=reason or "cancelled on request")
        told = self._reporter.report(assignment, found.generation, "cancelled", error=error)
        report = await self._reporter.conclude(assignment, told)
        await self._unschedule(task_id, found.generation)
        return _ended_as(report)

    async def _repeat(self, report: bytes) -> Cancelling:
        """Publish the report of a cancelled task again: whoever cancelled it may have died before it was stored."""
        told = CompletionReport.model_validate_json(report)
        if told.status != "cancelled":
            return Cancelling("too_late", told.status)
        await self._reporter.publish(report)
        return Cancelling("cancelled", told.status)

    async def _await_report(self, task_id: str, generation: int, grace_s: float) -> bytes | None:
        try:
            async with asyncio.timeout(grace_s):
                while True:
                    entry = await self._ledger.read(task_id)
                    known = entry.generations.get(generation) if entry is not None else None
                    if known is not None and known.report is not None:
                        return known.report
                    await asyncio.sleep(_LOOK_S)
        except TimeoutError:
            return None

    async def _unschedule(self, task_id: str, generation: int) -> None:
        """Take a scheduled run out of LATER; one that stays is found cancelled when it is due."""
        try:
            wanted = {"filter": subjects.schedule(task_id, generation)}
            await ask_or_none(self._client, f"STREAM.PURGE.{subjects.LATER}", wanted)
        except Exception as error:  # noqa: BLE001 - it would only have tidied up
            log.info("schedule_not_removed", task_id=task_id, error=str(error))


def _ended_as(report: bytes) -> Cancelling:
    status = CompletionReport.model_validate_json(report).status
    return Cancelling("cancelled" if status == "cancelled" else "too_late", status)


def _read_assignment(body: bytes | None) -> TaskAssignment | None:
    if body is None:
        return None
    try:
        return TaskAssignment.model_validate_json(body)
    except ValidationError:
        return None
