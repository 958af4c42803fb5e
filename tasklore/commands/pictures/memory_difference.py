"""What changed between two revisions of a document."""

from collections.abc import Mapping
from typing import Any

from tasklore.commands.render.memory_lines import paint_change
from tasklore.commands.render.screen import printable, styled


def draw(view: Mapping[str, Any]) -> str:
    """Return a line for each change."""
    title = (
        f"{printable(view['resource'])}, revision {view['since']} to {view['until']}"
    )
    changes = list(map(paint_change, view["lines"])) or ["nothing changed"]
    return "\n".join([styled(title, "bold"), *(f"  {line}" for line in changes)])
