"""Nothing is lost and nothing is reported twice, whichever process is killed in the middle of the work."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tasklore.memory import keys
from tasklore.memory.ledger.ledger import Ledger, LedgerEntry
from tasklore.runtime.servers import valkey
from tests.acceptance.external_program import PATIENCE_S, Outside, outside
from tests.acceptance.system import Served, System

#: The outside program takes the supervisor's place at publishing; the real one keeps the ledger.
SUPERVISOR = "SupervisorAgent"
#: Five hundred only in the long run; reference/delivery.md calls the test by its name.
FEW, MANY = 160, 500


@dataclass
class Scene:
    """A worker and a supervisor at work on many tasks."""

    system: System
    program: Outside
    worker: Served
    supervisor: Served

    async def assign(self, count: int, label: str = "many", ms: int = 15) -> list[str]:
        """Publish *count* tasks, each a question of its own."""
        return list(
            await asyncio.gather(
                *(
                    self.program.assign(
                        "ProbeAgent",
                        "remembered",
                        {"label": label, "number": number, "ms": ms},
                    )
                    for number in range(count)
                )
            )
        )

    async def reported(self, count: int) -> None:
        """Return once *count* reports lie in the stream."""

        async def enough() -> bool:
            return len(await self.program.reports()) >= count

        await self.program.eventually(enough)

    async def ledger_of(self, tasks: list[str]) -> list[LedgerEntry | None]:
        """Return what the ledger knows of *tasks*."""
        async with valkey.connect(self.system.servers.redis_url) as client:
            ledger = Ledger(client, deadline_s=PATIENCE_S)
            return [await ledger.read(task) for task in tasks]

    async def settled(self, tasks: list[str]) -> None:
        """Return once the ledger holds the one report of each of *tasks*, none missing."""

        async def complete() -> bool:
            return all(
                entry is not None and entry.generations[1].report is not None
                for entry in await self.ledger_of(tasks)
            )

        await self.program.eventually(complete)

    async def read_by_supervisor(self) -> None:
        """Return once the supervisor's consumer has taken and acknowledged every report."""

        async def all_read() -> bool:
            info = await self.program.api(f"CONSUMER.INFO.REPORTS.{SUPERVISOR}")
            return bool(info["num_pending"] == 0 and info["num_ack_pending"] == 0)

        await self.program.eventually(all_read)


@asynccontextmanager
async def at_work(system: System, **settings: Any) -> AsyncIterator[Scene]:
    """Start a worker, a supervisor and a program that publishes in its name."""
    worker = system.worker(slots=32, **settings)
    supervisor = system.supervisor(**settings)
    worker.ready()
    supervisor.ready()
    async with outside(system.servers.nats_url, SUPERVISOR) as program:
        yield Scene(system, program, worker, supervisor)


async def kill_worker(scene: Scene) -> None:
    """Kill the worker, and start another."""
    scene.worker.kill()
    scene.worker = scene.system.worker(slots=32)
    scene.worker.ready()


async def kill_supervisor(scene: Scene) -> None:
    """Kill the supervisor, and start another."""
    scene.supervisor.kill()
    scene.supervisor = scene.system.supervisor()
    scene.supervisor.ready()


async def kill_nats(scene: Scene) -> None:
    """Kill the NATS server, and start it again on its data."""
    scene.system.servers.nats.kill()
    await scene.system.servers.nats.start()


async def kill_valkey(scene: Scene) -> None:
    """Kill Valkey, and start it again on its data."""
    scene.system.servers.valkey.kill()
    await scene.system.servers.valkey.start()


@pytest.mark.parametrize(
    "strike", [kill_worker, kill_supervisor, kill_nats, kill_valkey]
)
@pytest.mark.parametrize("count", [FEW, pytest.param(MANY, marks=pytest.mark.long)])
async def test_five_hundred_tasks_have_five_hundred_reports_whoever_is_killed_meanwhile(
    own_system: System, strike: Callable[[Scene], Awaitable[None]], count: int
) -> None:
    """The stream, the ledger and the supervisor agree on one completed report a task."""
    async with at_work(own_system) as scene:
        # They take three seconds together, so that whoever is struck is struck in the middle.
        assigning = asyncio.create_task(scene.assign(count, ms=100_000 // count))
        await scene.reported(count // 10)
        done_before = len(await scene.program.reports())
        await strike(scene)
        tasks = await assigning
        await scene.reported(count)
        await scene.settled(tasks)
        await scene.read_by_supervisor()
        stored = await scene.program.reports()
        entries = await scene.ledger_of(tasks)
        reports = [await scene.program.last("REPORTS", subject) for subject in stored]
    assert done_before < count - count // 10
    assert stored == {f"reports.{SUPERVISOR}.{task}.1": 1 for task in tasks}
    assert {entry.generations[1].state for entry in entries if entry is not None} == {
        "completed"
    }
    assert {report["status"] for report in reports} == {"completed"}
    assert sorted(report["result"]["number"] for report in reports) == list(
        range(count)
    )


async def test_steps_are_not_taken_again_when_workers_are_killed_between_them(
    own_system: System,
) -> None:
    """A kill costs the two steps that were under way; a journal goes with the report."""
    async with at_work(own_system, ack_wait_s=2) as scene:
        task = await scene.program.assign(
            "ProbeAgent", "stepped", {"label": "steps", "number": 12, "ms": 300}
        )
        for kill in range(1, 4):

            async def has_come(position: int = 4 * kill - 2) -> bool:
                return bool(own_system.runs(f"steps-{position}"))

            await scene.program.eventually(has_come)
            scene.worker.kill()
            scene.worker = own_system.worker(slots=32, ack_wait_s=2)
            scene.worker.ready()
        report = await scene.program.report_of(task)
        async with valkey.connect(own_system.servers.redis_url) as client:

            async def is_gone() -> bool:
                return not await client.exists(*keys.steps(keys.task(task)))

            # It is removed once the report is stored, which may be heard before.
            await scene.program.eventually(is_gone)
    runs = [len(own_system.runs(f"steps-{position}")) for position in range(12)]
    assert report["status"] == "completed"
    assert 12 <= sum(runs) <= 12 + 2 * 3
    assert max(runs) == 2
    # The last result of each step is the one that counts, and the only one that the task saw.
    assert report["result"]["number"] == sum(runs)


@pytest.mark.parametrize("way", ["killed", "frozen"])
async def test_tasks_complete_without_valkey_and_the_ledger_is_repaired_afterwards(
    own_system: System, way: str
) -> None:
    """Reports say that nothing fenced or remembered them; once it is back, the supervisor tells the ledger."""
    server = own_system.servers.valkey
    async with at_work(
        own_system, ledger_deadline_ms=200, memory_budget_ms=50
    ) as scene:
        warm = await scene.assign(5, "before")
        await scene.reported(len(warm))
        if way == "killed":
            server.kill()
        else:
            server.pause()
        tasks = await scene.assign(60, "without", ms=0)
        reports = await asyncio.gather(
            *(scene.program.report_of(task) for task in tasks)
        )
        if way == "killed":
            await server.start()
        else:
            server.resume()
        await scene.settled(tasks)
        entries = await scene.ledger_of(tasks)
        stored = await scene.program.reports()
    assert {report["status"] for report in reports} == {"completed"}
    assert {report["fence"] for report in reports} == {"none"}
    assert {report["memory"]["outcome"] for report in reports} == {"unavailable"}
    assert {entry.generations[1].state for entry in entries if entry is not None} == {
        "completed"
    }
    assert len(stored) == len(warm) + len(tasks)


async def test_a_task_that_must_not_run_twice_waits_for_the_ledger(
    own_system: System,
) -> None:
    """Without a ledger it is not started at all, and its turn comes when the ledger does."""
    async with at_work(
        own_system, ledger_deadline_ms=200, memory_budget_ms=50
    ) as scene:
        own_system.servers.valkey.kill()
        fenced = await scene.program.assign("ProbeAgent", "fenced", {"label": "fenced"})
        other = await scene.program.assign("ProbeAgent", "fresh", {"label": "other"})
        await scene.program.report_of(other)
        await asyncio.to_thread(scene.worker.await_log, "parked_without_ledger")
        assert own_system.runs("fenced") == []
        await own_system.servers.valkey.start()
        report = await scene.program.report_of(fenced)
    assert (report["status"], report["fence"]) == ("completed", "ledger")
    assert len(own_system.runs("fenced")) == 1


async def test_a_task_running_while_nats_restarts_runs_once(own_system: System) -> None:
    """Its second delivery, after the restart, finds the first one still at work."""
    async with at_work(own_system) as scene:
        task = await scene.program.assign(
            "ProbeAgent", "fresh", {"label": "patient", "ms": 3_000}
        )
        await scene.program.begun(task)
        await kill_nats(scene)
        report = await scene.program.report_of(task)
        stored = await scene.program.reports()
    assert report["status"] == "completed"
    assert len(own_system.runs("patient")) == 1
    assert list(stored.values()) == [1]


async def test_a_plain_function_keeps_no_worker_beyond_its_grace(
    own_system: System,
) -> None:
    """A thread cannot be cancelled; the worker leaves it behind and hands its task back."""
    worker = own_system.worker(grace_s=1).ready()
    async with outside(own_system.servers.nats_url) as program:
        task = await program.assign(
            "ProbeAgent", "plain", {"label": "endless", "ms": 300_000}
        )
        await program.eventually(lambda: has_begun(own_system, "endless"))
        worker.terminate()
        assert await asyncio.to_thread(worker.wait) == 0
        held = await program.api("CONSUMER.INFO.TASKS.ProbeAgent")
    assert held["num_pending"] + held["num_ack_pending"] == 1, task
    assert "Traceback" not in worker.log()


async def has_begun(system: System, label: str) -> bool:
    """Return whether a run of *label* has begun."""
    return len(system.runs(label)) > 0


async def test_on_sigterm_running_tasks_finish_and_the_rest_is_handed_back(
    own_system: System,
) -> None:
    """The worker leaves with status 0 and no traceback, and the next one need not wait for any lease."""
    worker = own_system.worker(slots=2, ack_wait_s=300).ready()
    async with outside(own_system.servers.nats_url) as program:
        running = [
            await program.assign(
                "ProbeAgent", "fresh", {"label": "running", "ms": 3_000}
            )
            for _ in range(2)
        ]
        await program.begun(*running)
        waiting = [
            await program.assign("ProbeAgent", "fresh", {"label": "waiting"})
            for _ in range(20)
        ]
        worker.terminate()
        assert await asyncio.to_thread(worker.wait) == 0
        assert "Traceback" not in worker.log()
        # What the worker said at last may still be on its way to us.
        await program.until(
            lambda: set(running) <= {report["task_id"] for report in program.heard}
        )
        assert {report["task_id"] for report in program.heard} == set(running)
        assert {report["attempt"] for report in program.heard} == {1}
        consumer = await program.api("CONSUMER.INFO.TASKS.ProbeAgent")
        assert (consumer["num_ack_pending"], consumer["num_pending"]) == (0, 20)
        own_system.worker(slots=2).ready()
        for task in waiting:
            assert (await program.report_of(task))["status"] == "completed"
    assert len(own_system.runs("running")) == 2
    assert len(own_system.runs("waiting")) == 20


async def test_what_outlasts_the_grace_period_is_handed_back(
    own_system: System,
) -> None:
    """A worker does not wait for ever: the task goes to another at once, not after its lease."""
    worker = own_system.worker(slots=2, ack_wait_s=300, grace_s=0.2).ready()
    async with outside(own_system.servers.nats_url) as program:
        task = await program.assign(
            "ProbeAgent", "fresh", {"label": "long", "ms": 3_000}
        )
        await program.begun(task)
        worker.terminate()
        assert await asyncio.to_thread(worker.wait) == 0
        assert "Traceback" not in worker.log()
        own_system.worker().ready()
        report = await program.report_of(task)
    assert (report["status"], report["attempt"]) == ("completed", 2)
