"""The declaration of tombstones."""

from redis.asyncio import Redis

from tasklore.memory.declarations import (
    Store,
    StoreKey,
    StoreRole,
    UserStore,
    user_store,
)
from tasklore.memory.tombstones import scripts
from tasklore.memory.tombstones.store import Tombstones


def hidden_words(redis: Redis, deadline_s: float) -> UserStore:
    """Return the hidden keys of users, as forgetting sees them."""
    stones = Tombstones(redis, deadline_s=deadline_s)
    return user_store("hidden keys", stones.forget, stones.count)


STORES = (
    Store(
        name="tombstones",
        keys=(
            StoreKey(
                names=("tl:forgotten:{token}",),
                type="hash",
                lasts="a day",
                holds="what of a user's memory is hidden: records by number",
                forgotten_as=("hidden keys",),
            ),
            StoreKey(
                names=("tl:forgotten:{token}:...",),
                type="as it was",
                lasts="a day, or what it had left",
                holds="a key of the memory of that user, hidden",
                forgotten_as=("hidden keys",),
            ),
            StoreKey(
                names=("tl:forgotten-talk:{id}:...",),
                type="hash, list, sorted set",
                lasts="a day",
                holds="messages of a conversation by number, hidden; what its agent observed",
                forgotten_as=("hidden keys",),
            ),
        ),
        bound="what it hides",
        writers=(StoreRole.MEMORY,),
        scripts=(scripts,),
        of_users=hidden_words,
    ),
)
