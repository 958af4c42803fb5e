"""A look at DEAD now and then, so that whoever scrapes this process sees how much lies there and for how long."""

import asyncio
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import structlog
from nats.aio.client import Client

from contracts import subjects
from contracts.errors import TaskloreError
from runtime.jetstream import ask_jetstream

log = structlog.get_logger(__name__)

#: Seconds between looks: a scraper comes every 15 s or so, and then sees what was purged before.
LOOK_S = 5.0


class DeadLetterWatch:
    """What DEAD held at the last look; both numbers are 0 when it is empty, or could not be asked.

    Args:
        client: A connection to the server that has the stream.
        now: Seconds since 1970.
    """

    def __init__(self, client: Client, now: Callable[[], float] = time.time) -> None:
        self._client = client
        self._now = now
        self._waiting = 0
        self._oldest_at: float | None = None

    def waiting(self) -> float:
        """Return how many letters lay there."""
        return self._waiting

    def oldest_s(self) -> float:
        """Return for how many seconds the oldest of them has been lying there by now."""
        oldest_at = self._oldest_at
        return 0.0 if oldest_at is None else max(0.0, self._now() - oldest_at)

    async def run(self) -> None:
        """Look every `LOOK_S` seconds until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_S)

    async def look(self) -> None:
        """Ask once."""
        try:
            state: dict[str, Any] = (await ask_jetstream(self._client, f"STREAM.INFO.{subjects.DEAD}"))["state"]
        except TaskloreError as error:
            log.info("dead_letters_not_counted", error=str(error))
            state = {"messages": 0}
        self._waiting = state["messages"]
        self._oldest_at = datetime.fromisoformat(state["first_ts"]).timestamp() if self._waiting else None
