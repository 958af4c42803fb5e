"""The graph of a run of a pipeline as a picture: phases as boxes, from left to right, and lines to what needs them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tasklore.supervisor.operations.pipelines import PhaseTold

#: Phases that are drawn: a picture of more shows nothing.
MOST_DRAWN = 80
#: The size of a box, and what is between boxes, in the units of the picture.
BOX_WIDTH = 168
BOX_HEIGHT = 50
_GAP_X = 44
_GAP_Y = 16
_MARGIN = 3
#: Characters of a name that a box has room for.
_MOST_LETTERS = 19


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One phase: its upper left corner, its `label` cut to the width, and its state."""

    phase: str
    label: str
    state: str
    x: int
    y: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The way from one phase to another that needs it, as the `d` of a path; `is_open` while it is waited for."""

    d: str
    is_open: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """Boxes and lines within *width* and *height*."""

    boxes: tuple[Box, ...]
    lines: tuple[Line, ...]
    width: int
    height: int


def draw_graph(phases: Sequence[PhaseTold]) -> Graph | None:
    """Return the picture of *phases*; None of none, or of too many."""
    if not 0 < len(phases) <= MOST_DRAWN:
        return None
    needs = {
        one.phase: [name for name in one.after if name != one.phase] for one in phases
    }
    columns = _columns_of(needs)
    places = _places_of(columns, needs)
    boxes = {
        one.phase: Box(
            phase=one.phase,
            label=_cut(one.phase),
            state=one.status,
            x=_MARGIN + places[one.phase][0] * (BOX_WIDTH + _GAP_X),
            y=_MARGIN + places[one.phase][1] * (BOX_HEIGHT + _GAP_Y),
        )
        for one in phases
    }
    lines = tuple(
        _line_between(boxes[before], boxes[name])
        for name, own in needs.items()
        for before in own
        if before in boxes
    )
    return Graph(
        boxes=tuple(boxes.values()),
        lines=lines,
        width=max(one.x for one in boxes.values()) + BOX_WIDTH + _MARGIN,
        height=max(one.y for one in boxes.values()) + BOX_HEIGHT + _MARGIN,
    )


def _columns_of(needs: Mapping[str, Sequence[str]]) -> list[list[str]]:
    """Return the phases by columns, each behind all that it needs."""
    level = dict.fromkeys(needs, 0)
    # Nothing goes in a circle; if it did, the picture would still end.
    for _ in needs:
        behind = {
            name: max((level[one] + 1 for one in own if one in level), default=0)
            for name, own in needs.items()
        }
        if behind == level:
            break
        level = behind
    used = sorted(set(level.values()))
    return [[name for name in needs if level[name] == one] for one in used]


def _places_of(
    columns: Sequence[Sequence[str]], needs: Mapping[str, Sequence[str]]
) -> dict[str, tuple[int, int]]:
    """Return column and row of each phase: a column is in the order of what it needs, so that few lines cross."""
    places: dict[str, tuple[int, int]] = {}
    for number, column in enumerate(columns):

        def height(name: str) -> float:
            rows = [places[one][1] for one in needs[name] if one in places]
            return sum(rows) / len(rows) if rows else 0.0

        for row, name in enumerate(sorted(column, key=height)):
            places[name] = (number, row)
    return places


def _line_between(before: Box, behind: Box) -> Line:
    begin_x = before.x + BOX_WIDTH
    begin_y = before.y + BOX_HEIGHT // 2
    end_y = behind.y + BOX_HEIGHT // 2
    bend = max(_GAP_X, behind.x - begin_x) // 2
    return Line(
        d=f"M{begin_x} {begin_y}C{begin_x + bend} {begin_y} {behind.x - bend} {end_y} {behind.x} {end_y}",
        is_open=before.state not in ("done", "skipped"),
    )


def _cut(name: str) -> str:
    return name if len(name) <= _MOST_LETTERS else f"{name[: _MOST_LETTERS - 1]}…"
