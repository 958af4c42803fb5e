"""The declaration of conversations."""

from tasklore.memory.conversations import scripts
from tasklore.memory.store import EVERY_ROLE, Store, StoreKey, StoreRole

STORES = (
    Store(
        name="conversations",
        keys=(
            StoreKey(
                names=("tl:conversation:{id}",),
                type="list",
                lasts="30 days after its last use",
                holds="turns and utterances, oldest first",
                forgotten_as=("conversations",),
            ),
            StoreKey(
                names=("tl:conversation:{id}:ids", ":digest"),
                type="sorted set, hash",
                lasts="the same",
                holds="ids of that and of what waits; the rest",
                forgotten_as=("conversations",),
            ),
            StoreKey(
                names=("tl:user-conversations:{token}",),
                type="set",
                lasts="30 days",
                holds="the ids of a user's conversations",
                forgotten_as=("conversations",),
            ),
        ),
        bound="`words`; 2,000 messages a conversation",
        writers=EVERY_ROLE,
        scripts=(scripts,),
    ),
    Store(
        name="inboxes",
        keys=(
            StoreKey(
                names=("tl:inbox:{id}", ":state"),
                type="list, hash",
                lasts="the same",
                holds="what waits to enter that conversation; what was seen, its tenant",
                forgotten_as=("conversations",),
            ),
            StoreKey(
                names=("tl:observations:{id}", ":ids"),
                type="list, sorted set",
                lasts="30 days after the last",
                holds="what it sensed and did; in which tasks",
                forgotten_as=("conversations",),
            ),
        ),
        bound="programs at NATS and the code of agents alone write them: 2,000 and 1,000 entries, 30 days",
        writers=EVERY_ROLE,
    ),
    Store(
        name="notices",
        keys=(
            StoreKey(
                names=("tl:notices:{token}", ":hurry"),
                type="list",
                lasts="2 days after its last line",
                holds="new facts not yet said; a reply that waits",
                forgotten_as=("episodes",),
            ),
        ),
        bound="`turns`; 50 notices wait",
        writers=(StoreRole.SUPERVISOR, StoreRole.MEMORY),
    ),
)
