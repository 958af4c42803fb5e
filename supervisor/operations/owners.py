"""Ownership of conversations and tasks: a key for one user sees and goes on with those of that user alone."""

import hashlib

from tasklore.contracts.callers import Caller
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.ledger.requests import place_of
from tasklore.supervisor.operations.refusals import Refused


async def demand_conversation(
    conversations: Conversations, caller: Caller, conversation_id: str | None
) -> None:
    """Return when *caller* may speak in, and look into, a conversation; None is none.

    Raises:
        Refused: 403, it is another user's.
        MemoryUnavailable: the store does not answer.
    """
    if caller.user is None or conversation_id is None:
        return
    if conversation_id in await conversations.of_user(caller.user):
        return
    if await conversations.recent(conversation_id, 1) or await conversations.waiting(
        conversation_id
    ):
        detail = "this conversation is not of the user that the key is for; choose another id"
        raise Refused(403, "other-conversation", detail)


def own_conversation(caller: Caller, request_id: str) -> str:
    """Return the conversation of a request that names none: of its own, and never another user's."""
    if caller.user is None:
        return request_id
    return f"c-{hashlib.blake2b(f'{caller.space}.{request_id}'.encode(), digest_size=16).hexdigest()}"


def world_conversation(agent_id: str, name: str, user_id: str | None) -> str:
    """Return the conversation of the agent called *name* in the world of a user: two users may have one each."""
    if user_id is None:
        return f"{agent_id}.{name}"
    return f"{agent_id}.{name}.{hashlib.blake2b(user_id.encode(), digest_size=8).hexdigest()}"


def task_place(caller: Caller, task_id: str) -> str:
    """Return the key of the record that *caller* sent the task *task_id*, or asked for what became it."""
    return place_of(caller.space, "task-id", task_id)
