"""What takes a plan back: the inverse of its changes, carried over all that has happened since."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from tasklore.contracts.errors import UndoRefused
from tasklore.memory.documents.edits import ABSENT, Change, Found
from tasklore.memory.documents.items import METADATA, Body
from tasklore.memory.documents.paths import Path
from tasklore.memory.documents.rebase import PlanChanges, take_back
from tasklore.memory.documents.storage.history import LogEntry, PlanRecord

_METADATA_PLACE = Path((METADATA,))


def entry_of(record: PlanRecord, resource_id: str, log: Sequence[LogEntry]) -> LogEntry:
    """Return the entry of *record* in the log of a document.

    Raises:
        UndoRefused: it is no longer there.
    """
    for entry in log:
        if entry.plan_id == record.plan_id:
            return entry
    raise UndoRefused(
        f"plan {record.plan_id!r} is older than the history of {resource_id!r}; edit the document instead"
    )


def take_back_changes(
    plan_id: str, log: Sequence[LogEntry], body: Body
) -> tuple[Change, ...]:
    """Return the changes of *body*, as it is now, that take back what *plan_id* did; *log* is all that is kept.

    Raises:
        UndoRefused: a later plan touched the same place; the message names both.
    """
    history = [PlanChanges(entry.plan_id, entry.changes, entry.undoes) for entry in log]
    return tuple(_with_metadata_of(take_back(history, plan_id), body))


def _with_metadata_of(changes: Sequence[Change], body: Body) -> Iterator[Change]:
    """Yield *changes* with the metadata of *body* as the values before: only stamps write there."""
    found: Found = body.get(METADATA, ABSENT)
    for change in changes:
        if change.path != _METADATA_PLACE:
            yield change
        elif found is not ABSENT or change.after is not ABSENT:
            yield replace(change, before=found)
            found = change.after
