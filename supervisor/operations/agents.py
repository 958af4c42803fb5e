"""Agents: their cards with their live workers, their load, and the decision of one in a world."""

import asyncio
import math
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import Annotated, Any, ClassVar

from pydantic import ConfigDict, Field, JsonValue
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.conversations import MessageId
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.contracts.messages import AgentCard, AwayModel, WorkerPresence
from tasklore.contracts.observations import Action, SensoryData, Word, WorldTime
from tasklore.memory.conversations.observations import Observations
from tasklore.memory.ledger.task_list import (
    MOST_OF_PAGE,
    MOST_READ,
    ListedTask,
    TaskFilter,
    TaskList,
    TaskPage,
)
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.live_workers import LiveWorkers
from tasklore.supervisor.operations.card_fit import (
    demand_fit,
    demand_offer,
    no_such_agent,
)
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.forms import SPAN, Form, View
from tasklore.supervisor.operations.idempotency import IdempotencyKey
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.owners import (
    demand_conversation,
    world_conversation,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.sent_tasks import (
    NewTask,
    TaskServices,
    demand_accepted,
    send_task,
)
from tasklore.supervisor.operations.table import Shows, operation
from tasklore.supervisor.operations.tasks import TaskQuery

#: The task that decides, by convention of every agent that lives in a world.
DECIDE = "decide"

AgentId = Annotated[str, Field(pattern=NAME_PATTERN, description="The id of an agent.")]

#: Seconds more than a task may take: the worker reports when its time is over.
_REPORT_S = 1
#: How long ago a task may have ended whose time counts.
_ENDED_SINCE = timedelta(days=1)
#: Pages that are read further where the newest tasks are all open.
_MOST_PAGES = 10
#: Models that do not answer, as they are listed.
_MOST_OUTAGES = 50


@dataclass(frozen=True, kw_only=True)
class AgentLooks:
    """The cards of agents as of now, their live workers, and the store with the list of their tasks."""

    read_catalogue: Callable[[], Awaitable[Catalogue]]
    attendance: LiveWorkers
    redis: Redis


@dataclass(frozen=True, kw_only=True)
class AgentServices(AgentLooks):
    """The services of operations of agents."""

    tasks: TaskServices


class LiveWorker(View):
    """A worker that is alive: how many tasks it holds at once, and the address of its health and metrics."""

    worker_id: str
    slots: int
    started_at: datetime
    http: str | None


class AgentView(AgentCard):
    """The card of an agent, and the number of its live workers, null while that is not known.

    To a key with the role `operate` its `workers` are shown, to others none.
    """

    live_workers: int | None
    workers: tuple[LiveWorker, ...]


class Agents(View):
    """Agents that have reported, by id, also while no worker of them is alive.

    `after` is that of the next page, None at the end.
    """

    agents: tuple[AgentView, ...]
    after: str | None


class CodeVersion(View):
    """How many live workers run one state of an agent's code; `is_on_card` where it is the one that its card shows."""

    version: int
    digest: str
    workers: int
    is_on_card: bool


class AgentLoad(View):
    """The work of an agent, and its workers.

    `slots` are tasks that its live workers hold at once, null while that is not known,
    and `code` is theirs. `open` tasks have not ended, and `oldest_ms` is when the first
    of them was created, ms since 1970. `states` are those of the newest `looked_at` of
    them. Of the last `ended` tasks that ended within a day, at most 200, `failed` did
    so; `p50_ms` and `p95_ms` are what half and 95 % of the completed ones took at most,
    except those answered from the cache.
    """

    agent_id: str
    slots: int | None
    code: tuple[CodeVersion, ...]
    open: int
    oldest_ms: int | None
    looked_at: int
    states: dict[str, int]
    ended: int
    failed: int
    p50_ms: int | None
    p95_ms: int | None


class AgentLoads(View):
    """What agents have to do, by id; `after` is that of the next page, None at the end."""

    agents: tuple[AgentLoad, ...]
    after: str | None


class ModelOutage(View):
    """A model whose provider does not answer `workers` live workers, of these agents, the first of them since then.

    `said` is what the provider said last to one of them; a key of one user or tenant is not told that.
    """

    model: str
    since: datetime
    workers: int
    agents: tuple[str, ...]
    said: str


class ModelOutages(View):
    """Models that are unavailable, the longest first; at most 50.

    Each worker finds that out by itself, says it within five seconds, and asks again every few. `is_known` is false
    while it cannot be read who is alive.
    """

    outages: tuple[ModelOutage, ...]
    is_known: bool


class HeardMessage(Form):
    """A message to the agent since it was last asked."""

    sender: Word
    message: Annotated[str, Field(min_length=1, max_length=2000)]
    time: WorldTime | None = None
    message_id: MessageId | None = None


class Sensed(Form):
    """The senses and messages of an agent at one moment; other fields of a world are passed on as they are.

    `name` None is that of the agent. `simulation_time` None is when it last observed something, 0 when it never did.
    `agents` None are those that it sees or hears of. `conversation` None is the one named after agent, name and user.
    See docs/reference/decisions.md for every field.
    """

    sensory_data: Annotated[SensoryData, Field(description="What it senses.")]
    new_messages: Annotated[
        tuple[HeardMessage, ...],
        Field(max_length=200, description="New messages since the last decision."),
    ] = ()
    name: Annotated[Word | None, Field(description="Its name in the world.")] = None
    simulation_time: Annotated[
        WorldTime | None, Field(description="Time of the world, in seconds.")
    ] = None
    allowed: Annotated[
        tuple[Word, ...] | None,
        Field(min_length=1, max_length=20, description="Actions that it may choose."),
    ] = None
    agents: Annotated[
        tuple[Word, ...] | None,
        Field(max_length=500, description="Names of the other agents."),
    ] = None
    conversations: Annotated[
        dict[str, str] | None,
        Field(max_length=500, description="Conversations with others, by name."),
    ] = None
    bounds: Annotated[
        dict[str, JsonValue] | None, Field(description="Bounds of the world.")
    ] = None
    reach: Annotated[
        float | None, Field(ge=0, description="How far away it can act.")
    ] = None
    step: Annotated[
        float | None, Field(ge=0, description="Maximum distance of one move.")
    ] = None
    tell_prompt: Annotated[
        bool | None, Field(description="Answer with the prompt as well.")
    ] = None
    user: Annotated[
        str | None,
        Field(
            min_length=1, max_length=256, description="Decide on behalf of this user."
        ),
    ] = None
    conversation: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=256,
            description="Conversation in which it is kept.",
        ),
    ] = None
    wait_seconds: Annotated[
        float, Field(ge=1, le=600, description="How long it may take."), SPAN
    ] = 30.0


class Decided(Action):
    """The agent's action, its reason, and who decided: `rules`, a model by its name, or `earlier run`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="allow")

    reasoning: str = ""
    by: str = ""


@operation(
    "agents",
    "list",
    "GET /v1/agents",
    roles=("ask", "read"),
    shows=Shows(
        rows="agents",
        columns=("agent_id", "version", "live_workers", "tasks.name"),
        example="agents list",
    ),
)
async def list_agents(
    services: AgentLooks,
    caller: Caller,
    *,
    limit: Annotated[
        int | None,
        Field(ge=1, le=200, description="Maximum number of agents; default: all."),
    ] = None,
    after: Annotated[
        str | None,
        Field(
            pattern=NAME_PATTERN, description="Pagination cursor: agents after this id."
        ),
    ] = None,
) -> Agents:
    """List every agent that was ever started, with its live workers.

    Raises:
        Unreachable: the cards cannot be read.
    """
    cards = (await services.read_catalogue()).cards
    left = [card for name, card in cards.items() if after is None or name > after]
    alive = await services.attendance.alive() if left else ()
    page = left[:limit]
    return Agents(
        agents=tuple(_view(card, alive, caller) for card in page),
        after=page[-1].agent_id if len(page) < len(left) else None,
    )


@operation(
    "agents",
    "load",
    "GET /v1/agent-loads",
    roles=("ask", "read"),
    shows=Shows(
        rows="agents",
        columns=(
            "agent_id",
            "slots",
            "open",
            "states",
            "ended",
            "failed",
            "p50_ms",
            "p95_ms",
        ),
        example="agents load",
    ),
)
async def list_loads(
    services: AgentLooks,
    caller: Caller,
    *,
    limit: Annotated[int, Field(ge=1, le=200, description="Agents on a page.")] = 50,
    after: Annotated[
        str | None,
        Field(
            pattern=NAME_PATTERN, description="Pagination cursor: agents after this id."
        ),
    ] = None,
    agent: Annotated[
        str | None, Field(pattern=NAME_PATTERN, description="Only of this agent.")
    ] = None,
) -> AgentLoads:
    """Show the load of agents: slots, open tasks, the oldest of them, recent times, code of live workers.

    A key restricted to a user or tenant counts only their tasks.

    Raises:
        Unreachable: the cards cannot be read.
        MemoryUnavailable: the ledger does not answer.
    """
    cards = (await services.read_catalogue()).cards
    left = [
        card
        for name, card in cards.items()
        if (after is None or name > after) and agent in (None, name)
    ]
    page = left[:limit]
    alive = await services.attendance.alive() if page else ()
    tasks = TaskList(services.redis)
    found = await asyncio.gather(
        *(_read_load(tasks, caller, card, alive) for card in page)
    )
    return AgentLoads(
        agents=tuple(found),
        after=page[-1].agent_id if len(page) < len(left) else None,
    )


@operation(
    "agents",
    "show",
    "GET /v1/agents/{agent_id}",
    roles=("ask", "read"),
    problems=(404,),
    shows=Shows(picture="agent", example="agents show BudgetTrackerAgent"),
)
async def show_agent(
    services: AgentLooks, caller: Caller, agent_id: AgentId
) -> AgentView:
    """Show an agent: its tasks, their parameters, and its live workers.

    Raises:
        Refused: 404, there is no such agent.
        Unreachable: the cards cannot be read.
    """
    catalogue = await services.read_catalogue()
    card = catalogue.cards.get(agent_id)
    if card is None:
        raise no_such_agent(agent_id, catalogue)
    return _view(card, await services.attendance.alive(), caller)


@operation(
    "agents",
    "outages",
    "GET /v1/model-outages",
    roles=("ask", "read"),
    shows=Shows(
        rows="outages",
        columns=("model", "since", "workers", "agents", "said"),
        example="agents outages",
    ),
)
async def list_outages(services: AgentLooks, caller: Caller) -> ModelOutages:
    """List models that are unavailable (circuit breaker open): tasks that need them wait."""
    alive = await services.attendance.alive()
    found: dict[str, list[tuple[WorkerPresence, AwayModel]]] = {}
    for worker in alive or ():
        for away in worker.away:
            found.setdefault(away.model, []).append((worker, away))
    # What a provider says may be about the request of another.
    is_bound = caller.user is not None or caller.own_tenant is not None
    outages = [
        ModelOutage(
            model=model,
            since=min(away.since for _, away in those),
            workers=len({worker.worker_id for worker, _ in those}),
            agents=tuple(sorted({worker.agent_id for worker, _ in those})),
            said="" if is_bound else max(those, key=_since_of)[1].said,
        )
        for model, those in found.items()
    ]
    outages.sort(key=attrgetter("since", "model"))
    return ModelOutages(
        outages=tuple(outages[:_MOST_OUTAGES]), is_known=alive is not None
    )


@operation(
    "agents",
    "decide",
    "POST /v1/agents/{agent_id}/brain/decide",
    roles=("ask",),
    problems=(404, 409),
    waits=True,
    shows=Shows(
        example="""agents decide DecisionAgent --sensory-data @senses.json --user ana"""
    ),
)
async def decide(
    services: AgentServices,
    caller: Caller,
    agent_id: AgentId,
    sensed: Sensed,
    *,
    idempotency_key: IdempotencyKey = None,
) -> Decided:
    """Ask an agent in a world for its next action.

    Raises:
        Refused: 404, there is no such agent, or it does not decide; 409, the key was used for something else; 403, the
            conversation is another user's; 422, it needs other senses; 503, it did not decide, or not in time.
    """
    catalogue = await services.read_catalogue()
    offer = demand_offer(catalogue, agent_id, DECIDE)
    user_id = caller.demand_user(sensed.user)
    conversation_id = sensed.conversation or world_conversation(
        agent_id, sensed.name or agent_id, user_id, caller.tenant
    )
    tasks = services.tasks
    others = (sensed.conversations or {}).values()
    for one in dict.fromkeys([conversation_id, *others]):
        await demand_conversation(tasks.conversations, caller, one)
    task = NewTask(
        offer=offer,
        parameters=await _complete_senses(tasks, agent_id, sensed, conversation_id),
        user_id=user_id,
        conversation_id=conversation_id,
        chosen=idempotency_key,
        within_s=sensed.wait_seconds,
    )
    demand_fit(offer.task, task.parameters)
    sent = await send_task(tasks, caller, task, sensed.wait_seconds + _REPORT_S)
    demand_accepted(report := sent.report)
    if report is None or report.status == "expired":
        detail = f"{agent_id} did not decide in time; is a worker of it up? Allow more with wait_seconds"
        raise Refused(503, "late", detail, headers={"Retry-After": "1"})
    if report.status != "completed":
        reason = report.error.message if report.error is not None else report.status
        raise Refused(
            503,
            "undecided",
            f"{agent_id} did not decide: {reason}",
            headers={"Retry-After": "1"},
        )
    return Decided.model_validate(report.result)


#: Those that need no dispatch.
OPERATOR_OPERATIONS = (list_agents, list_loads, show_agent, list_outages)
OPERATIONS = (*OPERATOR_OPERATIONS, decide)


def _view(
    card: AgentCard, alive: Sequence[WorkerPresence] | None, caller: Caller
) -> AgentView:
    """Return *card* with those of *alive* that are its workers; None: they are not known."""
    own = [one for one in alive or () if one.agent_id == card.agent_id]
    # Names and addresses of machines are no matter of those who only ask.
    sees_machines = not caller.roles.isdisjoint({"operate", "admin"})
    return AgentView(
        **dict(card),
        live_workers=None if alive is None else len(own),
        workers=tuple(map(LiveWorker.model_validate, own)) if sees_machines else (),
    )


async def _read_load(
    tasks: TaskList,
    caller: Caller,
    card: AgentCard,
    alive: Sequence[WorkerPresence] | None,
) -> AgentLoad:
    """Return the load of the agent of *card*, of whose workers those in *alive* are, as far as *caller* may see it."""
    asked = TaskQuery(agent=card.agent_id).filter_for(caller)
    since_ms = int((datetime.now(UTC) - _ENDED_SINCE).timestamp() * 1000)
    opened, ended = await asyncio.gather(
        tasks.read(replace(asked, is_open=True), limit=MOST_OF_PAGE),
        tasks.read(
            replace(asked, ended_from_ms=since_ms),
            limit=MOST_OF_PAGE,
            has_glances=False,
        ),
    )
    count = len(opened.tasks)
    oldest_ms = min((one.began_ms for one in opened.tasks), default=None)
    of_all = await tasks.count_open(card.agent_id)
    if asked == TaskFilter(agent_id=card.agent_id):
        count = of_all.number
        oldest_ms = of_all.oldest_ms
    ends = await _read_past_open(
        tasks, replace(asked, ended_from_ms=since_ms), ended, of_all.number
    )
    own = [one for one in alive or () if one.agent_id == card.agent_id]
    running = Counter((one.version, one.digest) for one in own)
    took = _times_of(ends)
    return AgentLoad(
        agent_id=card.agent_id,
        slots=None if alive is None else sum(one.slots for one in own),
        code=tuple(
            CodeVersion(
                version=version,
                digest=digest,
                workers=workers,
                is_on_card=(version, digest) == (card.version, card.digest),
            )
            for (version, digest), workers in sorted(running.items())
        ),
        open=count,
        oldest_ms=oldest_ms,
        looked_at=len(opened.tasks),
        states=dict(Counter(one.state for one in opened.tasks)),
        ended=len(ends),
        failed=sum(one.state == "failed" for one in ends),
        p50_ms=_part_of(took, 0.5),
        p95_ms=_part_of(took, 0.95),
    )


async def _read_past_open(
    tasks: TaskList, asked: TaskFilter, first: TaskPage, opened: int
) -> tuple[ListedTask, ...]:
    """Return the last tasks that ended as *asked*, from the page *first* on: past as many rows as there are *opened*.

    A page looks at a bounded number of rows, of which the newest may all be open.
    """
    found = first.tasks
    after = first.after
    for _ in range(min(opened // MOST_READ, _MOST_PAGES)):
        if after is None or len(found) >= MOST_OF_PAGE:
            break
        page = await tasks.read(
            asked, after=after, limit=MOST_OF_PAGE - len(found), has_glances=False
        )
        found += page.tasks
        after = page.after
    return found


def _since_of(found: tuple[WorkerPresence, AwayModel]) -> datetime:
    return found[1].since


def _times_of(tasks: Sequence[ListedTask]) -> list[int]:
    """Return for how many ms each completed one of *tasks* ran that no memory answered, the shortest first."""
    return sorted(
        one.run_ms
        for one in tasks
        if one.state == "completed"
        and one.run_ms is not None
        and one.memory not in ("hit", "near")
    )


def _part_of(times: Sequence[int], part: float) -> int | None:
    """Return the first of the sorted *times* that a *part* of them does not exceed; None without any."""
    return times[math.ceil(part * len(times)) - 1] if times else None


async def _complete_senses(
    tasks: TaskServices, agent_id: str, sensed: Sensed, conversation_id: str
) -> dict[str, Any]:
    """Return the parameters of the decision: *sensed*, with what its world left out."""
    ours = {"user", "conversation", "wait_seconds"}
    senses = sensed.model_dump(
        mode="json", by_alias=True, exclude=ours, exclude_none=True
    )
    if sensed.simulation_time is None:
        last = await Observations(tasks.redis).recent(conversation_id, 1)
        senses["simulation_time"] = last[-1].time if last else 0.0
    senses.setdefault("name", agent_id)
    if sensed.agents is None:
        met = [one.name for one in sensed.sensory_data.nearby_agents] + [
            one.sender for one in sensed.new_messages
        ]
        senses["agents"] = [
            name for name in dict.fromkeys(met) if name != senses["name"]
        ]
    return senses


def for_supervisor(parts: SupervisorDependencies) -> AgentServices:
    """Return the services of operations of agents in a supervisor."""

    async def read_catalogue() -> Catalogue:
        return parts.catalogue()

    return AgentServices(
        read_catalogue=read_catalogue,
        attendance=parts.attendance,
        redis=parts.redis,
        tasks=parts.for_tasks,
    )


def for_operator(parts: OperatorDependencies) -> AgentLooks:
    """Return the services of looks at agents by the rights of an operator."""

    async def read_catalogue() -> Catalogue:
        # Nothing tells this process of a card that changes.
        await parts.cards.load(parts.link)
        return parts.cards.catalogue

    return AgentLooks(
        read_catalogue=read_catalogue,
        attendance=parts.attendance,
        redis=parts.redis,
    )


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(for_supervisor, OPERATIONS),
    operator=serve(for_operator, OPERATOR_OPERATIONS),
)
