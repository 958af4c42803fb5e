"""Documents and their changes as lines of text: one line each, whatever was stored."""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from pydantic import JsonValue

from tasklore.memory.documents.changes import same
from tasklore.memory.documents.edits import Change
from tasklore.memory.documents.items import (
    METADATA,
    Body,
    Item,
    is_item,
    leaf_text,
    leaf_values,
)
from tasklore.memory.documents.paths import ABSENT, Found, Path
from tasklore.memory.documents.storage.history import json_bytes

Mark = Literal["+", "-", "~"]


class ChangeLine(NamedTuple):
    """One thing that changed, for people: `+` came, `-` went, `~` became another; where, and what."""

    mark: Mark
    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.mark} {self.where}: {self.what}"


def one_line(text: str) -> str:
    """Return *text* without line ends, its blanks one each."""
    return " ".join(text.split())


def value_line(value: JsonValue) -> str:
    """Return what a document holds somewhere as one line."""
    return one_line(leaf_text(value)) or "nothing"


def change_lines(changes: Iterable[Change]) -> Iterator[ChangeLine]:
    """Yield a line for each entry that *changes* added, removed or replaced; metadata is left out.

    A removed entry is named by its place before, an added one by its place after.
    """
    for change in changes:
        if change.path.steps and change.path.steps[0] == METADATA:
            continue
        lines = list(_lines(change.path, change.before, change.after))
        yield from lines
        if not lines and change.before is not ABSENT and change.after is not ABSENT:
            yield ChangeLine("~", str(change.path), "in another order")
        elif not lines:
            # An empty list was added or removed.
            yield ChangeLine(
                "+" if change.before is ABSENT else "-", str(change.path), "nothing"
            )


def body_lines(before: Body, after: Body) -> Iterator[ChangeLine]:
    """Yield what `change_lines` would of whatever led from one whole document to another."""
    bare = [
        {name: value for name, value in body.items() if name != METADATA}
        for body in (before, after)
    ]
    return _lines(Path(), *bare)


def _lines(path: Path, before: Found, after: Found) -> Iterator[ChangeLine]:
    if before is ABSENT or after is ABSENT:
        mark: Mark
        mark, value = ("+", after) if before is ABSENT else ("-", before)
        for inner, leaf in leaf_values({} if value is ABSENT else {"": value}):
            yield ChangeLine(
                mark, str(Path((*path.steps, *inner.steps[1:]))), value_line(leaf)
            )
    elif path.steps and _is_entry(before) and _is_entry(after):
        yield ChangeLine("~", str(path), _becoming(before, after))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _in_lists(path, before, after)
    elif (
        isinstance(before, dict)
        and isinstance(after, dict)
        and is_item(before) is is_item(after)
    ):
        for name in dict.fromkeys([*before, *after]):
            held = before.get(name, ABSENT)
            holds = after.get(name, ABSENT)
            if not same(held, holds):
                yield from _lines(path / name, held, holds)
    else:
        yield from _lines(path, before, ABSENT)
        yield from _lines(path, ABSENT, after)


def _in_lists(
    path: Path, before: list[JsonValue], after: list[JsonValue]
) -> Iterator[ChangeLine]:
    """Yield the entries that left a list, that changed under the same name, and that were added."""
    came = dict.fromkeys(_beyond(after, before))
    by_name = {_name(after[index]): index for index in reversed(came)}
    for index in _beyond(before, after):
        successor = by_name.pop(_name(before[index]), None)
        if successor is None:
            yield from _lines(path / index, before[index], ABSENT)
        else:
            del came[successor]
            yield from _lines(path / index, before[index], after[successor])
    for index in came:
        yield from _lines(path / index, ABSENT, after[index])


def _beyond(values: list[JsonValue], others: list[JsonValue]) -> list[int]:
    """Return the indexes of *values* that are not, or less often, in *others*."""
    left = Counter(map(json_bytes, others))
    beyond = []
    for index, key in enumerate(map(json_bytes, values)):
        if left[key]:
            left[key] -= 1
        else:
            beyond.append(index)
    return beyond


def _becoming(before: Found, after: Found) -> str:
    """Return what one entry was and is; the fields that differ where its text is the same."""
    was = _text(before)
    now = _text(after)
    if was != now or not isinstance(before, dict) or not isinstance(after, dict):
        return f"{was} -> {now}"
    fields = [
        f"{name} {_text(before.get(name, ABSENT))} -> {_text(after.get(name, ABSENT))}"
        for name in dict.fromkeys([*before, *after])
        if not same(before.get(name, ABSENT), after.get(name, ABSENT))
    ]
    return one_line(f"{now}, {', '.join(fields)}")


def _text(value: Found) -> str:
    return "nothing" if value is ABSENT else value_line(value)


def _name(value: JsonValue) -> str:
    """Return by what an entry of a list is known when it changes."""
    item = Item.read(value)
    return item.item if item is not None else value_line(value)


def _is_entry(value: Found) -> bool:
    """Tell whether people see *value* as one thing: an item, a text, a number."""
    return value is not ABSENT and (
        not isinstance(value, dict | list) or is_item(value)
    )
