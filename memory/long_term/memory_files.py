"""Memory files in and out of the long-term memory: which key an entry of a file has, and the other way round."""

import json
from collections.abc import (
    AsyncIterable,
    AsyncIterator,
    Callable,
    Iterable,
    Mapping,
)
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.messages import AgentCard, TaskCard
from tasklore.contracts.parameters.model import Parameters
from tasklore.memory import keys
from tasklore.memory.keys import parse_ltm
from tasklore.memory.long_term import result_files
from tasklore.memory.long_term.card_parameters import form_of, parameters_of
from tasklore.memory.long_term.entries import Entry, IndexPosition
from tasklore.memory.long_term.result_files import ResultEntry, ResultFile, TaskForm


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportForm:
    """What an import has to know of one task; `refusal` says why its results cannot be imported, None when they can."""

    form: TaskForm
    parameters: type[Parameters] | None
    version: str
    keep: timedelta | None
    refusal: str | None = None

    @classmethod
    def of_card(
        cls, card: AgentCard, task: TaskCard, keep: timedelta | None
    ) -> "ImportForm":
        """Return the form of a task of which only the card is known: its agent's settings count as the defaults."""
        version = card.memory_version(task)
        form = form_of(task.parameters)
        refusal = refusal_of_task(task.remember)
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

    def __add__(self, other: "Imported") -> "Imported":
        return Imported(
            self.stored + other.stored,
            self.known + other.known,
            self.quarantined + other.quarantined,
            self.refused | other.refused,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyedResult:
    """A result under the whole `key` that the code of its task made; `keep` None is for ever.

    `parameters_json` are the values of its question, `near` is its place among those near to it, if it has one.
    """

    key: str
    result: Any
    parameters_json: bytes
    near: IndexPosition | None
    keep: timedelta | None


class ResultStore(Protocol):
    """What an import needs of the store of results; `LongTermMemory` is one."""

    async def show(self, key: str) -> Entry | None:
        """Return everything about the entry at *key*, None where there is none."""

    async def remember(
        self,
        key: str,
        result_json: bytes,
        *,
        computed_ms: int,
        ttl: timedelta | None,
        now_ms: int,
        parameters_json: bytes = b"{}",
        near: IndexPosition | None = None,
    ) -> None:
        """Store *result_json* at *key*."""

    async def quarantine(self, agent_id: str, results: Mapping[str, bytes]) -> None:
        """Keep results that are never served."""


async def import_file(
    memory: ResultStore,
    agent_id: str,
    file: ResultFile,
    forms: Mapping[str, ImportForm],
    *,
    now_ms: int,
) -> Imported:
    """Remember the answers of *file*; known ones stay, those that may be cut go to quarantine."""
    refused = dict(file.refused)
    stored = 0
    known = 0
    for entry in file.entries:
        try:
            found = key_entry(entry, agent_id, forms[entry.task_name])
        except InvalidInput as error:
            refused[entry.key] = str(error)
            continue
        is_new = await _remember_new(memory, found, now_ms)
        stored = stored + is_new
        known = known + (not is_new)
    set_aside = {entry.key: _compact(entry.result) for entry in file.quarantined}
    await memory.quarantine(agent_id, set_aside)
    return Imported(stored, known, tuple(set_aside), refused)


async def import_keyed(
    memory: ResultStore,
    card: AgentCard,
    results: Iterable[KeyedResult],
    *,
    now_ms: int,
) -> Imported:
    """Remember *results* of the agent of *card* that all may be served; known ones stay."""
    refused: dict[str, str] = {}
    stored = 0
    known = 0
    for one in results:
        try:
            _demand_shared(one.key, card)
        except InvalidInput as error:
            refused[one.key] = str(error)
            continue
        is_new = await _remember_new(memory, one, now_ms)
        stored = stored + is_new
        known = known + (not is_new)
    return Imported(stored, known, (), refused)


def _demand_shared(key: str, card: AgentCard) -> None:
    parts = parse_ltm(key)
    if parts is None or parts.agent_id != card.agent_id:
        raise InvalidInput(f"only keys of {card.agent_id} are taken here")
    if parts.user_token is not None:
        raise InvalidInput("it is of one user; only what all may share is imported")
    tasks = {task.name: task for task in card.tasks}
    if parts.task_name not in tasks:
        raise InvalidInput(
            f"task {parts.task_name!r} is not one of {', '.join(tasks) or 'none'}"
        )
    refusal = refusal_of_task(tasks[parts.task_name].remember)
    if refusal is not None:
        raise InvalidInput(refusal)


def key_entry(entry: ResultEntry, agent_id: str, form: ImportForm) -> KeyedResult:
    """Return the result of *entry* under the whole key that its agent looks for.

    Raises:
        InvalidInput: its task takes no imports, or its values cannot be read or have no key.
    """
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
    return KeyedResult(
        key=key,
        result=entry.result,
        parameters_json=parameters.model_dump_json().encode(),
        near=Parameters.neighbourhood(parameters, entry.task_name),
        keep=form.keep,
    )


async def _remember_new(memory: ResultStore, found: KeyedResult, now_ms: int) -> bool:
    """Remember *found* unless something is known at its key, and return whether it was new."""
    if await memory.show(found.key) is not None:
        return False
    await memory.remember(
        found.key,
        _compact(found.result),
        computed_ms=0,
        ttl=found.keep,
        now_ms=now_ms,
        parameters_json=found.parameters_json,
        near=found.near,
    )
    return True


async def export_entries(
    read: Callable[[], AsyncIterable[Entry]], card: AgentCard
) -> AsyncIterator[ResultEntry]:
    """Return the shared entries of each task, of the version that was used last, as a file has them.

    A file has no versions: two of one question would overwrite each other. *read* reads all entries of the agent, once
    to know the versions, and once while they are taken.

    Raises:
        InvalidInput: there is none, or one lacks a field that its task has; nothing was returned by then.
    """
    forms = {task.name: form_of(task.parameters) for task in card.tasks}
    versions = await _latest_versions(read, forms)
    if not versions:
        raise InvalidInput(
            f"nothing that all may share is remembered of {card.agent_id}"
        )

    async def chosen() -> AsyncIterator[ResultEntry]:
        async for entry in read():
            is_latest = versions.get(entry.parts.task_name) == entry.parts.version
            if entry.parts.user_token is None and is_latest:
                found = _as_entry(entry, forms)
                if found is not None:
                    yield found

    return chosen()


async def _latest_versions(
    read: Callable[[], AsyncIterable[Entry]], forms: Mapping[str, TaskForm]
) -> dict[str, str]:
    """Return the version of each task that was used last, by its shared entries.

    Raises:
        InvalidInput: one of such a version lacks a field.
    """
    latest: dict[str, tuple[int, str]] = {}
    incomplete: dict[tuple[str, str], InvalidInput] = {}
    async for entry in read():
        if entry.parts.user_token is not None:
            continue
        name = entry.parts.task_name
        used = entry.answer.created_at_ms, entry.parts.version
        latest[name] = max(used, latest.get(name, used))
        try:
            _as_entry(entry, forms)
        except InvalidInput as error:
            incomplete[name, entry.parts.version] = error
    versions = {name: version for name, (_, version) in latest.items()}
    for fault in (incomplete[one] for one in versions.items() if one in incomplete):
        raise fault
    return versions


def _as_entry(entry: Entry, forms: Mapping[str, TaskForm]) -> ResultEntry | None:
    """Return *entry* as a file has it; None where its question cannot be told from its parameters.

    Raises:
        InvalidInput: it lacks a field.
    """
    name = entry.parts.task_name
    parameters = json.loads(entry.parameters_json)
    if name not in forms or not parameters:
        return None
    result = json.loads(entry.answer.result_json)
    return result_files.entry_of(name, forms[name], parameters, result)


def refusal_of_task(remember: str) -> str | None:
    """Return why results of a task that remembers so cannot be imported, None where they can."""
    return (
        None
        if remember == "shared"
        else "its results are not shared, so that none of a file may be served"
    )


def _compact(result: Any) -> bytes:
    return json.dumps(result, separators=(",", ":"), allow_nan=False).encode()
