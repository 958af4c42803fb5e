"""Bounds on runs over several workers: how many run at once, in which order, and what waits without a slot."""

import asyncio
import itertools
import json
import random
import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.contracts.admission.limits import bound_name
from tasklore.contracts.messages import CompletionReport
from tasklore.memory import keys
from tasklore.memory.ledger.task_tree import TaskTree
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.program_client import Asker, asking
from tests.acceptance.autoscaler import monitored
from tests.acceptance.system import AGENTS, Served, System

BOUNDED = str(AGENTS / "bounded.py")
Interval = tuple[float, float, int]
#: Seconds of a lease that no test waits for, and within which whoever is called begins:
#: who is not, looks by itself only when the lease of the one before it is over.
LEASE_S = 60
CALLED_S = 30.0


@pytest.fixture
async def watched_system(tmp_path: Path) -> AsyncIterator[System]:
    """Give a system whose NATS shows how many deliveries are open."""
    async with EmbeddedServers(tmp_path / "servers", monitor=True) as servers:
        with System(servers, tmp_path) as system:
            yield system


@pytest.fixture
async def asker(watched_system: System) -> AsyncIterator[Asker]:
    """Connect a program."""
    servers = watched_system.servers
    async with asking(
        "Shop", nats_url=servers.nats_url, redis_url=servers.redis_url
    ) as connected:
        yield connected


def ask(
    asker: Asker,
    task: str,
    account: str,
    number: int,
    ms: int = 100,
    tenant: str | None = None,
) -> "asyncio.Task[CompletionReport]":
    """Ask for one run."""
    parameters = {"account": account, "number": number, "ms": ms}
    within = timedelta(seconds=400)
    return asyncio.create_task(
        asker.ask("BoundAgent", task, parameters, within=within, tenant=tenant)
    )


async def limit(system: System, *words: str) -> None:
    """Change the limits of the deployment."""
    done = await asyncio.to_thread(system.command, "--direct", "limits", *words)
    assert done.returncode == 0, done.stderr


def held(system: System) -> int | None:
    """Return the deliveries that are open, or wait in the queue of the agent."""
    return monitored([system.servers.nats.monitor_url], "TASKS", "BoundAgent")


def intervals(system: System, account: str, killed: dict[int, float]) -> list[Interval]:
    """Return when each run of *account* began and ended, and its number; one of a killed process ended with it."""
    path = system.folder / "runs" / account
    found = []
    begun: dict[tuple[int, int], float] = {}
    for line in path.read_text().splitlines():
        word, number, pid, at = line.split()
        if word == "begin":
            begun[int(number), int(pid)] = float(at)
        else:
            found.append((begun.pop((int(number), int(pid))), float(at), int(number)))
    found += [(at, killed[pid], number) for (number, pid), at in begun.items()]
    return sorted(found)


def most_at_once(runs: list[Interval]) -> int:
    """Return how many of *runs* overlapped at most."""
    steps = sorted(
        [(begun, 1) for begun, _, _ in runs] + [(ended, -1) for _, ended, _ in runs]
    )
    now = most = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


async def test_a_task_without_a_place_holds_nothing_and_begins_when_the_one_before_it_ends(
    watched_system: System, asker: Asker
) -> None:
    """In order of arrival, at its first attempt; the only other slot is free for others meanwhile."""
    with watched_system.worker(BOUNDED, slots=2, ack_wait_s=LEASE_S) as worker:
        await asyncio.to_thread(worker.ready)
        first = ask(asker, "one", "a", 0, ms=10_000)
        await asyncio.sleep(0.5)
        others = []
        for number in range(1, 6):
            others.append(ask(asker, "one", "a", number))
            await asyncio.sleep(0.1)
        await asyncio.sleep(2)
        assert held(watched_system) == 1
        assert (await ask(asker, "free", "free", 1, 10)).status == "completed"
        assert not first.done()
        reports = await asyncio.gather(first, *others)
    assert {(report.status, report.attempt) for report in reports} == {("completed", 1)}
    runs = intervals(watched_system, "a", {})
    assert [number for _, _, number in runs] == list(range(6))
    assert most_at_once(runs) == 1
    gaps = [after[0] - before[1] for before, after in itertools.pairwise(runs)]
    print(f"begun {max(gaps):.2f} s after the run before it at most")  # noqa: T201 - the figure
    # It was called, and did not wait for its next look.
    assert max(gaps) < CALLED_S


async def test_a_recalled_answer_needs_no_place_and_lets_the_next_one_begin(
    watched_system: System, asker: Asker
) -> None:
    """Those that ask the same while it is computed are given its answer."""
    with watched_system.worker(BOUNDED, slots=8) as worker:
        await asyncio.to_thread(worker.ready)
        assert (await ask(asker, "known", "k", 1, 10)).status == "completed"
        long = ask(asker, "known", "k", 2, 5_000)
        await asyncio.sleep(0.5)
        assert (await ask(asker, "known", "k", 1, 10)).memory.outcome == "hit"
        assert not long.done()
        joined = ask(asker, "known", "k", 2, 5_000)
        waiting = ask(asker, "known", "k", 3, 10)
        assert (await long).status == "completed"
        assert (await asyncio.wait_for(joined, 10)).memory.outcome == "joined"
        assert (await asyncio.wait_for(waiting, 10)).status == "completed"
    assert most_at_once(intervals(watched_system, "k", {})) == 1


async def test_a_task_that_calls_itself_with_its_own_key_is_refused_and_with_another_is_not(
    watched_system: System, asker: Asker
) -> None:
    """The error names the cure."""
    with watched_system.worker(BOUNDED, slots=8) as worker:
        await asyncio.to_thread(worker.ready)
        assert (await asyncio.wait_for(ask(asker, "nested", "n", 13), 20)).result == 3
        report = await asyncio.wait_for(ask(asker, "nested", "n", 2), 20)
        assert report.status == "failed"
        assert report.error is not None
        assert (
            "a task above it holds its concurrency slot (at_most=1)"
            in report.error.message
        )


async def test_a_task_that_was_cancelled_while_it_waited_lets_the_next_one_begin(
    watched_system: System, asker: Asker
) -> None:
    """It holds nobody up."""
    with (
        watched_system.worker(BOUNDED, slots=8, ack_wait_s=LEASE_S) as worker,
        watched_system.supervisor() as supervisor,
    ):
        await asyncio.to_thread(worker.ready)
        await asyncio.to_thread(supervisor.ready)
        first = ask(asker, "one", "c", 0, ms=8_000)
        await asyncio.sleep(0.5)
        task_id = "cancelled-while-it-waits"
        parameters = {"account": "c", "number": 1, "ms": 10}
        second = asyncio.create_task(
            asker.ask("BoundAgent", "one", parameters, task_id=task_id)
        )
        await asyncio.sleep(0.5)
        third = ask(asker, "one", "c", 2)
        await asyncio.sleep(1)
        cancelled = await asyncio.to_thread(watched_system.command, "cancel", task_id)
        assert cancelled.returncode == 0, cancelled.stderr
        assert (await asyncio.wait_for(second, CALLED_S)).status == "cancelled"
        await first
        assert (await asyncio.wait_for(third, CALLED_S)).status == "completed"
    assert [number for _, _, number in intervals(watched_system, "c", {})] == [0, 2]


@pytest.mark.parametrize("stores", [pytest.param(False, marks=pytest.mark.long), True])
@pytest.mark.parametrize(
    ("tasks", "kills"), [(120, 3), pytest.param(300, 6, marks=pytest.mark.long)]
)
async def test_while_workers_are_killed_no_bound_is_passed_and_nothing_is_lost(
    watched_system: System, asker: Asker, tasks: int, kills: int, stores: bool
) -> None:
    """Tasks of 20 accounts on 4 workers, one of which is killed every second and a half, and *stores* with them."""
    given = {"slots": 32, "ack_wait_s": 4}
    workers = [watched_system.worker(BOUNDED, **given) for _ in range(4)]
    await asyncio.gather(*(asyncio.to_thread(worker.ready) for worker in workers))
    draw = random.Random(5)
    killed = dict[int, float]()
    asked = []
    for number in range(tasks):
        account = number % 20
        asked.append(
            ask(asker, "one" if account < 10 else "two", f"{account}", number, ms=600)
        )
        await asyncio.sleep(0.01)
    for _ in range(kills):
        await asyncio.sleep(1.5)
        place = draw.randrange(4)
        kill(workers[place], killed)
        workers[place] = watched_system.worker(BOUNDED, **given)
        if stores:
            server = draw.choice(
                (watched_system.servers.valkey, watched_system.servers.nats)
            )
            server.kill()
            await asyncio.sleep(0.5)
            await server.start()
    reports = await asyncio.gather(*asked)
    assert {report.status for report in reports} == {"completed"}
    assert [report.result for report in reports] == list(range(tasks))
    out_of_turn = 0
    for account in range(20):
        runs = intervals(watched_system, f"{account}", killed)
        assert most_at_once(runs) <= (1 if account < 10 else 2), (account, runs)
        order = [number for _, _, number in runs]
        out_of_turn += sum(
            later < sooner for sooner, later in itertools.pairwise(order)
        )
    again = (
        sum(
            len(intervals(watched_system, f"{account}", killed))
            for account in range(20)
        )
        - tasks
    )
    print(f"{again} runs again after a kill, {out_of_turn} out of turn")  # noqa: T201 - the figures
    assert out_of_turn <= again + tasks // 7


@pytest.mark.parametrize("stores", [pytest.param(False, marks=pytest.mark.long), True])
@pytest.mark.parametrize(
    ("tasks", "kills"), [(90, 2), pytest.param(240, 4, marks=pytest.mark.long)]
)
async def test_while_workers_are_killed_no_limit_on_an_agent_or_a_tenant_is_passed_and_nothing_is_lost(
    watched_system: System, asker: Asker, tasks: int, kills: int, stores: bool
) -> None:
    """Tasks of 6 tenants that run two at once each, and five all together, on 3 workers that are killed."""
    await limit(
        watched_system, "set", "agent", "--agent", "BoundAgent", "--at-most", "5"
    )
    await limit(watched_system, "set", "tenants", "--tenant", "*", "--at-most", "2")
    given = {"slots": 16, "ack_wait_s": 4}
    workers = [watched_system.worker(BOUNDED, **given) for _ in range(3)]
    await asyncio.gather(*(asyncio.to_thread(worker.ready) for worker in workers))
    draw = random.Random(7)
    killed = dict[int, float]()
    asked = []
    for number in range(tasks):
        tenant = f"tenant{number % 6}"
        asked.append(ask(asker, "free", tenant, number, ms=250, tenant=tenant))
    for _ in range(kills):
        await asyncio.sleep(1.5)
        place = draw.randrange(3)
        kill(workers[place], killed)
        workers[place] = watched_system.worker(BOUNDED, **given)
        if stores:
            server = draw.choice(
                (watched_system.servers.valkey, watched_system.servers.nats)
            )
            server.kill()
            await asyncio.sleep(0.5)
            await server.start()
    reports = await asyncio.gather(*asked)
    assert [report.result for report in reports] == list(range(tasks))
    runs = [intervals(watched_system, f"tenant{number}", killed) for number in range(6)]
    most = most_at_once(list(itertools.chain(*runs)))
    print(f"{most} of 5 at once, {sum(map(len, runs)) - tasks} runs again after a kill")  # noqa: T201 - the figures
    assert most <= 5
    assert max(map(most_at_once, runs)) <= 2


async def test_a_limit_on_runs_is_changed_live(
    watched_system: System, asker: Asker
) -> None:
    """A higher one lets those that wait begin, a lower one ends no run, and without one all begin."""
    await limit(
        watched_system, "set", "agent", "--agent", "BoundAgent", "--at-most", "1"
    )
    with watched_system.worker(BOUNDED, slots=32, ack_wait_s=20) as worker:
        await asyncio.to_thread(worker.ready)
        tasks = 30
        asked = [
            ask(asker, "free", "live", number, ms=5_000) for number in range(tasks)
        ]

        def count(word: str) -> int:
            path = watched_system.folder / "runs" / "live"
            return path.read_text().count(f"{word} ") if path.exists() else 0

        def under_way() -> int:
            return count("begin") - count("end")

        async def until(is_so: Callable[[], bool]) -> float:
            begun = time.monotonic()
            async with asyncio.timeout(30):
                while not is_so():  # noqa: ASYNC110 - another process
                    await asyncio.sleep(0.02)
            return time.monotonic() - begun

        await until(lambda: under_way() == 1 == held(watched_system))
        await limit(watched_system, "set", "agent", "--at-most", "4")
        raised_s = await until(lambda: under_way() == 4)
        await limit(watched_system, "set", "agent", "--at-most", "2")
        # Known everywhere within a second; then what began before ends, and no more than two at once take its place.
        await asyncio.sleep(2)
        await until(lambda: under_way() == 2)
        for _ in range(300):
            await asyncio.sleep(0.02)
            assert under_way() <= 2

        async def is_shown() -> bool:
            words = ("--direct", "budget", "--json")
            found = await asyncio.to_thread(watched_system.command, *words)
            seen = json.loads(found.stdout)["accounts"][0]
            assert seen["waiting"] > 5
            return (seen["limit"], seen["amount"], seen["reserved"]) == ("agent", 2, 2)

        async with asyncio.timeout(30):
            while not await is_shown():
                pass
        await limit(watched_system, "remove", "agent")
        removed_s = await until(lambda: count("begin") == tasks)
        print(f"raised: {raised_s:.2f} s, removed: {removed_s:.2f} s until they ran")  # noqa: T201 - the figures
        assert {report.status for report in await asyncio.gather(*asked)} == {
            "completed"
        }


async def test_a_run_lends_its_place_under_a_limit_to_the_tasks_that_it_calls(
    watched_system: System, asker: Asker
) -> None:
    """Four trees of four tasks under a limit of one: each caller goes on once it has its place again."""
    await limit(
        watched_system, "set", "agent", "--agent", "BoundAgent", "--at-most", "1"
    )
    with watched_system.worker(BOUNDED, slots=2) as worker:
        await asyncio.to_thread(worker.ready)
        asked = [ask(asker, "nested", f"l{number}", 13) for number in range(4)]
        reports = await asyncio.wait_for(asyncio.gather(*asked), 90)
    assert [report.result for report in reports] == [3] * 4


async def test_a_tenant_that_waits_for_its_own_place_holds_up_no_other(
    watched_system: System, asker: Asker
) -> None:
    """An agent has two places, and one tenant one of them."""
    await limit(
        watched_system, "set", "agent", "--agent", "BoundAgent", "--at-most", "2"
    )
    await limit(watched_system, "set", "tenants", "--tenant", "*", "--at-most", "1")
    with watched_system.worker(BOUNDED, slots=8) as worker:
        await asyncio.to_thread(worker.ready)
        mine = [
            ask(asker, "free", "mine", number, ms=6_000, tenant="mine")
            for number in range(2)
        ]
        await asyncio.sleep(0.5)
        other = await ask(asker, "free", "other", 1, tenant="other")
        assert (other.status, sum(one.done() for one in mine)) == ("completed", 0)
        await asyncio.gather(*mine)
    assert most_at_once(intervals(watched_system, "mine", {})) == 1


async def test_without_the_store_of_places_no_bounded_task_begins(
    watched_system: System, asker: Asker
) -> None:
    """It waits, as tasks do that must not run twice, and another task goes on."""
    given = {"memory_budget_ms": 500, "ledger_deadline_ms": 500}
    with watched_system.worker(BOUNDED, slots=8, **given) as worker:
        await asyncio.to_thread(worker.ready)
        watched_system.servers.valkey.kill()
        bound = ask(asker, "one", "dead", 1)
        free = ask(asker, "free", "alive", 1)
        assert (await asyncio.wait_for(free, 20)).status == "completed"
        await asyncio.sleep(3)
        assert not (watched_system.folder / "runs" / "dead").exists()
        await watched_system.servers.valkey.start()
        report = await asyncio.wait_for(bound, 30)
    assert (report.status, report.attempt) == ("completed", 1)


def kill(worker: Served, killed: dict[int, float]) -> None:
    """Kill *worker*, and note when."""
    worker.kill()
    killed[worker.pid] = time.time()


async def test_it_is_seen_that_a_task_waits_for_a_place(
    watched_system: System, asker: Asker
) -> None:
    """Under which limit, and how many may go on at once; no more once it runs."""
    await limit(
        watched_system, "set", "agent", "--agent", "BoundAgent", "--at-most", "1"
    )
    place = keys.places(bound_name({"agent": "BoundAgent"}))
    async with Redis.from_url(watched_system.servers.redis_url) as redis:
        tree = TaskTree(redis)
        with watched_system.worker(BOUNDED, slots=8) as worker:
            await asyncio.to_thread(worker.ready)
            asked = [
                ask(asker, "free", "seen", number, ms=3_000) for number in range(2)
            ]
            wait = None
            async with asyncio.timeout(60):
                while wait is None:
                    await asyncio.sleep(0.05)
                    for name in await redis.zrange(place[2], 0, 0):
                        task_id = name.decode().rpartition(":")[0]
                        trace = await tree.read(task_id)
                        wait = trace and trace.root.waits_for
            assert (wait.kind, wait.name) == ("limit", "agent")
            assert (
                wait.text == "a concurrency slot under limit agent (at most 1 at once)"
            )
            await asyncio.gather(*asked)
            ended = await tree.read(task_id)
    assert ended is not None
    assert (ended.root.state, ended.root.waits_for) == ("completed", None)
