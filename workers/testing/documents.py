"""The documents given to a testing kit, stored as their first revision."""

from collections.abc import Mapping, Sequence

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.command_batch import Command
from tasklore.memory.documents.items import Body
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.storage.history import json_bytes
from tasklore.memory.documents.storage.repository import (
    DocumentRepository,
    StoredDocuments,
)
from tasklore.memory.documents.storage.store import DocumentStore


class GivenDocuments(DocumentStore):
    """A store in which each user has *bodies*, by resource id, from the first look on; they have no history.

    *known* are the tokens of users who have had theirs.
    """

    def __init__(
        self,
        client: Redis,
        kinds: Kinds,
        *,
        bodies: "Mapping[str, Body]",
        known: set[str],
        deadline_s: float,
    ) -> None:
        super().__init__(client, kinds, deadline_s=deadline_s)
        self._repository = _GivenRepository(client, deadline_s, bodies, known)


class _GivenRepository(DocumentRepository):
    def __init__(
        self,
        client: Redis,
        deadline_s: float,
        bodies: "Mapping[str, Body]",
        known: set[str],
    ) -> None:
        super().__init__(client, deadline_s)
        self._bodies = bodies
        self._known = known

    async def read(
        self,
        token: str,
        resources: Sequence[str],
        entries: int,
        known: Mapping[str, tuple[int, str]],
    ) -> StoredDocuments:
        """Return what there is, the given bodies the first time."""
        if self._bodies and token not in self._known:
            self._known.add(token)
            await self._batch.run(_storing(token, self._bodies))
        return await super().read(token, resources, entries, known)


def _storing(token: str, bodies: "Mapping[str, Body]") -> list[Command]:
    """Return what `documents/storage/commit.lua` would write for a first revision, but for a plan that made it."""
    first = ("revision", 1, "born", "kit", "form", "")
    commands: list[Command] = [
        ("HSET", keys.document(token, one), *first, "body", json_bytes(body))
        for one, body in bodies.items()
    ]
    return [*commands, ("HSET", keys.plans(token), "#resources", " ".join(bodies))]
