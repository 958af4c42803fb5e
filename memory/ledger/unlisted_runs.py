"""Runs that a program published and nobody has listed: they are listed a moment later, unless they have ended by then.

So a short task is listed once, by its end, and one that goes on soon after it began.
"""

import asyncio

import structlog

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory.ledger.run_index import RunIndex
from tasklore.memory.ledger.run_rows import RunRow

log = structlog.get_logger(__name__)

#: Seconds that a run is left to end in before it is listed: less than anybody notices.
_PAUSE_S = 0.1
#: Runs that are kept for an index that is away; what is left out of these is listed when it ends.
_MOST_KEPT = 10_000


class UnlistedRuns:
    """Lists runs in *index* a moment after they were added."""

    def __init__(self, index: RunIndex) -> None:
        self._index = index
        self._rows: dict[str, RunRow] = {}
        self._writing: asyncio.Task[None] | None = None

    def add(self, row: RunRow) -> None:
        """List *row* soon, unless it is dropped before."""
        self._rows[row.task_id] = row
        if len(self._rows) > _MOST_KEPT:
            del self._rows[next(iter(self._rows))]
        if self._writing is None:
            self._writing = asyncio.create_task(self._write())

    def drop(self, row: RunRow) -> None:
        """Do not list the task of *row* any more: it has ended."""
        self._rows.pop(row.task_id, None)

    async def _write(self) -> None:
        try:
            while self._rows:
                await asyncio.sleep(_PAUSE_S)
                rows = list(self._rows.values())
                try:
                    await self._index.write(rows)
                except MemoryUnavailable as error:
                    log.info("runs_not_listed", runs=len(rows), error=str(error))
                    continue
                for row in rows:
                    if self._rows.get(row.task_id) is row:
                        del self._rows[row.task_id]
        finally:
            self._writing = None
