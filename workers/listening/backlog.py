"""The backlog of a listener: measured every few seconds for autoscalers, and mended where a server lost an index."""

import asyncio
import time
from collections.abc import Callable

import structlog

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory.queues.queue import PersonalQueue

log = structlog.get_logger(__name__)

#: Seconds between two readings: what scales workers looks every fifteen.
READ_S = 5.0
#: Users whose rows are counted one by one, in one round trip; of those beyond, the newest, one row each is counted.
_OWNERS = 1_000
#: Keys of the server that are looked at in each turn, for users whom an index that was lost would have forgotten.
_MENDED = 1_000


class Backlog:
    """The backlog of one queue as of the last reading; `run` keeps it up to date."""

    def __init__(
        self,
        queue: PersonalQueue,
        mended: Callable[[], None],
        *,
        now_ms: Callable[[], int] = lambda: time.time_ns() // 10**6,
    ) -> None:
        self._queue = queue
        self._mended = mended
        self._now_ms = now_ms
        self._pending = 0
        self._oldest_ms: int | None = None
        self._cursor = 0

    def pending(self) -> float:
        """Return how many rows of all users wait in order."""
        return float(self._pending)

    def oldest_s(self) -> float:
        """Return for how many seconds the oldest row has waited, 0 when none waits."""
        return (
            0.0
            if self._oldest_ms is None
            else max(0.0, (self._now_ms() - self._oldest_ms) / 1000)
        )

    async def run(self) -> None:
        """Read until cancelled; the last figures stay while the store is away."""
        while True:
            await self.read()
            await asyncio.sleep(READ_S)

    async def read(self) -> None:
        """Read once."""
        try:
            self._pending = await self._queue.pending_total(_OWNERS)
            self._oldest_ms = await self._queue.oldest(_OWNERS)
            mended = await self._queue.mend(_MENDED, self._cursor)
        except MemoryUnavailable as error:
            log.info("backlog_not_read", error=str(error))
            return
        self._cursor = mended.cursor
        if mended.put_back:
            log.warning("owners_put_back", owners=mended.put_back)
            self._mended()
