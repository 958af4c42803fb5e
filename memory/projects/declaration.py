"""The declaration of projects."""

from redis.asyncio import Redis

from tasklore.memory.declarations import (
    EVERY_ROLE,
    Store,
    StoreKey,
    UserStore,
    user_store,
)
from tasklore.memory.projects import scripts
from tasklore.memory.projects.project import ProjectMemory


def _open(redis: Redis, deadline_s: float) -> UserStore:
    projects = ProjectMemory(redis, deadline_s=deadline_s)
    return user_store("texts in projects", projects.redact, projects.count_by)


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
        of_users=_open,
    ),
)
