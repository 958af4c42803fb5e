"""The declaration of schedules."""

from redis.asyncio import Redis

from tasklore.memory.declarations import (
    Store,
    StoreKey,
    StoreRole,
    UserStore,
    user_store,
)
from tasklore.memory.records import scripts
from tasklore.memory.schedules.store import UserSchedules


def _open(redis: Redis, deadline_s: float) -> UserStore:
    schedules = UserSchedules(redis, deadline_s=deadline_s)
    return user_store("schedules", schedules.forget, schedules.count)


STORES = (
    Store(
        name="schedules",
        keys=(
            StoreKey(
                names=(
                    "tl:schedules:{supervisor}",
                    ":state",
                    ":due",
                    ":owned",
                    ":made",
                ),
                type="hash, hash, sorted sets",
                lasts="none",
                holds="schedules; how far each is, when to look at it, whose it is, and of which maker",
                forgotten_as=("schedules",),
            ),
            StoreKey(
                names=("tl:schedules:{~books}",),
                type="set",
                lasts="none",
                holds="supervisor ids that have, or had, schedules",
            ),
        ),
        bound="numbers by maker, and 100 of a user",
        writers=(StoreRole.SUPERVISOR,),
        scripts=(scripts,),
        of_users=_open,
    ),
)
