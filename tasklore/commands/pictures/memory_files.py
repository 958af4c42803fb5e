"""What became of files that were put in the place of documents."""

from collections.abc import Mapping
from typing import Any

from tasklore.commands.exits import OK, USAGE
from tasklore.commands.render.screen import printable, styled


def draw(view: Mapping[str, Any]) -> str:
    """Return a line for each file."""
    return "\n".join(map(_draw_file, view["files"]))


def code_of(view: Mapping[str, Any]) -> int:
    """Return 2 when one was refused; the others are stored."""
    return USAGE if any(one["error"] is not None for one in view["files"]) else OK


def _draw_file(file: Mapping[str, Any]) -> str:
    name = printable(file["file"])
    if file["error"] is not None:
        return f"{name}: {styled('refused', 'red')}: {printable(file['error'])}"
    become = ", ".join(
        f"{one} is at revision {number}" for one, number in file["revisions"].items()
    )
    return f"{name}: {printable(become or 'already stored like this')}"
