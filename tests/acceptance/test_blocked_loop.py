"""A task that blocks the event loop of its worker is named while it does, and nobody restarts the worker for it."""

import asyncio
import re
from pathlib import Path

from tasklore.runtime.servers.embedded import EmbeddedServers
from tests.acceptance.external_program import outside
from tests.acceptance.system import PROBE, System

#: Milliseconds that it blocks: longer than a loop that stands still is taken for alive where nothing may block it.
BLOCKS_MS = 20_000
LINE = re.compile(r"probe\.py:\d+ in block")


async def test_what_blocks_a_worker_is_named_by_task_and_line(
    servers: EmbeddedServers, tmp_path: Path
) -> None:
    """In its log, on its page, by the doctor and in the metrics; its task runs once, and its probe holds throughout."""
    with System(servers, tmp_path) as system:
        worker = await asyncio.to_thread(system.worker(PROBE).ready)
        async with outside(servers.nats_url) as program:
            task_id = await program.assign(
                "ProbeAgent", "block", {"label": "blocked", "ms": BLOCKS_MS}
            )
            await asyncio.to_thread(worker.await_log, "event_loop_blocked")
            assert LINE.search(worker.log())
            assert task_id in worker.log()
            status, page = await asyncio.to_thread(worker.get, "/readyz")
            assert status == 503
            found = page["checks"]["event_loop"]["detail"]
            assert f"ProbeAgent.block, task {task_id}" in found
            assert LINE.search(found)
            examined = await asyncio.to_thread(system.command, "doctor")
            assert LINE.search(examined.stdout), examined.stdout
            reporting = asyncio.create_task(program.report_of(task_id))
            alive = set()
            while not reporting.done():
                alive.add((await asyncio.to_thread(worker.get, "/healthz"))[0])
                await asyncio.sleep(0.2)
            assert alive == {200}
            assert (await reporting)["status"] == "completed"
            assert len(system.runs("blocked")) == 1
            blocks = 'tasklore_event_loop_blocks_total{agent="ProbeAgent",task="block"}'
            assert await asyncio.to_thread(worker.metric, blocks) == 1
