"""What is there but of no use: a stream that only others may make, one of another shape, a loop that is stuck."""

import asyncio
import time

from tests.acceptance.chaos.healing_outage import REQUESTS_PER_S, idle_row
from tests.acceptance.chaos.healing_strikes import HEALS_S, heal_row, reported_after
from tests.acceptance.chaos.stage import (
    AGENT,
    STEADY,
    cpu_s,
    page,
    pid_of,
    poll,
    stage,
    submit,
    varz,
    warnings_in,
)
from tests.acceptance.chaos.table import Row
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import Served, System

#: Seconds within which a worker whose loop is stuck says so.
RED_S = 10.0
_MISSING = "tasklore_consumer_missing_total"


async def consumer_of_others(watch_s: float, slack: float = 1.0) -> list[Row]:
    """Delete the stream under a worker that may not create, watch it wait, and make everything again by hand."""
    within_s = slack * HEALS_S
    async with stage() as system, outside(system.servers.nats_url) as program:
        (await asyncio.to_thread(system.worker(STEADY).ready)).kill()
        worker = await asyncio.to_thread(system.worker(STEADY, provision="never").ready)
        await reported_after(program, time.monotonic(), 0)
        stream = (await program.api("STREAM.INFO.TASKS"))["config"]
        consumer = (await program.api(f"CONSUMER.INFO.TASKS.{AGENT}"))["config"]
        counted = worker.metric(_MISSING)
        await program.api("STREAM.DELETE.TASKS")
        red_s = await poll(lambda: _ready_says(worker, 503), 6 * within_s)
        rows = await _cheaply("nobody makes TASKS", system, worker, watch_s, slack)
        rose = worker.metric(_MISSING) - counted
        await program.api("STREAM.CREATE.TASKS", stream)
        await program.api(
            f"CONSUMER.DURABLE.CREATE.TASKS.{AGENT}",
            {"stream_name": "TASKS", "config": consumer},
        )
        healed_s = await reported_after(program, time.monotonic(), 1)
        green_s = await poll(lambda: _ready_says(worker, 200), 6 * within_s)
    return [
        Row(
            f"TASKS deleted, PROVISION=never: not ready within {within_s:.0f} s",
            f"{red_s:.2f} s",
            red_s <= within_s,
        ),
        Row(
            "TASKS deleted, PROVISION=never: counted as missing",
            f"{_MISSING} rose by {rose:.0f}",
            rose >= 1,
        ),
        *rows,
        heal_row(
            "TASKS made again by others",
            healed_s,
            slack,
            f"ready {green_s:.2f} s later",
        ),
    ]


async def drifted_stream(watch_s: float, slack: float = 1.0) -> list[Row]:
    """Replace the stream by one of another shape, which no worker may touch, watch it wait, and put it right."""
    async with stage() as system, outside(system.servers.nats_url) as program:
        worker = await asyncio.to_thread(system.worker(STEADY).ready)
        await reported_after(program, time.monotonic(), 0)
        stream = (await program.api("STREAM.INFO.TASKS"))["config"]
        worker_said = len(warnings_in(worker.log()))
        await program.api("STREAM.DELETE.TASKS")
        await _made(program, stream | {"max_bytes": 2 * stream["max_bytes"]})
        rows = await _cheaply("TASKS has another shape", system, worker, watch_s, slack)
        warned = len(warnings_in(worker.log())) - worker_said
        await program.api("STREAM.UPDATE.TASKS", stream)
        healed_s = await reported_after(program, time.monotonic(), 1)
    return [
        *rows,
        Row(
            "TASKS has another shape: the log warns",
            f"{warned} warnings in {watch_s:.0f} s",
            warned > 0,
        ),
        heal_row("TASKS put right by others", healed_s, slack),
    ]


async def stuck_loop(block_s: float, slack: float = 1.0) -> list[Row]:
    """Let an agent block the event loop for *block_s* seconds while other work waits."""
    async with stage() as system, outside(system.servers.nats_url) as program:
        worker = await asyncio.to_thread(
            system.worker(STEADY, slots=2, ack_wait_s=60).ready
        )
        await reported_after(program, time.monotonic(), 0)
        seizing = await submit(
            program, "seize", {"number": 1, "ms": int(block_s * 1000)}
        )
        await program.eventually(lambda: _begun(system))
        began = float((system.folder / "runs" / "seize").read_text().split()[0])
        waiting = await submit(program, "work", {"number": 2})
        await poll(lambda: _says(worker, "/readyz", 503), block_s, 0.05)
        red_s = time.time() - began
        asked = f"loop blocked for {block_s:.0f} s with work waiting: /readyz red within {slack * RED_S:.0f} s"
        is_alive = await _says(worker, "/healthz", 200)
        rows = [
            Row(asked, f"{red_s:.2f} s", red_s <= slack * RED_S),
            Row("meanwhile /healthz green, for the lease", f"{is_alive}", is_alive),
        ]
        await program.until(
            lambda: (
                {seizing, waiting} <= {report["task_id"] for report in program.heard}
            )
        )
        green_s = await poll(lambda: _says(worker, "/readyz", 200), slack * 30, 0.05)
        done_s = time.time() - began
    return [
        *rows,
        Row(
            "loop free again: /readyz green, all reported",
            f"{done_s:.1f} s, +{green_s:.2f} s",
            True,
        ),
    ]


async def _cheaply(
    what: str, system: System, worker: Served, watch_s: float, slack: float
) -> list[Row]:
    """Watch *worker* wait for *watch_s* seconds; nobody else may speak to the server meanwhile."""
    pid = pid_of(worker)
    began = time.monotonic()
    used = cpu_s(pid)
    heard = (await varz(system))["in_msgs"]
    await asyncio.sleep(watch_s)
    elapsed_s = time.monotonic() - began
    share = (cpu_s(pid) - used) / elapsed_s
    rate = ((await varz(system))["in_msgs"] - heard) / elapsed_s
    return [
        idle_row(what, share, slack),
        Row(
            f"{what}: at most {REQUESTS_PER_S:.0f} requests/s",
            f"{rate:.1f}/s",
            rate <= REQUESTS_PER_S,
        ),
    ]


async def _made(program: Outside, stream: dict[str, object]) -> None:
    """Create TASKS, in place of the one that the worker may have made in the meantime."""
    while "error" in await program.api("STREAM.CREATE.TASKS", stream):
        await program.api("STREAM.DELETE.TASKS")


async def _begun(system: System) -> bool:
    return (system.folder / "runs" / "seize").exists()


async def _ready_says(worker: Served, wanted: int) -> bool:
    return (await page(worker, "/readyz"))[0] == wanted


async def _says(worker: Served, path: str, wanted: int) -> bool:
    return (await page(worker, path))[0] == wanted
