"""Reports of tasks, built for the tests of what supervisors do with them."""

from typing import Any

from tasklore.contracts.messages import CompletionReport, MemoryNote, TaskAssignment
from tests.understanding_cases import AT


def report(**changed: Any) -> CompletionReport:
    """Return the report of a completed task with *changed* fields."""
    fields: dict[str, Any] = {
        "task_id": "t1",
        "agent_id": "BudgetTrackerAgent",
        "supervisor_id": "SupervisorAgent",
        "task_name": "analyze_budget",
        "status": "completed",
        "result": {"remaining": 8000},
        "memory": MemoryNote(outcome="miss"),
        "worker_id": "w1",
        "run_ms": 3,
        "finished_at": AT,
    }
    return CompletionReport(**(fields | changed))


def report_on(
    assignment: TaskAssignment, status: str = "completed", **changed: Any
) -> CompletionReport:
    """Return the report of *assignment*, without a result unless one is given."""
    ids = {
        "task_id": assignment.task_id,
        "agent_id": assignment.agent_id,
        "supervisor_id": assignment.supervisor_id,
    }
    return report(
        **{
            **ids,
            "task_name": assignment.task.name,
            "status": status,
            "result": None,
            **changed,
        }
    )
