"""One edit taken back on request: what `tasklore memory undo` does by hand, as a task for programs."""

from pydantic import BaseModel

from workers import Context, Field, Parameters


class Undoing(Parameters):
    """Which edit is to be taken back."""

    plan_id: str = Field(min_length=1, max_length=128, description="The plan to take back, as the history names it.")


class Undone(BaseModel):
    """What was done: *plan_id* took *undoes* back, and led each document to the revision in *revisions*."""

    plan_id: str
    undoes: str
    revisions: dict[str, int]


async def undo(wish: Undoing, context: Context) -> Undone:
    """Take an edit of the user's documents back, in all documents that it touched.

    Raises:
        UndoRefused: a later edit touched the same place, or this one does not stand.
        MemoryUnavailable: the documents did not answer in time; the task is run again.
    """
    record = await context.edits.undo(wish.plan_id)
    return Undone(plan_id=record.plan_id, undoes=record.undoes or wish.plan_id, revisions=dict(record.revisions))
