"""Which incarnation of a stream has the tasks that are still to be done: what tells that an earlier one was lost."""

from redis.asyncio import Redis

from memory import keys
from memory.command_batch import CommandBatch


class StreamEpochs:
    """Remembers, for all supervisors, when the stream was created that has whatever the ledger knows as open.

    Args:
        client: A client that does not decode responses.
        deadline_s: Seconds for one call; then MemoryUnavailable.
    """

    def __init__(self, client: Redis, *, deadline_s: float = 1.0) -> None:
        self._batch = CommandBatch(client, deadline_s)

    async def known(self, stream: str) -> str | None:
        """Return when the known incarnation of *stream* was created, as NATS spells it; None when none is known.

        Raises:
            MemoryUnavailable: Redis did not answer in time.
        """
        found = (await self._batch.run([("GET", keys.stream(stream))]))[0]
        return None if found is None else found.decode(errors="replace")

    async def note(self, stream: str, created: str) -> None:
        """Note that the incarnation *created* of *stream* has everything.

        Raises:
            MemoryUnavailable: Redis did not answer in time.
        """
        await self._batch.run([("SET", keys.stream(stream), created)])
