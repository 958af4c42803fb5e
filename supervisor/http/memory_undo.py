"""An edit taken back: by the memory worker, which alone edits documents, as a task that it reports."""

from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from contracts.messages import CompletionReport
from memory.documents.reader import DocumentReader
from memory.documents.writer import KEEP_REVISIONS
from supervisor.http.keys import Caller
from supervisor.http.parts import Parts
from supervisor.http.problems import Refused, not_found, unavailable
from supervisor.http.tasks import Order, carried_out, demand_taken

#: Who edits documents, and its task.
AGENT, TASK = "MemoryAgent", "undo"
#: Seconds that a wish to undo holds: somebody who has waited longer wants to look first.
_WITHIN_S = 300.0


class Undo(BaseModel):
    """Which edit to take back: a `plan_id` of the history."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True)

    plan_id: Annotated[str, Field(min_length=1, max_length=128)]
    wait_seconds: Annotated[float, Field(ge=0, le=300)] = 30.0


class Undone(BaseModel):
    """What became of it: `plan_id` took `undoes` back and led to `revisions`; only `task_id` while it is `accepted`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    task_id: str
    state: Literal["accepted", "done"]
    plan_id: str | None = None
    undoes: str | None = None
    revisions: dict[str, int] = Field(default_factory=dict)


async def undone(
    parts: Parts,
    caller: Caller,
    reader: DocumentReader,
    user: str,
    resource: str | None,
    wish: Undo,
    chosen: str | None,
) -> Undone:
    """Take an edit of *user* back, one of *resource* when that is given; under the id *chosen* once.

    Raises:
        Refused: 404, there is no such edit; 409, it does not stand, or a later one touched the same place.
        MemoryUnavailable: the store did not answer in time.
    """
    known = {record.plan_id for record in await reader.history(user, resource, KEEP_REVISIONS)}
    if wish.plan_id not in known:
        raise not_found(f"there is no plan {wish.plan_id!r} in this history; GET .../history lists those there are")
    offer = parts.catalogue().find(AGENT, TASK)
    if offer is None:
        raise unavailable("no memory worker has reported yet; start one with `tasklore worker`, and ask again")
    order = Order(
        offer=offer,
        parameters={"plan_id": wish.plan_id},
        user_id=user,
        conversation_id=None,
        chosen=chosen,
        memory="bypass",
        within_s=_WITHIN_S,
    )
    sent = await carried_out(parts, caller, order, wish.wait_seconds)
    if sent.report is None:
        return Undone(task_id=sent.task_id, state="accepted")
    _demand_done(sent.report)
    return Undone.model_validate({**sent.report.result, "task_id": sent.task_id, "state": "done"})


def _demand_done(report: CompletionReport) -> None:
    if report.error is not None and report.error.type == "UndoRefused":
        raise Refused(409, "undo-refused", report.error.message)
    demand_taken(report)
    if report.status != "completed":
        told = report.error.message if report.error is not None else "no reason was given"
        raise unavailable(f"nothing was taken back: {told}")
