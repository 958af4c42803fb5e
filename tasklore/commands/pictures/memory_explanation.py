"""How an entry of a memory came about: each plan that touched it, with the fact behind it and who decided."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.render.memory_lines import (
    fold_line,
    list_changes,
    paint_change,
)
from tasklore.commands.render.screen import printable, styled


def draw(view: Mapping[str, Any]) -> str:
    """Return the place, and each plan with its changes and grounds."""
    first = f"{styled(printable(view['resource']), 'bold')} {printable(view['path'])}"
    if not view["plans"]:
        return (
            f"{first}\n  it came with the document, or before the history that is kept"
        )
    return "\n".join(
        [first, *(line for plan in view["plans"] for line in _lines(plan))]
    )


def _lines(plan: Mapping[str, Any]) -> Iterator[str]:
    at = plan["at"][:16].replace("T", " ")
    yield ""
    yield f"  {styled(printable(plan['plan_id']), 'bold')}  {at} UTC, {plan['state']}"
    for change in list_changes(plan):
        yield f"    {paint_change(change)}"
    facts = {
        "decided by": plan["by"],
        "because": plan["reasoning"],
        "fact": plan["fact"],
        "said": plan["evidence"],
        "turn": plan["turn_id"],
        "finder": _spell_answer(plan["finder"]),
        "editor": _spell_answer(plan["editor"]),
    }
    shown = {name: fold_line(value) for name, value in facts.items() if value}
    width = max(map(len, shown), default=0)
    for name, value in shown.items():
        yield f"    {styled(name.ljust(width), 'dim')}  {value}"


def _spell_answer(answer: Any) -> str:
    """Return an answer of finder or editor in one line: by which model at which temperature, or how without one."""
    if not isinstance(answer, dict):
        return ""
    rest = {
        name: value
        for name, value in answer.items()
        if name not in {"model", "temperature"}
    }
    temperature = f" at {answer['temperature']}" if "temperature" in answer else ""
    return f"{answer.get('model')}{temperature}: {json.dumps(rest, ensure_ascii=False)}"
