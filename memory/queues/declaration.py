"""The declaration of the tables of rows that wait."""

from redis.asyncio import Redis

from tasklore.memory.declarations import (
    Store,
    StoreKey,
    StoreRole,
    UserStore,
    user_store,
)
from tasklore.memory.queues import scripts
from tasklore.memory.queues.claims import QueueName
from tasklore.memory.queues.queue import PersonalQueue


def _declare(name: QueueName, bound: str) -> Store:
    """Return the declaration of the table *name*."""

    def open_rows(redis: Redis, deadline_s: float) -> UserStore:
        rows = PersonalQueue(redis, name, deadline_s=deadline_s)

        async def count(user_id: str) -> int:
            counts = await rows.counts(user_id)
            return counts.waiting + counts.parked + sum(counts.closed.values())

        return user_store(name, rows.forget, count)

    table = f"tl:{name}:{{token}}"
    return Store(
        name=name,
        keys=(
            StoreKey(
                names=(table,),
                type="hash",
                lasts="none",
                holds=f"the table of a user's {name}: a row by id",
                forgotten_as=(name,),
            ),
            StoreKey(
                names=(f"{table}:pending",),
                type="sorted set",
                lasts="none",
                holds="ids that wait, in order",
                forgotten_as=(name,),
            ),
            StoreKey(
                names=(f"{table}:state", ":closed"),
                type="hash, sorted set",
                lasts="none",
                holds="how far each row is; those that are over, by ms",
                forgotten_as=(name,),
            ),
            StoreKey(
                names=(f"{table}:lease", ":fence"),
                type="hash, string",
                lasts="the lease, none",
                holds="who works on those rows; it only grows",
                forgotten_as=(name,),
            ),
        ),
        bound=bound,
        writers=(StoreRole.MEMORY,),
        readers=(StoreRole.SUPERVISOR,),
        scripts=(scripts,),
        of_users=open_rows,
    )


STORES = (
    _declare("turns", bound="`turns`"),
    _declare("facts", bound="`turns`: each is found in one"),
    Store(
        name="owners of rows",
        keys=(
            StoreKey(
                names=("tl:owners:{turns}", "tl:owners:{facts}"),
                type="sorted set",
                lasts="none",
                holds="whose rows wait, by when they are due, in ms",
            ),
        ),
        bound="one entry a user",
        writers=(StoreRole.MEMORY,),
    ),
)
