"""What runs cost is kept by task, for estimates of the next run."""

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import CompletionReport, Usage
from tasklore.memory.budgets.store import KEPT_COSTS, Budgets
from tasklore.supervisor.reports.reports import TaskCosts
from tasklore.supervisor.watches import CostKeeper
from tests.unit.supervisor.reports import report


def _report(
    agent: str, task: str, cost_usd: float | None, run_ms: int = 10
) -> CompletionReport:
    usage = Usage(input_tokens=1, cost_usd=cost_usd)
    return report(agent_id=agent, task_name=task, run_ms=run_ms, usage=usage)


async def test_costs_of_runs_are_kept_and_those_of_recalled_answers_are_not(
    redis: Redis,
) -> None:
    """Also not of an unknown price; a store that is away loses them, and the supervisor goes on."""
    costs = TaskCosts()
    for cost_usd, run_ms in ((0.25, 10), (None, 10), (0.0, 10), (0.5, 0), (0.75, 10)):
        costs.note(_report("A", "t", cost_usd, run_ms))
    await CostKeeper(Budgets(redis), costs).look()
    assert await Budgets(redis).costs_of([("A", "t")]) == {
        ("A", "t"): [250_000_000, 750_000_000]
    }
    assert costs.take() == {}
    for _ in range(2 * KEPT_COSTS):
        costs.note(_report("A", "t", 0.25))
    away = Budgets(Redis(port=1), deadline_s=0.05)
    with pytest.raises(MemoryUnavailable):
        await away.note_costs({("A", "t"): [1]})
    await CostKeeper(away, costs).look()
