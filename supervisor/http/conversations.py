"""The routes of conversations: the list of a user's, and the messages of one."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path, Query

from tasklore.memory.conversations.inbox import Inbox
from tasklore.supervisor.http.admission.keys import Caller, require_role
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.refusals import Refused, not_found

ConversationId = Annotated[
    str,
    Path(min_length=1, max_length=256, description="A conversation, without a slash."),
]

_READING = Depends(require_role("read"))
#: Bytes of the messages of one page.
_MOST_BYTES = 1024**2


class Conversations(View):
    """The ids of a user's conversations within 30 days; `next` is the `after` of the next page, null at the end."""

    user: str
    conversations: tuple[str, ...]
    next: str | None


class Spoken(View):
    """One message: of `person`, of `assistant`, or of the agent that answered; `time` is in seconds of its world."""

    message_id: str
    speaker: str
    message: str
    time: float


class ConversationPage(View):
    """A part of a conversation, oldest first; `before` is that of the page before it, null at the beginning.

    To a key for one user only what that user said, and was answered, is shown: a page may hold less than was asked for.
    """

    conversation_id: str
    messages: tuple[Spoken, ...]
    before: int | None


def routes(parts: ApiParts) -> APIRouter:
    """Return the routes below `/v1/conversations`."""
    router = APIRouter(prefix="/v1/conversations", tags=["conversations"])
    inbox = Inbox(parts.redis)

    @router.get(
        "",
        operation_id="conversations_list",
        summary="List the conversations of a user",
        responses=answers(),
    )
    async def list_conversations(
        caller: Annotated[Caller, _READING],
        user: Annotated[
            str | None,
            Query(min_length=1, max_length=256, description="Whose; the key's own."),
        ] = None,
        after: Annotated[
            str | None,
            Query(max_length=256, description="Ids after this: `next` of a page."),
        ] = None,
        limit: Annotated[int, Query(ge=1, le=1000, description="Ids of a page.")] = 100,
    ) -> Conversations:
        user_id = caller.demand_user(user)
        if user_id is None:
            raise Refused(
                422,
                "unusable",
                "user: say whose conversations, as this key is for no user",
            )
        owned = [
            one
            for one in await parts.conversations.of_user(user_id)
            if after is None or one > after
        ]
        shown = tuple(owned[:limit])
        return Conversations(
            user=user_id,
            conversations=shown,
            next=shown[-1] if len(owned) > limit else None,
        )

    @router.get(
        "/{conversation_id}",
        operation_id="conversations_show",
        summary="Read a conversation",
        responses=answers(404),
    )
    async def read_conversation(
        conversation_id: ConversationId,
        caller: Annotated[Caller, _READING],
        before: Annotated[
            int | None,
            Query(ge=1, le=2**53, description="Messages before this number."),
        ] = None,
        limit: Annotated[
            int, Query(ge=1, le=1000, description="Messages of a page.")
        ] = 100,
    ) -> ConversationPage:
        unknown = not_found(
            f"there is no conversation {conversation_id!r}, or nothing was said in it for 30 days"
        )
        # Whether it is another user's is not revealed.
        scope = caller.user
        if (
            scope is not None
            and conversation_id not in await parts.conversations.of_user(scope)
        ):
            raise unknown
        page = await inbox.exact_page(conversation_id, before, limit, _MOST_BYTES)
        if (
            not page.messages
            and page.before is None
            and not await parts.conversations.recent(conversation_id, 1)
        ):
            raise unknown
        messages = tuple(
            Spoken(
                message_id=one.message_id,
                speaker=one.speaker,
                message=text,
                time=one.time,
            )
            for one, text in page.messages
            if caller.may_hear(one.user_id)
        )
        return ConversationPage(
            conversation_id=conversation_id, messages=messages, before=page.before
        )

    return router
