"""The edits of documents as they are told over HTTP, a page at a time, the newest first."""

from datetime import datetime
from typing import ClassVar, Literal

from pydantic import BaseModel, ConfigDict, JsonValue

from memory.documents.edits import Change
from memory.documents.paths import ABSENT
from memory.documents.storage.history import PlanRecord
from memory.documents.storage.reader import DocumentReader


class _Told(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)


class Changed(_Told):
    """What an edit did at one place; `had` and `has` tell an absent value from null."""

    path: str
    had: bool
    before: JsonValue = None
    has: bool
    after: JsonValue = None


class PlanTold(_Told):
    """One plan of edits: who decided it, why, on which words, and what it changed in which document.

    `undoes` is the plan that it takes back; `undone_by` is the one that took it back, null while it stands.
    """

    plan_id: str
    number: int
    kind: Literal["edit", "undo", "redo"]
    at: datetime
    by: str
    reasoning: str
    fact: str
    evidence: str
    undoes: str | None
    undone_by: str | None
    revisions: dict[str, int]
    changes: dict[str, tuple[Changed, ...]]


class PlanPage(_Told):
    """Plans, the newest first; `next` is the `before` of the next page, null at the end."""

    plans: tuple[PlanTold, ...]
    next: int | None


async def page_of(reader: DocumentReader, user: str, resource: str | None, before: int | None, limit: int) -> PlanPage:
    """Return up to *limit* plans before the number *before*, None for the newest; of *resource* alone when given.

    Whatever is edited meanwhile, going on with `next` shows every plan once.

    Raises:
        MemoryUnavailable: the store did not answer in time.
    """
    # One more tells whether there is another page.
    wanted = limit + 1
    records = await reader.history(user, resource, wanted)
    if before is not None and records:
        # Numbers grow by one with each plan of the user, so that at most so many are newer.
        newer = max(0, records[0].number - before + 1)
        records = await reader.history(user, resource, newer + wanted)
        records = tuple(record for record in records if record.number < before)
    shown = records[:limit]
    return PlanPage(plans=tuple(map(_told, shown)), next=shown[-1].number if len(records) > limit else None)


def _told(record: PlanRecord) -> PlanTold:
    origin = record.origin
    return PlanTold(
        plan_id=record.plan_id,
        number=record.number,
        kind=record.kind,
        at=origin.at,
        by=origin.by,
        reasoning=origin.reasoning,
        fact=origin.fact_text,
        evidence=origin.evidence,
        undoes=record.undoes,
        undone_by=record.undone_by,
        revisions=dict(record.revisions),
        changes={name: tuple(map(_change, changes)) for name, changes in record.changes.items()},
    )


def _change(change: Change) -> Changed:
    had, has = change.before is not ABSENT, change.after is not ABSENT
    return Changed(
        path=str(change.path),
        had=had,
        before=change.before if had else None,
        has=has,
        after=change.after if has else None,
    )
