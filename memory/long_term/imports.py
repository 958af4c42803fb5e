"""Which memory files were imported already: a file is imported once, also when its answers were forgotten since."""

import hashlib

from redis.asyncio import Redis

from memory import keys
from memory.command_batch import CommandBatch

#: Seconds for one look; a worker that starts waits for it.
_DEADLINE_S = 1.0


class ImportLog:
    """Files by their content: a changed one counts as another. MemoryUnavailable when Redis is late."""

    def __init__(self, client: Redis) -> None:
        self._batch = CommandBatch(client, _DEADLINE_S)

    async def knows(self, agent_id: str, content: bytes) -> bool:
        """Return whether *content* was noted for *agent_id*."""
        return bool((await self._batch.run([("SISMEMBER", keys.imports(agent_id), _digest(content))]))[0])

    async def note(self, agent_id: str, content: bytes) -> None:
        """Note that all of *content* was imported."""
        await self._batch.run([("SADD", keys.imports(agent_id), _digest(content))])


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()
