"""RFC 6902 on top of our edits: each operation becomes edits of a working copy, one operation after the other.

It shows that whatever a JSON patch can say, our edits can do and take back; nothing of the product speaks JSON patch.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from tasklore.contracts.edits import Delete, Edit, Insert, Update
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.edits import Change, apply_edits
from tasklore.memory.documents.paths import APPEND, Path, find, lookup

_INDEX = re.compile(r"0|[1-9][0-9]*")
_BAD_ESCAPE = re.compile(r"~(?![01])")


class NotAPatch(Exception):
    """An operation that RFC 6902 does not allow, or a test that failed."""


@dataclass
class Patched:
    """A document under a patch, and what has been changed so far."""

    body: Any
    changes: list[Change] = field(default_factory=list)

    def apply(self, *edits: Edit) -> None:
        """Apply one plan."""
        applied = apply_edits(self.body, edits)
        self.body = applied.body
        self.changes.extend(applied.changes)


def apply_patch(body: Any, patch: Sequence[Any]) -> Patched:
    """Return *body* after all operations of *patch*.

    Raises:
        NotAPatch: one of them is malformed or fails.
    """
    patched = Patched(body)
    for operation in patch:
        if not isinstance(operation, dict) or operation.get("op") not in _OPERATIONS:
            raise NotAPatch(f"{operation!r} is no operation")
        try:
            _OPERATIONS[operation["op"]](patched, operation)
        except InvalidInput as error:
            raise NotAPatch(str(error)) from error
    return patched


def _add(patched: Patched, operation: dict[str, Any]) -> None:
    patched.apply(
        _addition(patched.body, _tokens(operation, "path"), _value(operation))
    )


def _remove(patched: Patched, operation: dict[str, Any]) -> None:
    patched.apply(Delete(path=str(_place(patched.body, _tokens(operation, "path")))))


def _replace(patched: Patched, operation: dict[str, Any]) -> None:
    patched.apply(
        Update(
            path=str(_place(patched.body, _tokens(operation, "path"))),
            new_value=_value(operation),
        )
    )


def _copy(patched: Patched, operation: dict[str, Any]) -> None:
    value = lookup(patched.body, _place(patched.body, _tokens(operation, "from")))
    patched.apply(_addition(patched.body, _tokens(operation, "path"), value))


def _move(patched: Patched, operation: dict[str, Any]) -> None:
    source = _tokens(operation, "from")
    target = _tokens(operation, "path")
    place = _place(patched.body, source)
    value = lookup(patched.body, place)
    if source == target:
        return
    if target[: len(source)] == source:
        raise NotAPatch("nothing can be moved into itself")
    patched.apply(Delete(path=str(place)))
    patched.apply(_addition(patched.body, target, value))


def _test(patched: Patched, operation: dict[str, Any]) -> None:
    found = lookup(patched.body, _place(patched.body, _tokens(operation, "path")))
    value = _value(operation)
    if not equal(found, value):
        raise NotAPatch(f"{found!r} is not {value!r}")


_OPERATIONS = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "copy": _copy,
    "move": _move,
    "test": _test,
}


def _value(operation: dict[str, Any]) -> Any:
    if "value" not in operation:
        raise NotAPatch("value is missing")
    return operation["value"]


def _tokens(operation: dict[str, Any], name: str) -> list[str]:
    """Return the tokens of a JSON pointer (RFC 6901)."""
    pointer = operation.get(name)
    if (
        not isinstance(pointer, str)
        or (pointer and not pointer.startswith("/"))
        or _BAD_ESCAPE.search(pointer)
    ):
        raise NotAPatch(f"{name} {pointer!r} is no JSON pointer")
    return [
        token.replace("~1", "/").replace("~0", "~") for token in pointer.split("/")[1:]
    ]


def _place(body: Any, tokens: Sequence[str]) -> Path:
    """Return our path for tokens that name what stands in *body*, or what could stand beside it."""
    place = Path()
    for token in tokens:
        if not isinstance(find(body, place), list):
            place = place / token
        elif token == "-":
            place = place / APPEND
        elif _INDEX.fullmatch(token):
            place = place / int(token)
        else:
            raise NotAPatch(f"{token!r} is no index")
    return place


def _addition(body: Any, tokens: Sequence[str], value: Any) -> Edit:
    """Return the edit that RFC 6902 calls `add`: a name that is there is replaced, as is the whole document."""
    place = _place(body, tokens)
    if not tokens or (
        isinstance(find(body, place.parent), dict)
        and tokens[-1] in lookup(body, place.parent)
    ):
        return Update(path=str(place), new_value=value)
    if place.last != APPEND and not isinstance(find(body, place.parent), dict | list):
        raise NotAPatch(f"nothing can be added at {place}")
    return Insert(path=str(place), new_value=value)


def equal(left: Any, right: Any) -> bool:
    """Return whether two values are equal as RFC 6902 says: numbers by value, and true is no number."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(
            equal(left[name], right[name]) for name in left
        )
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(equal, left, right))
    return left == right
