"""Tasks that call tasks: on one slot, killed in the middle, cancelled from above, and wrong in every way."""

import asyncio
import json
import random
import re
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Literal
from uuid import uuid4

import httpx2
import pytest
from redis.asyncio import Redis

from tests.acceptance.conftest import Standing
from tests.acceptance.external_program import Json, Outside, outside
from tests.acceptance.system import AGENTS, System, running_system

TREE = str(AGENTS / "tree.py")


@pytest.fixture(scope="module")
def forest(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standing]:
    """Give a worker and a supervisor to all tests that neither stop them nor count what others left."""
    with running_system(tmp_path_factory.mktemp("forest")) as system:
        worker = system.worker(TREE)
        supervisor = system.supervisor().ready()
        yield Standing(system, worker.ready(), supervisor)


@pytest.fixture
async def forester(forest: Standing) -> AsyncIterator[Outside]:
    async with outside(forest.system.servers.nats_url) as connected:
        yield connected


@pytest.fixture
async def program(own_system: System) -> AsyncIterator[Outside]:
    async with outside(own_system.servers.nats_url) as connected:
        yield connected


async def ask(program: Outside, task: str, **parameters: object) -> Json:
    return await program.ask("TreeAgent", task, parameters)


def label() -> str:
    return f"L{uuid4().hex}"


async def test_a_line_of_twenty_tasks_comes_to_its_end_on_one_slot(
    own_system: System, program: Outside
) -> None:
    own_system.worker(TREE, slots=1).ready()
    line = label()
    report = await ask(program, "descend", label=line, depth=20)
    assert report["result"] == 20
    assert len(own_system.runs(line)) == 21


async def test_lines_of_several_callers_come_to_their_end_on_one_slot(
    own_system: System, program: Outside
) -> None:
    own_system.worker(TREE, slots=1).ready()
    lines = [label() for _ in range(8)]
    reports = await asyncio.gather(
        *(ask(program, "descend", label=line, depth=5) for line in lines)
    )
    assert [report["result"] for report in reports] == [5] * 8
    assert [len(own_system.runs(line)) for line in lines] == [6] * 8


async def test_parents_that_find_no_room_to_wait_come_again(
    own_system: System, program: Outside
) -> None:
    """Their places go to the tasks below them, which would wait for each other otherwise."""
    own_system.worker(str(AGENTS / "crowded.py"), slots=1).ready()
    asked = [ask(program, "descend", label=label(), depth=3) for _ in range(6)]
    reports = await asyncio.gather(*asked)
    assert [report["result"] for report in reports] == [3] * 6
    assert max(report["attempt"] for report in reports) > 1


async def test_map_returns_results_in_order_and_keeps_failures_where_asked(
    forest: Standing, forester: Outside
) -> None:
    all_good = label()
    report = await ask(forester, "spread", label=all_good, width=200)
    assert report["result"] == [2 * number for number in range(200)]
    assert len(forest.system.runs(all_good)) == 200
    report = await ask(forester, "collect", label=label(), width=4, bad=(1, 3))
    assert report["result"] == [0, "failed", 4, "failed"]
    report = await ask(forester, "spread", label=label(), width=4, bad=(1,))
    assert (report["status"], report["error"]["type"]) == ("failed", "CallFailed")
    assert "TreeAgent.leaf" in report["error"]["message"]
    assert "number 1 is bad" in report["error"]["message"]
    assert forest.worker.is_running


async def test_equal_calls_are_two_children_and_a_remembered_one_runs_once(
    forest: Standing, forester: Outside
) -> None:
    same = label()
    for _ in range(2):
        assert (await ask(forester, "twice", label=same, number=4))["result"] == [
            8,
            8,
            8,
        ]
    # Two leaves each time, and the remembered one once for both.
    assert len(forest.system.runs(same)) == 5


@pytest.mark.parametrize("patient", [True, False])
async def test_children_of_a_killed_parent_are_asked_once(
    own_system: System, program: Outside, patient: bool
) -> None:
    """Their worker lives on, or dies as well."""
    settings = {"slots": 8}
    worker = own_system.worker(TREE, **settings).ready()
    other = None if patient else own_system.worker(TREE, **settings).ready()
    width = 60
    family = label()
    task_id = await program.assign(
        "TreeAgent", "spread", {"label": family, "width": width, "ms": 30, "at_once": 8}
    )

    async def has_begun() -> bool:
        return len(own_system.runs(family)) >= width // 3

    await program.eventually(has_begun)
    worker.kill()
    if other is not None:
        other.kill()
    own_system.worker(TREE, **settings).ready()
    report = await program.report_of(task_id)
    assert report["result"] == [2 * number for number in range(width)]
    # What was under way at the kill may run once more, all others did not.
    assert width <= len(own_system.runs(family)) <= width + 16
    assert len(own_system.runs(f"{family}-parent")) >= 1


@pytest.mark.parametrize("struck", ["nats", "valkey"])
async def test_a_map_outlives_a_server_that_is_killed_under_it(
    own_system: System, program: Outside, struck: Literal["nats", "valkey"]
) -> None:
    own_system.worker(TREE, slots=8).ready()
    family = label()
    task_id = await program.assign(
        "TreeAgent", "spread", {"label": family, "width": 60, "ms": 30, "at_once": 8}
    )

    async def has_begun() -> bool:
        return len(own_system.runs(family)) >= 20

    await program.eventually(has_begun)
    server = getattr(own_system.servers, struck)
    server.kill()
    await asyncio.sleep(1)
    await server.start()
    report = await program.report_of(task_id)
    assert report["result"] == [2 * number for number in range(60)]
    assert len(own_system.runs(family)) <= 60 + 16


async def test_a_cancelled_root_ends_everything_below_it(
    own_system: System, program: Outside
) -> None:
    workers = [own_system.worker(TREE, slots=16).ready() for _ in range(2)]
    supervisor = own_system.supervisor().ready()
    root = label()
    task_id = await program.assign(
        "TreeAgent", "grow", {"label": root, "depth": 3, "width": 3, "ms": 60_000}
    )

    async def has_grown() -> bool:
        return (
            sum(
                1
                for path in (own_system.folder / "runs").iterdir()
                if path.name.startswith(root)
            )
            == 40
        )

    await program.eventually(has_grown)
    body = json.dumps({"task_id": task_id, "reason": "enough"}).encode()
    await program.client.publish(f"cancel.{task_id}", body)
    report = await program.report_of(task_id)
    assert report["status"] == "cancelled"

    async def is_still() -> bool:
        return sum(worker.metric("tasklore_slots_busy") for worker in workers) == 0

    await program.eventually(is_still, 5)

    async def all_reported() -> bool:
        return (
            sum((await program.counts("REPORTS", "reports.workers.>")).values()) == 39
        )

    await program.eventually(all_reported)
    assert supervisor.is_running


async def test_children_that_nobody_waits_for_end_with_their_parent(
    own_system: System, program: Outside
) -> None:
    own_system.worker(TREE).ready()
    report = await ask(program, "forget_one", label=label(), ms=60_000)
    assert report["result"] == 1

    async def is_cancelled() -> bool:
        stored = await program.counts("REPORTS", "reports.workers.>")
        return [
            (await program.last("REPORTS", subject))["status"] for subject in stored
        ] == ["cancelled"]

    await program.eventually(is_cancelled, 10)


async def test_circles_endless_depth_and_unknown_agents_are_refused(
    own_system: System, program: Outside
) -> None:
    own_system.worker(TREE, slots=2).ready()
    report = await ask(program, "circle", label=label())
    assert "would wait for itself" in report["error"]["message"]
    assert (
        "TreeAgent.round -> TreeAgent.circle -> TreeAgent.round"
        in report["error"]["message"]
    )
    report = await ask(program, "descend", label=label(), depth=40)
    assert "number 34 above one another" in report["error"]["message"]
    report = await ask(program, "call_unknown", label=label())
    assert report["status"] == "rejected"
    assert "unknown agent 'NoSuchAgent'" in report["error"]["message"]


async def test_a_worker_that_leaves_hands_waiting_parents_on(
    own_system: System, program: Outside
) -> None:
    leaving = own_system.worker(TREE, slots=2, grace_s=60).ready()
    line = label()
    task_id = await program.assign(
        "TreeAgent", "descend", {"label": line, "depth": 3, "ms": 3_000}
    )

    async def has_begun() -> bool:
        return len(own_system.runs(line)) == 4

    await program.eventually(has_begun)
    leaving.terminate()
    assert leaving.wait() == 0
    own_system.worker(TREE).ready()
    report = await program.report_of(task_id)
    assert (report["status"], report["result"]) == ("completed", 3)


async def test_a_trace_draws_what_a_task_called(
    forest: Standing, forester: Outside
) -> None:
    """By command and over HTTP: levels, what was recalled, failures, and equal children beyond 20 in one line."""
    same = label()
    await ask(forester, "twice", label=same, number=4)
    report = await ask(forester, "twice", label=same, number=4)
    lines = forest.system.command(
        "--direct", "trace", report["task_id"]
    ).stdout.splitlines()
    assert lines[0].startswith("TreeAgent.twice  completed in ")
    assert lines[1].startswith("│  total: 4 tasks (4 completed), ")
    assert [line[:27] for line in lines[2:]] == [
        *(["├─ TreeAgent.leaf  completed"[:27]] * 2),
        "└─ TreeAgent.remembered  co",
    ]
    assert "cache hit" in lines[4]
    report = await ask(forester, "grow", label=label(), depth=2, width=3)
    grown = json.loads(
        forest.system.command("--direct", "trace", "--json", report["task_id"]).stdout
    )
    assert grown["sums"]["states"] == {"completed": 13}
    assert [len(child["children"]) for child in grown["root"]["children"]] == [3, 3, 3]
    async with httpx2.AsyncClient(base_url=forest.supervisor.api) as http:
        assert (await http.get(f"/v1/tasks/{report['task_id']}/trace")).json() == grown
        assert (await http.get("/v1/tasks/never-heard-of/trace")).status_code == 404
    report = await ask(forester, "collect", label=label(), width=60, bad=(57,))
    drawn = forest.system.command("--direct", "trace", report["task_id"]).stdout
    # A run of less than a millisecond has no length.
    assert re.search(r"TreeAgent.leaf  failed( in|,)", drawn)
    assert "GiveUp: number 57 is bad" in drawn
    assert "TreeAgent.leaf  40 more tasks (40 completed)" in drawn
    unknown = forest.system.command("--direct", "trace", "never-heard-of")
    assert unknown.returncode == 2
    assert "TASKLORE_LEDGER_KEEP_DAYS" in unknown.stderr


async def test_a_trace_shows_the_steps_that_a_later_run_would_not_take_again(
    forest: Standing, forester: Outside
) -> None:
    task_id = await forester.assign(
        "TreeAgent", "step_and_wait", {"label": label(), "ms": 60_000}
    )

    async def is_shown() -> bool:
        drawn = forest.system.command("--direct", "trace", task_id).stdout
        return (
            "step prepare  journaled, 6 B" in drawn
            and "TreeAgent.leaf  running for" in drawn
        )

    await forester.eventually(is_shown)


@pytest.mark.parametrize("times", [10, pytest.param(200, marks=pytest.mark.long)])
async def test_trees_cancelled_at_random_moments_stand_still_within_a_second(
    own_system: System, program: Outside, times: int
) -> None:
    """Each grows to 57 tasks of a minute; afterwards every task that was published has its report."""
    workers = [own_system.worker(TREE, slots=128).ready() for _ in range(2)]
    own_system.supervisor().ready()
    chance = random.Random(57)
    still_after = list[float]()
    for _ in range(times):
        tree = {"label": label(), "depth": 2, "width": 7, "ms": 60_000}
        task_id = await program.assign("TreeAgent", "grow", tree)
        await asyncio.sleep(chance.uniform(0, 0.4))
        body = json.dumps({"task_id": task_id, "reason": "enough"}).encode()
        await program.client.publish(f"cancel.{task_id}", body)
        began = asyncio.get_running_loop().time()
        assert (await program.report_of(task_id))["status"] == "cancelled"

        async def is_still() -> bool:
            return (
                await asyncio.to_thread(
                    lambda: sum(one.metric("tasklore_slots_busy") for one in workers)
                )
                == 0
            )

        await program.eventually(is_still)
        still_after.append(asyncio.get_running_loop().time() - began)
    still_after.sort()
    sys.stdout.write(
        f"{times} trees; still after {still_after[times // 2]:.3f} s, at most {still_after[-1]:.3f} s\n"
    )

    async def all_reported() -> bool:
        async with Redis.from_url(own_system.servers.redis_url) as redis:
            pipe = redis.pipeline(transaction=False)
            async for key in redis.scan_iter("tl:task:*", count=5_000):
                pipe.hexists(key, "report:1")
            return all(await pipe.execute())

    await program.eventually(all_reported)
