"""The declaration of the tables of rows that wait."""

from tasklore.memory.queues import scripts
from tasklore.memory.store import Store, StoreKey, StoreRole

STORES = (
    Store(
        name="turns and facts",
        keys=(
            StoreKey(
                names=("tl:turns:{token}", "tl:facts:{token}"),
                type="hash",
                lasts="none",
                holds="the table of a user's turns and facts: a row by id",
                forgotten_as=("turns", "facts"),
            ),
            StoreKey(
                names=("tl:turns:{token}:pending", "tl:facts:{token}:pending"),
                type="sorted set",
                lasts="none",
                holds="ids that wait, in order",
                forgotten_as=("turns", "facts"),
            ),
            StoreKey(
                names=(
                    "tl:turns:{token}:state",
                    ":closed",
                    "tl:facts:{token}:state",
                    ":closed",
                ),
                type="hash, sorted set",
                lasts="none",
                holds="how far each row is; those that are over, by ms",
                forgotten_as=("turns", "facts"),
            ),
            StoreKey(
                names=(
                    "tl:turns:{token}:lease",
                    ":fence",
                    "tl:facts:{token}:lease",
                    ":fence",
                ),
                type="hash, string",
                lasts="the lease, none",
                holds="who works on those rows; it only grows",
                forgotten_as=("turns", "facts"),
            ),
        ),
        bound="`turns`",
        writers=(StoreRole.MEMORY,),
        readers=(StoreRole.SUPERVISOR,),
        scripts=(scripts,),
    ),
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
