"""Apply the edits of a plan to a body, all or none, each to the place it names in the body as given.

The body handed in is never altered, and shares with the new one whatever did not change: neither may be altered
them, or a value of an edit, afterwards.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from tasklore.contracts.edits import Delete, Edit, Insert, NoChange, Update
from tasklore.contracts.errors import EditRefused, InvalidPath, UnknownPath
from tasklore.memory.documents.changes import (
    Change,
    WorkingCopy,
    apply_changes,
    dump_changes,
    inverse,
    load_changes,
    same,
)
from tasklore.memory.documents.paths import (
    ABSENT,
    Absent,
    Append,
    Found,
    Path,
    Step,
    find,
    lookup,
    parse,
    resolve,
)

__all__ = [
    "ABSENT", "Absent", "Applied", "Change", "Found", "apply_changes", "apply_edits", "dump_changes", "inverse",
    "load_changes", "place_of",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Applied:
    """A body after its edits, and the changes that led to it in the order of their execution."""

    body: JsonValue
    changes: tuple[Change, ...]


def apply_edits(body: JsonValue, edits: Sequence[Edit]) -> Applied:
    """Return *body* with all *edits* applied; every path refers to *body* as given, whatever the others shift.

    An insert at the path of a list appends; at `list[2]` it goes before the present item (several in their order), at
    `list[-]` behind the last item, and at a new name of an object it adds that name. An update or a delete needs what
    it names. An update to the present value changes nothing. `file` is not looked at.

    Raises:
        EditRefused: one does not fit (`path`, `missing`) or two meet at one place (`overlap`); nothing is applied.
    """
    targets = [
        _target(body, edit, order)
        for order, edit in enumerate(edits)
        if not isinstance(edit, NoChange)
    ]
    _refuse_overlaps(targets)
    working = WorkingCopy(body)
    changes: list[Change] = []
    for target in sorted(targets, key=_turn):
        before = ABSENT if target.is_gap else lookup(body, target.path)
        if not same(before, target.value):
            changes.append(working.execute(Change(target.path, before, target.value)))
    return Applied(working.body, tuple(changes))


def place_of(body: JsonValue, edit: Insert | Update | Delete) -> Path:
    """Return the place that *edit* is about, with indexes from the front; for an insert, where it would stand.

    Raises:
        EditRefused: its path cannot be read or does not fit (`path`), or nothing is there (`missing`).
    """
    try:
        path = parse(edit.path)
        return _gap(body, path) if isinstance(edit, Insert) else resolve(body, path)
    except InvalidPath as error:
        raise EditRefused(str(error), "path") from error
    except UnknownPath as error:
        raise EditRefused(str(error), "missing") from error


def _gap(body: JsonValue, path: Path) -> Path:
    """Return where an insert at *path* puts its value: a new name, or an index where room is made."""
    last = path.last
    holder = find(body, path.parent) if last is not None else ABSENT
    if isinstance(holder, dict) and isinstance(last, str) and last not in holder:
        return resolve(body, path.parent) / last
    if isinstance(holder, list) and isinstance(last, int | Append):
        size = len(holder)
        index = size if isinstance(last, Append) else last if last >= 0 else last + size
        if 0 <= index <= size:
            return resolve(body, path.parent) / index
    found = lookup(body, path)
    if not isinstance(found, list):
        raise EditRefused(
            f"there is something at {str(path)!r} already; use update to replace it",
            "path",
        )
    return resolve(body, path) / len(found)


@dataclass(frozen=True, slots=True)
class _Target:
    """Where an edit goes: a place of the body as given or, for a gap, one that is not there yet."""

    path: Path
    value: Found
    order: int
    is_gap: bool

    @property
    def in_list(self) -> bool:
        """Whether it makes room in a list: any number may do so at one index."""
        return self.is_gap and isinstance(self.path.last, int)


def _target(body: JsonValue, edit: Insert | Update | Delete, order: int) -> _Target:
    """Find the place of *edit* in *body*."""
    path = place_of(body, edit)
    if isinstance(edit, Delete) and not path.steps:
        raise EditRefused(
            "'$' is the whole document and cannot be deleted; delete what is in it",
            "path",
        )
    return _Target(
        path,
        ABSENT if isinstance(edit, Delete) else edit.new_value,
        order,
        isinstance(edit, Insert),
    )


def _refuse_overlaps(targets: Sequence[_Target]) -> None:
    """Raise when two edits meet: at one place, or one inside what the other replaces or takes out."""
    taken: set[tuple[Step, ...]] = set()
    for target in targets:
        if target.in_list:
            continue
        if target.path.steps in taken:
            raise EditRefused(
                f"two edits of one plan are about {str(target.path)!r}; keep one of them",
                "overlap",
            )
        taken.add(target.path.steps)
    for target in targets:
        steps = target.path.steps
        above = next(
            (steps[:depth] for depth in range(len(steps)) if steps[:depth] in taken),
            None,
        )
        if above is not None:
            raise EditRefused(
                f"{str(target.path)!r} lies in {str(Path(above))!r}, which the same plan replaces or deletes;"
                " keep one of the two edits",
                "overlap",
            )


def _turn(target: _Target) -> tuple[tuple[int, ...], int]:
    """Return the sort key of an edit: items further back in a list come first, so that none shifts before its turn.

    What happens to or in an item comes before an insert in front of it; of several such inserts the last comes first.
    """
    turns = [-2 * step if isinstance(step, int) else 0 for step in target.path.steps]
    if not target.in_list:
        return tuple(turns), target.order
    turns[-1] += 1
    return tuple(turns), -target.order
