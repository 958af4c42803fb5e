"""Follows one place of a document back through its log, wherever edits moved it."""

from collections.abc import Sequence
from typing import Literal

from tasklore.memory.documents.edits import ABSENT, Change
from tasklore.memory.documents.paths import Path, Step, find
from tasklore.memory.documents.storage.history import LogEntry

#: What a change did to a place: nothing, something to it, or it put it there.
_Done = Literal["nothing", "touched", "made"]


def touching(log: Sequence[LogEntry], path: Path) -> tuple[str, ...]:
    """Return the ids of the plans of *log* (oldest first) that touched the value now at *path*, newest first.

    They changed it, something in it or something that it is in. What an undo brought back is followed to where it was
    taken out, and further back from there. *path* counts every index from the front.
    """
    places = {entry.plan_id: place for place, entry in enumerate(log)}
    found: dict[str, None] = {}
    steps = path.steps
    place = len(log) - 1
    ended = None
    while place >= 0:
        entry = log[place]
        changes = entry.changes[:ended]
        place = place - 1
        ended = None
        for number in range(len(changes) - 1, -1, -1):
            done, steps = _before(steps, changes[number])
            if done != "nothing":
                found[entry.plan_id] = None
            if done == "made":
                back = _find_removal(log, places, entry, number)
                if back is None:
                    return tuple(found)
                place, ended = back
                source = log[place]
                found[source.plan_id] = None
                depth = len(changes[number].path.steps)
                steps = (*source.changes[ended].path.steps, *steps[depth:])
                break
    return tuple(found)


def _before(steps: tuple[Step, ...], change: Change) -> tuple[_Done, tuple[Step, ...]]:
    """Return what *change* did to the place *steps*, and where that was before it."""
    where = change.path.steps
    if steps[: len(where)] == where:
        if change.before is ABSENT:
            return "made", steps
        if change.after is not ABSENT:
            was_there = find(change.before, Path(steps[len(where) :])) is not ABSENT
            return "touched" if was_there else "made", steps
    elif where[: len(steps)] == steps:
        return "touched", steps
    return "nothing", _unshift(steps, change)


def _unshift(steps: tuple[Step, ...], change: Change) -> tuple[Step, ...]:
    """Return where *steps* was before *change* put something into the same list, or took something out of it."""
    depth = len(change.path.steps) - 1
    if len(steps) <= depth or steps[:depth] != change.path.steps[:depth]:
        return steps
    index = change.path.steps[depth]
    mine = steps[depth]
    if not isinstance(index, int) or not isinstance(mine, int):
        return steps
    shift = 0
    if change.before is ABSENT and index < mine:
        shift = -1
    elif change.after is ABSENT and index <= mine:
        shift = 1
    return (*steps[:depth], mine + shift, *steps[depth + 1 :])


def _find_removal(
    log: Sequence[LogEntry], places: dict[str, int], entry: LogEntry, number: int
) -> tuple[int, int] | None:
    """Return which change of which entry took out what change *number* of *entry*, an undo, brought back.

    None when it brought back nothing. An undo has the changes of its plan, the last one first.
    """
    place = places.get(entry.undoes or "")
    if place is None:
        return None
    changes = log[place].changes
    if len(changes) != len(entry.changes):
        return None
    taken = len(changes) - 1 - number
    return (place, taken) if changes[taken].after is ABSENT else None
