"""Limits that hold for every edit of a document: its size, its shape, its metadata.

Only differences from the body before are checked. Sections (objects) and the lists in them keep their kind and
where they are; an item of a list keeps the kinds of its fields.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from json import dumps
from math import isfinite

from pydantic import JsonValue

from tasklore.contracts.errors import EditRefused
from tasklore.memory.documents.changes import Change, same
from tasklore.memory.documents.items import FIELDS, METADATA, is_item
from tasklore.memory.documents.paths import ABSENT, Absent, Found, Path, Step, step_into


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentLimits:
    """How much a document may hold; each is far above what people tell about themselves."""

    #: Bytes of a document as compact JSON in UTF-8: it is read and written whole with every plan.
    max_bytes: int = 256 * 1024
    #: Lists and objects within each other, the body itself being the first.
    max_depth: int = 12
    #: Entries of one list or object.
    max_items: int = 2_000
    #: Characters of one text.
    max_text: int = 2_000
    #: Characters of one name.
    max_name: int = 200
    #: The largest whole number, of either sign: every JSON reader keeps it exactly (RFC 7493).
    max_number: int = 2**53 - 1


LIMITS = DocumentLimits()

#: The fields without which nothing says what an item is.
_NAMING = ("item", "display")
#: Fields of an item that may be null.
_NULLABLE = ("expiry",)

_SURROGATE = re.compile(r"[\ud800-\udfff]")


def check(
    before: JsonValue,
    after: JsonValue,
    changes: Sequence[Change],
    limits: DocumentLimits = LIMITS,
    *,
    size: int | None = None,
) -> None:
    """Raise when *changes*, which led from *before* to *after*, are not allowed.

    *size* is the bytes of *before* as compact JSON, or more, when they are known: then *after* is measured only where
    it comes near the limit, else whenever it grows.

    Raises:
        EditRefused: `protected`, `value`, `depth`, `type` or `size`; the message names the place and the cure.
    """
    _check_metadata(before, after)
    _check_values(before, after, limits)
    for change in changes:
        _check_shape(change)
    growth = growth_of(changes)
    if growth > 0 and (size is None or size + growth > limits.max_bytes):
        _check_size(after, limits)


def check_document(body: JsonValue, limits: DocumentLimits = LIMITS) -> int:
    """Check a whole document, such as one to be imported, and return its bytes as compact JSON.

    Raises:
        EditRefused: `value`, `depth` or `size`.
    """
    _check_values(ABSENT, body, limits)
    return _check_size(body, limits)


def size_of(value: JsonValue) -> int:
    """Return the bytes of *value* as compact JSON in UTF-8."""
    return len(
        dumps(value, ensure_ascii=False, separators=(",", ":")).encode(
            "utf-8", "surrogatepass"
        )
    )


def growth_of(changes: Sequence[Change]) -> int:
    """Return by how many bytes *changes* make a document longer: never too few, and at most one too many a change."""
    return sum(_growth(change) for change in changes)


def _growth(change: Change) -> int:
    """Return the bytes put in less those taken out."""
    added = 0 if isinstance(change.after, Absent) else size_of(change.after)
    removed = 0 if isinstance(change.before, Absent) else size_of(change.before)
    name = size_of(change.path.last) + 1 if isinstance(change.path.last, str) else 0
    if change.before is ABSENT:
        return added + name + 1
    return -removed - name if change.after is ABSENT else added - removed


def _check_size(body: JsonValue, limits: DocumentLimits) -> int:
    """Measure *body*."""
    size = size_of(body)
    if size > limits.max_bytes:
        message = f"the document would have {size} bytes of the {limits.max_bytes} it may have; delete something first"
        raise EditRefused(message, "size")
    return size


def _check_metadata(before: JsonValue, after: JsonValue) -> None:
    """Compare what documents know about themselves."""
    if not same(step_into(before, METADATA), step_into(after, METADATA)):
        raise EditRefused(
            f"{METADATA!r} is written with the document alone; edit what stands beside it",
            "protected",
        )


@dataclass(frozen=True, slots=True)
class _Visit:
    """One value that may differ from the one before, and its place."""

    steps: tuple[Step, ...]
    before: Found
    after: JsonValue


def _check_values(before: Found, after: JsonValue, limits: DocumentLimits) -> None:
    """Refuse new values that JSON cannot hold, that are too deep, too long or too many."""
    visits = [_Visit((), before, after)]
    seen = 0
    while visits:
        visit = visits.pop()
        seen += 1
        # No value takes less than a byte, and one that holds the same part many times over is met as often.
        if seen > limits.max_bytes:
            raise EditRefused(
                f"the document would have more than {limits.max_bytes} bytes; insert less",
                "size",
            )
        if isinstance(visit.after, dict | list):
            _check_container(visit, limits)
            visits.extend(_differing(visit))
        else:
            _check_scalar(visit.steps, visit.after, limits)


def _differing(visit: _Visit) -> Iterator[_Visit]:
    """Yield what stands in a container and is not the very same that stood there before."""
    before = visit.before
    after = visit.after
    if isinstance(after, dict):
        for name, child in after.items():
            old = step_into(before, name)
            if old is not child:
                yield _Visit((*visit.steps, name), old, child)
    elif isinstance(after, list):
        known = (
            {id(child) for child in before} if isinstance(before, list) else frozenset()
        )
        aligned = isinstance(before, list) and len(before) == len(after)
        for index, child in enumerate(after):
            if id(child) not in known:
                yield _Visit(
                    (*visit.steps, index),
                    step_into(before, index) if aligned else ABSENT,
                    child,
                )


def _check_container(visit: _Visit, limits: DocumentLimits) -> None:
    """Look at a list or an object, without what stands in it."""
    after = visit.after
    if not isinstance(after, dict | list):
        return
    if len(visit.steps) >= limits.max_depth:
        raise EditRefused(
            f"{_at(visit.steps)} is deeper than {limits.max_depth} levels; make it flatter",
            "depth",
        )
    had = len(visit.before) if isinstance(visit.before, dict | list) else 0
    if len(after) > max(limits.max_items, had):
        message = f"{_at(visit.steps)} would have {len(after)} entries of at most {limits.max_items}; delete some first"
        raise EditRefused(message, "size")
    if isinstance(after, dict):
        for name in after:
            _check_name(visit.steps, name, limits)


def _check_name(steps: tuple[Step, ...], name: object, limits: DocumentLimits) -> None:
    """Look at one name of an object; in JSON it is a text."""
    if not isinstance(name, str):
        raise EditRefused(
            f"{_at(steps)} has the name {name!r}, which is not a text; put it in quotes",
            "value",
        )
    if len(name) > limits.max_name:
        raise EditRefused(
            f"a name in {_at(steps)} has more than {limits.max_name} characters; shorten it",
            "size",
        )
    if _SURROGATE.search(name):
        raise EditRefused(
            f"a name in {_at(steps)} holds half a character (a lone surrogate); leave it out",
            "value",
        )


def _check_scalar(
    steps: tuple[Step, ...], value: object, limits: DocumentLimits
) -> None:
    """Look at a value that holds nothing; `object`, because code may hand in what JSON cannot hold."""
    if isinstance(value, str):
        if len(value) > limits.max_text:
            message = f"{_at(steps)} has {len(value)} characters of at most {limits.max_text}; shorten it"
            raise EditRefused(message, "size")
        if _SURROGATE.search(value):
            raise EditRefused(
                f"{_at(steps)} holds half a character (a lone surrogate); leave it out",
                "value",
            )
    elif isinstance(value, int):
        if abs(value) > limits.max_number:
            raise EditRefused(
                f"{_at(steps)} is a number beyond {limits.max_number}; write it as text",
                "value",
            )
    elif isinstance(value, float):
        if not isfinite(value):
            raise EditRefused(
                f"{_at(steps)} is {value}, which JSON has not; use a finite number or null",
                "value",
            )
    elif value is not None:
        raise EditRefused(
            f"{_at(steps)} is of type {type(value).__name__}, which JSON has not; use text",
            "value",
        )


def _check_shape(change: Change) -> None:
    """Refuse a change that removes a list or a section, or replaces a value by one of another kind."""
    steps = change.path.steps
    if isinstance(change.before, Absent):
        return
    in_item = any(isinstance(step, int) for step in steps)
    if not isinstance(change.after, Absent):
        _check_kinds(steps, change.before, change.after, in_item=in_item)
    elif not in_item and _holds_list(change.before):
        raise EditRefused(
            f"{_at(steps)} is a place for items and stays; delete what is in its lists",
            "type",
        )
    elif in_item and steps[-1] in _NAMING:
        raise EditRefused(
            f"{_at(steps)} says what the item is; delete the whole item, or update this",
            "type",
        )


def _check_kinds(
    steps: tuple[Step, ...], before: JsonValue, after: JsonValue, *, in_item: bool
) -> None:
    """Compare the kinds of the values before and after."""
    old = _kind(before)
    new = _kind(after)
    if old != new and not _may_become(steps, before, after, in_item=in_item):
        raise EditRefused(
            f"{_at(steps)} is {old} and cannot become {new}; write {old}", "type"
        )
    if not isinstance(before, dict) or not isinstance(after, dict):
        return
    in_item = in_item or is_item(before)
    if is_item(before) and not is_item(after):
        raise EditRefused(
            f"{_at(steps)} is an item and would be none; give it 'item' and 'display'",
            "type",
        )
    for name, child in before.items():
        if name in after:
            _check_kinds((*steps, name), child, after[name], in_item=in_item)
        elif not in_item and _holds_list(child):
            raise EditRefused(
                f"{_at((*steps, name))} is a place for items and stays; leave it in",
                "type",
            )


def _may_become(
    steps: tuple[Step, ...], before: JsonValue, after: JsonValue, *, in_item: bool
) -> bool:
    """Return whether a value may become one of another kind: null may, and a value that may be null again."""
    if before is None:
        return not in_item or not isinstance(after, dict | list)
    if after is None and not isinstance(before, dict | list):
        return not (in_item and steps[-1] in FIELDS) or steps[-1] in _NULLABLE
    return False


def _holds_list(value: JsonValue) -> bool:
    """Return whether *value* is a list or a section with one in it; the lists of an item are its own."""
    rest = [value]
    while rest:
        holder = rest.pop()
        if isinstance(holder, list):
            return True
        if isinstance(holder, dict) and not is_item(holder):
            rest.extend(holder.values())
    return False


def _kind(value: JsonValue) -> str:
    """Return what a person calls the type of *value*."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true or false"
    if isinstance(value, int | float):
        return "a number"
    return (
        "a text"
        if isinstance(value, str)
        else "a list"
        if isinstance(value, list)
        else "an object"
    )


def _at(steps: tuple[Step, ...]) -> str:
    """Return the place for a message."""
    return repr(str(Path(steps)))
