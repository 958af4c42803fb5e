"""What contradicts something else in a memory."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.render.memory_lines import draw_entry, fold_line
from tasklore.commands.render.screen import styled

_WHY = {
    "opposite": "these contradict each other",
    "single": "only one of these can be true",
    "marked": "contradictory statements of equal weight",
}


def draw(view: Mapping[str, Any]) -> str:
    """Return each conflict with its entries, and how it is decided."""
    if not view["conflicts"]:
        return "Nothing contradicts anything else."
    lines = [line for one in view["conflicts"] for line in draw_conflict(one)]
    cure = "What you say next decides: `tasklore memory tell`. `tasklore memory undo` reverts an edit."
    return "\n".join([*lines, "", cure])


def draw_conflict(conflict: Mapping[str, Any]) -> Iterator[str]:
    """Yield the reason of *conflict*, and its entries."""
    yield styled(_WHY.get(conflict["why"], conflict["why"]), "bold")
    for entry in conflict["entries"]:
        yield f"  {draw_entry(entry)}"
    for text in conflict["against"]:
        yield f"  {styled('against', 'dim')}: {fold_line(text)}"
