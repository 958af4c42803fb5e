"""The route of one path a task: its parameters are the body, its result is the answer, its error is a problem."""

from typing import Annotated

from fastapi import APIRouter, Body, Depends, Header, Path, Query
from pydantic import JsonValue
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.contracts.messages import ErrorNote
from tasklore.supervisor.http.admission.keys import Caller, require
from tasklore.supervisor.http.dependencies import ApiDependencies
from tasklore.supervisor.http.openapi import SCHEMAS
from tasklore.supervisor.http.problems import MEDIA_TYPE, answers
from tasklore.supervisor.http.responses import ACCEPTED, respond_json, while_connected
from tasklore.supervisor.operations.idempotency import IdempotencyKey
from tasklore.supervisor.operations.refusals import Problem, Refused
from tasklore.supervisor.operations.sent_tasks import Sent, TaskServices
from tasklore.supervisor.operations.table import operation
from tasklore.supervisor.operations.tasks import SendOptions, run_task

#: The path as it stands in the document for a task of any agent.
PATH = "/v1/agents/{agent_id}/tasks/{task}"

#: The status of the answer by that of a task that did not complete; of one that its agent rejected it is 422.
_STATUSES = {"failed": 502, "expired": 504, "cancelled": 409}
_AgentId = Annotated[str, Path(pattern=NAME_PATTERN, description="The id of an agent.")]
_LOCATION = {
    "Location": {
        "description": "Where the task and its report are.",
        "schema": {"type": "string"},
    }
}


class TaskProblem(Problem):
    """A problem; of a task that did not complete `error` is why, and `task_id` leads to its report."""

    task_id: str | None = None
    error: ErrorNote | None = None


class TaskNotCompleted(Refused):
    """The task ended without a result, or was cancelled before it began."""

    def __init__(self, sent: Sent) -> None:
        report = sent.report
        status = report.status if report is not None else "cancelled"
        error = report.error if report is not None else None
        reason = f": {error.message}" if error is not None else ""
        super().__init__(
            _STATUSES.get(status, _STATUSES["failed"]),
            f"task-{status}",
            f"the task ended as {status}{reason}; GET {_locate(sent)} has its report",
            headers={"Location": _locate(sent)},
        )
        self.problem = TaskProblem(
            **dict(self.problem), task_id=sent.task_id, error=error
        )


@operation("agents", "run", f"POST {PATH}", roles=("ask",), waits=True)
async def run_by_path(
    services: TaskServices,
    caller: Caller,
    *,
    agent_id: str,
    task: str,
    parameters: dict[str, JsonValue],
    options: SendOptions,
    chosen: str | None,
) -> Sent:
    """Run a task of an agent; without a report it goes on.

    Raises:
        TaskNotCompleted: it ended without a result.
        Refused: as `run_task`.
        NotPermitted: it is for another user or tenant.
    """
    sent = await run_task(
        services,
        caller,
        agent_id=agent_id,
        task=task,
        parameters=parameters,
        place="",
        options=options,
        chosen=chosen,
    )
    if (sent.report is None and sent.state == "cancelled") or (
        sent.report is not None and sent.report.status != "completed"
    ):
        raise TaskNotCompleted(sent)
    return sent


def routes(parts: ApiDependencies) -> APIRouter:
    """Return the route of tasks by their own paths."""
    router = APIRouter(tags=["agents"])
    failed = {MEDIA_TYPE: {"schema": {"$ref": f"{SCHEMAS}{TaskProblem.__name__}"}}}
    problems = answers(404, *_STATUSES.values())
    for status in _STATUSES.values():
        problems[status] |= {"content": failed}

    @router.post(
        PATH,
        operation_id=run_by_path.id,
        summary="Run a task of an agent",
        description="The body is the parameters of the task, the answer its result. `GET /v1/openapi.json` has this "
        "path for each task that agents offer, with the schemas of both.",
        response_class=Response,
        responses={
            200: {
                "description": "The result of the task.",
                "headers": _LOCATION,
                "content": {"application/json": {"schema": {}}},
            },
            202: {"model": Sent, **ACCEPTED},
            **problems,
        },
    )
    async def run(
        agent_id: _AgentId,
        task: Annotated[
            str, Path(pattern=NAME_PATTERN, description="The name of a task of it.")
        ],
        parameters: Annotated[dict[str, JsonValue], Body(default_factory=dict)],
        options: Annotated[SendOptions, Query()],
        request: Request,
        caller: Annotated[Caller, Depends(require(run_by_path.demand_role))],
        idempotency_key: Annotated[
            IdempotencyKey, Header(alias="Idempotency-Key")
        ] = None,
    ) -> Response:
        work = run_by_path(
            parts.for_tasks,
            caller,
            agent_id=agent_id,
            task=task,
            parameters=parameters,
            options=options,
            chosen=idempotency_key,
        )
        sent = await while_connected(request.receive, work)
        if sent.report is None:
            return respond_json(sent, _locate(sent), is_done=False)
        return Response(
            # As a report has it, also what JSON has no number for.
            to_json(sent.report.result, inf_nan_mode="strings"),
            media_type="application/json",
            headers={"Cache-Control": "no-store", "Location": _locate(sent)},
        )

    return router


def _locate(sent: Sent) -> str:
    return f"/v1/tasks/{sent.task_id}"
