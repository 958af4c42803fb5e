"""What the ledger holds, counted task by task, for whoever compares it with the counts beside it."""

import collections

from redis.asyncio import Redis

from memory import keys
from memory.exchange import as_mapping
from memory.ledger import entry_of


async def ended(redis: Redis) -> dict[str, int]:
    """Return how many generations have a report in the ledger, by state: every task read one by one."""
    counted: collections.Counter[str] = collections.Counter()
    async for key in redis.scan_iter(keys.task_pattern(), count=1000):
        entry = entry_of(key.decode(), as_mapping(await redis.hgetall(key)))
        for known in entry.generations.values() if entry is not None else ():
            if known.report is not None:
                counted[known.state] += 1
    return dict(counted)
