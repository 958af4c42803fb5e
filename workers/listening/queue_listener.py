"""One running listener of this process: its pull engines, its lease loop, and the loops beside them."""

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.runtime.messaging.pull import PullEngine
from tasklore.workers.listening.backlog import Backlog
from tasklore.workers.listening.embedder import Embedding
from tasklore.workers.listening.outflow import Outflow
from tasklore.workers.listening.sweep import Sweeper

log = structlog.get_logger(__name__)

#: Seconds between two tries of what waits for a model, while one is configured: it may answer again.
RESUME_S = 300.0
#: Seconds until the first try is repeated while the store is away.
_RESUME_AGAIN_S = 5.0

Spawn = Callable[[Coroutine[Any, Any, None]], None]


@dataclass(slots=True, kw_only=True)
class QueueListener:
    """One listener of one agent; with *has_model*, rows that wait for a model are tried again every few minutes."""

    agent_id: str
    queue_name: str
    queue: PersonalQueue
    engines: Sequence[PullEngine]
    outflow: Outflow
    backlog: Backlog
    has_model: bool
    sweeper: Sweeper | None = None
    embedding: Embedding | None = None

    def start(self, spawn: Spawn) -> None:
        """Start every part as a task of its own."""
        for engine in self.engines:
            spawn(engine.run())
        spawn(self.outflow.run())
        spawn(self.backlog.run())
        if self.sweeper is not None:
            spawn(self.sweeper.run())
        if self.embedding is not None:
            spawn(self.embedding.run())
        if self.has_model:
            spawn(self._resume())

    def reconnected(self) -> None:
        """Let every engine ask anew."""
        for engine in self.engines:
            engine.reconnected()

    def stop(self) -> None:
        """Take and claim nothing more; running work goes on to its end."""
        for engine in self.engines:
            engine.stop()
        self.outflow.stop()

    async def emptied(self) -> None:
        """Return when all work has ended; call `stop` first."""
        for engine in self.engines:
            await engine.emptied()
        await self.outflow.emptied()

    @property
    def busy(self) -> int:
        """Users whose rows are being worked on."""
        return self.outflow.busy

    def vital_sign(self) -> tuple[bool, str]:
        """Return whether every part makes progress or is provably idle, and describe the first that does not."""
        for sign in (
            self.outflow.vital_sign,
            *(engine.vital_sign for engine in self.engines),
        ):
            fine, word = sign()
            if not fine:
                return False, f"{self.agent_id} on {self.queue_name}: {word}"
        return True, f"{self.agent_id} on {self.queue_name}: {self.busy} users"

    @property
    def ready(self) -> bool:
        """Whether every partition can be read."""
        return all(engine.ready for engine in self.engines)

    async def _resume(self) -> None:
        while True:
            pause_s = RESUME_S
            try:
                resumed = await self.queue.resume_all()
            except MemoryUnavailable as error:
                log.info("not_resumed", queue=self.queue_name, error=str(error))
                pause_s = _RESUME_AGAIN_S
            else:
                if resumed:
                    log.info("resumed", queue=self.queue_name, rows=resumed)
                    self.outflow.look_soon()
            await asyncio.sleep(pause_s)
