"""Memory files in and out of the long-term memory: which key an entry of a file has, and the other way round."""

import json
from collections.abc import AsyncIterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from tasklore.commands.agents.card_parameters import form_of, parameters_of
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.contracts.parameters.model import Parameters
from tasklore.memory import keys
from tasklore.memory.long_term import seed_file
from tasklore.memory.long_term.entries import Entry
from tasklore.memory.long_term.seed_file import SeedEntry, TaskForm
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.workers.agent import Agent
from tasklore.workers.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportForm:
    """What an import has to know of one task; `refusal` says why its results cannot be imported, None when they can."""

    form: TaskForm
    parameters: type[Parameters] | None
    version: str
    keep: timedelta | None
    refusal: str | None = None

    @classmethod
    def of_task(cls, agent: Agent, task: Task) -> "ImportForm":
        """Return the form of a task whose code is here."""
        schema = task.parameters.schema_for_cards()
        version = agent.memory_version(task)
        return cls(
            form=form_of(schema),
            parameters=task.parameters,
            version=version,
            keep=task.remember_for,
            refusal=_refusal(task.remember),
        )

    @classmethod
    def of_card(
        cls, card: AgentCard, task: TaskCard, keep: timedelta | None
    ) -> "ImportForm":
        """Return the form of a task of which only the card is known: its agent's settings count as the defaults."""
        version = card.memory_version(task)
        form = form_of(task.parameters)
        refusal = _refusal(task.remember)
        try:
            return cls(
                form=form,
                parameters=parameters_of(task.name, task.parameters),
                version=version,
                keep=keep,
                refusal=refusal,
            )
        except InvalidInput as error:
            return cls(
                form=form,
                parameters=None,
                version=version,
                keep=keep,
                refusal=refusal or str(error),
            )


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of a file: how many were `stored` and already `known`, and the keys that were set aside."""

    stored: int
    known: int
    quarantined: tuple[str, ...]
    refused: dict[str, str]


@dataclass(frozen=True, slots=True)
class Exported:
    """A file, how many entries it has, the version it is of, and how many entries of other versions it has not."""

    text: str
    entries: int
    version: str
    others: int


async def import_text(
    memory: LongTermMemory,
    agent_id: str,
    text: bytes,
    forms: Mapping[str, ImportForm],
    *,
    now_ms: int,
) -> Imported:
    """Remember the answers in the file *text*; known ones stay, those that may be cut go to quarantine."""
    file = seed_file.read(text, {name: form.form for name, form in forms.items()})
    refused = dict(file.refused)
    stored = 0
    known = 0
    for entry in file.entries:
        try:
            is_new = await _store(
                memory,
                agent_id=agent_id,
                entry=entry,
                form=forms[entry.task_name],
                now_ms=now_ms,
            )
        except InvalidInput as error:
            refused[entry.key] = str(error)
            continue
        stored = stored + is_new
        known = known + (not is_new)
    set_aside = {entry.key: _compact(entry.result) for entry in file.quarantined}
    await memory.quarantine(agent_id, set_aside)
    return Imported(stored, known, tuple(set_aside), refused)


async def _store(
    memory: LongTermMemory,
    agent_id: str,
    entry: SeedEntry,
    form: ImportForm,
    now_ms: int,
) -> bool:
    if form.refusal is not None or form.parameters is None:
        raise InvalidInput(form.refusal or "its parameters are not known")
    parameters = form.parameters.read(entry.parameters)
    try:
        # Of the class: a parameter may be called `key`.
        question = Parameters.key(parameters, entry.task_name)
        key = keys.ltm(agent_id, form.version, question)
    except TypeError as error:
        # Values that can be read and have no key, such as a time that is past the calendar in UTC.
        raise InvalidInput(str(error)) from error
    if await memory.show(key) is not None:
        return False
    await memory.remember(
        key,
        _compact(entry.result),
        computed_ms=0,
        ttl=form.keep,
        now_ms=now_ms,
        parameters_json=parameters.model_dump_json().encode(),
        near=Parameters.neighbourhood(parameters, entry.task_name),
    )
    return True


async def export_text(entries: AsyncIterable[Entry], card: AgentCard) -> Exported:
    """Return the shared entries of the version that was used last, as a file.

    A file has no versions: two of one question would overwrite each other.

    Raises:
        InvalidInput: there is no entry.
    """
    shared = [entry async for entry in entries if entry.parts.user_token is None]
    if not shared:
        raise InvalidInput(
            f"nothing that all may share is remembered of {card.agent_id}"
        )
    versions: dict[str, str] = {}
    for entry in sorted(shared, key=lambda one: one.answer.created_at_ms):
        versions[entry.parts.task_name] = entry.parts.version
    forms = {task.name: form_of(task.parameters) for task in card.tasks}
    chosen = []
    for entry in shared:
        name = entry.parts.task_name
        parameters = json.loads(entry.parameters_json)
        if entry.parts.version != versions[name] or name not in forms or not parameters:
            continue
        chosen.append(
            seed_file.entry_of(
                name, forms[name], parameters, json.loads(entry.answer.result_json)
            )
        )
    told = ", ".join(sorted(set(versions.values())))
    return Exported(
        seed_file.write(chosen), len(chosen), told, len(shared) - len(chosen)
    )


def _refusal(remember: str) -> str | None:
    return (
        None
        if remember == "shared"
        else "its results are not shared, so that none of a file may be served"
    )


def _compact(result: Any) -> bytes:
    return json.dumps(result, separators=(",", ":"), allow_nan=False).encode()
