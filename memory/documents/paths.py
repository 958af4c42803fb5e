"""Where something stands in a document: `food.likes[2]`, `food["odd key"]`, `food.likes[-]`, `$['food'].likes[2]`.

A path names one place. How it is spelled is `tasklore.memory.documents.path_text`'s; here it is looked up.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from itertools import chain, islice
from typing import Final, TypeAlias

from pydantic import JsonValue

from tasklore.contracts.edits import MAX_PATH
from tasklore.contracts.errors import InvalidPath, UnknownPath
from tasklore.memory.documents.path_text import APPEND, Append, Step, read, spell

__all__ = [
    "ABSENT", "APPEND", "Absent", "Append", "Found", "Path", "Step", "exists", "find", "lookup", "nearest", "parse",
    "place_name", "resolve", "step_into",
]  # fmt: skip


class Absent(Enum):
    """Says that nothing stands at a place; null is something."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT

#: What stands at a place, or ABSENT.
Found: TypeAlias = JsonValue | Absent

#: Existing paths that an error looks at for the nearest one, and characters of each that are compared: a few
#: milliseconds at worst. What differs further back is not told apart.
_LOOKED_AT = 200
_COMPARED = 100
#: Digits of a name that is taken for an index.
_DIGITS = 9


@dataclass(frozen=True, slots=True)
class Path:
    """A place in a document, as the steps from its root; no steps are the whole document."""

    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        """Return the one canonical spelling, printable and on one line; `parse` reads it back."""
        return spell(self.steps)

    @property
    def parent(self) -> "Path":
        """The place that holds this one.

        Raises:
            InvalidPath: this is the root.
        """
        if not self.steps:
            raise InvalidPath(
                "'$' is the whole document and stands in nothing; name a place in it"
            )
        return Path(self.steps[:-1])

    @property
    def last(self) -> Step | None:
        """The last step, or None at the root."""
        return self.steps[-1] if self.steps else None

    def __truediv__(self, step: Step) -> "Path":
        """Return the place one *step* further in."""
        return Path((*self.steps, step))


def parse(text: str, *, limit: int = MAX_PATH) -> Path:
    """Read a path of at most *limit* characters, in either dialect.

    Raises:
        InvalidPath: it cannot be read, or it selects more than one place; the message says at which character.
    """
    if len(text) > limit:
        raise InvalidPath(
            f"a path of {len(text)} characters is longer than the {limit} it may have; name one place"
        )
    return Path(read(text))


def step_into(value: Found, step: Step) -> Found:
    """Return what stands one *step* into *value*, or ABSENT."""
    if isinstance(value, dict) and isinstance(step, str):
        return value.get(step, ABSENT)
    if (
        isinstance(value, list)
        and isinstance(step, int)
        and -len(value) <= step < len(value)
    ):
        return value[step]
    return ABSENT


def find(body: JsonValue, path: Path) -> Found:
    """Return what stands at *path*, or ABSENT."""
    value: Found = body
    for step in path.steps:
        value = step_into(value, step)
        if isinstance(value, Absent):
            break
    return value


def exists(body: JsonValue, path: Path) -> bool:
    """Return whether something stands at *path*."""
    return find(body, path) is not ABSENT


def place_name(path: Path, value: JsonValue) -> str:
    """Return the name under which it is noted that *value* at *path* was read: an item's own, since indices shift."""
    item = value.get("item") if isinstance(value, dict) else None
    return str(path.parent / item) if isinstance(item, str) and item else str(path)


def lookup(body: JsonValue, path: Path) -> JsonValue:
    """Return what stands at *path*.

    Raises:
        UnknownPath: nothing does; the message names the nearest path that exists.
    """
    value = find(body, path)
    if isinstance(value, Absent):
        raise UnknownPath(_unknown(body, path))
    return value


def resolve(body: JsonValue, path: Path) -> Path:
    """Return *path* with every index counted from the front.

    Raises:
        UnknownPath: nothing stands there; the message names the nearest path that exists.
    """
    value: Found = body
    steps: list[Step] = []
    for step in path.steps:
        if isinstance(value, list) and isinstance(step, int) and step < 0:
            steps.append(step + len(value))
        else:
            steps.append(step)
        value = step_into(value, step)
    if isinstance(value, Absent):
        raise UnknownPath(_unknown(body, path))
    return Path(tuple(steps))


def nearest(body: JsonValue, path: Path) -> Path:
    """Return the path that *path* probably means: an item of a list, one that reads like it, or what would hold it."""
    way = _way(body, path)
    if way == path:
        return path
    step = path.steps[len(way.steps)]
    rest = path.steps[len(way.steps) + 1 :]
    holder = lookup(body, way)
    if isinstance(holder, list):
        item = _item_meant(holder, step)
        meant = way if item is None else way / item
        return (
            Path((*meant.steps, *rest))
            if exists(body, Path((*meant.steps, *rest)))
            else meant
        )
    around = chain(_below(holder, way), _below(body, Path()))
    spelled = {str(place)[:_COMPARED]: place for place in islice(around, _LOOKED_AT)}
    close = get_close_matches(str(path)[:_COMPARED], spelled, n=1, cutoff=0.6)
    return spelled[close[0]] if close else way


def _item_meant(holder: list[JsonValue], step: Step) -> int | None:
    """Return the index that *step* means in a list: a number as a name, one beyond an end; None when it means none."""
    if isinstance(step, str) and step.isdecimal() and len(step) <= _DIGITS:
        step = int(step)
    if not isinstance(step, int) or not holder:
        return None
    return max(0, min(step if step >= 0 else step + len(holder), len(holder) - 1))


def _way(body: JsonValue, path: Path) -> Path:
    """Return the longest beginning of *path* that exists."""
    value: Found = body
    for depth, step in enumerate(path.steps):
        value = step_into(value, step)
        if isinstance(value, Absent):
            return Path(path.steps[:depth])
    return path


def _entries(value: JsonValue) -> Iterator[tuple[str | int, JsonValue]]:
    """Return an iterator over what *value* holds, by name or index."""
    if isinstance(value, dict):
        return iter(value.items())
    return iter(enumerate(value)) if isinstance(value, list) else iter(())


def _below(value: JsonValue, path: Path) -> Iterator[Path]:
    """Yield the paths of all that *value*, which stands at *path*, holds."""
    level = [(path, value)]
    while level:
        further: list[tuple[Path, JsonValue]] = []
        for place, holder in level:
            for step, child in _entries(holder):
                further.append((place / step, child))
                yield further[-1][0]
        level = further


def _unknown(body: JsonValue, path: Path) -> str:
    """Return the error for a missing *path*, with the nearest one."""
    way = _way(body, path)
    step = path.steps[len(way.steps)]
    value = lookup(body, way)
    if isinstance(step, Append):
        why = "[-] is where to insert, nothing stands there yet"
    elif isinstance(value, list):
        why = f"{str(way)!r} is a list of {len(value)}, whose items have an [index]"
    elif isinstance(value, dict):
        why = f"{str(way)!r} has names" + (
            f", none is {step!r}" if isinstance(step, str) else " and no index"
        )
    else:
        why = f"{str(way)!r} holds nothing further"
    return (
        f"there is no {str(path)!r}: {why}; the nearest is {str(nearest(body, path))!r}"
    )
