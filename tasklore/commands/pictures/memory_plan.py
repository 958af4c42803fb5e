"""One edit of a memory that was just made."""

from collections.abc import Mapping
from typing import Any

from tasklore.commands.render.memory_lines import list_changes, paint_change
from tasklore.commands.render.screen import printable, styled


def draw(view: Mapping[str, Any]) -> str:
    """Return the plan that was applied again, and its changes."""
    # A plan is taken back by a plan of its own, which is the one that the record of a redo names.
    plan_id = printable(view["undoes"] or "")
    first = f"{styled('applied again', 'green')} what {plan_id} took back"
    return "\n".join([first, *(f"  {paint_change(one)}" for one in list_changes(view))])
