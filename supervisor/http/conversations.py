"""Conversations: which a user has, and what was said in one."""

from typing import Annotated, ClassVar

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, ConfigDict

from contracts.conversations import Utterance
from memory.conversations.inbox import Inbox
from supervisor.http.admission.keys import Caller, allowed
from supervisor.http.parts import Parts
from supervisor.http.problems import Refused, answers, not_found

ConversationId = Annotated[str, Path(min_length=1, max_length=256, description="A conversation, without a slash.")]

_READING = Depends(allowed("read"))


class _Told(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)


class Conversations(_Told):
    """The ids of a user's conversations within 30 days; `next` is the `after` of the next page, null at the end."""

    user: str
    conversations: tuple[str, ...]
    next: str | None


class Spoken(_Told):
    """One message: of `person`, of `assistant`, or of the agent that answered; `time` is in seconds of its world."""

    message_id: str
    speaker: str
    message: str
    time: float


class ConversationPage(_Told):
    """A part of a conversation, oldest first; `before` is that of the page before it, null at the beginning.

    To a key for one user only what that user said, and was answered, is shown: a page may hold less than was asked for.
    """

    conversation_id: str
    messages: tuple[Spoken, ...]
    before: int | None


def routes(parts: Parts) -> APIRouter:
    """Return the routes below `/v1/conversations`."""
    router = APIRouter(prefix="/v1/conversations", tags=["conversations"])
    inbox = Inbox(parts.redis)

    @router.get("", summary="List the conversations of a user", responses=answers())
    async def conversations(
        caller: Annotated[Caller, _READING],
        user: Annotated[str | None, Query(min_length=1, max_length=256, description="Whose; the key's own.")] = None,
        after: Annotated[str | None, Query(max_length=256, description="Ids after this: `next` of a page.")] = None,
        limit: Annotated[int, Query(ge=1, le=1000, description="Ids of a page.")] = 100,
    ) -> Conversations:
        user_id = caller.demand_user(user)
        if user_id is None:
            raise Refused(422, "unusable", "user: say whose conversations, as this key is for no user")
        owned = [one for one in await parts.conversations.of_user(user_id) if after is None or one > after]
        shown = tuple(owned[:limit])
        return Conversations(user=user_id, conversations=shown, next=shown[-1] if len(owned) > limit else None)

    @router.get("/{conversation_id}", summary="Read a conversation", responses=answers(404))
    async def conversation(
        conversation_id: ConversationId,
        caller: Annotated[Caller, _READING],
        before: Annotated[int | None, Query(ge=1, le=2**53, description="Messages before this number.")] = None,
        limit: Annotated[int, Query(ge=1, le=1000, description="Messages of a page.")] = 100,
    ) -> ConversationPage:
        await _demand_seen(parts, caller, conversation_id)
        page = await inbox.page(conversation_id, before, limit)
        if not page.messages and page.before is None and not await parts.conversations.recent(conversation_id, 1):
            raise _unknown(conversation_id)
        messages = tuple(_spoken(message) for message in page.messages if caller.may_hear(message.user_id))
        return ConversationPage(conversation_id=conversation_id, messages=messages, before=page.before)

    return router


async def _demand_seen(parts: Parts, caller: Caller, conversation_id: str) -> None:
    """Return when *caller* may look into a conversation.

    Raises:
        Refused: 404, it is not of the user that the key is for: whether it is somebody else's is not told.
    """
    scope = caller.user_scope
    if scope is not None and conversation_id not in await parts.conversations.of_user(scope):
        raise _unknown(conversation_id)


def _unknown(conversation_id: str) -> Refused:
    return not_found(f"there is no conversation {conversation_id!r}, or nothing was said in it for 30 days")


def _spoken(message: Utterance) -> Spoken:
    return Spoken(message_id=message.message_id, speaker=message.speaker, message=message.message, time=message.time)
