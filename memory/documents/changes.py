"""What edits did to a body, step by step: enough to take it back, to do it again, and to write it down.

A body is never altered in place: what changes is copied along the way to it, all else is shared with the old body.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from pydantic import JsonValue

from tasklore.contracts.edits import MAX_PATH
from tasklore.contracts.errors import EditRefused, InvalidInput
from tasklore.memory.documents.paths import (
    ABSENT,
    Absent,
    Found,
    Path,
    Step,
    find,
    parse,
    step_into,
)

#: Characters of a recorded path: each one of a path that was accepted may be recorded as two escapes.
_RECORDED = 12 * MAX_PATH


@dataclass(frozen=True, slots=True)
class Change:
    """One executed step: *path* is where it happened in the body as the steps before it had left it.

    The path has names and indexes from the front only. In a list, a step without *before* makes room at its index and
    one without *after* closes it. In an object, *ahead* is the name that follows the one put in or taken out, None when
    it is the last; only the order of names depends on it.
    """

    path: Path
    before: Found
    after: Found
    ahead: str | None = None

    @property
    def place(self) -> Literal["list", "dict", "root"]:
        """What holds the place: a list, an object, or nothing because it is the whole body."""
        last = self.path.last
        return "root" if last is None else "dict" if isinstance(last, str) else "list"


def inverse(changes: Sequence[Change]) -> tuple[Change, ...]:
    """Return the steps that take *changes* back, the last one first."""
    return tuple(
        replace(change, before=change.after, after=change.before)
        for change in reversed(changes)
    )


def apply_changes(body: JsonValue, changes: Iterable[Change]) -> JsonValue:
    """Return *body* after *changes*, which were made of such a body.

    Raises:
        EditRefused: a step does not find the value that it was made for (`missing`, `overlap`); nothing is applied.
    """
    working = WorkingCopy(body)
    for change in changes:
        working.expect(change)
        working.execute(change)
    return working.body


def same(left: Found, right: Found) -> bool:
    """Return whether two values are the same JSON: 1, 1.0 and true differ, the order of names does not."""
    pairs = [(left, right)]
    while pairs:
        one, other = pairs.pop()
        if one is other:
            continue
        if type(one) is not type(other):
            return False
        if isinstance(one, dict) and isinstance(other, dict):
            if one.keys() != other.keys():
                return False
            pairs.extend((child, other[name]) for name, child in one.items())
        elif isinstance(one, list) and isinstance(other, list):
            if len(one) != len(other):
                return False
            pairs.extend(zip(one, other, strict=True))
        elif one != other:
            return False
    return True


def dump_changes(changes: Iterable[Change]) -> list[JsonValue]:
    """Return *changes* as JSON: each an object of `path`, `before` and `after` where there is one, and `ahead`."""
    return [_dump(change) for change in changes]


def load_changes(value: JsonValue) -> tuple[Change, ...]:
    """Read what `dump_changes` wrote.

    Raises:
        InvalidInput: it is something else.
    """
    if not isinstance(value, list):
        raise InvalidInput(
            f"recorded changes are a list, not {type(value).__name__}; the record is damaged"
        )
    return tuple(_load(entry) for entry in value)


class WorkingCopy:
    """A body under change: each container is copied when it is first written to, and written in place from then on."""

    def __init__(self, body: JsonValue) -> None:
        self.body = body
        # By id, and kept alive by this, so that no other container can get the same one.
        self._own: dict[int, JsonValue] = {}

    def expect(self, change: Change) -> None:
        """Raise when the body is not such as *change* was made of.

        Raises:
            EditRefused: `missing` or `overlap`.
        """
        found = find(self.body, change.path)
        path = change.path
        if change.before is not ABSENT and found is ABSENT:
            raise EditRefused(
                f"{str(path)!r} no longer exists; the document has changed since, read "
                "it again",
                "missing",
            )
        if change.before is ABSENT and change.place == "list":
            return
        if not same(found, change.before):
            raise EditRefused(
                f"{str(path)!r} is not what it was, it has changed since; look again",
                "overlap",
            )

    def execute(self, change: Change) -> Change:
        """Carry out *change* and return it, with the name ahead of one that was taken out.

        Raises:
            EditRefused: nothing can stand there (`missing`).
        """
        last = change.path.last
        after = change.after
        if last is None:
            self.body = None if isinstance(after, Absent) else after
            return change
        holder = self._writable(change.path.steps[:-1])
        if (
            isinstance(holder, list)
            and isinstance(last, int)
            and 0 <= last <= len(holder)
        ):
            _change_list(holder, last, change)
            return change
        if isinstance(holder, dict) and isinstance(last, str):
            return _change_dict(holder, last, change)
        raise EditRefused(
            f"nothing can be put at {str(change.path)!r}; look at what is there",
            "missing",
        )

    def _writable(self, steps: Sequence[Step]) -> JsonValue:
        """Return the container at *steps*, it and all above it copied unless they are already."""
        holder = self.body = self._own_copy(self.body)
        for step in steps:
            child = step_into(holder, step)
            if isinstance(child, Absent):
                raise EditRefused(
                    f"there is no {str(Path(tuple(steps)))!r}; look at what is there",
                    "missing",
                )
            mine = self._own_copy(child)
            if isinstance(holder, dict) and isinstance(step, str):
                holder[step] = mine
            if isinstance(holder, list) and isinstance(step, int):
                holder[step] = mine
            holder = mine
        return holder

    def _own_copy(self, value: JsonValue) -> JsonValue:
        """Return *value*, or a copy of it when it is a shared container."""
        if not isinstance(value, dict | list) or id(value) in self._own:
            return value
        copy = value.copy()
        self._own[id(copy)] = copy
        return copy


def _change_list(holder: list[JsonValue], index: int, change: Change) -> None:
    """Put in, take out or replace the item at *index*."""
    if isinstance(change.after, Absent):
        del holder[index]
    elif isinstance(change.before, Absent):
        holder.insert(index, change.after)
    else:
        holder[index] = change.after


def _change_dict(holder: dict[str, JsonValue], name: str, change: Change) -> Change:
    """Insert, remove or replace the member *name*."""
    if isinstance(change.after, Absent):
        ahead = _ahead(holder, name)
        del holder[name]
        return replace(change, ahead=ahead)
    holder[name] = change.after
    if isinstance(change.before, Absent) and change.ahead in holder:
        names = list(holder)
        for later in names[names.index(change.ahead) : -1]:
            holder[later] = holder.pop(later)
    return change


def _ahead(holder: Mapping[str, JsonValue], name: str) -> str | None:
    """Return the name after *name* in *holder*, None when it is the last."""
    names = iter(holder)
    for other in names:
        if other == name:
            break
    return next(names, None)


def _dump(change: Change) -> dict[str, JsonValue]:
    """Return one change as JSON."""
    entry: dict[str, JsonValue] = {"path": str(change.path)}
    if not isinstance(change.before, Absent):
        entry["before"] = change.before
    if not isinstance(change.after, Absent):
        entry["after"] = change.after
    if change.ahead is not None:
        entry["ahead"] = change.ahead
    return entry


def _load(entry: JsonValue) -> Change:
    """Read one change."""
    if not isinstance(entry, dict) or not entry.keys() <= {
        "path",
        "before",
        "after",
        "ahead",
    }:
        raise InvalidInput(
            "a recorded change has path, before, after and ahead alone; the record is damaged"
        )
    path = entry.get("path")
    ahead = entry.get("ahead")
    if not isinstance(path, str) or not isinstance(ahead, str | None):
        raise InvalidInput(
            f"path and ahead of a recorded change are texts, not {path!r} and {ahead!r}; it is damaged"
        )
    if "before" not in entry and "after" not in entry:
        raise InvalidInput(
            f"the recorded change at {path!r} has neither before nor after; it is damaged"
        )
    return Change(
        parse(path, limit=_RECORDED),
        entry.get("before", ABSENT),
        entry.get("after", ABSENT),
        ahead,
    )
