"""What a worker holds stays its own however long it takes, and it holds no more than it has slots for."""

import asyncio
import time

import pytest

from tests.acceptance.external_program import outside
from tests.acceptance.system import Served, System


async def test_a_slow_task_runs_once_and_delays_no_quick_one(
    own_system: System,
) -> None:
    """Six seconds under a lease of two: a single run, while every quick task is done beside it."""
    own_system.worker(slots=4, ack_wait_s=2).ready()
    async with outside(own_system.servers.nats_url) as program:
        slow = [
            await program.assign("ProbeAgent", "fresh", {"label": "slow", "ms": 6_000})
            for _ in range(3)
        ]
        await program.begun(*slow)
        quick = [
            await program.assign("ProbeAgent", "fresh", {"label": "quick"})
            for _ in range(50)
        ]
        await program.until(
            lambda: len({report["task_id"] for report in program.heard}) == 53
        )
        stored = await program.reports()
        # A report whose receipt is late is published again, and heard twice.
        order = list(dict.fromkeys(report["task_id"] for report in program.heard))
    assert set(order[:50]) == set(quick)
    assert {report["attempt"] for report in program.heard} == {1}
    assert len(own_system.runs("slow")) == 3
    assert len(own_system.runs("quick")) == 50
    assert sorted(stored.values()) == [1] * 53


async def test_slow_plain_functions_delay_no_quick_one(own_system: System) -> None:
    own_system.worker(slots=40).ready()
    async with outside(own_system.servers.nats_url) as program:
        for _ in range(39):
            await program.assign(
                "ProbeAgent", "plain", {"label": "slow", "ms": 600_000}
            )
        await program.eventually(lambda: all_run(own_system, "slow", 39))
        quick = await program.assign("ProbeAgent", "plain", {"label": "quick"})
        await program.report_of(quick)
        assert [report["task_id"] for report in program.heard] == [quick]


async def test_one_task_published_twice_at_once_runs_once_on_two_workers(
    own_system: System,
) -> None:
    """Under two message ids, and remembered by nobody: the copy that reaches the other worker waits for the report."""
    for worker in (
        own_system.worker(slots=1, ack_wait_s=5),
        own_system.worker(slots=1, ack_wait_s=5),
    ):
        worker.ready()
    async with outside(own_system.servers.nats_url) as program:
        for number in range(5):
            label = f"twice{number}"
            for _ in range(2):
                await program.assign(
                    "ProbeAgent", "fresh", {"label": label, "ms": 500}, task_id=label
                )
            await program.report_of(label)
        assert [len(own_system.runs(f"twice{number}")) for number in range(5)] == [
            1
        ] * 5
        assert sorted((await program.reports()).values()) == [1] * 5


async def test_a_task_that_blocks_the_event_loop_runs_once_and_the_probes_are_answered(
    own_system: System,
) -> None:
    """Without a turn of the loop for longer than two leases: nobody else is given the task."""
    workers = [own_system.worker(slots=1, ack_wait_s=2) for _ in range(2)]
    for worker in workers:
        worker.ready()
    async with outside(own_system.servers.nats_url) as program:
        task = await program.assign(
            "ProbeAgent", "block", {"label": "block", "ms": 4_500}
        )
        # The sign of progress is written only once the block is over: the count of runs tells that it began.
        await program.eventually(lambda: has_run(own_system, "block"))
        used = [
            await asyncio.to_thread(worker.metric, "tasklore_slots_used")
            for worker in workers
        ]
        blocked = workers[used.index(1)]
        await program.eventually(lambda: is_late(blocked))
        status, health = await asyncio.to_thread(blocked.get, "/healthz")
        assert program.heard == []
        report = await program.report_of(task)
        beats = await asyncio.to_thread(
            blocked.metric, 'tasklore_lease_heartbeats_total{result="sent"}'
        )
    assert (status, health["checks"]["event_loop"]["ok"]) == (200, True)
    assert beats >= 3
    assert (report["status"], report["attempt"]) == ("completed", 1)
    assert len(own_system.runs("block")) == 1


@pytest.mark.long
async def test_a_minute_of_work_under_a_lease_of_two_seconds_runs_once(
    own_system: System,
) -> None:
    """Sixty seconds, and ten of them without a turn of the event loop, are one run each."""
    own_system.worker(slots=4, ack_wait_s=2).ready()
    own_system.worker(slots=4, ack_wait_s=2).ready()
    async with outside(own_system.servers.nats_url) as program:
        started = time.monotonic()
        slow = await program.assign(
            "ProbeAgent", "fresh", {"label": "minute", "ms": 60_000}
        )
        await program.begun(slow)
        blocking = await program.assign(
            "ProbeAgent", "block", {"label": "block", "ms": 10_000}
        )
        assert (await program.report_of(blocking))["attempt"] == 1
        await program.until(
            lambda: any(report["task_id"] == slow for report in program.heard),
            within_s=120,
        )
        assert time.monotonic() - started >= 60
        assert (await program.report_of(slow))["attempt"] == 1
        stored = await program.reports()
    assert len(own_system.runs("minute")) == 1
    assert len(own_system.runs("block")) == 1
    assert sorted(stored.values()) == [1, 1]


async def is_late(worker: Served) -> bool:
    """Return whether the event loop of *worker* has not turned for a while."""
    return (
        await asyncio.to_thread(worker.metric, "tasklore_event_loop_lag_seconds") > 0.1
    )


async def has_run(system: System, label: str) -> bool:
    """Say whether a run of *label* began."""
    return bool(system.runs(label))


async def all_run(system: System, label: str, number: int) -> bool:
    """Return whether so many runs of *label* have begun."""
    return len(system.runs(label)) == number
