"""From no worker to many and back to none: the scaler's formula drives real processes, and every task runs once."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.autoscaler import Autoscaler, Trigger, monitored
from tests.acceptance.chaos.cluster_nodes import Cluster
from tests.acceptance.external_program import outside
from tests.acceptance.system import PROBE, Served, System

#: Seconds until all is done: 2,000 tasks need half a minute on two cores.
WITHIN_S = 180.0
SLOTS = 16
TASKS_AT_ONCE = 100


@pytest.fixture
async def single(tmp_path: Path) -> AsyncIterator[EmbeddedServers]:
    """Run one NATS server with its monitoring open, and Valkey."""
    async with EmbeddedServers(tmp_path / "servers", monitor=True) as servers:
        yield servers


@pytest.fixture
async def three(tmp_path: Path) -> AsyncIterator[Cluster]:
    """Run three NATS servers with their monitoring open, and Valkey."""
    cluster = Cluster(tmp_path / "servers")
    for node in cluster.nodes:
        node._monitor = True
    async with cluster:
        yield cluster


async def drill(
    servers: EmbeddedServers,
    urls: list[str],
    folder: Path,
    *,
    tasks: int,
    copies: int,
    most: int,
) -> None:
    """Send *tasks* while no worker runs, scale until none runs again, and see that each task ran once."""
    system = System(servers, folder)
    settings = {"provision": "never", "slots": SLOTS, "replicas": copies}
    await bootstrap(system, copies)
    trigger = Trigger("TASKS", "ProbeAgent", lag_threshold=SLOTS, most=most)
    scaler = Autoscaler(trigger, urls, lambda: system.worker(PROBE, **settings))
    try:
        assert await asyncio.to_thread(monitored, urls, "TASKS", "ProbeAgent") == 0
        async with outside(servers.nats_url.partition(",")[0]) as program:
            ids = [
                await program.assign(
                    "ProbeAgent", "fresh", {"label": "drill", "number": 0, "ms": 0}
                )
            ]
            for first in range(1, tasks, TASKS_AT_ONCE):
                numbers = range(first, min(first + TASKS_AT_ONCE, tasks))
                ids += await asyncio.gather(
                    *(
                        program.assign("ProbeAgent", "fresh", _wait(one))
                        for one in numbers
                    )
                )
            await scaler.run_to_zero(WITHIN_S)
            reports = await program.reports()
            assert len(system.runs("drill")) == len(set(ids)) == tasks
            assert sorted(reports) == sorted(
                f"reports.{program.supervisor_id}.{one}.1" for one in ids
            )
            assert await program.counts("TASKS") == await program.counts("DEAD") == {}
        assert scaler.values[0] == tasks
        assert (scaler.history[0], max(scaler.history), scaler.history[-1]) == (
            0,
            most,
            0,
        )
        assert not any(worker.is_running for worker in scaler.leaving)
    finally:
        system.close()


def _wait(number: int) -> dict[str, object]:
    return {"label": "drill", "number": number, "ms": 20 + number % 50}


async def bootstrap(system: System, copies: int) -> None:
    """Make streams and consumers as the bootstrap job does; workers may not."""
    environment = {
        "TASKLORE_NATS_URL": system.servers.nats_url,
        "TASKLORE_REDIS_URL": system.servers.redis_url,
        "TASKLORE_REPLICAS": str(copies),
        "PROBE_RUNS": os.fspath(system.folder / "runs"),
    }
    with Served(
        ["bootstrap", PROBE], environment, system.folder / "bootstrap.log"
    ) as job:
        assert await asyncio.to_thread(job.wait) == 0, job.log()


async def test_a_backlog_brings_workers_and_its_end_takes_them_away(
    single: EmbeddedServers, tmp_path: Path
) -> None:
    await drill(
        single, [str(single.nats.monitor_url)], tmp_path, tasks=200, copies=1, most=2
    )


@pytest.mark.long
async def test_two_thousand_tasks_are_scaled_for_on_one_server(
    single: EmbeddedServers, tmp_path: Path
) -> None:
    await drill(
        single, [str(single.nats.monitor_url)], tmp_path, tasks=2000, copies=1, most=4
    )


@pytest.mark.long
async def test_two_thousand_tasks_are_scaled_for_on_three_servers(
    three: Cluster, tmp_path: Path
) -> None:
    urls = [str(node.monitor_url) for node in three.nodes]
    await drill(three, urls, tmp_path, tasks=2000, copies=3, most=4)


async def test_a_worker_that_leaves_says_so_while_its_tasks_finish(
    single: EmbeddedServers, tmp_path: Path
) -> None:
    """Not ready and alive from SIGTERM on, until what runs has been reported; then it is gone with 0."""
    system = System(single, tmp_path)
    try:
        worker = await asyncio.to_thread(system.worker(PROBE).ready)
        assert worker.get("/readyz")[0] == 200
        async with outside(single.nats_url) as program:
            task_id = await program.assign(
                "ProbeAgent", "fresh", {"label": "last", "ms": 2500}
            )
            await program.begun(task_id)
            worker.terminate()
            await asyncio.to_thread(worker.await_log, "asked_to_end")

            async def is_leaving() -> bool:
                status, page = await asyncio.to_thread(worker.get, "/readyz")
                return bool(
                    status == 503
                    and page["checks"]["serving"] == {"ok": False, "detail": "leaving"}
                )

            await program.eventually(is_leaving)
            assert (await asyncio.to_thread(worker.get, "/healthz"))[0] == 200
            assert (await program.report_of(task_id))["status"] == "completed"
            assert await asyncio.to_thread(worker.wait) == 0
    finally:
        system.close()
