"""A dead letter: why and where it was given up, its facts, what can be done with it, and its content."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from tasklore.commands.render.screen import styled
from tasklore.commands.render.views import spell
from tasklore.commands.render.words import one_line

#: Characters of an error, and of a task; `--json` has more.
_LINE = 2000
_TEXT = 2000
#: The facts of a letter in the order of their lines, each with its field.
_FACTS = {
    "sequence": "sequence",
    "task id": "task_id",
    "agent": "agent_id",
    "task": "task",
    "tenant": "tenant",
    "user": "user",
    "subject": "subject",
    "generation": "generation",
    "reason": "reason",
    "runs": "attempts",
    "sent": "created_at",
    "queued": "queued_ms",
    "last run": "run_ms",
    "died": "died_at",
    "trace id": "trace_id",
    "worker": "worker_id",
    "supervisor": "supervisor_id",
}


def draw(view: Mapping[str, Any]) -> str:
    """Return the letter, its error and the lines of the author's own code first."""
    return "\n".join(_lines(view))


def _lines(view: Mapping[str, Any]) -> Iterator[str]:
    error = view["error"]
    yield styled(one_line(f"{error['type']}: {error['message']}", _LINE), "bold")
    for frame in view["frames"]:
        yield f"  at {one_line(frame, _LINE)}"
    yield ""
    facts = {title: spell(name, view.get(name)) for title, name in _FACTS.items()}
    facts["cost"] = _cost(view["usage"])
    width = max(map(len, facts)) + 2
    for title, text in facts.items():
        if text:
            yield f"{styled(title.ljust(width), 'dim')}{one_line(text, _LINE)}"
    yield ""
    yield from _next_steps(view)
    if view["traceback"]:
        yield f"\n{view['traceback'].rstrip()}"
    yield from _content(view)


def _next_steps(view: Mapping[str, Any]) -> Iterator[str]:
    number = view["sequence"]
    why = view["why_kept"]
    if why is None:
        yield f"To send it again: tasklore dead-letters redrive {number}"
    else:
        yield f"It would not be sent again: {one_line(why, _LINE)}"
    yield f"To delete it: tasklore dead-letters purge {number}"
    if view["task_id"] is not None:
        yield f"To see its history: tasklore trace {one_line(view['task_id'])}"
    if view["others"]:
        others = ", ".join(map(str, view["others"]))
        yield f"Other dead letters of this task: {others}"


def _content(view: Mapping[str, Any]) -> Iterator[str]:
    payload = view["payload"]
    text = (
        payload
        if isinstance(payload, str)
        else json.dumps(payload, indent=2, ensure_ascii=False)
    )
    yield f"\n{text[:_TEXT]}"
    if len(text) > _TEXT or not view["is_whole"]:
        yield f"... ({view['body_bytes']:,} bytes in total; --json shows what is kept)"


def _cost(usage: Mapping[str, Any]) -> str:
    usd = usage.get("cost_usd")
    cost = "an unknown price" if usd is None else f"${float(usd):.4f}"
    taken = usage.get("input_tokens") or 0
    given = usage.get("output_tokens") or 0
    return f"{cost} for {taken:,} tokens in and {given:,} out"
