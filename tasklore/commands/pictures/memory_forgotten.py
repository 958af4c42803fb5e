"""The proof that a person was forgotten: counts of removed and remaining data."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.render.screen import printable


def draw(view: Mapping[str, Any]) -> str:
    """Return the counts of removed and remaining entries."""
    return "\n".join(_lines(view))


def code_of(view: Mapping[str, Any]) -> int:
    """Return 1 when something is left."""
    return FAILED if view["left"] else OK


def _lines(view: Mapping[str, Any]) -> Iterator[str]:
    user = printable(view["user"])
    is_part = view.get("now", False)
    if view["removed"]:
        what = f"what was hidden about {user}" if is_part else user
        yield f"Forgot {what}:"
        yield from _counts(view["removed"])
    else:
        yield f"Nothing was {'hidden' if is_part else 'stored'} about {user}."
    if view["left"]:
        yield "Some data are left; run it again when no task uses them:"
        yield from _counts(view["left"])
    elif is_part:
        yield "Looked again: nothing hidden is left. What was said since is there."
    else:
        yield "Checked everywhere: nothing is left."
    for name, count in sorted(view["beside"].items()):
        # Streams are called in capitals, other files are not.
        if name.isupper():
            yield (
                f"The files of stream {printable(name)} may still contain data of "
                f"deleted messages (of any user), because {count:,} other "
                "undelivered messages are stored beside them."
            )
        else:
            yield f"The {printable(name)} could not be rewritten; ask the administrator of the server to do it."


def _counts(counts: Mapping[str, int]) -> Iterator[str]:
    for kind, count in sorted(counts.items()):
        if count:
            yield f"  {count:>9,}  {printable(kind)}"
