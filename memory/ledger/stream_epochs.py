"""The epoch of a stream, its time of creation: another epoch than the known one shows that the stream was lost."""

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.command_batch import CommandBatch


class StreamEpochs:
    """Remembers, for all supervisors, the epoch of the stream that has every task which the ledger knows as open.

    Every method may raise MemoryUnavailable, after `deadline_s` seconds for one call.
    """

    def __init__(self, client: Redis, *, deadline_s: float = 1.0) -> None:
        self._batch = CommandBatch(client, deadline_s)

    async def known(self, stream: str) -> str | None:
        """Return the known epoch of *stream*, as NATS spells it; None when none is known."""
        found = (await self._batch.run([("GET", keys.stream(stream))]))[0]
        return None if found is None else found.decode(errors="replace")

    async def note(self, stream: str, created: str) -> None:
        """Note that the epoch *created* of *stream* has every open task."""
        await self._batch.run([("SET", keys.stream(stream), created)])
