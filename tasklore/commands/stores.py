"""Remembered answers of other versions than those of the cards."""

import asyncio
from collections.abc import Iterable

from redis.exceptions import RedisError

from tasklore.contracts.errors import TaskloreError
from tasklore.contracts.messages import AgentCard
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.runtime.servers import valkey
from tasklore.supervisor.operations.results import versions_in_force

#: Seconds for looking at the keys of all that is remembered, some hundred thousand.
_LOOK_S = 5.0


async def count_left_behind(url: str, cards: Iterable[AgentCard]) -> dict[str, int]:
    """Return how many answers of each agent are of other versions than its card's; none when that takes long."""
    try:
        async with (
            asyncio.timeout(_LOOK_S),
            valkey.connect(url, name="tasklore-ltm", max_connections=1) as client,
        ):
            return await LongTermMemory(client).left_behind(versions_in_force(cards))
    except (RedisError, OSError, TaskloreError):
        return {}
