"""Reports of tasks, built for the tests of what supervisors do with them."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
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


class FakeReports(ABC):
    """A source of reports, as far as a test says what `report_of` returns."""

    @abstractmethod
    async def report_of(
        self, assignment: TaskAssignment, within_s: float, *, is_new: bool = False
    ) -> CompletionReport | None:
        """Return the report of *assignment*."""

    @contextmanager
    def expect(
        self, assignment: TaskAssignment, *, is_new: bool = False
    ) -> Iterator["_ExpectedOfFake"]:
        """Listen for the report of *assignment*."""
        yield _ExpectedOfFake(self, assignment, is_new=is_new)


class _ExpectedOfFake:
    def __init__(
        self, reports: FakeReports, assignment: TaskAssignment, *, is_new: bool
    ) -> None:
        self._reports = reports
        self._assignment = assignment
        self._is_new = is_new

    async def report(self, within_s: float) -> CompletionReport | None:
        return await self._reports.report_of(
            self._assignment, within_s, is_new=self._is_new
        )
