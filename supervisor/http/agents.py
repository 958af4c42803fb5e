"""The routes of agents: their cards, and the decision of one in a world."""

from typing import Annotated, Any, ClassVar

from fastapi import APIRouter, Depends, Path
from pydantic import ConfigDict, Field, JsonValue
from starlette.requests import Request

from tasklore.contracts.conversations import MessageId
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.contracts.messages import AgentCard
from tasklore.contracts.observations import Action, SensoryData, Word, WorldTime
from tasklore.memory.conversations.observations import Observations
from tasklore.supervisor.http.admission.keys import Caller, require_role
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.http.requests.routes import IdempotencyKey
from tasklore.supervisor.http.responses import while_connected
from tasklore.supervisor.operations.card_fit import (
    demand_fit,
    demand_offer,
    no_such_agent,
)
from tasklore.supervisor.operations.forms import Form, View
from tasklore.supervisor.operations.owners import (
    demand_conversation,
    world_conversation,
)
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.sent_tasks import (
    NewTask,
    demand_accepted,
    send_task,
)

#: The task that decides, by convention of every agent that lives in a world.
DECIDE = "decide"

AgentId = Annotated[str, Path(pattern=NAME_PATTERN, description="The id of an agent.")]

#: Seconds more than a task may take: the worker reports when its time is over.
_REPORT_S = 1


class Agents(View):
    """Every agent that has reported, by id, also while no worker of it is alive."""

    agents: tuple[AgentCard, ...]


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

    sensory_data: SensoryData
    new_messages: Annotated[tuple[HeardMessage, ...], Field(max_length=200)] = ()
    name: Word | None = None
    simulation_time: WorldTime | None = None
    allowed: Annotated[tuple[Word, ...], Field(min_length=1, max_length=20)] | None = (
        None
    )
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
    """The agent's action, its reason, and who decided: `rules`, a model by its name, or `earlier run`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="allow")

    reasoning: str = ""
    by: str = ""


def routes(parts: ApiParts) -> APIRouter:
    """Return the routes below `/v1/agents`."""
    router = APIRouter(prefix="/v1/agents", tags=["agents"])
    looking = [Depends(require_role("ask", "read"))]
    asking = Depends(require_role("ask"))

    @router.get(
        "",
        operation_id="agents_list",
        summary="List the agents",
        dependencies=looking,
        responses=answers(),
    )
    async def list_agents() -> Agents:
        return Agents(agents=tuple(parts.catalogue().cards.values()))

    @router.get(
        "/{agent_id}",
        operation_id="agents_show",
        summary="See what an agent offers",
        dependencies=looking,
        responses=answers(404),
    )
    async def read_agent(agent_id: AgentId) -> AgentCard:
        card = parts.catalogue().cards.get(agent_id)
        if card is None:
            raise no_such_agent(agent_id, parts.catalogue())
        return card

    @router.post(
        "/{agent_id}/brain/decide",
        operation_id="agents_decide",
        summary="Ask an agent in a world what it does",
        responses=answers(404, 409),
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
        conversation_id = body.conversation or world_conversation(
            agent_id, body.name or agent_id, user_id
        )
        await demand_conversation(parts.conversations, caller, conversation_id)
        task = NewTask(
            offer=offer,
            parameters=await _complete_senses(parts, agent_id, body, conversation_id),
            user_id=user_id,
            conversation_id=conversation_id,
            chosen=idempotency_key,
            within_s=body.wait_seconds,
        )
        demand_fit(offer.task, task.parameters)
        sent = await while_connected(
            request.receive,
            send_task(parts.for_tasks, caller, task, body.wait_seconds + _REPORT_S),
        )
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

    return router


async def _complete_senses(
    parts: ApiParts, agent_id: str, body: Sensed, conversation_id: str
) -> dict[str, Any]:
    """Return the parameters of the decision: *body*, with what its world left out."""
    ours = {"user", "conversation", "wait_seconds"}
    senses = body.model_dump(
        mode="json", by_alias=True, exclude=ours, exclude_none=True
    )
    if body.simulation_time is None:
        last = await Observations(parts.redis).recent(conversation_id, 1)
        senses["simulation_time"] = last[-1].time if last else 0.0
    senses.setdefault("name", agent_id)
    if body.agents is None:
        met = [one.name for one in body.sensory_data.nearby_agents] + [
            one.sender for one in body.new_messages
        ]
        senses["agents"] = [
            name for name in dict.fromkeys(met) if name != senses["name"]
        ]
    return senses
