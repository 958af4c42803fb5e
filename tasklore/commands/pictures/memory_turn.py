"""What became of a turn: its facts, the edits that they led to, and why there is none."""

from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.render.memory_lines import (
    fold_line,
    list_changes,
    paint_change,
)
from tasklore.commands.render.screen import printable, styled

_MODEL = "TASKLORE_LLM_API_KEY or TASKLORE_LLM_BASE_URL names one."


def draw(view: Mapping[str, Any]) -> str:
    """Return a line for each fact and each change of it."""
    return "\n".join(_lines(view))


def code_of(view: Mapping[str, Any]) -> int:
    """Return 1 where the turn or a fact of it failed, or nothing was decided yet."""
    has_failed = view["state"] == "failed" or any(
        fact["state"] == "failed" for fact in view["facts"]
    )
    return FAILED if has_failed or not view["settled"] else OK


def _lines(view: Mapping[str, Any]) -> Iterator[str]:
    if view["state"] is None:
        yield (
            f"Kept as turn {printable(view['turn_id'])}; no worker has taken it yet: `tasklore up` runs them, also "
            "with `--agents memory --agents switchboard`."
        )
        return
    if view["state"] == "failed":
        yield f"{styled('failed', 'red')} {fold_line(view['reason'])}"
    elif view["state"] == "needs_model":
        yield f"It is kept until a model can be asked; {_MODEL}"
    elif not view["facts"] and view["settled"]:
        yield (
            "No fact was recognised in that; the turn itself is kept. Without a model only plain statements are "
            f"recognised: {_MODEL}"
        )
    plans = {plan["plan_id"]: plan for plan in view["plans"]}
    for fact in view["facts"]:
        style = {"done": "green", "failed": "red"}.get(fact["state"], "yellow")
        state = styled(fact["state"].replace("_", " ").ljust(11), style)
        yield f"{state} {fold_line(fact['text'])}"
        plan = plans.get(fact["plan_id"] or "")
        for change in list_changes(plan) if plan is not None else ():
            yield f"  {paint_change(change)}"
        if fact["reason"]:
            yield f"  {styled(fold_line(fact['reason']), 'dim')}"
