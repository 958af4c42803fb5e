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
from tasklore.memory.ledger.layouts import Entries
from tasklore.memory.ledger.ledger import number_in
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
        self._entries = Entries(client, self._batch)

    async def heads(self, task_id: str) -> dict[int, str]:
        """Return the head of each step, by position."""
        if not (places := await self._places(task_id)):
            return {}
        asked: list[Command] = [("HGETALL", heads) for heads, _ in places]
        replies = await self._batch.run(asked)
        found = next(filter(None, map(as_mapping, replies)), {})
        return {
            int(position): read_head(head.decode())[1]
            for position, head in found.items()
        }

    async def result(self, task_id: str, position: int) -> bytes | None:
        """Return the JSON that the step at *position* returned, None when its time is over."""
        if not (places := await self._places(task_id)):
            return None
        asked: list[Command] = [("HGET", results, position) for _, results in places]
        found = await self._batch.run(asked)
        return next((one for one in found if one is not None), None)

    async def write(
        self,
        run: RunName,
        position: int,
        head: str,
        result: bytes,
        dropped: Iterable[int] = (),
    ) -> None:
        """Store *result* at *position*, in place of what stands there, and remove the steps at *dropped*.

        Raises:
            RunReplaced: another worker has taken the task meanwhile, it has ended or is to be cancelled.
        """
        stored = run.generation, run.worker_id, position, head, result, self._keep_ms
        entry = await self._entries.make(run.task_id)
        command = entry.call(scripts.JOURNAL, *stored, *dropped)
        if (await self._batch.run([command]))[0] < 0:
            msg = f"another worker has taken task {run.task_id!r}, or it has ended; the step is not kept"
            raise RunReplaced(msg)

    async def remove(self, task_ids: Iterable[str]) -> None:
        """Remove the journals of *task_ids*."""
        commands: list[Command] = [
            ("UNLINK", *pair)
            for task_id in task_ids
            for pair in await self._places(task_id)
        ]
        await self._batch.run(commands)

    async def _places(self, task_id: str) -> list[tuple[str, str]]:
        """Return where heads and results of a task may lie: of both layouts one has none."""
        entry = await self._entries.find(task_id)
        return [] if entry is None else [keys.steps(key) for key in entry.entry_keys]


def read_head(spelled: str) -> tuple[int | None, str]:
    """Return when a step was done, in ms since 1970, None where that is not known, and its head."""
    at, _, head = spelled.partition(" ")
    if at.startswith("@") and (at_ms := number_in(at[1:].encode())) is not None:
        return at_ms, head
    return None, spelled
