"""`tasklore pipeline check --cost`: estimates by the last reports of each task, from report to terminal."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.commands.exits import OK
from tasklore.commands.pipeline.check import print_check
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import CompletionReport, Usage
from tasklore.memory.budgets.store import KEPT_COSTS, Budgets
from tasklore.supervisor.reports.reports import TaskCosts
from tasklore.supervisor.watches import CostKeeper
from tests.unit.supervisor.reports import report

PIPELINE = """name = "papers"
[inputs.files]
type = "list"
required = false
[[phase]]
name = "plan"
agent = "PlanAgent"
task = "plan"
[[phase]]
name = "read"
agent = "ReadAgent"
task = "read"
for_each = "${input.files}"
[[phase]]
name = "polish"
agent = "ReadAgent"
task = "read"
after = ["read"]
repeat_until = "${last.done}"
at_most = 4
[[phase]]
name = "send"
agent = "SendAgent"
task = "send"
after = ["polish"]
"""


def _report(
    agent: str, task: str, cost_usd: float | None, run_ms: int = 10
) -> CompletionReport:
    usage = Usage(input_tokens=1, cost_usd=cost_usd)
    return report(agent_id=agent, task_name=task, run_ms=run_ms, usage=usage)


async def test_costs_of_runs_are_kept_and_those_of_recalled_answers_are_not(
    redis: Redis,
) -> None:
    """Also not of a price that is not known; a store that is away loses them, and the supervisor goes on."""
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


@pytest.mark.usefixtures("command_servers")
async def test_a_run_is_estimated_by_its_last_reports(
    redis: Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    printed: Callable[[], str],
) -> None:
    """A list that is given counts by its length, rounds by how many there may be, what is not known by nothing."""
    monkeypatch.setenv("TASKLORE_NATS_URL", "nats://127.0.0.1:1")
    file = tmp_path / "papers.toml"
    file.write_text(PIPELINE, "utf-8")
    await Budgets(redis).note_costs(
        {
            ("PlanAgent", "plan"): [2_000_000_000],
            ("ReadAgent", "read"): [10**8, 3 * 10**8],
        }
    )
    assert await print_check(str(file), (), has_cost=True, as_json=False) == OK
    rows = [line.split() for line in printed().splitlines()]
    assert [
        "read",
        "ReadAgent.read",
        "for",
        "each",
        "item",
        "$0.20",
        "$0.30",
        "2",
    ] in rows
    assert ["polish", "ReadAgent.read", "1", "to", "4", "$0.20", "$0.30", "2"] in rows
    assert ["send", "SendAgent.send", "1", "?", "?", "0"] in rows
    assert ["in", "all", "$2.40", "$3.50"] in rows
    assert (
        await print_check(
            str(file), ('files=["a", "b", "c"]',), has_cost=True, as_json=True
        )
        == OK
    )
    cost = json.loads(printed())["cost"]
    assert (round(cost["mean_usd"], 9), round(cost["largest_usd"], 9)) == (2.8, 4.1)
    assert [(one["fewest"], one["most"]) for one in cost["phases"]] == [
        (1, 1),
        (3, 3),
        (1, 4),
        (1, 1),
    ]
