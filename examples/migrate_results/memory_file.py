"""A memory file, `LTM/{agent}/memory.json`: `{"tasks": {"analyze_budget:50000:42000:no_history": {...}}}`.

Files that 0.2 wrote by `ltm export` have the same form, and beside `tasks` an object `complete`.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tasklore.contracts.errors import InvalidInput
from tasklore.memory.long_term import result_files
from tasklore.memory.long_term.card_parameters import form_of
from tasklore.memory.long_term.memory_files import (
    ImportForm,
    KeyedResult,
    key_entry,
    refusal_of_task,
)
from tasklore.workers.agent import Agent
from tasklore.workers.task import Task

Line = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A result that was not taken over, and why."""

    key: str
    why: str


def read_document(text: bytes) -> dict[str, Any]:
    """Return the JSON of the memory file *text*.

    Raises:
        InvalidInput: it is not JSON, or has no object `tasks`.
    """
    try:
        document = json.loads(text, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"the file is not JSON: {error}") from error
    if not isinstance(document, dict) or not isinstance(document.get("tasks"), dict):
        raise InvalidInput(
            'the file has no object "tasks"; it must look like {"tasks": {"key": result}}'
        )
    return document


def lines_of(document: dict[str, Any]) -> Iterator[Line]:
    """Yield the results of *document* under the keys that they have there: the agent's card has to tell their types."""
    complete = document.get("complete")
    said = complete if isinstance(complete, dict) else {}
    for key, result in document["tasks"].items():
        mark = {"complete": said[key]} if key in said else {}
        yield {"key": key, "result": result, **mark}


def lines_by_code(document: dict[str, Any], agent: Agent) -> Iterator[Line | Refusal]:
    """Yield the results of *document* under the whole keys that *agent* looks for, settings included.

    A result whose key may have been cut keeps its key, so that the import puts it in quarantine.
    """
    forms = {task.name: _form_of_task(agent, task) for task in agent.tasks.values()}
    found = result_files.read_document(
        document, {name: one.form for name, one in forms.items()}
    )
    for entry in found.entries:
        try:
            keyed = key_entry(entry, agent.agent_id, forms[entry.task_name])
        except InvalidInput as error:
            yield Refusal(key=entry.key, why=str(error))
        else:
            yield _spell(keyed)
    for entry in found.quarantined:
        yield {"key": entry.key, "result": entry.result}
    for key, why in found.refused.items():
        yield Refusal(key=key, why=why)


def _form_of_task(agent: Agent, task: Task) -> ImportForm:
    return ImportForm(
        form=form_of(task.parameters.schema_for_cards()),
        parameters=task.parameters,
        version=agent.memory_version(task),
        keep=task.remember_for,
        refusal=refusal_of_task(task.remember),
    )


def _spell(keyed: KeyedResult) -> Line:
    near = keyed.near
    place = {"near": {"frame": near.frame, "place": near.place}} if near else {}
    return {
        "key": keyed.key,
        "result": keyed.result,
        "parameters": json.loads(keyed.parameters_json),
        "keep_s": None if keyed.keep is None else keyed.keep.total_seconds(),
        **place,
    }


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is no number of JSON")
