"""A page of tasks as a table: state, age, and why one waits or failed."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from tasklore.commands.render.columns import Column, cells_of
from tasklore.commands.render.fields import Fields
from tasklore.commands.render.screen import lines_of_table, printable
from tasklore.commands.render.task_states import RECALLED
from tasklore.commands.render.words import age, duration, one_line
from tasklore.contracts.admission.wait_words import spell_wait

#: Characters of why a task waits; `--json` has all.
_WIDTH = 160


def _text(name: str) -> Callable[[Fields], str]:
    return lambda one: printable(getattr(one, name) or "")


def _why(task: Fields) -> str:
    """Return why a task waits and since when, or the class of the error that ended it, or that it was recalled."""
    wait = task.waits_for
    if wait is not None:
        since = datetime.fromisoformat(wait.since).timestamp() * 1000
        until = None if wait.until is None else datetime.fromisoformat(wait.until)
        sentence = spell_wait(wait.kind, wait.text, wait.said or "", until)
        return one_line(f"for {age(since)}: {sentence}", _WIDTH)
    if task.error is not None:
        return printable(task.error)
    return RECALLED["hit"] if task.memory == "hit" else ""


_COLUMNS = (
    Column[Fields]("ID", _text("task_id"), whole=True),
    Column[Fields]("TASK", lambda one: printable(f"{one.agent_id}.{one.task}")),
    Column[Fields]("STATE", _text("state")),
    Column[Fields]("AGE", lambda one: age(one.began_ms), right=True),
    Column[Fields](
        "RAN", lambda one: duration(one.run_ms) if one.run_ms else "", right=True
    ),
    Column[Fields]("WHY", _why, optional=True),
    Column[Fields]("TENANT", _text("tenant"), optional=True),
    Column[Fields]("USER", _text("user"), optional=True),
)


def draw(view: dict[str, Any]) -> str:
    """Return the table of the tasks in *view*."""
    tasks = [Fields(one) for one in view["tasks"]]
    if not tasks:
        return "There are no such tasks."
    return "\n".join(lines_of_table(*cells_of(_COLUMNS, tasks)))
