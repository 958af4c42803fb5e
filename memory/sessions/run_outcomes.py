"""Ends of pipelines, for forgetting a user: records of runs after their sessions, and their users."""

from collections.abc import Sequence

from redis.asyncio import Redis

from contracts.identifiers import user_token
from memory import keys
from memory.command_batch import Command, CommandBatch


class RunOutcomes:
    """Removes records of runs beside their sessions. MemoryUnavailable after `deadline_s` for one call."""

    def __init__(self, client: Redis, *, deadline_s: float = 1.0) -> None:
        self._batch = CommandBatch(client, deadline_s)

    async def drop(self, session_ids: Sequence[str]) -> int:
        """Remove the ends of the runs of *session_ids*, and return how many there were."""
        commands: list[Command] = [("UNLINK", keys.run(session_id)) for session_id in session_ids]
        return sum(await self._batch.run(commands))

    async def disown(self, user_id: str, session_ids: Sequence[str]) -> None:
        """Note no longer that *session_ids* were started for *user_id*."""
        if session_ids:
            await self._batch.run([("SREM", keys.user_sessions(user_token(user_id)), *session_ids)])
