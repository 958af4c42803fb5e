"""The tasks that tasks of a testing kit call: answered by the test, in place of other agents."""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic_core import to_jsonable_python

from tasklore.contracts.errors import CallFailed, ConfigurationError
from tasklore.contracts.messages import (
    CompletionReport,
    ErrorNote,
    MemoryNote,
    TaskAssignment,
)


class Called(NamedTuple):
    """A call that a task made: "Agent.task" and the parameters as JSON."""

    task: str
    parameters: dict[str, Any]


class KitChildren:
    """Stands for `tasklore.workers.child_tasks.ChildTasks`.

    `answers` has, by "Agent.task", a result, a function that returns one for the parameters, or a CallFailed.
    """

    caller_id = "kit"

    def __init__(self, answers: Mapping[str, Any]) -> None:
        self._answers = answers
        self.called: list[Called] = []

    async def demand_task(self, agent_id: str, task_name: str) -> None:
        """Refuse a task that the test does not answer."""
        name = f"{agent_id}.{task_name}"
        if name not in self._answers:
            msg = f"the test answers no call of {name}; pass calls={{{name!r}: its result}} to the kit"
            raise ConfigurationError(msg)

    async def ask(
        self,
        assignment: TaskAssignment,
        parent_generation: int,  # noqa: ARG002 - nothing is redriven in a kit
        *,
        may_be_known: bool,  # noqa: ARG002 - every call is answered anew
    ) -> CompletionReport:
        """Return a report with the prepared answer."""
        name = f"{assignment.agent_id}.{assignment.task.name}"
        self.called.append(Called(name, assignment.task.parameters))
        answer = self._answers[name]
        try:
            if callable(answer):
                answer = answer(assignment.task.parameters)
                answer = await answer if inspect.isawaitable(answer) else answer
            if isinstance(answer, CallFailed):
                raise answer
        except CallFailed as failure:
            error = ErrorNote(type=failure.error_type or "GiveUp", message=str(failure))
            return _report(assignment).model_copy(
                update={"status": failure.status, "error": error}
            )
        return _report(assignment).model_copy(
            update={"result": to_jsonable_python(answer)}
        )

    async def raise_if_cancelled(self, parent: TaskAssignment) -> None:
        """Do nothing: in a kit nothing is cancelled from outside."""

    async def cancel(self, task_id: str, reason: str) -> None:
        """Do nothing: in a kit no child outlives its call."""


def _report(assignment: TaskAssignment) -> CompletionReport:
    return CompletionReport(
        task_id=assignment.task_id,
        agent_id=assignment.agent_id,
        supervisor_id=assignment.supervisor_id,
        task_name=assignment.task.name,
        status="completed",
        memory=MemoryNote(outcome="off"),
        worker_id="kit",
        finished_at=assignment.created_at,
    )
