"""Reports of tasks that no worker ends: the ledger takes one of a generation, and that is published."""

import secrets
from datetime import UTC, datetime
from typing import Any

from tasklore.contracts import subjects
from tasklore.contracts.errors import MessageTooLarge
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import (
    CompletionReport,
    ErrorNote,
    MemoryNote,
    Status,
    TaskAssignment,
)
from tasklore.memory.ledger.expired import spell_expired
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import CancelRequest, Finish, ReportExpired
from tasklore.memory.ledger.task_rows import row_of, row_of_report
from tasklore.runtime.messaging.outbox import Outbox

#: Seconds to wait for the report to be stored.
_STORED_WITHIN_S = 10.0


class Reporter:
    """Reports tasks under the name *name*."""

    def __init__(self, outbox: Outbox, ledger: Ledger, name: str) -> None:
        self._outbox = outbox
        self._ledger = ledger
        self._name = name

    def report(
        self,
        assignment: TaskAssignment,
        generation: int,
        status: Status,
        *,
        result: Any = None,
        error: ErrorNote | None = None,
        attempt: int = 0,
        run_ms: int = 0,
    ) -> CompletionReport:
        """Return the report that *assignment* ended now as *status*, in which *attempt*, 0 for none, of *run_ms*."""
        now = datetime.now(UTC)
        created_at = assignment.waits_from
        return CompletionReport(
            task_id=assignment.task_id,
            generation=generation,
            agent_id=assignment.agent_id,
            supervisor_id=assignment.supervisor_id,
            task_name=assignment.task.name,
            status=status,
            result=result,
            error=error,
            memory=MemoryNote(outcome="off"),
            attempt=attempt,
            worker_id=self._name,
            queued_ms=max(0, int((now - created_at).total_seconds() * 1000) - run_ms),
            run_ms=run_ms,
            finished_at=now,
        )

    async def conclude(
        self, assignment: TaskAssignment, report: CompletionReport
    ) -> bytes:
        """Publish and return the report of *assignment*: *report*, or the earlier one of its generation.

        Raises:
            MemoryUnavailable: the ledger does not answer.
            NotAccepted: it stands, but was not stored yet; do it again.
            MessageTooLarge: nothing was written.
        """
        body = report.model_dump_json().encode()
        if len(body) > subjects.MAX_BODY:
            raise MessageTooLarge(
                f"the report has {len(body):,} bytes, at most {subjects.MAX_BODY:,} are taken"
            )
        where = subjects.report(report.supervisor_id, report.task_id, report.generation)
        # Should this process die with the report in one of both stores, or be refused by one, they end alike.
        asked = subjects.comparison(where, secrets.token_hex(8))
        await self._outbox.put(
            asked,
            where.encode(),
            asked,
            patience_s=_STORED_WITHIN_S,
            waits_when_full=True,
        )
        user = user_token(assignment.user_id) if assignment.user_id else ""
        finish = Finish(
            report.named,
            generation=report.generation,
            status=report.status,
            report=body,
            user=user,
            row=row_of_report(report).complete(
                row_of(assignment, report.generation, report.agent_id)
            ),
        )
        [earlier] = await self._ledger.finish_many([finish])
        if isinstance(earlier, CancelRequest) and report.status != "cancelled":
            error = ErrorNote(type="TaskCancelled", message=earlier.reason)
            return await self.conclude(
                assignment,
                self.report(assignment, report.generation, "cancelled", error=error),
            )
        stands = earlier if isinstance(earlier, bytes) else body
        if isinstance(earlier, ReportExpired):
            stands = spell_expired(assignment, report.generation, earlier)
        await self.publish(stands)
        return stands

    async def publish(self, report: bytes) -> None:
        """Publish *report*, which the ledger has; the same again changes nothing.

        Raises:
            NotAccepted: it was not stored yet; do it again.
        """
        parsed = CompletionReport.model_validate_json(report)
        where = subjects.report(parsed.supervisor_id, parsed.task_id, parsed.generation)
        message_id = subjects.report_message_id(parsed.task_id, parsed.generation)
        await self._outbox.put(
            where, report, message_id, patience_s=_STORED_WITHIN_S, waits_when_full=True
        )
