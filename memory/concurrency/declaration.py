"""The declaration of places."""

from tasklore.memory.concurrency import scripts
from tasklore.memory.declarations import WORKERS, Store, StoreKey, StoreRole

STORES = (
    Store(
        name="places",
        keys=(
            StoreKey(
                names=("tl:places:{bound}", ":runs", ":queue", ":seen"),
                type="sorted set, hash",
                lasts="7 days",
                holds="who runs under a bound; who waits",
            ),
        ),
        bound="what waits, and what runs",
        writers=WORKERS,
        readers=(StoreRole.SUPERVISOR,),
        scripts=(scripts,),
    ),
)
