"""A change of the limits: a line for each that differs, and the version that holds."""

from collections.abc import Mapping
from typing import Any

from tasklore.commands.render.limit_words import spell_difference


def draw(view: Mapping[str, Any]) -> str:
    """Return the change that was made, or that would be of a dry run."""
    lines = list(spell_difference(view["difference"]))
    if not lines:
        return "Nothing changes."
    if not view["dry_run"]:
        lines.append(f"Version {view['version']} takes effect within a second.")
    return "\n".join(lines)
