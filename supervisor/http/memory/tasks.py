"""The owner of a memory, and changes of it: tasks of the memory agent, which alone makes them."""

import json
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from fastapi import Depends, Path, Query
from starlette.responses import Response

from tasklore.contracts.callers import Role
from tasklore.contracts.identifiers import Scope, scoped
from tasklore.memory.holdings.store import Holding
from tasklore.supervisor.http.admission.keys import Caller, require_role
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.http.responses import ACCEPTED, respond_json
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.refusals import Refused, unavailable
from tasklore.supervisor.operations.sent_tasks import (
    NewTask,
    demand_accepted,
    send_task,
)
from tasklore.supervisor.replies.notices import MEMORY_AGENT

#: Seconds within which a change is made: a person who has waited longer wants to look first.
_WITHIN_S = 300.0

LATER: dict[int | str, dict[str, Any]] = {202: ACCEPTED, **answers(409)}

_Name = Annotated[
    str,
    Path(
        alias="user",
        min_length=1,
        max_length=200,
        description="Whose memory, without a slash.",
    ),
]
_Scope = Annotated[
    Scope,
    Query(description="What `user` names: a user, an agent, a run or an organisation."),
]


def _owner_for(role: Role) -> Callable[..., Awaitable[str]]:
    async def find_owner(
        name: _Name,
        caller: Annotated[Caller, Depends(require_role(role))],
        scope: _Scope = "user",
    ) -> str:
        if scope == "user":
            caller.demand_user(name)
        elif caller.user is not None:
            raise Refused(
                403,
                "scope",
                f"this key is for one user; use a key without one for the scope {scope!r}",
            )
        return scoped(scope, name)

    return find_owner


#: The owner in the path, for callers that may read, and for those that may ask.
ReadBy = Annotated[str, Depends(_owner_for("read"))]
AskedBy = Annotated[str, Depends(_owner_for("ask"))]
By = Annotated[Caller, Depends(require_role("ask"))]


class Started(View):
    """The result of a task; only `task_id` while it is `accepted`."""

    task_id: str
    state: Literal["accepted", "done"]


@dataclass(frozen=True, slots=True)
class MemoryTask:
    """One task for the memory of *owner*; *chosen* is the id that its sender gave it, None when it gave none.

    One that *adds* nothing (undoing, deleting, forgetting) is done however much its sender keeps.
    """

    name: str
    parameters: Mapping[str, Any]
    owner: str
    chosen: str | None = None
    adds: bool = False


async def carry_out(
    shape: type[Started],
    parts: ApiParts,
    caller: Caller,
    task: MemoryTask,
    wait_s: float = 30.0,
) -> Response:
    """Have *task* done and return its result as a *shape*, after *wait_s* seconds at the latest.

    Raises:
        OwnerFull: it adds something, and the caller keeps too much.
        Refused: 409, it cannot be undone; 422, the agent refused it; 503, no memory worker is there, or it failed.
        MemoryUnavailable: the store did not answer in time.
    """
    offer = parts.catalogue().find(MEMORY_AGENT, task.name)
    if offer is None:
        raise unavailable(
            "no memory worker has reported yet; start one with `tasklore worker`, and ask again"
        )
    if task.adds:
        size = len(json.dumps(dict(task.parameters)))
        await parts.dispatch.bounds.demand(caller, task.owner, Holding("turns", size))
    new = NewTask(
        offer=offer,
        parameters=dict(task.parameters),
        user_id=task.owner,
        conversation_id=None,
        chosen=task.chosen,
        memory="bypass",
        within_s=_WITHIN_S,
        is_bounded=task.adds,
    )
    sent = await send_task(parts.for_tasks, caller, new, wait_s)
    location = f"/v1/tasks/{sent.task_id}"
    report = sent.report
    if report is None:
        return respond_json(
            shape(task_id=sent.task_id, state="accepted"), location, is_done=False
        )
    if report.error is not None and report.error.type == "UndoRefused":
        raise Refused(409, "undo-refused", report.error.message)
    demand_accepted(report)
    if report.status != "completed":
        reason = (
            report.error.message if report.error is not None else "no reason was given"
        )
        raise unavailable(f"nothing was changed: {reason}")
    body = shape.model_validate(
        {**report.result, "task_id": sent.task_id, "state": "done"}
    )
    return respond_json(body, location, is_done=True)
