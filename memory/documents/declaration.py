"""The declaration of documents."""

from tasklore.memory.declarations import (
    EVERY_ROLE,
    KeyAccess,
    Store,
    StoreKey,
    StoreRole,
)
from tasklore.memory.documents.storage import scripts

STORES = (
    Store(
        name="documents",
        keys=(
            StoreKey(
                names=("tl:doc:{token}:resource",),
                type="hash",
                lasts="none",
                holds="a JSON memory document: `revision`, `born`, `body`, `form`",
                forgotten_as=("documents",),
            ),
            StoreKey(
                names=("tl:doc:{token}:resource:log",),
                type="list",
                lasts="none",
                holds="every edit of that document with its inverse, oldest first",
                forgotten_as=("documents",),
            ),
            StoreKey(
                names=("tl:doc:{token}:plans", ":reads"),
                type="hash",
                lasts="none",
                holds="applied plans by id; when each place was last shown",
                forgotten_as=("documents",),
            ),
        ),
        bound="`turns`; documents have sizes of their own",
        writers=(StoreRole.MEMORY,),
        readers=(StoreRole.SUPERVISOR, StoreRole.WORKER),
        access=(KeyAccess(pattern="tl:doc:*:reads", writers=EVERY_ROLE),),
        scripts=(scripts,),
    ),
)
