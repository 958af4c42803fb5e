"""An edit taken back: by the memory worker, which alone edits documents, as a task that it reports."""

from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field

from memory.documents.storage.reader import DocumentReader
from memory.documents.storage.writer import KEEP_REVISIONS
from supervisor.http.admission.keys import Caller
from supervisor.http.memory.tasks import MemoryTask, Started, carry_out
from supervisor.http.parts import Parts
from supervisor.http.problems import not_found


class Undo(BaseModel):
    """Which edit to take back: a `plan_id` of the history."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid", strict=True)

    plan_id: Annotated[str, Field(min_length=1, max_length=128)]
    wait_seconds: Annotated[float, Field(ge=0, le=300)] = 30.0


class Undone(Started):
    """What became of it: `plan_id` took `undoes` back and led to `revisions`."""

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
    task = MemoryTask("undo", {"plan_id": wish.plan_id}, user, chosen)
    return await carry_out(Undone, parts, caller, task, wish.wait_seconds)
