"""Older Markdown memories and the documents that are made of them."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.render.memory_lines import fold_line
from tasklore.commands.render.screen import printable, styled
from tasklore.commands.render.words import count_of

_STYLES = {"+": "green", "-": "red"}


def draw(view: Mapping[str, Any]) -> str:
    """Return the document or the difference of each file, and the lines that were kept as they are written."""
    return "\n".join(line for one in view["files"] for line in _lines(one))


def code_of(view: Mapping[str, Any]) -> int:
    """Return 1 when a file was left."""
    return FAILED if any(one["error"] is not None for one in view["files"]) else OK


def _lines(file: Mapping[str, Any]) -> Iterator[str]:
    name = styled(printable(file["file"]), "bold")
    if file["error"] is not None:
        yield f"{name}: {styled('left', 'red')}: {printable(file['error'])}"
        return
    if file["state"] == "changes":
        for line in file["diff"]:
            yield styled(printable(line), _STYLES.get(line[:1], ""))
    elif file["state"] == "same":
        yield f"{name}: {printable(file['resource'])} is that already"
    else:
        entries = count_of(file["entries"], "entry")
        yield f"{name} -> {printable(file['resource'])}: {entries}"
    for one in file["unparsed"]:
        where = f"line {one['line']} is kept at {one['kept_at']} as it is written ({one['why']})"
        kept = fold_line(f"{where}: {one['text']}")
        yield f"  {styled(kept, 'yellow')}"
