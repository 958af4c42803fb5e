"""The declaration of webhooks."""

from redis.asyncio import Redis

from tasklore.memory.declarations import (
    Store,
    StoreKey,
    StoreRole,
    UserStore,
    user_store,
)
from tasklore.memory.webhooks import scripts
from tasklore.memory.webhooks.keys import WEBHOOKS
from tasklore.memory.webhooks.outbox import WebhookOutbox


def _open(redis: Redis, deadline_s: float) -> UserStore:
    outbox = WebhookOutbox(redis, deadline_s=deadline_s)
    return user_store("webhooks", outbox.forget, outbox.count)


STORES = (
    Store(
        name="webhooks",
        keys=(
            StoreKey(
                names=tuple(WEBHOOKS),
                type="several",
                lasts="none",
                holds="webhooks on their way or given up",
                forgotten_as=("webhooks",),
            ),
        ),
        bound="numbers by maker and by host",
        writers=(StoreRole.SUPERVISOR,),
        scripts=(scripts,),
        of_users=_open,
    ),
)
