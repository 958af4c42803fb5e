"""The outcome of a cancellation, in a sentence."""

from typing import Any

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.render.screen import printable


def draw(view: dict[str, Any]) -> str:
    """Return a sentence about the task of *view*."""
    status = printable(str(view.get("status")))
    sentences = {
        "cancelled": "It is cancelled.",
        "too_late": f"It had already ended: {status}.",
    }
    later = "There is no such task yet; if it arrives later, it is cancelled before it starts."
    return sentences.get(str(view.get("outcome")), later)


def code_of(view: dict[str, Any]) -> int:
    """Return 1 for a task that had ended."""
    return FAILED if view.get("outcome") == "too_late" else OK
