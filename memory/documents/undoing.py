"""What takes a plan back: the inverse of its changes, carried over all that has happened since."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from contracts.errors import UndoRefused
from memory.documents.edits import ABSENT, Change, Found, inverse
from memory.documents.history import LogEntry, PlanRecord
from memory.documents.items import METADATA, Body
from memory.documents.paths import Path
from memory.documents.rebase import blocking, cross, rebase_changes

_METADATA_PLACE = Path((METADATA,))


def entries_since(record: PlanRecord, resource_id: str, log: Sequence[LogEntry]) -> Sequence[LogEntry]:
    """Return the entry of *record* in the log of a document and all that came after it.

    Raises:
        UndoRefused: it is no longer there.
    """
    for place, entry in enumerate(log):
        if entry.plan_id == record.plan_id:
            return log[place:]
    msg = f"plan {record.plan_id!r} is older than the history of {resource_id!r}; edit the document instead"
    raise UndoRefused(msg)


def taken_back(since: Sequence[LogEntry], body: Body) -> tuple[Change, ...]:
    """Return the changes of *body*, as it is now, that take back the first entry of *since*.

    Raises:
        UndoRefused: a later plan touched the same place; the message names both.
    """
    back = inverse(since[0].changes)
    later = _settled(since[1:])
    over = tuple(change for one in later for change in one.changes)
    try:
        moved = rebase_changes(back, over)
    except UndoRefused as error:
        number = blocking(back, over) or 0
        owners = [one.plan_id for one in later for _ in one.changes]
        msg = f"plan {since[0].plan_id!r} cannot be taken back: {error} (plan {owners[number]!r})"
        raise UndoRefused(msg) from error
    return tuple(_with_metadata_of(moved, body))


@dataclass(frozen=True, slots=True)
class _Later:
    """What a plan changed, as if none of those had been that were taken back."""

    plan_id: str
    changes: tuple[Change, ...]


def _settled(entries: Sequence[LogEntry]) -> list[_Later]:
    """Return the changes of *entries* without those that were taken back, and without what took them back.

    Both are left out together, since the place of what was put back can no longer be told once it was gone.
    """
    kept: list[_Later] = []
    for entry in entries:
        later = _Later(entry.plan_id, entry.changes)
        rest = _without(kept, entry.undoes, later)
        kept = [*kept, later] if rest is None else rest
    return kept


def _without(kept: Sequence[_Later], undone: str | None, undo: _Later) -> list[_Later] | None:
    """Return *kept* as if the plan *undone* had never been; None when *undo* is not all that is left of it."""
    place = next((place for place, one in enumerate(kept) if one.plan_id == undone), None)
    if place is None:
        return None
    back, between = inverse(kept[place].changes), list[_Later]()
    try:
        for one in kept[place + 1 :]:
            back, moved = cross(back, one.changes)
            between.append(_Later(one.plan_id, moved))
    except UndoRefused:
        return None
    return [*kept[:place], *between] if _edits(back) == _edits(undo.changes) else None


def _edits(changes: Sequence[Change]) -> list[Change]:
    """Return *changes* without those of the metadata, which stamps write into."""
    return [change for change in changes if change.path != _METADATA_PLACE]


def _with_metadata_of(changes: Sequence[Change], body: Body) -> Iterator[Change]:
    """Yield *changes* with the metadata of *body* as what they find: stamps wrote into it, and no other edit can."""
    found: Found = body.get(METADATA, ABSENT)
    for change in changes:
        if change.path != _METADATA_PLACE:
            yield change
        elif found is not ABSENT or change.after is not ABSENT:
            yield replace(change, before=found)
            found = change.after
