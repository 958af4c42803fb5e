"""Changes of a memory: tasks of the memory agent, which alone makes them."""

import json
from typing import Literal, TypeVar

from tasklore.contracts.callers import Caller
from tasklore.contracts.messages import CompletionReport
from tasklore.memory.holdings.store import Holding
from tasklore.supervisor.catalogue import Offer
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.memory.services import (
    MemoryServices,
    MemoryTask,
    SendMemoryTask,
    TaskSeen,
)
from tasklore.supervisor.operations.refusals import Refused, unavailable
from tasklore.supervisor.operations.sent_tasks import NewTask, TaskServices, send_task
from tasklore.supervisor.operations.table import Unfinished
from tasklore.supervisor.replies.notices import MEMORY_AGENT

#: Seconds within which a change is made: a person who has waited longer wants to look first.
_WITHIN_S = 300.0
#: Seconds for which the answer to a change is waited for, where its caller says none.
WAIT_S = 30.0


class Started(View):
    """The result of a task; only `task_id` while it is `accepted`."""

    task_id: str
    state: Literal["accepted", "done"]


_Result = TypeVar("_Result", bound=Started)


def send_by(services: TaskServices) -> SendMemoryTask:
    """Return what sends tasks to the memory agent by *services*."""

    async def send(
        caller: Caller, offer: Offer, task: MemoryTask, wait_s: float
    ) -> TaskSeen:
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
        sent = await send_task(services, caller, new, wait_s)
        return TaskSeen(task_id=sent.task_id, report=sent.report)

    return send


async def carry_out(
    shape: type[_Result],
    services: MemoryServices,
    caller: Caller,
    task: MemoryTask,
    *,
    wait_s: float | None = None,
) -> _Result | Unfinished[_Result]:
    """Have *task* done and return its result as a *shape*, after *wait_s* seconds at the latest.

    Raises:
        OwnerFull: it adds something, and the caller keeps too much.
        Refused: 409, it cannot be undone; 422, the agent refused it; 503, no memory worker is there, or it failed.
        MemoryUnavailable: the store did not answer in time.
    """
    offer = services.catalogue().find(MEMORY_AGENT, task.name)
    if offer is None:
        raise unavailable(
            "no memory worker has reported yet; start one with `tasklore worker`, and ask again"
        )
    # Without the store no worker changes a memory: its sender hears that now, and not when its patience ends.
    await services.episodes.settings(task.owner)
    if task.adds:
        size = len(json.dumps(dict(task.parameters)))
        bounds = services.dispatch.bounds
        await bounds.demand(caller, task.owner, Holding("turns", size))
    sent = await services.send(
        caller, offer, task, WAIT_S if wait_s is None else wait_s
    )
    if sent.report is None:
        return Unfinished(
            view=shape(task_id=sent.task_id, state="accepted"),
            location=f"/v1/tasks/{sent.task_id}",
        )
    _demand_done(sent.report)
    return shape.model_validate(
        {**sent.report.result, "task_id": sent.task_id, "state": "done"}
    )


def _demand_done(report: CompletionReport) -> None:
    """Return when *report* is that of a change that was made.

    Raises:
        Refused: 409, it cannot be undone; 422, the agent refused it; 503, it failed.
    """
    if report.status == "completed":
        return
    said = report.error.message if report.error is not None else ""
    if report.error is not None and report.error.type == "UndoRefused":
        raise Refused(409, "undo-refused", said)
    if report.status == "rejected":
        detail = said or "the agent could not take the parameters"
        raise Refused(422, "rejected", detail)
    raise unavailable(f"nothing was changed: {said or 'no reason was given'}")
