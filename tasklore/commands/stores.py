"""The long-term memory, open for a short command, and the cards of agents."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable

from nats.aio.client import Client
from redis.exceptions import RedisError

from tasklore.commands.places import leading_with_the_cure, open_redis
from tasklore.contracts.errors import InvalidInput, TaskloreError
from tasklore.contracts.messages import AgentCard
from tasklore.memory.keys import parse_ltm
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.runtime.servers import valkey
from tasklore.supervisor.cards import read_cards

#: Seconds for looking at the keys of all that is remembered, some hundred thousand.
_LOOK_S = 5.0


@contextlib.asynccontextmanager
async def long_term_memory() -> AsyncIterator[LongTermMemory]:
    """Open the long-term memory of the system that runs here.

    Raises:
        Unreachable: there is none, or its Redis does not answer.
    """
    # A person waits: an answer late is better than none.
    async with open_redis("tasklore-ltm", 10.0) as client:
        yield LongTermMemory(client, budget_s=5.0)


async def all_cards(client: Client) -> list[AgentCard]:
    """Return the card of every agent.

    Raises:
        Unreachable: the bucket does not answer.
    """
    with leading_with_the_cure():
        return list(await read_cards(client))


def in_force(cards: Iterable[AgentCard]) -> dict[tuple[str, str], str]:
    """Return under which version each task of *cards* is remembered, by agent and task."""
    return {
        (card.agent_id, task.name): card.memory_version(task)
        for card in cards
        for task in card.tasks
    }


async def card_of(client: Client, agent_id: str) -> AgentCard:
    """Return the card of *agent_id*.

    Raises:
        InvalidInput: no agent of this id was ever started, or it was retired; the message names those there are.
        Unreachable: the bucket does not answer.
    """
    cards = {card.agent_id: card for card in await all_cards(client)}
    if agent_id not in cards:
        known = ", ".join(cards) or "none yet"
        raise InvalidInput(
            f"no agent is called {agent_id!r}; known are {known} (see `tasklore agents list`)"
        )
    return cards[agent_id]


async def count_left_behind(url: str, cards: Iterable[AgentCard]) -> dict[str, int]:
    """Return how many answers of each agent are of other versions than its card's; none when that takes long."""
    try:
        async with (
            asyncio.timeout(_LOOK_S),
            valkey.connect(url, name="tasklore-ltm", max_connections=1) as client,
        ):
            return await LongTermMemory(client).left_behind(in_force(cards))
    except (RedisError, OSError, TaskloreError):
        return {}


async def whole_key(memory: LongTermMemory, key: str) -> str:
    """Return the whole key that *key*, or the question *key*, means.

    Raises:
        InvalidInput: nothing is remembered under that question, or several versions or users have it.
    """
    if parse_ltm(key) is not None:
        return key
    found = [
        entry.key
        async for entry in memory.entries(task=key.partition(":")[0])
        if entry.parts.question == key
    ]
    if not found:
        raise InvalidInput(
            f"nothing is remembered under {key!r}; `tasklore ltm list` shows what is"
        )
    if len(found) > 1:
        raise InvalidInput(
            f"{key!r} is remembered {len(found)} times; give one whole key: {', '.join(sorted(found))}"
        )
    return found[0]
