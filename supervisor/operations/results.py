"""Remembered results: list, count, mend, forget, export and import them."""

import heapq
import json
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Mapping,
    Sequence,
)
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import blake2b
from typing import Annotated, Any

from pydantic import Field, JsonValue, ValidationError

from tasklore.contracts.callers import Caller
from tasklore.contracts.identifiers import NAME_PATTERN, Name, user_token
from tasklore.contracts.messages import AgentCard
from tasklore.memory.keys import parse_ltm
from tasklore.memory.long_term import result_files
from tasklore.memory.long_term.entries import Entry, Quarantined, read_standing
from tasklore.memory.long_term.memory_files import (
    ImportForm,
    KeyedResult,
    export_entries,
    import_file,
    import_keyed,
)
from tasklore.memory.long_term.result_files import ResultEntry
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.supervisor.cards import read_cards
from tasklore.supervisor.operations.dependencies import OperatorDependencies
from tasklore.supervisor.operations.forms import (
    Form,
    Lines,
    Seconds,
    View,
    When,
    moment_of,
)
from tasklore.supervisor.operations.kept_json import read_kept
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.refusals import (
    Fault,
    Refused,
    faults_of_line,
    not_found,
    unusable,
)
from tasklore.supervisor.operations.result_fit import demand_fitting
from tasklore.supervisor.operations.table import Shows, operation

#: Seconds that remembering by hand may take: a person waits, and an answer late is better than none.
_PATIENT_S = 5.0
#: Entries of a walk that are held while the newest of all are looked for.
_HELD = 1_000
#: Bytes of the digest that tells apart what was remembered in the same millisecond.
_DIGEST = 8

ResultKey = Annotated[
    str,
    Field(
        min_length=1,
        max_length=65_536,
        description="A whole key, or the question in it (analyze_budget:50000:42000:no_history).",
    ),
]
OfAgent = Annotated[Name | None, Field(description="Only of this agent.")]
AgentId = Annotated[str, Field(pattern=NAME_PATTERN, description="The agent.")]


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


@dataclass(frozen=True, kw_only=True)
class ResultServices:
    """The store of results and the cards; `keep` is the time to live of a result set by hand, None for ever."""

    memory: LongTermMemory
    cards: Callable[[], Awaitable[Sequence[AgentCard]]]
    keep: timedelta | None
    now_ms: Callable[[], int] = _now_ms


class ResultSummary(View):
    """A cached result without its content. `user_token` is whose own it is, None where all may share it.

    `computed_ms` is what it took to compute, `hits` how often it was served since; `expires_in_ms` None is for ever.
    """

    key: str
    agent_id: str
    task: str
    question: str
    version: str
    user_token: str | None
    created_at: datetime
    computed_ms: int
    hits: int
    expires_in_ms: int | None


class ResultView(ResultSummary):
    """A cached result, and the parameters that it answers."""

    parameters: JsonValue
    result: JsonValue


class ResultPage(View):
    """A page of results; `after` is what to ask for the next one with, None at the end."""

    results: tuple[ResultSummary, ...]
    after: str | None


class TaskSavings(View):
    """What the results of one task have saved: `saved_ms` is hits times the time that each took to compute."""

    task: str
    entries: int
    hits: int
    saved_ms: int


class QuarantinedResult(View):
    """An imported result that is never served: its key may have been cut, and answer another question."""

    agent_id: str
    key: str


class ResultStats(View):
    """How many results are cached, and what that saved, in total and by task."""

    tasks: tuple[TaskSavings, ...]
    entries: int
    hits: int
    saved_ms: int
    quarantined: tuple[QuarantinedResult, ...]


class NewResult(Form):
    """A result that a person wrote."""

    result: Annotated[
        JsonValue,
        Field(
            description="The result, as its task would return it.",
            json_schema_extra={"x-cli": {"kind": "json"}},
        ),
    ]


class ResultsToForget(Form):
    """Results that match all given conditions, or all results.

    A dry run answers with a `bound`: with that, results that were cached since are not
    deleted.
    """

    key: ResultKey | None = None
    task: Annotated[
        str | None, Field(max_length=256, description="Only of this task.")
    ] = None
    agent: OfAgent = None
    older_than: Annotated[
        Seconds | None,
        Field(gt=0, description="Only results older than this: 1h, 30d."),
    ] = None
    user: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=256,
            description="Only results stored by this user's tasks.",
        ),
    ] = None
    stale: Annotated[
        bool,
        Field(description="Only results of an older code or version of the agent."),
    ] = False
    everything: Annotated[
        bool,
        Field(
            description="All results.", json_schema_extra={"x-cli": {"option": "--all"}}
        ),
    ] = False
    dry_run: Annotated[bool, Field(description="Only show how many that would be.")] = (
        False
    )
    bound: Annotated[
        str,
        Field(
            pattern=r"^([0-9]{1,16}-[0-9]{1,9})?$",
            description="The `bound` of the dry run; newer results are not deleted.",
        ),
    ] = ""

    @property
    def is_whole(self) -> bool:
        """Whether an agent as a whole is meant, or everything: its quarantine goes along."""
        parts = (self.key, self.task, self.older_than, self.user)
        return not self.stale and all(one is None for one in parts)

    def demand_condition(self) -> None:
        """Return when something is meant.

        Raises:
            Refused: 422, no condition is given, or one beside `everything`.
        """
        given = (self.key, self.task, self.agent, self.older_than, self.user)
        has_condition = self.stale or any(one is not None for one in given)
        if self.everything and has_condition:
            told = "means everything; omit it to delete only what matches the other conditions"
            raise unusable([Fault(where="everything", message=told)])
        if not self.everything and not has_condition:
            told = "say what to delete: key, task, agent, older_than, user, stale, or everything"
            raise unusable([Fault(where="key", message=told)])


class ResultsForgotten(View):
    """How many results were forgotten, or would be where it is a `dry_run`, those in quarantine among them."""

    dry_run: bool
    concerns: int
    bound: str


class RefusedResult(View):
    """A result of a file that was not taken, and why."""

    key: str
    why: str


class ResultsImported(View):
    """The outcome of an import: how many were stored, or existed already.

    `quarantined` are keys of results that are never served: five values in a list may be the rest of more.
    """

    stored: int
    known: int
    quarantined: tuple[str, ...]
    refused: tuple[RefusedResult, ...]


class ResultLine(View):
    """A line of a file of results; `complete` says of a key with a list of five values that these are all."""

    key: str
    result: JsonValue
    complete: str | None = None


class KeyedLine(Form):
    """A line of a file with a whole key; without `keep_s` its result is kept as any other that a person imports."""

    key: str
    result: JsonValue
    parameters: Mapping[str, JsonValue] = Field(default_factory=dict)
    near: dict[str, str] | None = None
    keep_s: Annotated[Seconds, Field(ge=0.001)] | None = None


@operation(
    "results",
    "list",
    "GET /v1/results",
    roles=("operate",),
    mounted="operations",
    waits=True,
    shows=Shows(
        rows="results",
        columns=(
            "agent_id",
            "question",
            "version",
            "created_at",
            "hits",
            "computed_ms",
            "expires_in_ms",
        ),
        example="results list --since 1h",
    ),
)
async def list_results(
    services: ResultServices,
    caller: Caller,
    *,
    since: Annotated[
        When | None,
        Field(description="Only results cached since then: 1h ago, or a time."),
    ] = None,
    agent: OfAgent = None,
    task: Annotated[
        str | None, Field(max_length=256, description="Only of this task.")
    ] = None,
    after: Annotated[
        str,
        Field(
            pattern=r"^([0-9]{1,16}-[0-9a-f]{16})?$",
            description="Pagination cursor: the `after` of the previous page.",
        ),
    ] = "",
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number.")] = 50,
) -> ResultPage:
    """List the cached results, the newest first."""
    caller.demand_unbound()
    moment = moment_of(since, datetime.fromtimestamp(services.now_ms() / 1000, UTC))
    place = _read_place(after)
    found: list[tuple[int, str, ResultSummary]] = []
    async for entry in services.memory.entries(
        agent_id=agent,
        task=task,
        since_ms=None if moment is None else int(moment.timestamp() * 1000),
    ):
        own = _place_of(entry)
        if place is None or own > place:
            found.append((*own, ResultSummary(**_fields_of(entry))))
        if len(found) >= _HELD:
            found = heapq.nsmallest(limit + 1, found, key=lambda one: one[:2])
    found = heapq.nsmallest(limit + 1, found, key=lambda one: one[:2])
    shown = found[:limit]
    return ResultPage(
        results=tuple(view for *_, view in shown),
        after=f"{-shown[-1][0]}-{shown[-1][1]}" if len(found) > limit else None,
    )


@operation(
    "results",
    "stats",
    "GET /v1/results/stats",
    roles=("operate",),
    mounted="operations",
    waits=True,
    shows=Shows(
        rows="tasks",
        columns=("task", "entries", "hits", "saved_ms"),
        example="results stats --agent BudgetTrackerAgent",
    ),
)
async def show_result_stats(
    services: ResultServices, caller: Caller, *, agent: OfAgent = None
) -> ResultStats:
    """Show how many results are cached, and how much time that saved."""
    caller.demand_unbound()
    stats = await services.memory.stats(agent)
    aside = await services.memory.quarantined(agent)
    return ResultStats(
        tasks=tuple(
            TaskSavings(
                task=name, entries=one.entries, hits=one.hits, saved_ms=one.saved_ms
            )
            for name, one in stats.by_task.items()
        ),
        entries=stats.entries,
        hits=stats.hits,
        saved_ms=stats.saved_ms,
        quarantined=tuple(
            QuarantinedResult(agent_id=one.agent_id, key=one.file_key) for one in aside
        ),
    )


@operation(
    "results",
    "show",
    "GET /v1/results/{key:path}",
    roles=("operate",),
    mounted="operations",
    problems=(404, 409),
    shows=Shows(example="results show analyze_budget:50000:42000:no_history"),
)
async def show_result(
    services: ResultServices, caller: Caller, key: ResultKey
) -> ResultView:
    """Show a cached result."""
    caller.demand_unbound()
    return await _show(services, await _whole_key(services.memory, key))


@operation(
    "results",
    "set",
    "PUT /v1/results/{key:path}",
    roles=("operate",),
    mounted="operations",
    problems=(404, 409),
    shows=Shows(
        arguments=("result",),
        example="results set analyze_budget:50000:42000:no_history @result.json",
    ),
)
async def set_result(
    services: ResultServices, caller: Caller, key: ResultKey, new: NewResult
) -> ResultView:
    """Replace a cached result, or add one under a whole key."""
    caller.demand_unbound()
    if parse_ltm(key) is None and ":" not in key:
        raise not_found(f"{key!r} is not a valid key; copy one from GET /v1/results")
    whole = await _whole_key(services.memory, key)
    if (parts := parse_ltm(whole)) is not None:
        card = await _demand_card(services, parts.agent_id)
        demand_fitting(new.result, card, parts.task_name)
    await services.memory.put(
        whole,
        json.dumps(new.result, separators=(",", ":"), allow_nan=False).encode(),
        ttl=services.keep,
        now_ms=services.now_ms(),
    )
    return await _show(services, whole)


@operation(
    "results",
    "forget",
    "POST /v1/results/forget",
    roles=("operate",),
    mounted="operations",
    problems=(404, 409),
    waits=True,
    shows=Shows(
        arguments=("key",),
        confirm="Cached results to delete: {concerns}. Continue?",
        example="results forget --agent BudgetTrackerAgent --older-than 30d",
    ),
)
async def forget_results(
    services: ResultServices, caller: Caller, wanted: ResultsToForget
) -> ResultsForgotten:
    """Delete the cached results that match all given conditions.

    With only an agent, or with `everything`, quarantined entries are deleted too.
    """
    caller.demand_unbound()
    wanted.demand_condition()
    now_ms = services.now_ms()
    conditions = await _conditions_of(services, wanted, now_ms)
    aside: Sequence[Quarantined] = ()
    if wanted.is_whole:
        aside = await services.memory.quarantined(wanted.agent)
    if wanted.dry_run:
        concerns = len(aside) + await services.memory.count_forgotten(**conditions)
        bound = f"{now_ms}-{len(aside)}"
        return ResultsForgotten(dry_run=True, concerns=concerns, bound=bound)
    if wanted.bound:
        last_ms, _, known = wanted.bound.partition("-")
        if len(aside) > int(known):
            raise Refused(
                409,
                "changed",
                "results were imported since the dry run; look again what would be forgotten",
            )
        return await _forget_up_to(services.memory, conditions, int(last_ms), aside)
    concerns = await services.memory.forget(**conditions)
    return ResultsForgotten(dry_run=False, concerns=concerns, bound="")


@operation(
    "results",
    "import",
    "POST /v1/agents/{agent_id}/results",
    roles=("operate",),
    mounted="operations",
    problems=(404,),
    shows=Shows(example="results import BudgetTrackerAgent results.jsonl"),
)
async def import_results(
    services: ResultServices, caller: Caller, agent_id: AgentId, lines: Lines
) -> ResultsImported:
    """Import cached results: lines of a key and its result, or a whole memory file of an older version.

    Existing results stay as they are. A result whose key has exactly five values in a
    list may have been truncated by another program and would answer another question:
    it is quarantined, and never served. A line with a whole key, made by the code of
    its task, may state the parameters that it answers, its place among those near to
    it, and for how many seconds it is kept, null for ever: `parameters`, `near`,
    `keep_s`.
    """
    caller.demand_unbound()
    card = await _demand_card(services, agent_id)
    forms = {
        task.name: ImportForm.of_card(card, task, services.keep) for task in card.tasks
    }
    keyed, others = _split_lines(lines, services.keep)
    file = result_files.read_document(
        others, {name: one.form for name, one in forms.items()}
    )
    now_ms = services.now_ms()
    done = await import_file(services.memory, agent_id, file, forms, now_ms=now_ms)
    done += await import_keyed(services.memory, card, keyed, now_ms=now_ms)
    return ResultsImported(
        stored=done.stored,
        known=done.known,
        quarantined=done.quarantined,
        refused=tuple(
            RefusedResult(key=key, why=why) for key, why in done.refused.items()
        ),
    )


@operation(
    "results",
    "export",
    "GET /v1/agents/{agent_id}/results",
    roles=("operate",),
    mounted="operations",
    problems=(404,),
    shows=Shows(example="results export BudgetTrackerAgent > results.jsonl"),
)
async def export_results(
    services: ResultServices, caller: Caller, agent_id: AgentId
) -> AsyncIterator[ResultLine]:
    """Return an agent's shared cached results as lines for `import`: per task, those of the last used version."""
    caller.demand_unbound()
    card = await _demand_card(services, agent_id)
    found = await export_entries(
        lambda: services.memory.entries(agent_id=agent_id), card
    )
    return _view_lines(found)


OPERATIONS = (
    list_results,
    show_result_stats,
    show_result,
    set_result,
    forget_results,
    import_results,
    export_results,
)


async def _show(services: ResultServices, key: str) -> ResultView:
    entry = await services.memory.show(key)
    if entry is None:
        raise not_found(
            f"there is no cached result {key!r}; GET /v1/results lists them"
        )
    return ResultView(
        **_fields_of(entry),
        parameters=read_kept(entry.parameters_json),
        result=read_kept(entry.answer.result_json),
    )


def _fields_of(entry: Entry) -> Mapping[str, Any]:
    return {
        "key": entry.key,
        "agent_id": entry.parts.agent_id,
        "task": entry.parts.task_name,
        "question": entry.parts.question,
        "version": entry.parts.version,
        "user_token": entry.parts.user_token,
        "created_at": _moment(entry.answer.created_at_ms),
        "computed_ms": entry.answer.computed_ms,
        "hits": entry.hits,
        "expires_in_ms": entry.expires_in_ms,
    }


def _moment(milliseconds: int) -> datetime:
    """Return the time that another program may have written; the last one there is for one beyond it."""
    try:
        return datetime.fromtimestamp(milliseconds / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return datetime.max.replace(tzinfo=UTC)


def _place_of(entry: Entry) -> tuple[int, str]:
    """Return the place of *entry* in a list whose first are the newest."""
    digest = blake2b(entry.key.encode(errors="replace"), digest_size=_DIGEST)
    return -entry.answer.created_at_ms, digest.hexdigest()


def _read_place(after: str) -> tuple[int, str] | None:
    created_ms, _, digest = after.partition("-")
    return (-int(created_ms), digest) if digest else None


async def _whole_key(memory: LongTermMemory, key: str) -> str:
    """Return the whole key that *key*, or the question *key*, means.

    Raises:
        Refused: 404, nothing is remembered under that question; 409, several versions or users have it.
    """
    if parse_ltm(key) is not None:
        return key
    found = [
        entry.key
        async for entry in memory.entries(task=key.partition(":")[0])
        if entry.parts.question == key
    ]
    if not found:
        raise not_found(
            f"there is no cached result {key!r}; GET /v1/results lists them"
        )
    if len(found) > 1:
        several = f"{key!r} matches {len(found)} cached results; give one whole key: {', '.join(sorted(found))}"
        raise Refused(409, "several", several)
    return found[0]


async def _demand_card(services: ResultServices, agent_id: str) -> AgentCard:
    """Return the card of *agent_id*.

    Raises:
        Refused: 404, no agent of this id was ever started, or it was retired.
    """
    cards = {card.agent_id: card for card in await services.cards()}
    if agent_id not in cards:
        known = ", ".join(cards) or "none yet"
        raise not_found(
            f"no agent is called {agent_id!r}; known are {known}; GET /v1/agents lists them"
        )
    return cards[agent_id]


async def _conditions_of(
    services: ResultServices, wanted: ResultsToForget, now_ms: int
) -> dict[str, Any]:
    """Return what *wanted* means, as the store takes it."""
    age = wanted.older_than
    return {
        "key": None
        if wanted.key is None
        else await _whole_key(services.memory, wanted.key),
        "agent_id": wanted.agent,
        "task": wanted.task,
        "created_before_ms": None if age is None else now_ms - int(age * 1000),
        "user_token": None if wanted.user is None else user_token(wanted.user),
        "in_force": versions_in_force(await services.cards()) if wanted.stale else None,
        "everything": wanted.everything,
    }


def versions_in_force(cards: Iterable[AgentCard]) -> dict[tuple[str, str], str]:
    """Return under which version each task of *cards* is remembered, by agent and task."""
    return {
        (card.agent_id, task.name): card.memory_version(task)
        for card in cards
        for task in card.tasks
    }


async def _forget_up_to(
    memory: LongTermMemory,
    conditions: Mapping[str, Any],
    last_ms: int,
    aside: Sequence[Quarantined],
) -> ResultsForgotten:
    """Forget results that were remembered by *last_ms*, and the entries of the quarantine in *aside*."""
    before_ms = conditions["created_before_ms"]
    limit_ms = last_ms + 1 if before_ms is None else min(before_ms, last_ms + 1)
    bounded = {**conditions, "created_before_ms": limit_ms}
    concerns = await memory.forget(**bounded)
    concerns += await memory.forget_quarantined(aside)
    return ResultsForgotten(dry_run=False, concerns=concerns, bound="")


def _split_lines(
    lines: Lines, keep: timedelta | None
) -> tuple[list[KeyedResult], dict[str, Any]]:
    """Return the results of *lines* under whole keys, and the document of a memory file with all others.

    Raises:
        Refused: 422, a line has neither a key and a result nor results by key, or an unusable field; names it.
    """
    keyed: list[KeyedResult] = []
    tasks: dict[str, Any] = {}
    complete: dict[str, Any] = {}
    for number, line in enumerate(lines.values, 1):
        match line:
            case {"tasks": dict(found), **rest}:
                tasks |= found
                said = rest.get("complete")
                complete |= said if isinstance(said, dict) else {}
            case {"key": str(key), "result": _} if parse_ltm(key) is not None:
                keyed.append(_read_keyed(number, line, keep))
            case {"key": str(key), "result": result, **rest}:
                tasks[key] = result
                complete[key] = rest.get("complete")
            case _:
                told = 'must be {"key": "...", "result": ...}, or a memory file {"tasks": {"key": result}}'
                raise unusable([Fault(where=f"line {number}", message=told)])
    return keyed, {"tasks": tasks, "complete": complete}


def _read_keyed(number: int, line: Any, keep: timedelta | None) -> KeyedResult:
    try:
        read = KeyedLine.model_validate(line)
    except ValidationError as error:
        raise unusable(faults_of_line(number, error)) from error
    near = read_standing(read.near)
    if read.near is not None and near is None:
        told = "must be the frame and the place of a question, as its code says them"
        raise unusable([Fault(where=f"line {number}.near", message=told)])
    if "keep_s" in read.model_fields_set:
        keep = None if read.keep_s is None else timedelta(seconds=read.keep_s)
    return KeyedResult(
        key=read.key,
        result=read.result,
        parameters_json=json.dumps(
            dict(read.parameters), separators=(",", ":")
        ).encode(),
        near=near,
        keep=keep,
    )


async def _view_lines(entries: AsyncIterator[ResultEntry]) -> AsyncIterator[ResultLine]:
    async for entry in entries:
        yield ResultLine(key=entry.key, result=entry.result, complete=entry.complete)


def for_operator(parts: OperatorDependencies) -> ResultServices:
    """Return the services of operations of results."""
    keep_days = parts.settings.memory_keep_days
    return ResultServices(
        memory=LongTermMemory(parts.redis, budget_s=_PATIENT_S),
        cards=lambda: read_cards(parts.link),
        keep=None if keep_days is None else timedelta(days=keep_days),
    )


NOUN = NounDeclaration(operations=OPERATIONS, operator=serve(for_operator, OPERATIONS))
