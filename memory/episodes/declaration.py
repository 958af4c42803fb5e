"""The declaration of episodes."""

from tasklore.memory.episodes import store, vectors
from tasklore.memory.store import Store, StoreKey, StoreRole

STORES = (
    Store(
        name="episodes",
        keys=(
            StoreKey(
                names=("tl:episodes:{token}", ":ids", ":words", ":meta", ":vectors"),
                type="hash",
                lasts="from its last turn",
                holds="turns of an owner; what finds them",
                forgotten_as=("episodes",),
            ),
            StoreKey(
                names=("tl:episodes:{token}:settings",),
                type="hash",
                lasts="none",
                holds="whether turns of that owner are kept, and for how many days",
                forgotten_as=("episodes",),
            ),
        ),
        bound="`turns`",
        writers=(StoreRole.MEMORY,),
        readers=(StoreRole.SUPERVISOR, StoreRole.WORKER),
        scripts=(
            store,
            vectors,
        ),
    ),
)
