"""The edits of a memory, the newest first: who made each, how it stands, and its changes."""

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

from tasklore.commands.render.durations import read_aloud
from tasklore.commands.render.memory_lines import (
    fold_line,
    list_changes,
    paint_change,
    shorten_ids,
)
from tasklore.commands.render.screen import styled

#: Changes of a plan that are shown; `explain` and `--json` have all.
_SHOWN = 3
_WIDE = 100


def draw(view: Mapping[str, Any]) -> str:
    """Return a line for each plan, and its first changes below."""
    plans = view["plans"]
    if not plans:
        return "Nothing was ever edited."
    return "\n".join(_lines(plans))


def _lines(plans: list[Mapping[str, Any]]) -> Iterator[str]:
    now = datetime.now(UTC)
    names = shorten_ids([plan["plan_id"] for plan in plans])
    for plan in plans:
        age_s = (now - datetime.fromisoformat(plan["at"])).total_seconds()
        name = styled(fold_line(names[plan["plan_id"]]), "bold")
        age = read_aloud(max(0.0, age_s * 1000))
        yield f"{name}  {age} ago  {fold_line(plan['by'])}  {plan['state']}"
        changes = list(list_changes(plan))
        for change in changes[:_SHOWN]:
            yield f"  {paint_change({**change, 'what': fold_line(change['what'], _WIDE)})}"
        if len(changes) > _SHOWN:
            yield f"  and {len(changes) - _SHOWN} more"
