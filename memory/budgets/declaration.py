"""The declaration of budgets."""

from tasklore.memory.budgets import scripts
from tasklore.memory.budgets.keys import budget
from tasklore.memory.budgets.store import WAITING
from tasklore.memory.declarations import WORKERS, KeyAccess, Store, StoreKey, StoreRole

#: What calls to models reserve and take: whoever makes them counts. By which limits they go, they only read.
_TAKEN = ("calls", "leases", "account*", "book:*", "tree:*", *WAITING)

STORES = (
    Store(
        name="budgets",
        keys=(
            StoreKey(
                names=("tl:budget:{all}:...",),
                type="several",
                lasts="40 days",
                holds="limits, accounts and books; who admits tasks",
            ),
        ),
        bound="operators write limits; books have 40 days",
        access=(
            KeyAccess(pattern="tl:budget:{*", writers=(StoreRole.SUPERVISOR,)),
            *(KeyAccess(pattern=budget(part), writers=WORKERS) for part in _TAKEN),
            KeyAccess(pattern=budget("limits"), readers=WORKERS),
        ),
        scripts=(scripts,),
    ),
)
