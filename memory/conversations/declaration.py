"""The declaration of conversations."""

from collections.abc import Sequence

from pydantic_core import from_json
from redis.asyncio import Redis

from tasklore.memory.conversations import scripts
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.declarations import (
    EVERY_ROLE,
    Store,
    StoreKey,
    StoreRole,
    UserStore,
    user_store,
)

#: Turns of one conversation that are looked through: far above what one holds.
_ALL_TURNS = 1_000_000


def user_of(turn: bytes) -> object:
    """Return the user id of a turn; None when it has none or cannot be read."""
    return turn_field(turn, "user_id")


def turn_field(turn: bytes, name: str) -> object:
    """Return the field *name* of a turn; None when it has none or cannot be read."""
    try:
        read = from_json(turn)
    except ValueError:
        return None
    return read.get(name) if isinstance(read, dict) else None


def is_shared(turns: Sequence[bytes], user_id: str) -> bool:
    """Return whether another known user takes part in a conversation of *turns*."""
    return any(user_of(turn) not in (None, user_id) for turn in turns)


async def read_all_turns(
    conversations: Conversations, conversation_id: str
) -> list[bytes]:
    """Return every turn of a conversation, and what waits to enter it."""
    # Waiting turns first: one may be taken between the two reads.
    waiting = await conversations.waiting(conversation_id)
    return waiting + await conversations.recent(conversation_id, _ALL_TURNS)


def _open(redis: Redis, deadline_s: float) -> UserStore:
    """Open the conversations of a user; of one in which others take part, the user's own turns."""
    conversations = Conversations(redis, deadline_s=deadline_s)

    async def remove(conversation_id: str, user_id: str) -> bool:
        turns = await read_all_turns(conversations, conversation_id)
        if is_shared(turns, user_id):
            theirs = [turn for turn in turns if user_of(turn) == user_id]
            return bool(await conversations.drop(conversation_id, theirs))
        # What was said in it before they gave a name is theirs too.
        return await conversations.forget(conversation_id)

    async def forget(user_id: str) -> int:
        listed = await conversations.of_user(user_id)
        removed = sum(
            [await remove(conversation_id, user_id) for conversation_id in listed]
        )
        await conversations.disown(user_id, listed)
        # Of one that goes on meanwhile a turn may have come while it stood in no list.
        for conversation_id in listed:
            await remove(conversation_id, user_id)
        return removed

    async def count(user_id: str) -> int:
        return len(await conversations.of_user(user_id))

    return user_store("conversations", forget, count)


STORES = (
    Store(
        name="conversations",
        keys=(
            StoreKey(
                names=("tl:conversation:{id}",),
                type="list",
                lasts="30 days after its last use",
                holds="turns and utterances, oldest first",
                forgotten_as=("conversations",),
            ),
            StoreKey(
                names=("tl:conversation:{id}:ids", ":digest"),
                type="sorted set, hash",
                lasts="the same",
                holds="ids of that and of what waits; the rest",
                forgotten_as=("conversations",),
            ),
            StoreKey(
                names=("tl:user-conversations:{token}",),
                type="set",
                lasts="30 days",
                holds="the ids of a user's conversations",
                forgotten_as=("conversations",),
            ),
        ),
        bound="`words`; 2,000 messages a conversation",
        writers=EVERY_ROLE,
        scripts=(scripts,),
        of_users=_open,
    ),
    Store(
        name="inboxes",
        keys=(
            StoreKey(
                names=("tl:inbox:{id}", ":state"),
                type="list, hash",
                lasts="the same",
                holds="what waits to enter that conversation; what was seen, its tenant",
                forgotten_as=("conversations",),
            ),
            StoreKey(
                names=("tl:observations:{id}", ":ids"),
                type="list, sorted set",
                lasts="30 days after the last",
                holds="what it sensed and did; in which tasks",
                forgotten_as=("conversations",),
            ),
        ),
        bound="programs at NATS and the code of agents alone write them: 2,000 and 1,000 entries, 30 days",
        writers=EVERY_ROLE,
    ),
    Store(
        name="notices",
        keys=(
            StoreKey(
                names=("tl:notices:{token}", ":hurry"),
                type="list",
                lasts="2 days after its last line",
                holds="new facts not yet said; a reply that waits",
                forgotten_as=("episodes",),
            ),
        ),
        bound="`turns`; 50 notices wait",
        writers=(StoreRole.SUPERVISOR, StoreRole.MEMORY),
    ),
)
