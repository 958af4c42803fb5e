"""Conversations: the last turns of each, oldest first, each turn once, and whose they are."""

from collections.abc import Sequence
from datetime import timedelta

from redis.asyncio import Redis

from contracts.identifiers import user_token
from memory import keys, scripts
from memory.exchange import Command, Exchange


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

    async def append(self, conversation_id: str, turn: bytes, turn_id: str, *, user_id: str | None = None) -> bool:
        """Add *turn* at the end and return True; False when *turn_id* is there already and nothing changed.

        A conversation is noted as one of *user_id*, whoever that is, before it holds a word: forgetting that user has
        to find it.

        Raises:
            MemoryUnavailable: Redis did not answer in time; appending again with the same id is safe.
            InvalidInput: the conversation id is empty or too long.
        """
        turns, ids = keys.conversation(conversation_id), keys.conversation_ids(conversation_id)
        commands: list[Command] = []
        if user_id:
            # Another tag than the turns': a command of its own, in the same write.
            owned = keys.user_conversations(user_token(user_id))
            commands += [("SADD", owned, conversation_id), ("PEXPIRE", owned, self._keep_ms)]
        limits = (self._keep_turns, self._keep_ms)
        commands.append(("EVALSHA", scripts.APPEND, 2, turns, ids, turn, turn_id, *limits))
        return bool((await self._exchange.run(commands))[-1])

    async def of_user(self, user_id: str) -> list[str]:
        """Return the ids of the conversations of *user_id* within the time that one is kept, sorted.

        Raises:
            MemoryUnavailable: Redis did not answer in time.
        """
        owned: list[bytes] = (await self._exchange.run([("SMEMBERS", keys.user_conversations(user_token(user_id)))]))[0]
        return sorted(conversation.decode() for conversation in owned)

    async def recent(self, conversation_id: str, count: int = 20) -> list[bytes]:
        """Return the last *count* turns, oldest first; fewer when there are fewer, none for an unknown conversation.

        Raises:
            MemoryUnavailable: Redis did not answer in time.
        """
        if count < 1:
            return []
        turns: list[bytes] = (await self._exchange.run([("LRANGE", keys.conversation(conversation_id), -count, -1)]))[0]
        return turns

    async def drop(self, conversation_id: str, turns: Sequence[bytes]) -> int:
        """Remove *turns*, as they were appended, and return how many of them were there; the ids stay known.

        Raises:
            MemoryUnavailable: Redis did not answer in time.
        """
        turns_key = keys.conversation(conversation_id)
        return sum(await self._exchange.run([("LREM", turns_key, 0, turn) for turn in turns]))

    async def disown(self, user_id: str, conversation_ids: Sequence[str]) -> None:
        """Note no longer that *conversation_ids* are of *user_id*.

        Raises:
            MemoryUnavailable: Redis did not answer in time.
        """
        if conversation_ids:
            owned = keys.user_conversations(user_token(user_id))
            await self._exchange.run([("SREM", owned, *conversation_ids)])

    async def forget(self, conversation_id: str) -> bool:
        """Remove a conversation and return whether there was one.

        Raises:
            MemoryUnavailable: Redis did not answer in time.
        """
        both = keys.conversation(conversation_id), keys.conversation_ids(conversation_id)
        return bool((await self._exchange.run([("UNLINK", *both)]))[0])
