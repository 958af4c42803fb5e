"""The documents of a memory, entry by entry."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.render.memory_lines import fold_line
from tasklore.commands.render.screen import printable, styled


def draw(view: Mapping[str, Any]) -> str:
    """Return the documents with their revisions, and each entry with its notes."""
    documents = view["documents"]
    if not any(one["revision"] for one in documents):
        return (
            f"Nothing is stored about {printable(view['user'])} yet; `tasklore memory "
            "tell` says something about a person."
        )
    return "\n".join(_lines(documents))


def _lines(documents: list[Mapping[str, Any]]) -> Iterator[str]:
    for document in documents:
        about = f"revision {document['revision']}"
        if not document["entries"]:
            about = f"{about}, holds nothing"
        yield f"{styled(printable(document['resource']), 'bold')}  {styled(about, 'dim')}"
        for entry in document["entries"]:
            notes = ", ".join(map(fold_line, entry["notes"]))
            shown = f"  {styled(f'({notes})', 'yellow')}" if notes else ""
            place = styled(fold_line(entry["path"]), "dim")
            yield f"  {place}: {fold_line(entry['text'])}{shown}"
