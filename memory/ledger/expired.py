"""A report in place of the one that has expired: when the task ended, and how."""

from datetime import UTC, datetime

from tasklore.contracts.identifiers import TaskName
from tasklore.contracts.messages import (
    CompletionReport,
    ErrorNote,
    MemoryNote,
    Status,
    TaskAssignment,
)
from tasklore.memory.ledger.runs import ReportExpired

#: The type of the error in such a report.
REPORT_EXPIRED = "ReportExpired"
#: What stands for a name that the ledger does not keep.
_UNKNOWN = "unknown"
_STATUSES: dict[str, Status] = {
    "rejected": "rejected",
    "expired": "expired",
    "cancelled": "cancelled",
}


def spell_expired(
    assignment: TaskAssignment, generation: int, expired: ReportExpired
) -> bytes:
    """Return the `expired_report` of *assignment* as it is published."""
    report = expired_report(
        assignment.named,
        generation,
        expired,
        supervisor_id=assignment.supervisor_id,
        task_name=assignment.task.name,
    )
    return report.model_dump_json().encode()


def expired_report(
    task: TaskName,
    generation: int,
    expired: ReportExpired,
    *,
    supervisor_id: str = _UNKNOWN,
    task_name: str = _UNKNOWN,
) -> CompletionReport:
    """Return a report that says when and how *generation* of *task* ended, and that its own is gone.

    It has the status of the end, but `failed` for a completed task: no reader may go on without the result.
    """
    return CompletionReport(
        task_id=task,
        generation=generation,
        agent_id=task.agent_id,
        supervisor_id=supervisor_id,
        task_name=task_name,
        status=_STATUSES.get(expired.state, "failed"),
        error=ErrorNote(type=REPORT_EXPIRED, message=expired.words),
        memory=MemoryNote(outcome="off"),
        attempt=0,
        worker_id="ledger",
        finished_at=datetime.fromtimestamp(expired.finished_at_ms / 1000, UTC),
    )
