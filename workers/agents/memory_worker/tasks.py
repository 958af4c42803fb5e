"""Tasks by hand: add, change or delete an item, take an edit back, keep turns or not, and forget the user."""

from datetime import date
from typing import Literal

from pydantic import BaseModel, JsonValue

from tasklore import Context, Field, Parameters
from tasklore.contracts.edits import Delete, Edit, Update
from tasklore.contracts.errors import InvalidInput, UndoRefused
from tasklore.contracts.messages import Fact
from tasklore.memory.documents.draft import Draft, Origin
from tasklore.memory.documents.entries import DocumentEntry, home_of
from tasklore.memory.documents.items import slug
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.plans import Plan
from tasklore.memory.documents.review import PROTECTED
from tasklore.workers.agents.memory_worker.arbiter import JudgedEntries
from tasklore.workers.agents.memory_worker.case import Case
from tasklore.workers.agents.memory_worker.editor import change_for
from tasklore.workers.agents.memory_worker.places import with_missing_places
from tasklore.workers.listening.values import PendingFact


class ItemChange(Parameters):
    """A change to one item, named by its reference unless it is new."""

    operation: Literal["add", "change", "delete"]
    reference: str = Field(
        default="",
        max_length=1_000,
        description="RESOURCE_ID:LASTING_NAME, as a search gives it.",
    )
    category: str = Field(
        default="",
        max_length=200,
        description="Where a new item belongs, as food.likes.",
    )
    value: str = Field(
        default="", max_length=2_000, description="The text of the item."
    )
    subject: str = Field(
        default="",
        max_length=200,
        description="Whom it is about; the user, when empty.",
    )
    since: date | None = Field(
        default=None, description="The first day on which it holds."
    )
    until: date | None = Field(
        default=None, description="The last day on which it holds."
    )


class ItemChanged(BaseModel):
    """The plan, which can be undone, and the new revision of each document."""

    plan_id: str
    revisions: dict[str, int]


class Keeping(Parameters):
    """Whether turns are kept word for word from now on, and for how long."""

    is_on: bool = Field(
        default=True,
        description="False keeps nothing more; what is there stays until it is forgotten.",
    )
    days: int | None = Field(
        default=None,
        ge=1,
        le=36_500,
        description="As long as the deployment says, when left out.",
    )


class Nobody(Parameters):
    """No parameters: the user who asks is all that is needed."""


class BroughtBack(BaseModel):
    """How many turns and items that came while the memory was hidden are added to it again."""

    turns: int
    items: int


class ForgottenWords(BaseModel):
    """Counts by kind of removed data and of data that is left, and other places that may hold some."""

    removed: dict[str, int]
    left: dict[str, int]
    elsewhere: str


#: Stores that a memory worker may not reach.
ELSEWHERE = (
    "tasks and requests with their answers, pipelines and the servers' files: "
    "`tasklore memory forget USER` removes them too"
)


async def change_item(asked: ItemChange, context: Context) -> ItemChanged:
    """Add, change or delete one item of the user's documents; the id of the task is that of the plan.

    Raises:
        InvalidInput: no item, or several, have that reference, or a field is missing.
        EditRefused: the documents' guard refuses it.
        MemoryUnavailable: the documents did not answer in time; the task is run again.
    """
    _demand_fields(asked, context.documents.kinds)
    kinds = context.documents.kinds
    plan_id = context.assignment.task_id
    now = context.documents.now

    fact = Fact(
        fact_id=plan_id,
        text=asked.value or asked.reference,
        category=asked.category,
        value=asked.value,
        subject=asked.subject or None,
        valid_from=asked.since,
        expiry=asked.until,
    )

    def plan_of(draft: Draft) -> Plan:
        case = Case(
            PendingFact(fact=fact, turn_id=plan_id, said=now), draft, kinds, now.date()
        )
        if asked.operation == "add":
            judged = JudgedEntries(tuple(case.find_displaced()))
            edits: tuple[Edit, ...] = change_for(case, judged, case.twin()).edits
        else:
            found = [
                entry for entry in case.entries() if entry.reference == asked.reference
            ]
            if len(found) != 1:
                why = "no item has" if not found else f"{len(found)} items have"
                raise InvalidInput(
                    f"{why} reference {asked.reference!r}; list the items for those there are"
                )
            entry = found[0]
            judged = JudgedEntries((entry,))
            edits = (_edit_of(asked, entry),)
        reasoning = (
            f"{PROTECTED if judged.is_protected else ''}{asked.operation} by hand"
        )
        origin = Origin(by="person", at=now, fact_text=fact.text, reasoning=reasoning)
        return Plan(
            plan_id=plan_id, edits=with_missing_places(edits, draft.body), origin=origin
        )

    return ItemChanged(
        plan_id=plan_id, revisions=await context.edits.change(plan_id, plan_of)
    )


async def forget_me(_asked: Nobody, context: Context) -> ForgottenWords:
    """Erase for good everything that the user said, and all that is remembered of them.

    Raises:
        InvalidInput: the task has no user.
        MemoryUnavailable: the store did not answer in time; the task is run again.
    """
    done = await context.edits.forget()
    return ForgottenWords(removed=done.removed, left=done.left, elsewhere=ELSEWHERE)


async def bring_back(_asked: Nobody, context: Context) -> BroughtBack:
    """Bring back what the user had forgotten from a chat within the last day.

    Raises:
        InvalidInput: the task has no user.
        UndoRefused: nothing of theirs is hidden.
        MemoryUnavailable: the store did not answer in time; the task is run again.
    """
    again = await context.edits.bring_back(context.assignment.task_id)
    if again is None:
        raise UndoRefused(
            "nothing of this user is hidden: it was never forgotten from a chat, or its day is over"
        )
    return BroughtBack(turns=again.turns, items=again.items)


async def keep_turns(asked: Keeping, context: Context) -> Keeping:
    """Say for the user whether turns are kept, and for how many days.

    Raises:
        InvalidInput: the task has no user.
        MemoryUnavailable: the store did not answer in time; the task is run again.
    """
    await context.edits.keep_turns(is_on=asked.is_on, days=asked.days)
    return asked


class Undoing(Parameters):
    """The edit that is to be taken back."""

    plan_id: str = Field(
        min_length=1,
        max_length=128,
        description="The plan to take back, as the history names it.",
    )


class Undone(BaseModel):
    """The plan *plan_id* that took *undoes* back, and the new revision of each document."""

    plan_id: str
    undoes: str
    revisions: dict[str, int]


async def undo(asked: Undoing, context: Context) -> Undone:
    """Take an edit of the user's documents back, in all documents that it touched.

    Raises:
        UndoRefused: a later edit touched the same place, or this one does not stand.
        MemoryUnavailable: the documents did not answer in time; the task is run again.
    """
    record = await context.edits.undo(asked.plan_id)
    return Undone(
        plan_id=record.plan_id,
        undoes=record.undoes or asked.plan_id,
        revisions=dict(record.revisions),
    )


def _demand_fields(asked: ItemChange, kinds: Kinds) -> None:
    if asked.operation == "add" and not asked.value.strip():
        raise InvalidInput("value is missing; say what is to be remembered")
    if (
        asked.operation == "add"
        and home_of(asked.category, asked.subject or None, kinds) is None
    ):
        known = ", ".join(
            str(place.path) for kind in kinds.by_id.values() for place in kind.places
        )
        raise InvalidInput(
            f"category {asked.category!r} is unknown; it is one of {known}"
        )
    if asked.operation != "add" and not asked.reference:
        raise InvalidInput(
            "reference is missing; a search or the list of items tells it"
        )
    if (
        asked.since is not None
        and asked.until is not None
        and asked.until < asked.since
    ):
        raise InvalidInput("until is before since; exchange them")


def _edit_of(asked: ItemChange, entry: DocumentEntry) -> Edit:
    """Return the edit that deletes *entry*, or gives it the fields of *asked* and leaves the rest."""
    if asked.operation == "delete":
        return Delete(path=str(entry.path), file=entry.resource_id)
    if not isinstance(entry.value, dict):
        if asked.since or asked.until or asked.subject:
            raise InvalidInput(
                f"{entry.reference} is a plain text without dates; change its value alone"
            )
        return Update(
            path=str(entry.path),
            file=entry.resource_id,
            new_value=asked.value or entry.text,
        )
    fields: dict[str, JsonValue] = {
        "display": asked.value,
        "item": slug(asked.value) if asked.value else None,
        "subject": asked.subject,
        "since": None if asked.since is None else asked.since.isoformat(),
        "until": None if asked.until is None else asked.until.isoformat(),
    }
    changed = {
        **entry.value,
        **{name: value for name, value in fields.items() if value},
    }
    return Update(path=str(entry.path), file=entry.resource_id, new_value=changed)
