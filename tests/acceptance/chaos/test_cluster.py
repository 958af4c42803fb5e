"""The short version of profile `cluster`, and what a start makes of a cluster that still misses a node."""

import asyncio
from pathlib import Path

import pytest

from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import JetStreamRefused
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tests.acceptance.chaos.cluster import leaders_killed
from tests.acceptance.chaos.cluster_nodes import NODES, Cluster
from tests.acceptance.chaos.stage import AGENT, STEADY
from tests.acceptance.external_program import outside
from tests.acceptance.system import System


async def test_killing_the_leader_of_the_queue_loses_no_task() -> None:
    rows = await leaders_killed(300, kills=1)
    assert [row for row in rows if not row.passed] == []


async def test_a_worker_that_starts_before_the_last_node_waits_for_it(
    tmp_path: Path,
) -> None:
    """With two nodes nobody keeps three copies: that is an error with a cure, but only after a while."""
    cluster = Cluster(tmp_path / "servers")
    await cluster.start_some(NODES - 1)
    system = System(cluster, tmp_path)
    try:
        async with connected(cluster.nats_url, "test-cluster") as client:
            with pytest.raises(
                JetStreamRefused,
                match=r"\(10005\), still so after .* TASKLORE_REPLICAS asks for",
            ):
                await declare_streams(
                    client, StreamSizes(replicas=NODES), patience_s=0.5
                )
        worker = system.worker(STEADY, replicas=NODES)
        await asyncio.to_thread(worker.await_log, "jetstream_not_ready")
        await cluster.nodes[-1].start()
        await asyncio.to_thread(worker.ready)
        async with outside(cluster.nats_url.split(",")) as program:
            assert (await program.ask(AGENT, "work", {"number": 1}))[
                "status"
            ] == "completed"
    finally:
        system.close()
        await cluster.stop()
