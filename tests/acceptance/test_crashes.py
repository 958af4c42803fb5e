"""What a crash costs the tasks that ran beside it, and how often a task that kills its worker may do so."""

import asyncio
import statistics
import time

from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import PROBE, Served, System

#: Tasks in flight when a worker dies, and seconds that each of them takes.
FLYING = 40
RUN_S = 3.0
#: Crashes until a task is convicted that kills its worker each time: two beside all, one in a small group, three alone.
CRASHES = 6


async def test_a_crash_costs_its_neighbours_one_more_run(own_system: System) -> None:
    """All that ran in a killed worker run again side by side, and quick tasks wait for none of them."""
    struck = own_system.worker(PROBE, slots=64).ready()
    quick_s: list[float] = []
    async with outside(own_system.servers.nats_url) as program:
        tasks = await _assign_many(program, ms=int(1_000 * RUN_S))
        # Killed before the other starts: however long that takes, none of the tasks has ended by then.
        await asyncio.to_thread(struck.kill)
        other = own_system.worker(PROBE, slots=64)
        await asyncio.to_thread(other.ready)
        asking = asyncio.create_task(_ask_quick_ones(program, quick_s))
        reports = [await program.report_of(task) for task in tasks]
        asking.cancel()
    assert {report["status"] for report in reports} == {"completed"}
    assert max(_runs(own_system)) == 2
    again = [own_system.runs(f"neighbour-{number}")[-1] for number in range(FLYING)]
    spread_s = max(again) - min(again)
    half_s = statistics.median(quick_s)
    print(  # noqa: T201 - the figures
        f"begun again within {spread_s:.2f} s, a quick task took {half_s:.3f} s"
    )
    # One after the other they would take the time of all of them, and a quick task that
    # waits for one of them that of its run.
    assert spread_s < FLYING * RUN_S / 10
    assert half_s < RUN_S / 2
    assert other.metric("tasklore_crashed_runs_total") == FLYING


async def test_a_poisonous_task_among_forty_is_convicted_and_no_neighbour_is(
    own_system: System,
) -> None:
    """It is caught in the act, however many others it takes along; those come through."""
    workers = [own_system.worker(PROBE, slots=64, ack_wait_s=1).ready()]
    async with outside(own_system.servers.nats_url) as program:
        tasks = await _assign_many(program, ms=1_000)
        poison = await program.assign(
            "ProbeAgent", "trouble", {"label": "poison", "kind": "die"}, max_attempts=1
        )
        restarting = asyncio.create_task(_restart(own_system, workers))
        report = await program.report_of(poison)
        neighbours = [await program.report_of(task) for task in tasks]
        await restarting
    assert (report["status"], report["error"]["type"], report["attempt"]) == (
        "failed",
        "WorkerLost",
        CRASHES,
    )
    assert {neighbour["status"] for neighbour in neighbours} == {"completed"}
    assert len(own_system.runs("poison")) == CRASHES
    # The run that was struck first, once more beside all, once in its group, and then alone.
    assert max(_runs(own_system)) <= 4
    assert workers[-1].metric('tasklore_dead_letters_total{reason="crashes"}') == 1


async def _assign_many(program: Outside, *, ms: int) -> list[str]:
    """Assign tasks that take *ms* each; return their ids once all have begun."""
    wanted = [
        {"label": f"neighbour-{number}", "number": number, "ms": ms}
        for number in range(FLYING)
    ]
    tasks = [
        await program.assign("ProbeAgent", "fresh", parameters) for parameters in wanted
    ]
    await program.begun(*tasks)
    return tasks


def _runs(system: System) -> list[int]:
    return [len(system.runs(f"neighbour-{number}")) for number in range(FLYING)]


async def _ask_quick_ones(program: Outside, took_s: list[float]) -> None:
    while True:
        sent_at = time.monotonic()
        await program.ask("ProbeAgent", "fresh", {"label": "quick"})
        took_s.append(time.monotonic() - sent_at)
        await asyncio.sleep(0.05)


async def _restart(system: System, workers: list[Served]) -> None:
    """Start another worker after each of the crashes, as a supervisor of processes would."""
    for _ in range(CRASHES):
        assert await asyncio.to_thread(workers[-1].wait) == 7
        workers.append(system.worker(PROBE, slots=64, ack_wait_s=1))
    await asyncio.to_thread(workers[-1].ready)
