"""What the ledger holds, counted task by task, for whoever compares it with the counts beside it."""

import collections

from redis.asyncio import Redis

from tasklore.memory import keys
from tasklore.memory.command_batch import as_mapping
from tasklore.memory.ledger.ledger import entry_of


async def reports_in(redis: Redis) -> dict[tuple[str, int], tuple[str, bytes]]:
    """Return state and report of every generation that has one in the ledger, by task and generation."""
    found = {}
    async for key in redis.scan_iter(keys.task_pattern(), count=1000):
        entry = entry_of(key.decode(), as_mapping(await redis.hgetall(key)))
        for generation, known in entry.generations.items() if entry is not None else ():
            if known.report is not None:
                found[keys.parse_task(key), generation] = known.state, known.report
    return found


async def ended(redis: Redis) -> dict[str, int]:
    """Return how many generations have a report in the ledger, by state: every task read one by one."""
    return dict(
        collections.Counter(state for state, _ in (await reports_in(redis)).values())
    )
