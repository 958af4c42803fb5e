"""Changes of the list of runs that are made a moment after those of the ledger.

A run that a program published is listed unless it has ended by then: so a short task is listed once, by its end, and
one that goes on soon after it began. A run that has ended leaves the open ones once the ledger has said that it took
its end.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping

import structlog

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory.ledger.task_index import TaskIndex
from tasklore.memory.ledger.task_rows import TaskRow

log = structlog.get_logger(__name__)

#: Seconds that a run is left to end in before it is listed, up to twice as long: less than anybody notices.
_PAUSE_S = 0.1
#: Runs that are kept for an index that is away; what is left out of these is listed when it ends.
_MOST_KEPT = 10_000

MakeRow = Callable[[], TaskRow]


class LateRows:
    """Lists runs in *index*, and takes them out of the open ones, a moment after they were added."""

    def __init__(self, index: TaskIndex) -> None:
        self._index = index
        #: What was added since the last look, and what has waited for one.
        self._fresh: dict[str, MakeRow] = {}
        self._due: dict[str, MakeRow] = {}
        #: Runs that have ended, by their agents.
        self._ended: defaultdict[str, list[str]] = defaultdict(list)
        self._writing: asyncio.Task[None] | None = None

    def add(self, task_id: str, make_row: MakeRow) -> None:
        """List the row that *make_row* makes soon, unless *task_id* is dropped before."""
        self._fresh[task_id] = make_row
        self._begin()

    def drop(self, task_id: str) -> None:
        """Do not list *task_id* any more: it has ended."""
        self._fresh.pop(task_id, None)
        self._due.pop(task_id, None)

    def close(self, agent_id: str, task_id: str) -> None:
        """Take *task_id* out of the open runs of its agent soon: the ledger has ended it."""
        self._ended[agent_id].append(task_id)
        self._begin()

    def _begin(self) -> None:
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())

    def _settle(self, task_ids: Iterable[str]) -> None:
        for task_id in task_ids:
            self._due.pop(task_id, None)

    async def _write(self) -> None:
        try:
            while self._fresh or self._due or self._ended:
                await asyncio.sleep(_PAUSE_S)
                await self._close_ended()
                listed = self._due.copy()
                try:
                    await self._index.write(_make_rows(listed))
                except MemoryUnavailable as error:
                    log.info("runs_not_listed", runs=len(listed), error=str(error))
                except Exception:  # what cannot be written holds up no later runs
                    log.exception("runs_left_out", runs=len(listed))
                    self._settle(listed)
                else:
                    self._settle(listed)
                self._due |= self._fresh
                self._fresh = {}
                while len(self._due) > _MOST_KEPT:
                    del self._due[next(iter(self._due))]
        finally:
            self._writing = None

    async def _close_ended(self) -> None:
        ended = dict(self._ended)
        self._ended.clear()
        try:
            for agent_id, task_ids in ended.items():
                await self._index.close(agent_id, task_ids)
        except MemoryUnavailable as error:
            # A supervisor closes them within half a minute (`OpenTasks.close_ended`).
            log.info("ended_runs_left_open", error=str(error))


def _make_rows(makers: Mapping[str, MakeRow]) -> list[TaskRow]:
    """Return the row of each task that has one; a task whose row cannot be made is logged and left out."""
    rows = []
    for task_id, make_row in makers.items():
        try:
            rows.append(make_row())
        except Exception:
            log.exception("run_left_out", task_id=task_id)
    return rows
