"""The declaration of holdings."""

from tasklore.memory.declarations import Store, StoreKey, StoreRole
from tasklore.memory.holdings import scripts
from tasklore.memory.holdings.keys import HOLDINGS

STORES = (
    Store(
        name="holdings",
        keys=(
            StoreKey(
                names=tuple(HOLDINGS),
                type="several",
                lasts="none",
                holds="the bytes that each owner keeps",
            ),
        ),
        bound="one entry a thing counted here",
        writers=(StoreRole.SUPERVISOR,),
        scripts=(scripts,),
    ),
)
