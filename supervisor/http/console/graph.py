"""The graph of a run of a pipeline as a picture: phases as boxes, from left to right, and lines to what needs them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasklore.supervisor.operations.pipelines import PhaseView

#: Phases that are drawn: a picture of more shows nothing.
MOST_DRAWN = 80
#: The size of a box, and what is between boxes, in the units of the picture.
BOX_WIDTH = 160
BOX_HEIGHT = 50
_GAP_X = 38
_GAP_Y = 14
_MARGIN = 3
#: The height of the way of a line past a column of boxes.
_WAY_HEIGHT = 4
#: Characters of a name that a box has room for.
_MOST_LETTERS = 17
#: A place in a column: a phase, or the way of a line from one phase to another past that column.
_Slot = str | tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One phase: its upper left corner, its `label` cut to the width, and its state."""

    phase: str
    label: str
    state: str
    x: int
    y: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphLine:
    """The way from one phase to another that needs it, as the `d` of a path; `is_open` while it is waited for."""

    d: str
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseGraph:
    """Boxes and lines within *width* and *height*."""

    boxes: tuple[Box, ...]
    lines: tuple[GraphLine, ...]
    width: int
    height: int


def draw_graph(phases: Sequence[PhaseView]) -> PhaseGraph | None:
    """Return the picture of *phases*; None of none, or of too many."""
    if not 0 < len(phases) <= MOST_DRAWN:
        return None
    names = {one.phase for one in phases}
    needs = {
        one.phase: [name for name in one.after if name in names and name != one.phase]
        for one in phases
    }
    level = _levels_of(needs)
    heights = _heights_of(needs, level)
    boxes = {
        one.phase: Box(
            phase=one.phase,
            label=_cut(one.phase),
            state=one.status,
            x=_x_of(level[one.phase]),
            y=heights[level[one.phase], one.phase],
        )
        for one in phases
    }
    lines = tuple(
        GraphLine(
            d=_draw_line(boxes[before], boxes[name], level=level, heights=heights),
            is_open=boxes[before].state not in ("done", "skipped"),
        )
        for name, own in needs.items()
        for before in own
    )
    lowest = max(y + _height_of(slot) for (_, slot), y in heights.items())
    return PhaseGraph(
        boxes=tuple(boxes.values()),
        lines=lines,
        width=max(one.x for one in boxes.values()) + BOX_WIDTH + _MARGIN,
        height=lowest + _MARGIN,
    )


def _levels_of(needs: Mapping[str, Sequence[str]]) -> dict[str, int]:
    """Return the column of each phase, behind those of all that it needs."""
    level = dict.fromkeys(needs, 0)
    # Nothing goes in a circle; if it did, the picture would still end.
    for _ in needs:
        behind = {
            name: max((level[one] + 1 for one in own), default=0)
            for name, own in needs.items()
        }
        if behind == level:
            break
        level = behind
    return level


def _heights_of(
    needs: Mapping[str, Sequence[str]], level: Mapping[str, int]
) -> dict[tuple[int, _Slot], int]:
    """Return the y of each slot of each column: phases, and ways of lines past them, that lie on nothing.

    A column is in the order of what its slots come from, so that few lines cross.
    """
    columns: dict[int, dict[_Slot, list[_Slot]]] = {}
    for name, own in needs.items():
        columns.setdefault(level[name], {})[name] = [
            one if level[one] + 1 >= level[name] else (one, name) for one in own
        ]
        for before in own:
            for column in range(level[before] + 1, level[name]):
                is_first = column == level[before] + 1
                columns.setdefault(column, {})[before, name] = [
                    before if is_first else (before, name)
                ]
    heights: dict[tuple[int, _Slot], int] = {}
    for number in sorted(columns):
        slots = columns[number]
        middle = {
            slot: sum(heights.get((number - 1, one), 0) for one in come)
            / max(1, len(come))
            for slot, come in slots.items()
        }
        y = _MARGIN
        for slot in sorted(slots, key=lambda one: middle[one]):
            heights[number, slot] = y
            y += _GAP_Y + _height_of(slot)
    return heights


def _height_of(slot: _Slot) -> int:
    return BOX_HEIGHT if isinstance(slot, str) else _WAY_HEIGHT


def _draw_line(
    before: Box,
    behind: Box,
    *,
    level: Mapping[str, int],
    heights: Mapping[tuple[int, _Slot], int],
) -> str:
    """Return the `d` of the line between two boxes, which goes past the columns between them."""
    x = before.x + BOX_WIDTH
    y = before.y + BOX_HEIGHT // 2
    d = f"M{x} {y}"
    for column in range(level[before.phase] + 1, level[behind.phase]):
        way_y = heights[column, (before.phase, behind.phase)] + _WAY_HEIGHT // 2
        d += _bend(x, y, _x_of(column), way_y)
        x = _x_of(column) + BOX_WIDTH
        y = way_y
        d += f"H{x}"
    return d + _bend(x, y, behind.x, behind.y + BOX_HEIGHT // 2)


def _bend(x: int, y: int, to_x: int, to_y: int) -> str:
    half = max(_GAP_X, to_x - x) // 2
    return f"C{x + half} {y} {to_x - half} {to_y} {to_x} {to_y}"


def _x_of(column: int) -> int:
    return _MARGIN + column * (BOX_WIDTH + _GAP_X)


def _cut(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"
