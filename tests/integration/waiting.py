"""What tests of waiting rows share: a table, an owner, and how to come by a claim."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tasklore.memory.queues.claims import Claim, Closing, Outcome
from tasklore.memory.queues.queue import PersonalQueue

T = TypeVar("T")

LEASE_MS = 60_000
#: Milliseconds: long over for whoever asks next, and long enough for nothing.
BLINK_MS = 1
OWNER = "ada"
NOW = 0
#: Far ahead of every clock: what is due at any time is due then.
LATER = 4_000_000_000_000
TABLE = [("a", b"1"), ("b", b"2"), ("c", b"3")]


async def claimed(
    queue: PersonalQueue,
    owner: str = OWNER,
    limit: int = 32,
    now_ms: int = NOW,
    lease_ms: int = LEASE_MS,
) -> Claim:
    """Return a claim that there must be."""
    claim = await queue.claim(
        owner, holder="w1", limit=limit, lease_ms=lease_ms, now_ms=now_ms
    )
    assert claim is not None
    return claim


async def until(attempt: Callable[[], Awaitable[T | None]]) -> T:
    """Return what *attempt* returns once that is something, as when a lease is over."""
    async with asyncio.timeout(60):
        while True:
            found = await attempt()
            if found is not None:
                return found
            await asyncio.sleep(0)


async def after_a_crash(queue: PersonalQueue, limit: int = 32) -> Claim:
    """Return the claim of whoever comes once another's is over without a word."""
    return await until(
        lambda: queue.claim(
            OWNER, holder="w2", limit=limit, lease_ms=LEASE_MS, now_ms=NOW
        )
    )


def ids(claim: Claim) -> list[str]:
    """Return the ids of its rows."""
    return [row.row_id for row in claim.rows]


def closing_all(claim: Claim, state: Outcome = "done") -> list[Closing]:
    """Return the closings of every row of *claim*."""
    return [Closing(row_id=row_id, state=state) for row_id in ids(claim)]


async def states(queue: PersonalQueue, owner: str = OWNER) -> dict[str, str]:
    """Return the state of every row of *owner*."""
    return {row.row_id: row.state for row in await queue.rows(owner, 100)}
