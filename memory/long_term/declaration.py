"""The declaration of long-term memory."""

from redis.asyncio import Redis

from tasklore.contracts.identifiers import user_token
from tasklore.memory.declarations import (
    AGENT,
    WORKERS,
    KeyAccess,
    Store,
    StoreKey,
    UserStore,
    user_store,
)
from tasklore.memory.long_term import scripts
from tasklore.memory.long_term.keys import FLIGHTS
from tasklore.memory.long_term.owners import EntryOwners


def _open(redis: Redis, deadline_s: float) -> UserStore:
    """Open the answers that a user's tasks stored; shared ones that another user asked for as well stay."""
    owners = EntryOwners(redis, deadline_s=deadline_s)

    async def forget(user_id: str) -> int:
        return (await owners.release(user_token(user_id))).removed

    async def count(user_id: str) -> int:
        return await owners.listed(user_token(user_id))

    return user_store("answers", forget, count)


STORES = (
    Store(
        name="answers",
        keys=(
            StoreKey(
                names=("tl:ltm:{Agent}:v1.1:question",),
                type="string",
                lasts="absolute, per task",
                holds="a remembered result",
                forgotten_as=("answers",),
            ),
            StoreKey(
                names=("tl:ltm:{Agent}:v1.1:u:token:question",),
                type="string",
                lasts="absolute, per task",
                holds="the same, remembered for one user",
                forgotten_as=("answers",),
            ),
            StoreKey(
                names=("tl:ltm:{Agent}:near:v1.1:frame",),
                type="sorted set",
                lasts="its longest entry's",
                holds="remembered values",
                forgotten_as=("answers",),
            ),
            StoreKey(
                names=(
                    "tl:ltm:{Agent}:near:v1.1:frame:until",
                    "tl:ltm:{Agent}:near:v1.1:frame:2",
                ),
                type="sorted sets",
                lasts="the same",
                holds="the same, by expiry in ms; by further values",
                forgotten_as=("answers",),
            ),
            StoreKey(
                names=("tl:ltm-hits:{Agent}:...",),
                type="string",
                lasts="its entry's",
                holds="how often the entry of the same ending was served",
                forgotten_as=("answers",),
            ),
            StoreKey(
                names=("tl:ltm-index:{Agent}",),
                type="sorted set",
                lasts="none",
                holds="an agent's entries by their end in ms",
                forgotten_as=("answers",),
            ),
        ),
        bound="`remembered`, and the time to live that a task sets",
        access=(
            KeyAccess(pattern=f"tl:ltm:{{{AGENT}}}*", writers=WORKERS),
            KeyAccess(pattern=f"tl:ltm-hits:{{{AGENT}}}*", writers=WORKERS),
            KeyAccess(pattern=f"tl:ltm-index:{{{AGENT}}}*", writers=WORKERS),
        ),
        scripts=(scripts,),
        of_users=_open,
    ),
    Store(
        name="owners of answers",
        keys=(
            StoreKey(
                names=("tl:ltm-users:{~all}",),
                type="sorted set",
                lasts="none",
                holds="users with a list as below, by the ms of its end",
            ),
            StoreKey(
                names=("tl:ltm-users:{token}", "tl:ltm-served:{token}"),
                type="set, hash",
                lasts="its longest entry's",
                holds="what tasks stored, what served",
                forgotten_as=("answers",),
            ),
        ),
        bound="`remembered`, and the time to live that a task sets",
        writers=WORKERS,
    ),
    Store(
        name="agents with answers",
        keys=(
            StoreKey(
                names=("tl:ltm-agents:{all}",),
                type="set",
                lasts="none",
                holds="agents with such an index or a quarantine",
            ),
        ),
        bound="one entry an agent",
        writers=WORKERS,
    ),
    Store(
        name="imported answers",
        keys=(
            StoreKey(
                names=("tl:ltm-quarantine:{Agent}",),
                type="hash",
                lasts="30 days from its first entry",
                holds="entries of imported files that may answer another question",
                ends_by_itself=True,
            ),
            StoreKey(
                names=("tl:ltm-imports:{Agent}",),
                type="set",
                lasts="none",
                holds="digests of the files that workers of 0.2 imported",
            ),
        ),
        bound="operators and the code of agents alone write them",
        access=(
            KeyAccess(pattern=f"tl:ltm-quarantine:{{{AGENT}}}*", writers=WORKERS),
            KeyAccess(pattern=f"tl:ltm-imports:{{{AGENT}}}*", writers=WORKERS),
        ),
    ),
    Store(
        name="flights",
        keys=(
            StoreKey(
                names=("tl:flight:{Agent}:...",),
                type="hash",
                lasts="the lease",
                holds="who computes the entry of the same ending, and whether others wait",
            ),
            StoreKey(
                names=("tl:flight:{id}:...",),
                type="hash",
                lasts="the lease",
                holds="who computes the entry of that session and key, or of a story",
            ),
            StoreKey(
                names=("tl:flights",),
                type="channel",
                lasts="-",
                holds="the flight keys that have just landed",
            ),
        ),
        bound="leases of work under way",
        access=(KeyAccess(pattern="tl:flight:{*", writers=WORKERS),),
        channels={FLIGHTS: WORKERS},
    ),
)
