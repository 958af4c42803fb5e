"""Conversations: the list of a user's, and the messages of one."""

from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from tasklore.contracts.callers import Caller
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.inbox import Inbox
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.owners import choose_visible, may_look_into
from tasklore.supervisor.operations.refusals import Fault, not_found, unusable
from tasklore.supervisor.operations.table import Shows, operation

ConversationId = Annotated[
    str,
    Field(
        min_length=1,
        max_length=256,
        description='Conversation id (must not contain "/").',
    ),
]

#: Conversations of a user into which one look finds out whether they are a tenant's.
_LOOKED_INTO = 50
#: Bytes of the messages of one page.
_MOST_BYTES = 1024**2


@dataclass(frozen=True, kw_only=True, slots=True)
class ConversationServices:
    """The services of operations of conversations."""

    conversations: Conversations
    inbox: Inbox


class ConversationList(View):
    """The ids of a user's conversations within 30 days; `after` is that of the next page, null at the end."""

    user: str
    conversations: tuple[str, ...]
    after: str | None


class Spoken(View):
    """One message: of `person`, of `assistant`, or of the agent that answered; `time` is in seconds of its world."""

    message_id: str
    speaker: str
    message: str
    time: float


class ConversationPage(View):
    """A part of a conversation, oldest first; `before` is that of the page before it, null at the beginning.

    To a key for one user only what that user said, and was answered, is shown, to one of a tenant what names that: a
    page may hold less than was asked for.
    """

    conversation_id: str
    messages: tuple[Spoken, ...]
    before: int | None


@operation(
    "conversations",
    "list",
    "GET /v1/conversations",
    roles=("read",),
    shows=Shows(rows="conversations", example="conversations list --user ann"),
)
async def list_conversations(
    services: ConversationServices,
    caller: Caller,
    *,
    user: Annotated[
        str | None,
        Field(
            min_length=1,
            max_length=256,
            description="User id; default: the user of the key.",
        ),
    ] = None,
    after: Annotated[
        str,
        Field(
            max_length=256,
            description="Pagination cursor: the `after` of the previous page.",
        ),
    ] = "",
    limit: Annotated[int, Field(ge=1, le=200, description="Ids on a page.")] = 100,
) -> ConversationList:
    """List the conversations of a user."""
    user_id = caller.demand_user(user)
    if user_id is None:
        words = "say whose conversations, as this key is for no user"
        raise unusable([Fault(where="user", message=words)])
    owned: list[str] = []
    left = [one for one in await services.conversations.of_user(user_id) if one > after]
    for first in range(0, len(left), _LOOKED_INTO):
        page = left[first : first + _LOOKED_INTO]
        owned += await choose_visible(services.conversations, caller, page)
        if len(owned) > limit:
            break
    shown = tuple(owned[:limit])
    return ConversationList(
        user=user_id,
        conversations=shown,
        after=shown[-1] if len(owned) > limit else None,
    )


@operation(
    "conversations",
    "show",
    "GET /v1/conversations/{conversation_id}",
    roles=("read",),
    problems=(404,),
    shows=Shows(
        rows="messages",
        columns=("time", "speaker", "message"),
        example="conversations show trip",
    ),
)
async def show_conversation(
    services: ConversationServices,
    caller: Caller,
    conversation_id: ConversationId,
    *,
    before: Annotated[
        int | None,
        Field(
            ge=1,
            le=2**53,
            description="Pagination cursor: messages before this number.",
        ),
    ] = None,
    limit: Annotated[int, Field(ge=1, le=200, description="Messages on a page.")] = 100,
) -> ConversationPage:
    """Read a conversation."""
    unknown = not_found(
        f"there is no conversation {conversation_id!r}, or nothing was said in it for 30 days"
    )
    # Whether it is another user's is not revealed.
    scope = caller.user
    if (
        scope is not None
        and conversation_id not in await services.conversations.of_user(scope)
    ):
        raise unknown
    page = await services.inbox.exact_page(conversation_id, before, limit, _MOST_BYTES)
    if (
        not page.messages
        and page.before is None
        and not await services.conversations.recent(conversation_id, 1)
    ):
        raise unknown
    if not await may_look_into(services.conversations, caller, conversation_id):
        raise unknown
    messages = tuple(
        Spoken(
            message_id=one.utterance.message_id,
            speaker=one.utterance.speaker,
            message=one.text,
            time=one.utterance.time,
        )
        for one in page.messages
        if caller.may_see(one.utterance.user_id, one.tenant)
    )
    return ConversationPage(
        conversation_id=conversation_id, messages=messages, before=page.before
    )


OPERATIONS = (list_conversations, show_conversation)


def make_services(
    parts: SupervisorDependencies | OperatorDependencies,
) -> ConversationServices:
    """Return the services of operations of conversations, in either process."""
    return ConversationServices(
        conversations=Conversations(parts.redis), inbox=Inbox(parts.redis)
    )


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(make_services, OPERATIONS),
    operator=serve(make_services, OPERATIONS),
)
