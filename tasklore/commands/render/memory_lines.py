"""Lines that pictures of memories share: changes with their marks, and ids that are short and unlike."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tasklore.commands.render.screen import printable, styled

Json = Mapping[str, Any]

#: Characters of a plan id that are shown, from its end: ids of one hour begin alike. More where two are alike.
_SHORT_ID = 8

_STYLES = {"+": "green", "-": "red", "~": "yellow"}


def fold_line(text: str, width: int | None = None) -> str:
    """Return *text* without line ends and signs that steer a terminal, cut to *width* characters if given."""
    line = " ".join(printable(text).split())
    if width is None or len(line) <= width:
        return line
    return f"{line[: width - 1].rstrip()}\u2026"


def paint_change(line: Json) -> str:
    """Return a change of a view with its mark in colour, where stdout shows colours."""
    mark = styled(line["mark"], _STYLES.get(line["mark"], ""))
    return f"{mark} {fold_line(line['where'])}: {fold_line(line['what'])}"


def list_changes(plan: Json) -> Iterator[Json]:
    """Yield the changes of a plan, document by document."""
    for lines in plan["lines"].values():
        yield from lines


def shorten_ids(plan_ids: Sequence[str]) -> dict[str, str]:
    """Return for each of *plan_ids* its end, long enough to be unique among them."""
    known = set(plan_ids)
    size = _SHORT_ID
    while len({one[-size:] for one in known}) < len(known):
        size += 1
    return {one: one[-size:] for one in known}


def draw_entry(entry: Json) -> str:
    """Return an entry of a review in one line."""
    place = styled(fold_line(f"{entry['resource']} {entry['path']}"), "dim")
    return f"{place}: {fold_line(entry['text'])}"
