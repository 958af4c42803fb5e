"""The users that have documents, page by page, for periodic work on all of them."""

from typing import NamedTuple

from redis.asyncio import Redis

from contracts.identifiers import user_of
from memory import keys
from memory.command_batch import CommandBatch


class OwnerPage(NamedTuple):
    """Some of the users, and the cursor to go on with: 0 when every key was looked at."""

    users: tuple[str, ...]
    cursor: int


class DocumentOwners:
    """Finds the users whose documents were ever edited. MemoryUnavailable after `deadline_s` for one page."""

    def __init__(self, client: Redis, *, deadline_s: float = 1.0) -> None:
        self._batch = CommandBatch(client, deadline_s)

    async def page(self, cursor: int = 0, limit: int = 1_000) -> OwnerPage:
        """Look at about *limit* keys of the server, from *cursor* on; a user may come twice."""
        scan = ("SCAN", cursor, "MATCH", keys.plans_pattern(), "COUNT", limit)
        reply = (await self._batch.run([scan]))[0]
        users = tuple(user_of(keys.parse_plans(key.decode())) for key in reply[1])
        return OwnerPage(users, int(reply[0]))
