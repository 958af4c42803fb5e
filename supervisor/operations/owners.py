"""Ownership of conversations and tasks: a key for one user, or of a tenant, goes on with theirs alone."""

import hashlib
import json
from collections.abc import Iterable, Sequence

from tasklore.contracts.callers import Caller
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.conversations.inbox import is_utterance, read_turn
from tasklore.memory.ledger.requests import place_of
from tasklore.supervisor.operations.refusals import Refused

#: Turns of a conversation that say whose it is.
_LOOKED_AT = 20


async def demand_conversation(
    conversations: Conversations, caller: Caller, conversation_id: str | None
) -> None:
    """Return when *caller* may speak in, and look into, a conversation; None is none.

    An empty one becomes one of the caller's tenant, as what agents say and sense there names none.

    Raises:
        Refused: 403, it is another user's or tenant's.
        MemoryUnavailable: the store does not answer.
    """
    if conversation_id is None:
        return
    if caller.tenant is not None:
        await _demand_tenant(conversations, caller, conversation_id, caller.tenant)
    if caller.user is None:
        return
    if conversation_id in await conversations.of_user(caller.user):
        return
    if await conversations.is_begun(conversation_id):
        detail = "this conversation is not of the user that the key is for; choose another id"
        raise Refused(403, "other-conversation", detail)


async def _demand_tenant(
    conversations: Conversations, caller: Caller, conversation_id: str, tenant: str
) -> None:
    """Return when *caller*, who asks for *tenant*, may speak in a conversation; claim one without an owner.

    Raises:
        Refused: 403, it is another tenant's, or agents speak there for nobody who is known.
    """
    own = caller.own_tenant
    holder = await conversations.tenant_of(conversation_id)
    if own is None:
        # They may speak anywhere, and what others began stays whose it is.
        if holder is None and not await conversations.is_begun(conversation_id):
            await conversations.claim(conversation_id, tenant)
        return
    said = await conversations.recent(conversation_id, _LOOKED_AT)
    tenants = _tenants_of(said)
    is_anothers = not tenants <= {own, None}
    if holder is None and not is_anothers:
        # Turns of 0.2 name no tenant, and may be theirs; what agents say and sense never does.
        has_turns_alone = bool(said) and not any(map(is_utterance, said))
        if (
            own in tenants
            or has_turns_alone
            or not await conversations.is_begun(conversation_id)
        ):
            holder = await conversations.claim(conversation_id, own)
    if is_anothers or holder != own:
        detail = "this conversation is not of the tenant that the key is of; choose another id"
        raise Refused(403, "other-conversation", detail)


async def may_look_into(
    conversations: Conversations, caller: Caller, conversation_id: str
) -> bool:
    """Return whether *caller* has a part in a conversation of a user that they may hear.

    Raises:
        MemoryUnavailable: the store does not answer.
    """
    return bool(await choose_visible(conversations, caller, [conversation_id]))


async def choose_visible(
    conversations: Conversations, caller: Caller, conversation_ids: Sequence[str]
) -> list[str]:
    """Return those of *conversation_ids* that `may_look_into` holds for, in one round trip.

    Raises:
        MemoryUnavailable: the store does not answer.
    """
    if caller.own_tenant is None or not conversation_ids:
        return list(conversation_ids)
    found = await conversations.recent_of_many(conversation_ids, _LOOKED_AT)
    return [
        one
        for one, bodies in zip(conversation_ids, found, strict=True)
        if caller.own_tenant in _tenants_of(bodies)
    ]


def _tenants_of(bodies: Iterable[bytes]) -> set[str | None]:
    turns = (read_turn(body) for body in bodies if not is_utterance(body))
    return {turn.tenant for turn in turns if turn is not None}


def own_conversation(caller: Caller, request_id: str) -> str:
    """Return the conversation of a request that names none: of its own, and never another user's."""
    if caller.user is None:
        return request_id
    return f"c-{hashlib.blake2b(f'{caller.space}.{request_id}'.encode(), digest_size=16).hexdigest()}"


def world_conversation(
    agent_id: str, name: str, user_id: str | None, tenant: str | None = None
) -> str:
    """Return the conversation of the agent called *name* in the world of a user: two users may have one each.

    So may two tenants.
    """
    if tenant is not None:
        whose = json.dumps([tenant, user_id])
        digest = hashlib.blake2b(whose.encode(), digest_size=8).hexdigest()
        return f"{agent_id}.{name}.~{digest}"
    if user_id is None:
        return f"{agent_id}.{name}"
    return f"{agent_id}.{name}.{hashlib.blake2b(user_id.encode(), digest_size=8).hexdigest()}"


def task_place(caller: Caller, task_id: str) -> str:
    """Return the key of the record that *caller* sent the task *task_id*, or asked for what became it."""
    return place_of(caller.space, "task-id", task_id)
