"""Changes of memory over HTTP: tasks of the memory agent, which alone makes them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from contracts.messages import CompletionReport
from supervisor.http.admission.keys import Caller
from supervisor.http.parts import Parts
from supervisor.http.problems import Refused, answers, unavailable
from supervisor.http.replies import LOCATED, RETRY
from supervisor.http.tasks import Order, carried_out, demand_taken
from supervisor.replies.notices import MEMORY_AGENT

#: Seconds within which a change is made: somebody who has waited longer wants to look first.
_WITHIN_S = 300.0

LATER: dict[int | str, dict[str, Any]] = {
    202: {"description": "It is under way; ask there.", "headers": LOCATED | RETRY},
    **answers(409),
}

Shape = TypeVar("Shape", bound="Started")


class Started(BaseModel):
    """What became of a task; only `task_id` while it is `accepted`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    task_id: str
    state: Literal["accepted", "done"]


@dataclass(frozen=True, slots=True)
class MemoryTask:
    """One task for the memory of *owner*; *chosen* is the id that its sender gave it, None when it gave none."""

    name: str
    parameters: Mapping[str, Any]
    owner: str
    chosen: str | None = None


async def carry_out(shape: type[Shape], parts: Parts, caller: Caller, task: MemoryTask, wait_s: float) -> Shape:
    """Have *task* done and return what came of it within *wait_s* seconds.

    Raises:
        Refused: 409, it cannot be undone; 422, the agent refused it; 503, no memory worker is there, or it failed.
        MemoryUnavailable: the store did not answer in time.
    """
    offer = parts.catalogue().find(MEMORY_AGENT, task.name)
    if offer is None:
        raise unavailable("no memory worker has reported yet; start one with `tasklore worker`, and ask again")
    order = Order(
        offer=offer,
        parameters=dict(task.parameters),
        user_id=task.owner,
        conversation_id=None,
        chosen=task.chosen,
        memory="bypass",
        within_s=_WITHIN_S,
    )
    sent = await carried_out(parts, caller, order, wait_s)
    if sent.report is None:
        return shape(task_id=sent.task_id, state="accepted")
    _demand_done(sent.report)
    return shape.model_validate({**sent.report.result, "task_id": sent.task_id, "state": "done"})


def _demand_done(report: CompletionReport) -> None:
    if report.error is not None and report.error.type == "UndoRefused":
        raise Refused(409, "undo-refused", report.error.message)
    demand_taken(report)
    if report.status != "completed":
        told = report.error.message if report.error is not None else "no reason was given"
        raise unavailable(f"nothing was changed: {told}")
