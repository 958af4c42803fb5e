"""Conversations: the last turns of each, oldest first, each turn once."""

from datetime import timedelta

from redis.asyncio import Redis

from memory import keys, scripts
from memory.exchange import Exchange


class Conversations:
    """Appends turns to conversations and returns the recent ones; turns are JSON bytes, taken as they are.

    Args:
        client: A client that does not decode responses.
        keep_turns: Turns a conversation holds; older ones fall off, and so do their ids.
        keep: How long a conversation is kept after its last turn.
        deadline_s: Seconds for one call; then MemoryUnavailable.
    """

    def __init__(
        self,
        client: Redis,
        *,
        keep_turns: int = 200,
        keep: timedelta = timedelta(days=30),
        deadline_s: float = 1.0,
    ) -> None:
        self._keep_turns = keep_turns
        self._keep_ms = keep // timedelta(milliseconds=1)
        self._exchange = Exchange(client, deadline_s)

    async def append(self, conversation_id: str, turn: bytes, turn_id: str) -> bool:
        """Add *turn* at the end and return True; False when *turn_id* is there already and nothing changed.

        Raises:
            MemoryUnavailable: Redis did not answer in time; appending again with the same id is safe.
            InvalidInput: the conversation id is empty or too long.
        """
        turns, ids = keys.conversation(conversation_id), keys.conversation_ids(conversation_id)
        limits = (self._keep_turns, self._keep_ms)
        reply = await self._exchange.run([("EVALSHA", scripts.APPEND, 2, turns, ids, turn, turn_id, *limits)])
        return bool(reply[0])

    async def recent(self, conversation_id: str, count: int = 20) -> list[bytes]:
        """Return the last *count* turns, oldest first; fewer when there are fewer, none for an unknown conversation.

        Raises:
            MemoryUnavailable: Redis did not answer in time.
        """
        if count < 1:
            return []
        turns: list[bytes] = (await self._exchange.run([("LRANGE", keys.conversation(conversation_id), -count, -1)]))[0]
        return turns

    async def forget(self, conversation_id: str) -> bool:
        """Remove a conversation and return whether there was one.

        Raises:
            MemoryUnavailable: Redis did not answer in time.
        """
        both = keys.conversation(conversation_id), keys.conversation_ids(conversation_id)
        return bool((await self._exchange.run([("UNLINK", *both)]))[0])
