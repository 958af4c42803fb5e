"""`python -m benchmarks.ledger_bytes`: what a finished task keeps in Valkey, and what a GiB of it carries.

Measured on what a server holds after a week at one rate: the fences of seven days, reports and pointers of one.
"""

import asyncio
import tempfile
from collections.abc import Sequence
from pathlib import Path

from redis.asyncio import Redis

from tasklore.contracts.identifiers import TaskName, new_id
from tasklore.memory import keys
from tasklore.memory.ledger.layouts import MARKS
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.servers.embedded import ValkeyServer

#: Tasks of one day, days that a fence is kept, bytes of a report and of an assignment.
TASKS = 10_000
DAYS = 7
REPORT = 600
ASSIGNMENT = 400
_PAGE = 200
_DAY_S = 86_400
_LEASE_MS = 30_000
_DEADLINE_S = 60.0


async def measure(client: Redis) -> None:
    """Fill the empty server of *client*, and print its bytes."""
    await client.set(keys.ledger_layout(), MARKS["2"])
    ledger = Ledger(client, deadline_s=_DEADLINE_S)
    # Functions, connections and counters by slot are there first, whatever follows.
    await _finish(ledger, _names())
    await client.delete(*[key async for key in client.scan_iter("*}*", count=5000)])
    await client.set(keys.ledger_layout(), MARKS["2"])
    before = await _used(client)
    for day in range(DAYS):
        names = _names()
        await _finish(ledger, names)
        if day < DAYS - 1:
            await _expire(client, names)
    counters = [key async for key in client.scan_iter("tl:ended:*", count=5000)]
    await client.delete(*counters)
    a_day = (await _used(client) - before) / TASKS
    print(f"Bytes for each task a day, of {DAYS} days at rest: {a_day:,.0f}")
    print(f"Tasks a second for each GiB: {2**30 / (a_day * _DAY_S):.2f}")
    fence = keys.entry(names[0])
    told = keys.entry_report(fence, 1)
    pointer = keys.task_agent(names[0])
    for what, key in (("fence", fence), ("pointer", pointer), ("report", told)):
        print(f"MEMORY USAGE of a {what}: {await client.memory_usage(key)}")


def _names() -> list[TaskName]:
    return [TaskName("PriceWatchAgent", new_id(0)) for _ in range(TASKS)]


async def _finish(ledger: Ledger, names: Sequence[TaskName]) -> None:
    """Accept, run and finish each of *names*."""
    for first in range(0, len(names), _PAGE):
        page = names[first : first + _PAGE]
        await ledger.accept_many([(one, 1, b"a" * ASSIGNMENT, "") for one in page])
        begun = (
            ledger.begin(one, 1, "bench-1", now_ms=1, lease_ms=_LEASE_MS)
            for one in page
        )
        await asyncio.gather(*begun)
        await ledger.finish_many([(one, 1, "completed", b"r" * REPORT) for one in page])


async def _expire(client: Redis, names: Sequence[TaskName]) -> None:
    """Remove what goes after a day."""
    for first in range(0, len(names), _PAGE):
        page = names[first : first + _PAGE]
        reports = [keys.entry_report(keys.entry(one), 1) for one in page]
        await client.delete(*reports, *map(keys.task_agent, page))


async def _used(client: Redis) -> int:
    return int((await client.info("memory"))["used_memory"])


async def main() -> None:
    """Run a server, and measure on it."""
    with tempfile.TemporaryDirectory() as folder:
        server = ValkeyServer(Path(folder))
        await server.start()
        try:
            async with Redis.from_url(server.url) as client:
                await measure(client)
        finally:
            await server.stop()


if __name__ == "__main__":
    asyncio.run(main())
