"""Documents and their changes as lines of text for a terminal."""

from collections.abc import Sequence

from pydantic import JsonValue

from tasklore.commands.render.screen import printable, styled
from tasklore.memory.documents.change_lines import (
    ChangeLine,
    body_lines,
    change_lines,
)
from tasklore.memory.documents.items import leaf_text

__all__ = ["body_lines", "change_lines", "one_line", "paint", "shorten", "value_line"]

#: Characters of a plan id that are shown, from its end: ids of one hour begin alike. More where two are alike.
SHORT_ID = 8

_STYLES = {"+": "green", "-": "red", "~": "yellow"}


def paint(line: ChangeLine) -> str:
    """Return *line* with its mark in colour, where stdout shows colours."""
    return f"{styled(line.mark, _STYLES[line.mark])} {printable(line.where)}: {printable(line.what)}"


def one_line(text: str, width: int | None = None) -> str:
    """Return *text* without line ends and what would steer a terminal, cut to *width* characters when that is given."""
    line = " ".join(printable(text).split())
    return (
        line
        if width is None or len(line) <= width
        else f"{line[: width - 1].rstrip()}\u2026"
    )


def value_line(value: JsonValue) -> str:
    """Return what a document holds somewhere as one line."""
    return one_line(leaf_text(value)) or "nothing"


def shorten(plan_ids: Sequence[str]) -> dict[str, str]:
    """Return for each of *plan_ids* its end, long enough to be unique among them."""
    known = set(plan_ids)
    size = SHORT_ID
    while len({one[-size:] for one in known}) < len(known):
        size += 1
    return {one: one[-size:] for one in known}
