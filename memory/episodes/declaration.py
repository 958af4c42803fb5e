"""The declaration of episodes."""

from redis.asyncio import Redis

from tasklore.memory.conversations.notices import Notices
from tasklore.memory.declarations import Store, StoreKey, StoreRole, UserStore
from tasklore.memory.episodes import store, vectors
from tasklore.memory.episodes.store import Episodes


def _open(redis: Redis, deadline_s: float) -> UserStore:
    episodes = Episodes(redis, deadline_s=deadline_s)
    notices = Notices(redis, deadline_s=deadline_s)

    async def forget(user_id: str) -> dict[str, int]:
        return {
            "episodes": await episodes.forget(user_id),
            "notices": await notices.forget(user_id),
        }

    async def count(user_id: str) -> dict[str, int]:
        return {"episodes": await episodes.count(user_id)}

    return UserStore("episodes", forget, count)


STORES = (
    Store(
        name="episodes",
        keys=(
            StoreKey(
                names=("tl:episodes:{token}", ":ids", ":words", ":meta", ":vectors"),
                type="hash",
                lasts="from its last turn",
                holds="turns of an owner; what finds them",
                forgotten_as=("episodes",),
            ),
            StoreKey(
                names=("tl:episodes:{token}:settings",),
                type="hash",
                lasts="none",
                holds="whether turns of that owner are kept, and for how many days",
                forgotten_as=("episodes",),
            ),
        ),
        bound="`turns`",
        writers=(StoreRole.MEMORY,),
        readers=(StoreRole.SUPERVISOR, StoreRole.WORKER),
        scripts=(store, vectors),
        of_users=_open,
    ),
)
