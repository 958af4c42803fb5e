"""A look at a stream, or into the ledger, now and then, so that whoever scrapes this process sees what is there."""

import asyncio
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

import structlog
from nats.aio.client import Client
from redis.asyncio import ConnectionPool, Redis
from redis.exceptions import RedisError

from contracts.errors import MemoryUnavailable, TaskloreError
from memory.ledger.tally import Tally
from runtime.messaging.jetstream import ask_jetstream

log = structlog.get_logger(__name__)

#: Seconds between looks: a scraper comes every 15 s or so, and then sees what was purged before.
LOOK_S = 5.0
#: Seconds between looks into the ledger, each of which takes 30 ms of our CPU time and 7 ms of the server's.
TALLY_S = 10.0

#: Seconds for an order to end a script: a busy server answers it at once.
KILL_S = 2.0


class Watch(ABC):
    """Something that is looked at again and again."""

    #: Seconds between looks.
    every_s = LOOK_S

    async def run(self) -> None:
        """Look every `every_s` seconds until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(self.every_s)

    @abstractmethod
    async def look(self) -> None:
        """Look once."""


class StreamWatch(Watch):
    """What a stream held at the last look; both numbers are 0 when it is empty, or could not be asked.

    Args:
        client: A connection to the server that has it.
        stream: Its name.
        now: Seconds since 1970.
    """

    def __init__(self, client: Client, stream: str, now: Callable[[], float] = time.time) -> None:
        self._client = client
        self._stream = stream
        self._now = now
        self._waiting = 0
        self._oldest_at: float | None = None

    def waiting(self) -> float:
        """Return how many messages lay there."""
        return self._waiting

    def oldest_s(self) -> float:
        """Return for how many seconds the oldest of them has been lying there by now."""
        oldest_at = self._oldest_at
        return 0.0 if oldest_at is None else max(0.0, self._now() - oldest_at)

    async def look(self) -> None:
        """Ask once."""
        try:
            state: dict[str, Any] = (await ask_jetstream(self._client, f"STREAM.INFO.{self._stream}"))["state"]
        except TaskloreError as error:
            log.info("stream_not_counted", stream=self._stream, error=str(error))
            state = {"messages": 0}
        self._waiting = state["messages"]
        self._oldest_at = datetime.fromisoformat(state["first_ts"]).timestamp() if self._waiting else None


class LedgerWatch(Watch):
    """How many tasks had ended in each state at the last look; what is known stays while the ledger is away."""

    every_s = TALLY_S

    def __init__(self, tally: Tally, now: Callable[[], float] = time.monotonic) -> None:
        self._tally = tally
        self._now = now
        self._read_at = now()
        self._ended: Mapping[str, int] = {}

    def ended(self) -> Mapping[str, int]:
        """Return the numbers by state, none before the first look."""
        return self._ended

    def age_s(self) -> float:
        """Return for how many seconds the ledger has not been read, from the start when it never was."""
        return max(0.0, self._now() - self._read_at)

    async def look(self) -> None:
        """Ask once."""
        try:
            self._ended = {"completed": 0, **await self._tally.read()}
        except MemoryUnavailable as error:
            log.info("ledger_not_counted", error=str(error))
        else:
            self._read_at = self._now()


class StoreWatch(Watch):
    """How full the store was at the last look, as a part of its `maxmemory`; what runs away there is ended.

    Args:
        redis: The client whose server is watched.
    """

    every_s = TALLY_S

    def __init__(self, redis: Redis) -> None:
        self._redis = redis
        self._part = 0.0

    def part(self) -> float:
        """Return the part of its memory that it uses, 0 where it has no limit or nobody could ask."""
        return self._part

    async def look(self) -> None:
        """Ask once; a server that does not answer may be busy with a function, which is ended if it has not written."""
        try:
            info = await self._redis.info("memory")
        except (RedisError, OSError) as error:
            log.info("store_not_measured", error=str(error))
            self._part = 0.0
            await self._end_scripts()
        else:
            self._part = info["used_memory"] / info["maxmemory"] if info.get("maxmemory") else 0.0

    async def _end_scripts(self) -> None:
        pool = self._redis.connection_pool
        # A server that is busy lets nobody give a name.
        options = {**pool.connection_kwargs, "client_name": None}
        for kind in ("FUNCTION", "SCRIPT"):
            async with Redis(connection_pool=ConnectionPool(connection_class=pool.connection_class, **options)) as bare:
                try:
                    async with asyncio.timeout(KILL_S):
                        await bare.execute_command(kind, "KILL")  # type: ignore[no-untyped-call]  # redis-py
                except (RedisError, OSError) as error:
                    log.info("no_script_ended", kind=kind, error=str(error))
                else:
                    log.warning("script_ended", kind=kind)
