"""Conversations: the last turns of each, oldest first, each once, and the users they belong to.

What agents say to each other enters the same list through `tasklore.memory.conversations.inbox`.
"""

from collections.abc import Sequence
from datetime import timedelta

from redis.asyncio import Redis

from tasklore.contracts.identifiers import user_token
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch, Commands
from tasklore.memory.conversations import scripts as inbox_scripts

#: Messages that a conversation holds: two thousand turns of a long talk, and more than any prompt takes.
KEEP = 2_000
#: How long a conversation is kept after its last message.
KEEP_FOR = timedelta(days=30)


class Conversations:
    """Appends turns to conversations and returns the recent ones; turns are JSON bytes, taken as they are.

    Args:
        keep_turns: Turns a conversation holds; older ones fall off, and so do their ids.
        keep: How long a conversation is kept after its last turn.
        deadline_s: Seconds for one call; then MemoryUnavailable.
    """

    def __init__(
        self,
        client: Redis,
        *,
        keep_turns: int = KEEP,
        keep: timedelta = KEEP_FOR,
        deadline_s: float = 1.0,
    ) -> None:
        self._keep_turns = keep_turns
        self._keep_ms = keep // timedelta(milliseconds=1)
        self._batch = CommandBatch(client, deadline_s)

    async def append(
        self,
        conversation_id: str,
        turn: bytes,
        turn_id: str,
        *,
        user_id: str | None = None,
        beside: Commands = (),
    ) -> bool:
        """Add *turn* at the end and return True; False when *turn_id* is there already and nothing changed.

        A conversation is noted as one of *user_id* before it holds a word: forgetting that user has
        to find it. The commands *beside* follow in the same round trip.

        Raises:
            MemoryUnavailable: Redis did not answer in time; appending again with the same id is safe.
            InvalidInput: the conversation id is empty or too long.
        """
        limits = (self._keep_turns, self._keep_ms)
        say = call(inbox_scripts.SAY, conversation_id, *limits, turn_id, turn)
        commands: list[Command] = []
        if user_id:
            commands += note_owner(user_id, conversation_id, self._keep_ms)
        replies = await self._batch.run([*commands, say, *beside])
        return bool(replies[len(commands)])

    async def replace(self, conversation_id: str, turn: bytes, by: bytes) -> bool:
        """Put *by* in the place of *turn*, as that was appended, and return True; False when it is not there as it was.

        Of many who replace one turn at once one does.
        """
        return bool(
            (
                await self._batch.run(
                    [call(inbox_scripts.REPLACE, conversation_id, turn, by)]
                )
            )[0]
        )

    async def of_user(self, user_id: str) -> list[str]:
        """Return the ids of the conversations of *user_id* within the time that one is kept, sorted."""
        owned: list[bytes] = (
            await self._batch.run(
                [("SMEMBERS", keys.user_conversations(user_token(user_id)))]
            )
        )[0]
        return sorted(conversation.decode() for conversation in owned)

    async def recent(self, conversation_id: str, count: int = 20) -> list[bytes]:
        """Return the last *count* messages, oldest first; fewer when there are fewer, none for an unknown conversation.

        Those of agents are utterances, the others turns.
        """
        if count < 1:
            return []
        turns: list[bytes] = (
            await self._batch.run([call(inbox_scripts.RECENT, conversation_id, count)])
        )[0]
        return turns

    async def recent_of_many(
        self, conversation_ids: Sequence[str], count: int
    ) -> list[list[bytes]]:
        """Return the last *count* messages of each conversation, as `recent` does, in one round trip."""
        replies: list[list[bytes]] = await self._batch.run(
            [call(inbox_scripts.RECENT, one, count) for one in conversation_ids]
        )
        return replies

    async def waiting(self, conversation_id: str) -> list[bytes]:
        """Return the messages that wait for an agent to take them, in order."""
        messages: list[bytes] = (
            await self._batch.run([call(inbox_scripts.WAITING, conversation_id)])
        )[0]
        return messages

    async def is_begun(self, conversation_id: str) -> bool:
        """Return whether anything was said in a conversation, waits there, or was observed by its agent."""
        of = keys.conversation(conversation_id)
        said, waiting, observed = await self._batch.run(
            [
                call(inbox_scripts.RECENT, conversation_id, 1),
                call(inbox_scripts.WAITING, conversation_id),
                ("EXISTS", of.observed),
            ]
        )
        return bool(said or waiting or observed)

    async def tenant_of(self, conversation_id: str) -> str | None:
        """Return the tenant that claimed a conversation, None where none did."""
        state = keys.conversation(conversation_id).state
        tenant: bytes | None = (await self._batch.run([("HGET", state, "tenant")]))[0]
        return None if tenant is None else tenant.decode()

    async def claim(self, conversation_id: str, tenant: str) -> str:
        """Make a conversation, as long as it is kept, one of *tenant* unless another has it; return whose it is."""
        state = keys.conversation(conversation_id).state
        replies = await self._batch.run(
            [
                ("HSETNX", state, "tenant", tenant),
                ("PEXPIRE", state, self._keep_ms),
                ("HGET", state, "tenant"),
            ]
        )
        holder: bytes = replies[2]
        return holder.decode()

    async def drop(self, conversation_id: str, turns: Sequence[bytes]) -> int:
        """Remove *turns*, as they were appended or posted, and return how many of them were there; the ids stay known.

        The summary of earlier messages goes with them, and what the agent observed: neither says whose words it holds.
        """
        of = keys.conversation(conversation_id)
        unlink: Command = ("UNLINK", of.observed, of.observed_in)
        return int(
            (
                await self._batch.run(
                    [call(inbox_scripts.REMOVE, conversation_id, *turns), unlink]
                )
            )[0]
        )

    async def own(self, user_id: str, conversation_ids: Sequence[str]) -> None:
        """Note *conversation_ids* as those of *user_id*, as `append` does."""
        commands = [
            command
            for one in conversation_ids
            for command in note_owner(user_id, one, self._keep_ms)
        ]
        await self._batch.run(commands)

    async def disown(self, user_id: str, conversation_ids: Sequence[str]) -> None:
        """Note no longer that *conversation_ids* are of *user_id*."""
        if conversation_ids:
            owned = keys.user_conversations(user_token(user_id))
            await self._batch.run([("SREM", owned, *conversation_ids)])

    async def forget(self, conversation_id: str) -> bool:
        """Remove a conversation, with what waits for it and what its agent observed; return whether there was any."""
        return bool(
            (await self._batch.run([("UNLINK", *keys.conversation(conversation_id))]))[
                0
            ]
        )


def call(script: str, conversation_id: str, *arguments: str | bytes | int) -> Command:
    """Return the command that runs *script* of `tasklore.memory.conversations.scripts` on a conversation."""
    return ("FCALL", script, 5, *keys.conversation(conversation_id)[:5], *arguments)


def note_owner(user_id: str, conversation_id: str, keep_ms: int) -> list[Command]:
    """Return the commands that note a conversation as one of *user_id*: of another tag than its own, so beside it."""
    owned = keys.user_conversations(user_token(user_id))
    return [("SADD", owned, conversation_id), ("PEXPIRE", owned, keep_ms)]
