"""The ledger moves to layout 2 under load, whoever is killed meanwhile: nothing is lost, and nothing is done twice."""

import asyncio
import os
from collections import Counter

import pytest

from tasklore.memory.ledger.layouts import KNOWN_S
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.migration import Migration
from tasklore.runtime.servers import valkey
from tests.acceptance.external_program import PATIENCE_S
from tests.acceptance.system import System
from tests.acceptance.test_survival import (
    SUPERVISOR,
    Scene,
    at_work,
    kill_nats,
    kill_supervisor,
    kill_valkey,
    kill_worker,
)
from tests.ledger_layouts import move, set_layout

#: Tasks of each test: as many as a variable says where somebody has the time.
TASKS = int(os.environ.get("MIGRATED_TASKS", "1000"))
#: Seconds after each step, and over which the tasks are spread: the steps, and some time before and behind them.
SETTLED_S = KNOWN_S + 2.0
SPREAD_S = 2 * SETTLED_S + 6.0


async def spread(scene: Scene) -> list[str]:
    """Publish `TASKS` tasks, each a question of its own, one after another over `SPREAD_S`."""
    tasks = []
    began = asyncio.get_running_loop().time()
    for number in range(TASKS):
        parameters = {"label": "moving", "number": number, "ms": 15}
        tasks.append(await scene.program.assign("ProbeAgent", "remembered", parameters))
        due_at = began + SPREAD_S * number / TASKS
        await asyncio.sleep(max(0.0, due_at - asyncio.get_running_loop().time()))
    return tasks


async def demand_one_report_each(scene: Scene, tasks: list[str]) -> None:
    """Compare stream and ledger once all is done: one completed report a task, the same in both, in one entry."""
    await scene.reported(len(tasks))
    await scene.settled(tasks)
    await scene.read_by_supervisor()
    stored = await scene.program.reports()
    assert stored == {f"reports.{SUPERVISOR}.{task}.1": 1 for task in tasks}
    entries = await scene.ledger_of(tasks)
    known = [entry.generations[1] for entry in entries if entry is not None]
    assert Counter(one.state for one in known) == {"completed": len(tasks)}
    assert [one.expired for one in known] == [None] * len(tasks)
    async with valkey.connect(scene.system.servers.redis_url) as client:
        assert await Migration(client).layout() == "2"
        assert not [key async for key in client.scan_iter("tl:task:{*")]
        ledger = Ledger(client, deadline_s=PATIENCE_S)
        for task in tasks[:: max(1, len(tasks) // 200)]:
            found = await scene.program.last(
                "REPORTS", f"reports.{SUPERVISOR}.{task}.1"
            )
            held = await ledger.find_report(task, 1)
            assert held is not None
            assert f'"number":{found["result"]["number"]}'.encode() in held


@pytest.mark.timeout(120 + TASKS // 20)
async def test_tasks_run_once_while_the_ledger_moves(own_system: System) -> None:
    """Nobody is killed: each has one run."""
    async with at_work(own_system) as scene:
        moving = asyncio.create_task(move(own_system.servers.redis_url, SETTLED_S))
        tasks = await spread(scene)
        await moving
        await demand_one_report_each(scene, tasks)
    assert len(own_system.runs("moving")) == TASKS


@pytest.mark.timeout(180 + TASKS // 20)
async def test_no_task_is_lost_while_the_ledger_moves_and_everybody_is_killed(
    own_system: System,
) -> None:
    """Workers, supervisors and both servers, one after another, in each step of it."""
    strikes = (kill_worker, kill_valkey, kill_supervisor, kill_nats)
    async with at_work(own_system, ack_wait_s=4) as scene:
        moving = asyncio.create_task(move(own_system.servers.redis_url, SETTLED_S))

        async def strike() -> None:
            number = 0
            while not moving.done():
                await asyncio.sleep(SPREAD_S / 10)
                await strikes[number % len(strikes)](scene)
                number += 1

        striking = asyncio.create_task(strike())
        tasks = await spread(scene)
        await moving
        await striking
        await demand_one_report_each(scene, tasks)


@pytest.mark.parametrize(
    "strike", [kill_worker, kill_supervisor, kill_nats, kill_valkey]
)
@pytest.mark.timeout(180 + TASKS // 20)
async def test_no_task_is_lost_in_layout_2_whoever_is_killed(
    own_system: System, strike: object
) -> None:
    async with valkey.connect(own_system.servers.redis_url) as client:
        await set_layout(client, "2")
    async with at_work(own_system, ack_wait_s=4) as scene:
        assigning = asyncio.create_task(scene.assign(TASKS, ms=5_000 // TASKS + 1))
        await scene.reported(TASKS // 10)
        await strike(scene)  # type: ignore[operator]  # one of those above
        await demand_one_report_each(scene, await assigning)
