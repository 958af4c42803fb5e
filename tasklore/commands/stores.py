"""The cards of agents, and what is remembered of other versions than theirs."""

import asyncio
from collections.abc import Iterable

from nats.aio.client import Client
from redis.exceptions import RedisError

from tasklore.commands.places import leading_with_the_cure
from tasklore.contracts.errors import InvalidInput, TaskloreError
from tasklore.contracts.messages import AgentCard
from tasklore.memory.long_term.store import LongTermMemory
from tasklore.runtime.servers import valkey
from tasklore.supervisor.cards import read_cards
from tasklore.supervisor.operations.results import versions_in_force

#: Seconds for looking at the keys of all that is remembered, some hundred thousand.
_LOOK_S = 5.0


async def all_cards(client: Client) -> list[AgentCard]:
    """Return the card of every agent.

    Raises:
        Unreachable: the bucket does not answer.
    """
    with leading_with_the_cure():
        return list(await read_cards(client))


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
            return await LongTermMemory(client).left_behind(versions_in_force(cards))
    except (RedisError, OSError, TaskloreError):
        return {}
