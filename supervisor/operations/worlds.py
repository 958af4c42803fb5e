"""Worlds: messages to the agents that live in one, and those that wait there to be heard."""

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, ClassVar

from pydantic import BeforeValidator, ConfigDict, Field, WithJsonSchema

from tasklore.contracts.agent_messages import agent_message
from tasklore.contracts.callers import Caller
from tasklore.contracts.conversations import MessageId, Speech
from tasklore.contracts.identifiers import new_id
from tasklore.contracts.observations import Word, WorldTime
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.inbox import Inbox, read
from tasklore.memory.holdings.store import Holding
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.forms import Form, View, read_seconds
from tasklore.supervisor.operations.idempotency import IdempotencyKey
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.owners import demand_conversation
from tasklore.supervisor.operations.refusals import not_found
from tasklore.supervisor.operations.table import Operations, Shows, operation

ConversationName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=256,
        description="The conversation of the agent, such as coins.Ana.",
    ),
]


#: Seconds of a world as they are typed: a number, digits, or a text such as "2h".
SpelledWorldTime = Annotated[
    WorldTime,
    BeforeValidator(read_seconds),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1e12},
                {"type": "string", "examples": ["8", "2h"]},
            ]
        }
    ),
]


@dataclass(frozen=True, kw_only=True)
class WorldLooks:
    """The conversations of agents."""

    conversations: Conversations


@dataclass(frozen=True, kw_only=True)
class WorldServices(WorldLooks):
    """The conversations of agents, their inboxes, and the dispatch, which has the bounds of those who fill them."""

    inbox: Inbox
    dispatch: Dispatch


class WorldMessage(Form):
    """A message to an agent, which receives it with its next task.

    The same `message_id` of a sender again is the same message; without it there is a new one. `time` is in seconds of
    the world; without it that of what the agent observed last, 0 where it never did.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    conversation_id: ConversationName
    sender: Annotated[Word, Field(description="Who speaks.")]
    message: Annotated[Speech, Field(description="What they say.")]
    time: Annotated[
        SpelledWorldTime | None, Field(description="When, in seconds of the world.")
    ] = None
    message_id: Annotated[
        MessageId | None,
        Field(description="Message id; use the same id when you send it again."),
    ] = None
    user: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=256,
            description="User on whose behalf the words are said.",
        ),
    ] = None


class DeliveredMessage(View):
    """A message that is in the inbox of an agent; it was there before where it is not new."""

    conversation_id: str
    message_id: str
    time: float
    is_new: bool


class UnheardMessage(View):
    """A message that its agent has not received yet."""

    message_id: str
    sender: str
    message: str
    time: float


class UnheardMessages(View):
    """A page of messages that wait for an agent, in their order; `after` is that of the next page, None at the end."""

    conversation_id: str
    messages: tuple[UnheardMessage, ...]
    after: str | None


@operation(
    "worlds",
    "tell",
    "POST /v1/worlds/messages",
    roles=("ask",),
    shows=Shows(
        arguments=("conversation_id", "sender", "message"),
        example="worlds tell coins.Ana Bob 'A storm is coming!' --time 8",
    ),
)
async def tell_agent(
    services: WorldServices,
    caller: Caller,
    said: WorldMessage,
    *,
    idempotency_key: IdempotencyKey = None,
) -> DeliveredMessage:
    """Say something to an agent in a world.

    Raises:
        Refused: 403, the conversation is another user's or tenant's.
        NotPermitted: the key is for another user.
        OwnerFull: the caller keeps too much; nothing was kept.
    """
    user_id = caller.demand_user(said.user)
    conversation_id = said.conversation_id
    await demand_conversation(services.conversations, caller, conversation_id)
    time = said.time
    if time is None:
        seen = await services.inbox.recent_observations(conversation_id, 1)
        time = seen[-1].time if seen else 0.0
    message = agent_message(
        message_id=said.message_id or _make_id(caller, idempotency_key),
        conversation_id=conversation_id,
        sender=said.sender,
        message=said.message,
        time=time,
        user_id=user_id,
    )
    held = Holding("words", len(said.message.encode()))
    await services.dispatch.bounds.demand(caller, user_id, held)
    is_new = await services.inbox.post(
        conversation_id,
        message.as_utterance(),
        user_id=user_id,
        known_as=message.inbox_id,
    )
    return DeliveredMessage(
        conversation_id=conversation_id,
        message_id=message.message_id,
        time=time,
        is_new=is_new,
    )


@operation(
    "worlds",
    "waiting",
    "GET /v1/worlds/messages",
    roles=("read",),
    problems=(404,),
    shows=Shows(
        rows="messages",
        columns=("time", "sender", "message", "message_id"),
        arguments=("conversation_id",),
        example="worlds waiting coins.Ana",
    ),
)
async def list_unheard(
    services: WorldLooks,
    caller: Caller,
    *,
    conversation_id: ConversationName,
    after: Annotated[
        str,
        Field(
            pattern=r"^[0-9]{0,9}$",
            description="Pagination cursor: the `after` of the previous page.",
        ),
    ] = "",
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number.")] = 50,
) -> UnheardMessages:
    """List messages that an agent has been sent and has not received yet.

    A key for one user shows only messages of that user.

    Raises:
        Refused: 404, the conversation is another user's or tenant's.
    """
    conversations = services.conversations
    is_theirs = caller.user is None or conversation_id in await conversations.of_user(
        caller.user
    )
    own = caller.own_tenant
    if own is not None:
        is_theirs = is_theirs and await conversations.tenant_of(conversation_id) == own
    if not is_theirs:
        raise not_found(f"there is no conversation {conversation_id!r}")
    found = [read(body) for body in await conversations.waiting(conversation_id)]
    heard = [
        UnheardMessage(
            message_id=one.message_id,
            sender=one.speaker,
            message=one.message,
            time=one.time,
        )
        for one in found
        if one is not None and caller.may_hear(one.user_id)
    ]
    begin = int(after or "0")
    end = begin + limit
    return UnheardMessages(
        conversation_id=conversation_id,
        messages=tuple(heard[begin:end]),
        after=str(end) if end < len(heard) else None,
    )


#: Those that change nothing.
OPERATOR_OPERATIONS = (list_unheard,)
OPERATIONS: Operations[WorldServices] = (tell_agent, *OPERATOR_OPERATIONS)


def _make_id(caller: Caller, chosen: str | None) -> str:
    """Return the id of a message whose sender gave none, the same for an id that the caller *chosen*."""
    if chosen is None:
        return new_id(int(datetime.now(UTC).timestamp() * 1000))
    whose = f"{caller.space}.{chosen}"
    return f"m-{hashlib.blake2b(whose.encode(), digest_size=16).hexdigest()}"


def for_supervisor(parts: SupervisorDependencies) -> WorldServices:
    """Return the services of operations of worlds in a supervisor."""
    return WorldServices(
        conversations=parts.conversations,
        inbox=Inbox(parts.redis),
        dispatch=parts.dispatch,
    )


def for_operator(parts: OperatorDependencies) -> WorldLooks:
    """Return the services of looks into worlds by the rights of an operator."""
    return WorldLooks(conversations=Conversations(parts.redis))


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(for_supervisor, OPERATIONS),
    operator=serve(for_operator, OPERATOR_OPERATIONS),
)
