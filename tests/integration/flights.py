"""What tests of single flight share: processes that ask one question, and work that ends when it is let go."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.long_term.entries import CachedResult
from tasklore.memory.long_term.single_flight import Joined, Leader, SingleFlight
from tasklore.memory.long_term.store import LongTermMemory

ROOT = Path(__file__).parents[2]
KEY = keys.ltm("Budget", "1.1", "analyze:1")

#: Seconds that any wait here may take on a busy machine; no test waits for it to pass.
LONG_S = 60.0

Compute = Callable[[], Awaitable[bytes]]


class Process:
    """What one worker process has: a memory and single flights over one client."""

    def __init__(self, client: Redis, flights: SingleFlight[CachedResult]) -> None:
        self.memory = LongTermMemory(client, budget_s=LONG_S)
        self.flights = flights

    async def ask(self, compute: Compute, wait_s: float = LONG_S) -> tuple[bytes, bool]:
        """Return the answer and whether somebody else computed it, as a host does after a miss."""
        outcome = await self.flights.join(
            KEY, lambda: self.memory.recall(KEY), wait_s=wait_s
        )
        if isinstance(outcome, Joined):
            return outcome.value.result_json, True
        async with outcome:
            result = await compute()
            await self.memory.remember(KEY, result, computed_ms=1, ttl=None, now_ms=1)
            outcome.share(CachedResult(1, 1, result))
        return result, False


class Work:
    """A computation that ends when it is let go, and counts its runs."""

    def __init__(self) -> None:
        self.runs = 0
        self.started = asyncio.Event()
        self.may_end = asyncio.Event()

    async def __call__(self) -> bytes:
        """Return a result once allowed."""
        self.runs += 1
        self.started.set()
        await self.may_end.wait()
        return b"42"


async def awaited(client: Redis, key: str = KEY) -> None:
    """Return when another process is known to wait for the lease of *key*."""
    async with asyncio.timeout(LONG_S):
        while not await client.hexists(keys.flight_of(key), "awaited"):
            pass


async def leave(outcome: Leader[CachedResult] | Joined[CachedResult]) -> None:
    """Give up what *outcome* leads, unanswered."""
    assert isinstance(outcome, Leader)
    async with outcome:
        pass
