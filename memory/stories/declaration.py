"""The declaration of stories."""

from tasklore.memory.declarations import Store, StoreKey, StoreRole
from tasklore.memory.stories import scripts

STORES = (
    Store(
        name="stories",
        keys=(
            StoreKey(
                names=("tl:story:{id}",),
                type="hash",
                lasts="none",
                holds="where a story begins, and its `revision`",
            ),
            StoreKey(
                names=("tl:story:{id}:entities", ":responses"),
                type="hash",
                lasts="none",
                holds="its entities by name, its last responses by number",
            ),
            StoreKey(
                names=("tl:story:{id}:written",),
                type="sorted set",
                lasts="none",
                holds="those responses, by which was written before which",
            ),
            StoreKey(
                names=("tl:story:{id}:changes:...",),
                type="hash",
                lasts="none",
                holds="what responses changed, by number, as one agent found it",
            ),
            StoreKey(
                names=("tl:analysis:{id}",),
                type="hash",
                lasts="none",
                holds="its last analysis documents by response number",
            ),
            StoreKey(
                names=("tl:analysis:{id}:records", ":written"),
                type="hash, sorted set",
                lasts="none",
                holds="how far each is, by number; their order",
            ),
            StoreKey(
                names=("tl:stories:{index}",),
                type="sorted set",
                lasts="none",
                holds="every story, by when it was last loaded or got a response, in ms",
            ),
        ),
        bound="`responses`, and `TASKLORE_ANALYSES_KEPT`",
        writers=(StoreRole.SUPERVISOR,),
        readers=(StoreRole.WORKER,),
        scripts=(scripts,),
    ),
    Store(
        name="analyses under way",
        keys=(
            StoreKey(
                names=("tl:analysing:{supervisor}",),
                type="sorted set",
                lasts="none",
                holds="analyses under way, by when to look at them next, in ms",
            ),
        ),
        bound="`responses`, and `TASKLORE_ANALYSES_KEPT`",
        writers=(StoreRole.SUPERVISOR,),
    ),
)
