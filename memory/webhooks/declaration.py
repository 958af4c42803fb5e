"""The declaration of webhooks."""

from tasklore.memory.store import Store, StoreKey, StoreRole
from tasklore.memory.webhooks import scripts
from tasklore.memory.webhooks.keys import WEBHOOKS

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
    ),
)
