"""What leads from one body to another, as changes in the order of their execution."""

from collections.abc import Iterator
from difflib import SequenceMatcher

from pydantic import JsonValue

from tasklore.memory.documents.edits import ABSENT, Change, apply_changes
from tasklore.memory.documents.items import Body
from tasklore.memory.documents.paths import Path
from tasklore.memory.documents.storage.history import json_bytes

_ROOT = Path()


def differences(
    before: JsonValue, after: JsonValue, path: Path = _ROOT
) -> Iterator[Change]:
    """Yield few changes that lead from *before* to *after*: names by their name, items of lists by their value.

    Only the order of names may differ afterwards.
    """
    if isinstance(before, dict) and isinstance(after, dict):
        for name in [name for name in before if name not in after]:
            yield Change(path / name, before[name], ABSENT)
        for name, value in after.items():
            if name in before:
                yield from differences(before[name], value, path / name)
            else:
                yield Change(path / name, ABSENT, value)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _in_lists(before, after, path)
    elif json_bytes(before) != json_bytes(after):
        yield Change(path, before, after)


def _in_lists(
    before: list[JsonValue], after: list[JsonValue], path: Path
) -> Iterator[Change]:
    """Yield the changes of one list, from its end to its front, so that no index shifts before its turn."""
    matcher = SequenceMatcher(
        None,
        [json_bytes(item) for item in before],
        [json_bytes(item) for item in after],
        False,
    )
    for word, first, last, start, end in reversed(matcher.get_opcodes()):
        if word == "equal":
            continue
        paired = min(last - first, end - start)
        for index in range(last - 1, first + paired - 1, -1):
            yield Change(path / index, before[index], ABSENT)
        for item in reversed(after[start + paired : end]):
            yield Change(path / (first + paired), ABSENT, item)
        for offset in range(paired - 1, -1, -1):
            yield from differences(
                before[first + offset], after[start + offset], path / (first + offset)
            )


def replacement(before: Body, after: Body) -> tuple[Change, ...]:
    """Return the changes that put *after* in the place of *before* to the byte, name by name at the top."""
    gone = [
        Change(Path((name,)), value, ABSENT)
        for name, value in before.items()
        if name not in after
    ]
    changes = [*gone, *_top_places(before, after)]
    if json_bytes(apply_changes(before, changes)) == json_bytes(after):
        return tuple(changes)
    # The names stand in another order: all of them are taken out and put in again.
    out = [Change(Path((name,)), value, ABSENT) for name, value in before.items()]
    return (
        *out,
        *(Change(Path((name,)), ABSENT, value) for name, value in after.items()),
    )


def _top_places(before: Body, after: Body) -> Iterator[Change]:
    names = list(after)
    for place, name in enumerate(names):
        if name not in before:
            ahead = next((later for later in names[place:] if later in before), None)
            yield Change(Path((name,)), ABSENT, after[name], ahead)
        elif json_bytes(before[name]) != json_bytes(after[name]):
            yield Change(Path((name,)), before[name], after[name])
