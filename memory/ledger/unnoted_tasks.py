"""Tasks that are stored, and that the ledger may not have: kept by their sender until it has each.

First the stream, then the ledger: a task that is in neither was not accepted, one that is in the stream alone runs and
is reported, and what is kept here closes the gap when a ledger that was away is back.
"""

from collections.abc import Awaitable, Sequence
from typing import NamedTuple

import structlog

from tasklore.contracts.errors import MemoryRefused, MemoryUnavailable
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.task_rows import TaskRow

log = structlog.get_logger(__name__)

#: Bytes of assignments kept for a ledger that is away: minutes of a few hundred a second.
_MOST_BYTES = 64 * 1024 * 1024
#: Tasks, and bytes of assignments, that are noted in one round trip: a loaded ledger answers well within its deadline.
_SLICE_TASKS = 200
_SLICE_BYTES = 1024 * 1024


class StoredTask(NamedTuple):
    """An assignment as it was published, with its agent, the text of its `TraceContext`, and how it is listed.

    No run begins before *due_at_ms*, ms since 1970. It is listed as a child of *parent_id*, None for none.
    """

    task_id: str
    generation: int
    body: bytes
    trace: str
    row: TaskRow
    due_at_ms: int | None = None
    parent_id: str | None = None


class UnnotedTasks:
    """Notes tasks in *ledger*, and keeps those that it did not take; beyond its bounds the oldest is given up."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._tasks: dict[tuple[str, int], StoredTask] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._tasks)

    def keep(self, task: StoredTask) -> None:
        """Keep *task* until it is noted."""
        self._drop(task)
        self._tasks[task.task_id, task.generation] = task
        self._bytes += len(task.body)
        while self._bytes > _MOST_BYTES:
            oldest = next(iter(self._tasks.values()))
            log.warning("never_in_ledger", task_id=oldest.task_id)
            self._drop(oldest)

    async def note(self, task: StoredTask) -> None:
        """Note *task*, which is kept where the ledger is away."""
        self.keep(task)
        try:
            await self._accept(task)
        except MemoryUnavailable as error:
            log.warning("ledger_away", task_id=task.task_id, error=str(error))

    async def note_each(self) -> int:
        """Note all that is kept, the oldest first; one that is never taken is given up. Return how many there were.

        Raises:
            MemoryUnavailable: the ledger is away; the rest stays for the next time.
        """
        noted = 0
        while self._tasks:
            oldest = next(iter(self._tasks.values()))
            await self._note_or_give_up(oldest, self._accept(oldest))
            noted += 1
        return noted

    async def note_together(self) -> None:
        """Note all that is kept, many in a round trip, where nothing is due later; one that is never taken is given up.

        Raises:
            MemoryUnavailable: the ledger is away; the rest stays for the next time.
        """
        while self._tasks:
            tasks = self._oldest_slice()
            try:
                await self._accept_slice(tasks)
            except Exception as error:
                if not _is_for_good(error):
                    raise
                for task in tasks:
                    await self._note_or_give_up(task, self._accept_slice([task]))

    def _oldest_slice(self) -> list[StoredTask]:
        """Return the oldest tasks, at least one, as many as go into one round trip."""
        tasks: list[StoredTask] = []
        size = 0
        for task in self._tasks.values():
            size += len(task.body)
            if tasks and (len(tasks) == _SLICE_TASKS or size > _SLICE_BYTES):
                break
            tasks.append(task)
        return tasks

    async def _note_or_give_up(self, task: StoredTask, noting: Awaitable[None]) -> None:
        """Await *noting* of *task*, which is given up where the ledger never takes it."""
        try:
            await noting
        except Exception as error:
            if not _is_for_good(error):
                raise
            log.warning(
                "never_in_ledger",
                task_id=task.task_id,
                error=f"{type(error).__name__}: {error}",
            )
            self._drop(task)

    async def _accept_slice(self, tasks: Sequence[StoredTask]) -> None:
        await self._ledger.accept_many(
            [(one.task_id, one.generation, one.body, one.trace) for one in tasks],
            [
                (one.parent_id, str(one.task_id), f"{one.row.agent_id}.{one.row.task}")
                for one in tasks
                if one.parent_id is not None
            ],
            [one.row for one in tasks],
        )
        for task in tasks:
            self._drop(task)

    async def _accept(self, task: StoredTask) -> None:
        due = {} if task.due_at_ms is None else {"due_at_ms": task.due_at_ms}
        await self._ledger.accept(
            task.task_id, task.generation, task.body, task.trace, **due, row=task.row
        )
        self._drop(task)

    def _drop(self, task: StoredTask) -> None:
        known = self._tasks.pop((task.task_id, task.generation), None)
        if known is not None:
            self._bytes -= len(known.body)


def _is_for_good(error: Exception) -> bool:
    """Return whether the ledger would answer *error* again to the same: it is there, and does not take it."""
    return isinstance(error, MemoryRefused) or not isinstance(error, MemoryUnavailable)
