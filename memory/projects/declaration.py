"""The declaration of projects."""

from tasklore.memory.projects import scripts
from tasklore.memory.store import EVERY_ROLE, Store, StoreKey

STORES = (
    Store(
        name="projects",
        keys=(
            StoreKey(
                names=("tl:project:{id}",),
                type="hash",
                lasts="none",
                holds="a project's records by id",
                forgotten_as=("texts in projects",),
            ),
            StoreKey(
                names=("tl:project:{id}:...",),
                type="sorted sets",
                lasts="none",
                holds="the same by time, kind, tag and word",
                forgotten_as=("texts in projects",),
            ),
            StoreKey(
                names=("tl:projects:{index}",),
                type="sorted set",
                lasts="none",
                holds="every project, by its last record in ms",
            ),
        ),
        bound="operators and the code of agents alone write them",
        writers=EVERY_ROLE,
        scripts=(scripts,),
    ),
)
