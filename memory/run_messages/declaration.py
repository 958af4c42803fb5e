"""The declaration of what the models of runs saw."""

from redis.asyncio import Redis

from tasklore.memory.declarations import (
    AGENT,
    WORKERS,
    KeyAccess,
    Store,
    StoreKey,
    UserStore,
    user_store,
)
from tasklore.memory.run_messages import scripts
from tasklore.memory.run_messages.store import RunMessages


def _open(redis: Redis, deadline_s: float) -> UserStore:
    messages = RunMessages(redis, deadline_s=deadline_s)
    return user_store("messages of runs", messages.forget, messages.count)


STORES = (
    Store(
        name="messages of runs",
        keys=(
            StoreKey(
                names=("tl:run-messages:AGENT:{task_id}",),
                type="hash",
                lasts="1 day after the last",
                holds="what the models of its runs saw, did and heard, secrets masked",
                forgotten_as=("messages of runs",),
            ),
            StoreKey(
                names=("tl:run-messages-of:{Agent}:u:token", ":u:token:bytes"),
                type="sorted set, hash",
                lasts="1 day after the last",
                holds="an owner's runs with messages, until when, and their bytes",
                forgotten_as=("messages of runs",),
            ),
        ),
        bound="a setting, without which nothing is kept; 1 MiB a task, 32 MiB an owner and agent",
        access=(
            KeyAccess(pattern=f"tl:run-messages:{AGENT}:*", writers=WORKERS),
            KeyAccess(pattern=f"tl:run-messages-of:{{{AGENT}}}*", writers=WORKERS),
        ),
        scripts=(scripts,),
        of_users=_open,
    ),
)
