"""A limit of tokens under three processes of 64 slots, in simulated time: see `tests.budget_storm`."""

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.limits import read_limits
from tasklore.memory.budgets.store import Budgets
from tasklore.memory.functions import load_functions
from tests.budget_storm import run_storm

LIMIT = {"name": "tpm", "model": "gpt-*", "tokens": 200_000, "every": "minute"}


@pytest.mark.parametrize("seeds", [1, pytest.param(20, marks=pytest.mark.long)])
async def test_a_limit_is_used_and_never_overspent(redis: Redis, seeds: int) -> None:
    """The provider, which has the same limit and counts for itself, refuses at most one call in a hundred."""
    for seed in range(seeds):
        await redis.flushdb()
        await load_functions(redis)
        await Budgets(redis).change(read_limits({"limits": [LIMIT]}), "test")
        storm = await run_storm(redis, seed)
        assert storm.provider.refused <= storm.provider.served / 100
        assert 0.95 <= storm.used <= 1.0, seed
