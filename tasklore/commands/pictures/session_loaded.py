"""The import of a session: entries that were loaded, that are past their time, and that were refused."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.exits import OK, USAGE
from tasklore.commands.render.words import count_of


def draw(view: Mapping[str, Any]) -> str:
    """Return how many entries there are now, and which are not."""
    return "\n".join(_lines(view))


def code_of(view: Mapping[str, Any]) -> int:
    """Return the exit code: a file with an entry that cannot be taken is to be mended."""
    return USAGE if view["refused"] else OK


def _lines(view: Mapping[str, Any]) -> Iterator[str]:
    yield f"{count_of(view['loaded'], 'entry')} in session {view['session_id']}."
    if view["expired"]:
        over = count_of(len(view["expired"]), "entry")
        yield f"{over} omitted, as they have expired:"
        yield from (f"  {key}" for key in view["expired"])
    if view["refused"]:
        yield f"{count_of(len(view['refused']), 'entry')} refused:"
        yield from (f"  {one['key']}: {one['why']}" for one in view["refused"])
