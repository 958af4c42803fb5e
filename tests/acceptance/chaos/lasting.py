"""Profile `lasting`: tasks that outlast their lease many times, and a worker that is frozen in the middle of one."""

import argparse
import asyncio
import time

from tests.acceptance.chaos.stage import stage
from tests.acceptance.chaos.table import Row
from tests.acceptance.house import PROBE, House, Served
from tests.acceptance.outside import outside

ACK_WAIT_S = 2
#: Seconds that the server may take beyond `ack_wait` to offer a frozen worker's task to the next one.
_GRACE_S = 2.0
#: Seconds to wait for the report of a minute's work.
_PATIENCE_S = 120.0


async def run(_options: argparse.Namespace) -> list[Row]:
    """Return how often each was run, and how the frozen one was replaced."""
    return [
        *await asyncio.gather(
            _outlasting("fresh", 60_000, f"60 s task at ack_wait {ACK_WAIT_S} s: 1 run"),
            _outlasting("block", 10_000, f"10 s blocked loop at ack_wait {ACK_WAIT_S} s: 1 run"),
        ),
        await _frozen(),
    ]


async def _outlasting(task: str, ms: int, asked: str) -> Row:
    """Run one task beside an idle worker that would take it as soon as its lease ends."""
    async with stage() as house, outside(house.servers.nats_url) as program:
        busy, idle = (house.worker(PROBE, ack_wait_s=ACK_WAIT_S).ready() for _ in range(2))
        task_id = await program.assign("ProbeAgent", task, {"label": task, "ms": ms})
        await program.until(lambda: any(heard["task_id"] == task_id for heard in program.heard), _PATIENCE_S)
        report = await program.report_of(task_id)
        runs = len(house.runs(task))
        redelivered = sum(worker.metric('tasklore_deliveries_total{redelivered="true"}') for worker in (busy, idle))
    passed = runs == 1 and report["status"] == "completed"
    return Row(asked, f"{runs} run, {redelivered:.0f} redeliveries, {report['status']}", passed)


async def _frozen() -> Row:
    """Freeze the worker with SIGSTOP, see who takes over, and let it go on."""
    async with stage() as house, outside(house.servers.nats_url) as program:
        first = house.worker(PROBE, ack_wait_s=ACK_WAIT_S).ready()
        task_id = await program.assign("ProbeAgent", "fresh", {"label": "frozen", "ms": 6_000})
        await program.begun(task_id)
        house.worker(PROBE, ack_wait_s=ACK_WAIT_S).ready()
        stopped_at = time.time()
        first.stop()
        await program.eventually(lambda: _has_run_twice(house))
        replaced_s = house.runs("frozen")[1] - stopped_at
        report = await program.report_of(task_id)
        first.go_on()
        await program.eventually(lambda: _refused(first))
        stored = sum((await program.reports()).values())
    passed = replaced_s <= ACK_WAIT_S + _GRACE_S and stored == 1 and report["status"] == "completed"
    return Row(
        f"SIGSTOPped worker replaced within ack_wait + {_GRACE_S:g} s, its late result refused",
        f"replaced after {replaced_s:.1f} s, refused or stopped when it came back, {stored} report",
        passed,
    )


async def _has_run_twice(house: House) -> bool:
    return len(house.runs("frozen")) == 2


async def _refused(worker: Served) -> bool:
    def counted() -> float:
        return worker.metric("tasklore_replaced_runs_total") + worker.metric("tasklore_stale_reports_refused_total")

    return await asyncio.to_thread(counted) > 0
