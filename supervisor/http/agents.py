"""Agents: their cards, and the question to one in a world, what it does now."""

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Depends, Path
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.requests import Request

from contracts.conversations import MessageId
from contracts.identifiers import NAME_PATTERN
from contracts.messages import AgentCard, CompletionReport
from contracts.observations import Action, SensoryData, Word, WorldTime
from memory.conversations.observations import Observations
from supervisor.http.admission.keys import Caller, allowed
from supervisor.http.card_fit import demand_fit, demand_offer, no_such_agent
from supervisor.http.owners import demand_conversation, world_conversation
from supervisor.http.parts import Parts
from supervisor.http.problems import Refused, answers
from supervisor.http.replies import while_heard
from supervisor.http.requests.routes import IdempotencyKey
from supervisor.http.tasks import Order, carried_out, demand_taken

#: The task that decides, by convention of every agent that lives in a world.
DECIDE = "decide"

AgentId = Annotated[str, Path(pattern=NAME_PATTERN, description="The id of an agent.")]


class Agents(BaseModel):
    """Every agent that has reported, by id, also while no worker of it is alive."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    agents: tuple[AgentCard, ...]


class Heard(BaseModel):
    """What somebody said to the agent since it was last asked."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    sender: Word
    message: Annotated[str, Field(min_length=1, max_length=2000)]
    time: WorldTime | None = None
    message_id: MessageId | None = None


class Sensed(BaseModel):
    """What an agent senses and is told at one moment; what else a world says of itself goes on to the agent as it is.

    `name` None is that of the agent. `simulation_time` None is when it last observed something, 0 when it never did.
    `agents` None are those that it sees or hears of.
    `conversation` None is the one named after agent, name and user. See docs/decisions.md for every field.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    sensory_data: SensoryData
    new_messages: Annotated[tuple[Heard, ...], Field(max_length=200)] = ()
    name: Word | None = None
    simulation_time: WorldTime | None = None
    allowed: Annotated[tuple[Word, ...], Field(min_length=1, max_length=20)] | None = None
    agents: Annotated[tuple[Word, ...], Field(max_length=500)] | None = None
    conversations: dict[str, str] | None = None
    bounds: dict[str, JsonValue] | None = None
    reach: Annotated[float, Field(ge=0)] | None = None
    step: Annotated[float, Field(ge=0)] | None = None
    tell_prompt: bool | None = None
    user: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    conversation: Annotated[str | None, Field(min_length=1, max_length=256)] = None
    wait_seconds: Annotated[float, Field(ge=1, le=600)] = 30.0


class Decided(Action):
    """What the agent does now, why, and who decided: `rules`, a model by its name, or `earlier run`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="allow")

    reasoning: str = ""
    by: str = ""


#: What is ours, not the agent's.
_OURS = {"user", "conversation", "wait_seconds"}


def routes(parts: Parts) -> APIRouter:
    """Return the routes below `/v1/agents`."""
    router = APIRouter(prefix="/v1/agents", tags=["agents"])
    looking, asking = [Depends(allowed("ask", "read"))], Depends(allowed("ask"))

    @router.get("", summary="List the agents", dependencies=looking, responses=answers())
    async def every() -> Agents:
        return Agents(agents=tuple(parts.catalogue().cards.values()))

    @router.get("/{agent_id}", summary="See what an agent offers", dependencies=looking, responses=answers(404))
    async def one(agent_id: AgentId) -> AgentCard:
        card = parts.catalogue().cards.get(agent_id)
        if card is None:
            raise no_such_agent(agent_id, parts.catalogue())
        return card

    @router.post(
        "/{agent_id}/brain/decide", summary="Ask an agent in a world what it does", responses=answers(404, 409)
    )
    async def decide(
        agent_id: AgentId,
        body: Sensed,
        request: Request,
        caller: Annotated[Caller, asking],
        idempotency_key: IdempotencyKey = None,
    ) -> Decided:
        offer = demand_offer(parts.catalogue(), agent_id, DECIDE)
        user_id = caller.demand_user(body.user)
        conversation_id = body.conversation or world_conversation(agent_id, body.name or agent_id, user_id)
        await demand_conversation(parts, caller, conversation_id)
        order = Order(
            offer=offer,
            parameters=await _moment(parts, agent_id, body, conversation_id),
            user_id=user_id,
            conversation_id=conversation_id,
            chosen=idempotency_key,
            within_s=body.wait_seconds,
        )
        demand_fit(offer.task, order.parameters)
        # A little longer than the task may take: whoever runs it says so when its time is over.
        sent = await while_heard(request.receive, carried_out(parts, caller, order, body.wait_seconds + 1))
        demand_taken(sent.report)
        return _decision(sent.report, agent_id)

    return router


async def _moment(parts: Parts, agent_id: str, body: Sensed, conversation_id: str) -> dict[str, Any]:
    """Return what the agent is asked, with what its world left out."""
    told = body.model_dump(mode="json", by_alias=True, exclude=_OURS, exclude_none=True, exclude_defaults=False)
    if body.simulation_time is None:
        last = await Observations(parts.redis).recent(conversation_id, 1)
        told["simulation_time"] = last[-1].time if last else 0.0
    told.setdefault("name", agent_id)
    if body.agents is None:
        met = dict.fromkeys(
            [one.name for one in body.sensory_data.nearby_agents] + [one.sender for one in body.new_messages]
        )
        told["agents"] = [name for name in met if name != told["name"]]
    return told


def _decision(report: CompletionReport | None, agent_id: str) -> Decided:
    if report is None or report.status == "expired":
        detail = f"{agent_id} did not decide in time; is a worker of it up? Allow more with wait_seconds"
        raise Refused(503, "late", detail, headers={"Retry-After": "1"})
    if report.status != "completed":
        told = report.error.message if report.error is not None else report.status
        raise Refused(503, "undecided", f"{agent_id} did not decide: {told}", headers={"Retry-After": "1"})
    return Decided.model_validate(report.result)
