"""One forked worker, and all that can be done to it: each deed is in the history before it is done."""

import asyncio
import os
import signal
from typing import Any

from tests.acceptance.chaos.history import History, Kind

#: Seconds for a worker to take tasks, or to be gone; far above what either takes.
PATIENCE_S = 60.0


class Forged:
    """A worker; `ready` is done once it takes tasks, `died` with its status once it is gone."""

    def __init__(self, pid: int, history: History) -> None:
        self.pid = pid
        self._history = history
        loop = asyncio.get_running_loop()
        self.ready: asyncio.Future[None] = loop.create_future()
        self.died: asyncio.Future[int] = loop.create_future()
        history.note("forked", pid=pid)

    @property
    def is_alive(self) -> bool:
        """Whether it is not known to have died."""
        return not self.died.done()

    async def begun(self) -> None:
        """Return once it takes tasks, or has died without."""
        async with asyncio.timeout(PATIENCE_S):
            first: set[asyncio.Future[Any]] = {self.ready, self.died}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)

    async def gone(self) -> int:
        """Return its status once it has died."""
        async with asyncio.timeout(PATIENCE_S):
            return await asyncio.shield(self.died)

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would."""
        self._signal("kill", signal.SIGKILL)

    def stop(self) -> None:
        """Freeze it: its connections stay open, its leases run out."""
        self._signal("stop", signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on, in the belief that no time has passed."""
        self._signal("continue", signal.SIGCONT)

    def terminate(self) -> None:
        """Ask it to leave, as an orchestrator would."""
        self._signal("dismiss", signal.SIGTERM)

    def dismiss(self) -> None:
        """End it with SIGKILL when the storm is over: nothing depends on it any more."""
        self._signal("dismiss", signal.SIGKILL)

    def note_ready(self) -> None:
        """Take its word that it takes tasks."""
        self._history.note("ready", pid=self.pid)
        self.ready.set_result(None)

    def note_death(self, status: int) -> None:
        """Take the word of whoever reaped it."""
        self._history.note("died", pid=self.pid, about=str(status))
        self.died.set_result(status)

    def _signal(self, kind: Kind, number: signal.Signals) -> None:
        if self.is_alive:
            self._history.note(kind, pid=self.pid)
            os.kill(self.pid, number)
