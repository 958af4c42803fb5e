"""The phases of a run that were marked stale, each with its reason."""

from typing import Any

from tasklore.commands.pictures.run import describe_notes
from tasklore.commands.render.words import count_of


def draw(view: dict[str, Any]) -> str:
    """Return a line for each phase that is stale now and was not before, and how to run them again."""
    if not view["stale"]:
        return "That makes nothing more stale."
    return "\n".join(
        (
            f"{count_of(len(view['stale']), 'phase')} stale:",
            *describe_notes(view["stale"]),
            f"Run them again with: tasklore pipelines resume {view['session_id']}",
        )
    )
