"""Which workers are alive, read at most every two seconds however many ask."""

import asyncio
import time
from collections.abc import Callable, Collection, Sequence

import structlog

from tasklore.contracts.errors import Unreachable
from tasklore.contracts.messages import WorkerPresence
from tasklore.runtime.messaging.direct import Line
from tasklore.runtime.messaging.presences import live_workers

log = structlog.get_logger(__name__)

#: Seconds between two reads: a new worker is found soon, and the bucket is not read at each look at a run.
_READ_EVERY_S = 2.0
#: Seconds for a read: nobody waits longer to hear that it is not known.
_WITHIN_S = 1.0


class LiveWorkers:
    """The live workers, by their signs of life at *line*; one that died counts for 15 s.

    All that ask while they are read wait for that read. One that failed counts as long as one that did not.
    """

    def __init__(self, line: Line, clock: Callable[[], float] = time.monotonic) -> None:
        self._line = line
        self._clock = clock
        self._alive: Sequence[WorkerPresence] | None = None
        self._until = float("-inf")
        self._reading = asyncio.Lock()

    async def alive(self) -> Sequence[WorkerPresence] | None:
        """Return every live worker; None while the bucket does not answer."""
        async with self._reading:
            if self._clock() >= self._until:
                self._alive = await self._read()
                self._until = self._clock() + _READ_EVERY_S
        return self._alive

    async def _read(self) -> Sequence[WorkerPresence] | None:
        try:
            async with asyncio.timeout(_WITHIN_S):
                return await live_workers(self._line)
        except (TimeoutError, Unreachable) as error:
            log.info("workers_not_read", error=str(error))
            return None

    async def absent(self, agents: Collection[str]) -> frozenset[str]:
        """Return which of *agents* have no live worker; none while the bucket does not answer."""
        if not agents:
            return frozenset()
        alive = await self.alive()
        if alive is None:
            return frozenset()
        return frozenset(agents) - {worker.agent_id for worker in alive}
