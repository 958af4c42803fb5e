"""The times at which a client hears something: at the first of several signs, and now and then in any case."""

import asyncio
from collections.abc import Awaitable


class Heartbeat:
    """Says every *beat_s* seconds that it is time to tell a client, and each proxy between, that the feed goes on."""

    def __init__(self, beat_s: float) -> None:
        self._beat_s = beat_s
        self._loop = asyncio.get_running_loop()
        self._at = self._loop.time() + beat_s

    @property
    def due_in_s(self) -> float:
        """Seconds until the next one."""
        return max(0.0, self._at - self._loop.time())

    def take(self) -> bool:
        """Return whether it is time for one, which is then taken."""
        is_due = not self.due_in_s
        if is_due:
            self._at = self._loop.time() + self._beat_s
        return is_due


async def wait_first(*waits: Awaitable[object], within_s: float) -> None:
    """Return when one of *waits* has ended, after *within_s* seconds at the latest; the others are cancelled."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
