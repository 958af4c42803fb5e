"""A program of somebody's own asks for tasks, without words and without a supervisor process."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta

import pytest

from examples.coin_world.agents import demand_worker
from tasklore.contracts.errors import ConfigurationError, TaskExpired
from tasklore.supervisor.program_client import Asker, asking
from tests.acceptance.conftest import Standing

BUDGET = {"budget_limit": "50k", "spent": 42_000}


@pytest.fixture
async def asker(standing: Standing) -> AsyncIterator[Asker]:
    """Ask the worker of the standing system."""
    servers = standing.system.servers
    async with asking(
        "CoinWorld", nats_url=servers.nats_url, redis_url=servers.redis_url
    ) as asker:
        yield asker


async def test_a_task_is_asked_for_and_reported(asker: Asker) -> None:
    """Its parameters may be spelled as anybody spells them; many at once each get their own report."""
    spent = [40_000 + number for number in range(20)]
    reports = await asyncio.gather(
        *(
            asker.ask("BudgetTrackerAgent", "analyze_budget", {**BUDGET, "spent": one})
            for one in spent
        )
    )

    assert [report.status for report in reports] == ["completed"] * 20
    assert [report.result["remaining"] for report in reports] == [
        50_000 - one for one in spent
    ]
    assert len({report.task_id for report in reports}) == 20


async def test_the_same_task_again_is_not_run_again(asker: Asker) -> None:
    first = await asker.ask(
        "BudgetTrackerAgent",
        "analyze_budget",
        BUDGET,
        task_id="asked-twice",
        memory="bypass",
    )
    again = await asker.ask(
        "BudgetTrackerAgent",
        "analyze_budget",
        BUDGET,
        task_id="asked-twice",
        memory="bypass",
    )

    assert again == first


async def test_bad_parameters_come_back_as_a_refusal(asker: Asker) -> None:
    report = await asker.ask(
        "BudgetTrackerAgent", "analyze_budget", {**BUDGET, "spend": 1}
    )

    assert report.status == "rejected"
    assert report.error is not None
    assert "spend" in report.error.message


async def test_who_works_is_known_before_anything_is_asked(asker: Asker) -> None:
    """A world whose agent nobody runs says what to start, and no task of it stays in a queue."""
    assert await asker.has_worker("BudgetTrackerAgent")
    assert not await asker.has_worker("BudgetTracker")

    with pytest.raises(
        ConfigurationError,
        match=r"no worker of DecisionAgent is alive.*tasklore worker tasklore.workers.agents",
    ):
        await demand_worker(asker)


async def test_an_agent_that_nobody_runs_is_named(asker: Asker) -> None:
    with pytest.raises(TaskExpired, match=r"NobodyAgent.*is a worker of it up"):
        await asker.ask("NobodyAgent", "nap", {}, within=timedelta(milliseconds=200))
