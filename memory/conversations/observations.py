"""What the agent of a conversation sensed and did, oldest first: never a message, which belongs to the conversation."""

from datetime import timedelta

import structlog
from pydantic_core import from_json
from redis.asyncio import Redis

from tasklore.contracts.observations import Observation
from tasklore.memory import keys
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.conversations import scripts as inbox_scripts
from tasklore.memory.conversations.conversation import KEEP_FOR

log = structlog.get_logger(__name__)

#: Observations of one agent that are kept: far more than a prompt tells.
KEEP = 1_000


class Observations:
    """Keeps the last observations of each agent, by the task in which they were made: a retry adds nothing.

    Args:
        deadline_s: Seconds for one call; then MemoryUnavailable.
        keep: Observations of one agent; older ones fall off.
        keep_for: How long they are kept after the last one.
    """

    def __init__(
        self,
        client: Redis,
        deadline_s: float = 1.0,
        *,
        keep: int = KEEP,
        keep_for: timedelta = KEEP_FOR,
    ) -> None:
        self._keep = keep
        self._keep_ms = keep_for // timedelta(milliseconds=1)
        self._batch = CommandBatch(client, deadline_s)

    async def note(self, owner: str, task_id: str, observation: Observation) -> bool:
        """Keep what the agent of the conversation *owner* observed in a task; False when that task did so before.

        Raises:
            MemoryUnavailable: Redis did not answer in time; noting again is safe.
            InvalidInput: the conversation id is empty or too long.
        """
        return bool(
            (await self._batch.run([self.to_note(owner, task_id, observation)]))[0]
        )

    async def recent(self, owner: str, count: int) -> tuple[Observation, ...]:
        """Return the last *count*, oldest first; none of an unknown owner."""
        return read_observations(
            (await self._batch.run([self.to_recall(owner, count)]))[0]
        )[1]

    def to_note(self, owner: str, task_id: str, observation: Observation) -> Command:
        """Return the command of `note`, to be sent in one write with others."""
        body = observation.model_dump_json()
        observed = keys.conversation(owner)[5:]
        return (
            "FCALL",
            inbox_scripts.NOTE,
            2,
            *observed,
            self._keep,
            self._keep_ms,
            task_id,
            body,
        )

    def to_recall(self, owner: str, count: int, task_id: str = "") -> Command:
        """Return the command whose reply `read_observations` reads: the last *count* before that of *task_id*."""
        return (
            "FCALL",
            inbox_scripts.OBSERVED,
            2,
            *keys.conversation(owner)[5:],
            count,
            task_id,
        )


def read_observations(
    reply: tuple[bytes | None, list[bytes]], *, senses: bool = True
) -> tuple[Observation | None, tuple[Observation, ...]]:
    """Return the observation of the task that was asked for, None when there is none, and those before it.

    Without *senses* those hold only actions, and cost a fraction of the time.
    """
    own, bodies = reply
    found = tuple(
        one for body in bodies if (one := _read(body, senses=senses)) is not None
    )
    return (_read(own) if own is not None else None), found


def _read(body: bytes, *, senses: bool = True) -> Observation | None:
    try:
        if senses:
            return Observation.model_validate_json(body)
        raw = from_json(body)
        return Observation(time=raw["time"], did=raw.get("did"))
    except (ValueError, TypeError, KeyError, AttributeError):
        log.warning("unreadable_observation")
        return None
