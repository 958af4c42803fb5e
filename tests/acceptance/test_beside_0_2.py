"""A worker of 0.2 beside a supervisor of today, and the other way round: the wheel of 0.2 in its own environment."""

import asyncio
from collections import Counter

from tests.acceptance.external_program import Json, Outside, outside
from tests.acceptance.system import AGENTS, ROOT, Served, System
from tests.http_client import ask

#: The interpreter of the environment in which 0.2 is installed, which `make test` makes.
PYTHON_OF_0_2 = ROOT / ".venv-0.2" / "bin" / "python"

#: Tasks of each test, and how many of them are asked for side by side.
TASKS = 1_000
AT_ONCE = 25

DOUBLER_OF_0_2 = str(ROOT / "tests" / "fixtures" / "0.2" / "doubler.py")
DOUBLER = str(AGENTS / "doubler.py")


async def test_a_worker_of_0_2_serves_a_supervisor_of_today(own_system: System) -> None:
    """It is an upgrade that began with the supervisors: nothing is lost, nothing runs twice."""
    worker = own_system.installed(PYTHON_OF_0_2, "worker", DOUBLER_OF_0_2)
    supervisor = own_system.supervisor()

    await work_through(own_system, supervisor.ready(), worker.ready())


async def test_a_supervisor_of_0_2_is_served_by_a_worker_of_today(
    own_system: System,
) -> None:
    """It is an upgrade that began with the workers: nothing is lost, nothing runs twice."""
    worker = own_system.worker(DOUBLER)
    supervisor = own_system.installed(PYTHON_OF_0_2, "supervisor")

    await work_through(own_system, supervisor.ready(), worker.ready())


async def test_what_both_did_side_by_side_goes_on_with_0_2_alone(
    own_system: System,
) -> None:
    """An upgrade that is gone back from before the ledger moves: nothing is lost, nothing runs twice."""
    old_worker = own_system.installed(PYTHON_OF_0_2, "worker", DOUBLER_OF_0_2)
    old = own_system.installed(PYTHON_OF_0_2, "supervisor")
    worker = own_system.worker(DOUBLER)
    supervisor = own_system.supervisor()
    for process in (old_worker, old, worker, supervisor):
        process.ready()
    for process in (old, supervisor):
        process.await_agents(1)
    async with outside(own_system.servers.nats_url, "Program") as program:
        side_by_side = asyncio.Semaphore(AT_ONCE)

        async def double(number: int, *served: Served) -> Json:
            async with side_by_side:
                if (place := number % (len(served) + 1)) < len(served):
                    return await ask_over_http(served[place], number)
                return await program.ask("DoublerAgent", "double", {"number": number})

        half = TASKS // 2
        reports = await asyncio.gather(
            *(double(number, old, supervisor) for number in range(half))
        )
        assert worker.metric("tasklore_tasks_total") > 0
        assert old_worker.metric("tasklore_tasks_total") > 0
        # Both leave in the middle of others.
        going_on = asyncio.gather(
            *(double(number, old) for number in range(half, TASKS))
        )
        while not await asyncio.to_thread(has_begun, own_system, half + AT_ONCE):  # noqa: ASYNC110 - a file tells nobody
            await asyncio.sleep(0.01)
        for process in (worker, supervisor):
            process.terminate()
        for process in (worker, supervisor):
            assert await asyncio.to_thread(process.wait) == 0
        reports += await going_on
        stored = await stored_reports(program)

    demand_each_once(own_system, reports, stored)


def has_begun(system: System, number: int) -> bool:
    """Return whether *number* runs or more began."""
    runs = (system.folder / "runs" / "doubled").read_text().split()
    return len(runs) >= number


async def work_through(system: System, supervisor: Served, worker: Served) -> None:
    """Have all tasks done, by HTTP and by a program in turn, and compare runs, answers and stored reports."""
    supervisor.await_agents(1)
    async with outside(system.servers.nats_url, "Program") as program:
        side_by_side = asyncio.Semaphore(AT_ONCE)

        async def double(number: int) -> Json:
            async with side_by_side:
                if number % 2:
                    return await program.ask(
                        "DoublerAgent", "double", {"number": number}
                    )
                return await ask_over_http(supervisor, number)

        reports = await asyncio.gather(*map(double, range(TASKS)))
        stored = await stored_reports(program)

    demand_each_once(system, reports, stored)
    assert worker.metric("tasklore_tasks_total") == TASKS


def demand_each_once(system: System, reports: list[Json], stored: Counter[str]) -> None:
    """Demand that each number was doubled by one run, and has one stored report, the one that was answered."""
    assert [report["result"] for report in reports] == [2 * one for one in range(TASKS)]
    assert {report["status"] for report in reports} == {"completed"}
    runs = (system.folder / "runs" / "doubled").read_text().split()
    assert Counter(runs) == Counter(str(number) for number in range(TASKS))
    assert stored == Counter(report["task_id"] for report in reports)


async def ask_over_http(supervisor: Served, number: int) -> Json:
    """Return the report on a task that was sent by name."""
    wanted = {
        "agent_id": "DoublerAgent",
        "task": "double",
        "parameters": {"number": number},
        "wait_seconds": 60,
    }
    answer = await ask(supervisor.api, "POST", "/v1/tasks", wanted)
    assert answer.status == 200, answer.body
    return dict(answer.body["report"])


async def stored_reports(program: Outside) -> Counter[str]:
    """Return how many reports on each task are stored; a subject is `reports.SUPERVISOR.TASK.GENERATION`."""
    stored: Counter[str] = Counter()
    for subject, count in (await program.counts("REPORTS")).items():
        stored[subject.split(".")[2]] += count
    return stored
