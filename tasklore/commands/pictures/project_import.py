"""The import of a project: how many records were added, and which were refused."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.exits import OK, USAGE
from tasklore.commands.render.words import count_of

#: Refused records that are listed; the others are only counted.
_MOST_LISTED = 10


def draw(view: Mapping[str, Any]) -> str:
    """Return how many records there are now, and why others are not."""
    return "\n".join(_lines(view))


def code_of(view: Mapping[str, Any]) -> int:
    """Return the exit code: a file with a record that cannot be taken is to be mended."""
    return USAGE if view["refused"] else OK


def _lines(view: Mapping[str, Any]) -> Iterator[str]:
    known = f"; {view['known']:,} were there already" if view["known"] else ""
    added = count_of(view["added"], "record")
    yield f"{added} added to project {view['project_id']}{known}"
    refused = view["refused"]
    yield from (f"  {one['record_id']}: {one['why']}" for one in refused[:_MOST_LISTED])
    if len(refused) > _MOST_LISTED:
        more = len(refused) - _MOST_LISTED
        yield f"  and {more:,} more were refused; --json names them all"
