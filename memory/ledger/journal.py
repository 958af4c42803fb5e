"""The journal of a task: what its steps returned, so that a later run reads it instead of doing them again.

Two hashes beside the task's entry in the ledger, by position: heads (a digest of the arguments and the step's name) and
results. It belongs to the task, not to a generation: a redrive goes on where the failed run stopped.
"""

from collections.abc import Iterable
from datetime import timedelta

from redis.asyncio import Redis

from tasklore.contracts.errors import RunReplaced
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import Command, CommandBatch, as_mapping
from tasklore.memory.ledger import scripts
from tasklore.memory.ledger.runs import RunName


class Journal:
    """Reads and writes journals in Redis; every method may raise MemoryUnavailable, after *deadline_s*."""

    def __init__(
        self,
        client: Redis,
        *,
        keep: timedelta = timedelta(days=7),
        deadline_s: float = 5.0,
        breaker: Breaker | None = None,
    ) -> None:
        self._keep_ms = keep // timedelta(milliseconds=1)
        self._batch = CommandBatch(client, deadline_s, breaker)

    async def heads(self, task_id: str) -> dict[int, str]:
        """Return the head of each step, by position."""
        found = as_mapping(
            (await self._batch.run([("HGETALL", keys.steps(task_id)[0])]))[0]
        )
        return {int(position): head.decode() for position, head in found.items()}

    async def result(self, task_id: str, position: int) -> bytes | None:
        """Return the JSON that the step at *position* returned, None when its time is over."""
        found: bytes | None = (
            await self._batch.run([("HGET", keys.steps(task_id)[1], position)])
        )[0]
        return found

    async def write(
        self, run: RunName, position: int, head: str, result: bytes
    ) -> None:
        """Store *result* at *position*; steps from there on go when another head stands there.

        Raises:
            RunReplaced: another worker has taken the task meanwhile, it has ended or is to be cancelled.
        """
        found = keys.task(run.task_id), *keys.steps(run.task_id)
        stored = run.generation, run.worker_id, position, head, result, self._keep_ms
        if (await self._batch.run([("FCALL", scripts.JOURNAL, 3, *found, *stored)]))[
            0
        ] < 0:
            msg = f"another worker has taken task {run.task_id!r}, or it has ended; the step is not kept"
            raise RunReplaced(msg)

    async def remove(self, task_ids: Iterable[str]) -> None:
        """Remove the journals of *task_ids*."""
        commands: list[Command] = [
            ("UNLINK", *keys.steps(task_id)) for task_id in task_ids
        ]
        await self._batch.run(commands)
