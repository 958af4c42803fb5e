"""Profile `held`: a worker never holds more than its slots, seen from the server while it works without a pause."""

import argparse
import json

from tests.acceptance.chaos.stage import AGENT, STEADY, stage
from tests.acceptance.chaos.table import Row
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import System

#: Slots to look at: nothing overlaps, a few, many.
SLOTS = (1, 4, 64)
#: Looks at the server for each of them.
SAMPLES = 10_000
#: Milliseconds of a task; short, since every end of one is a moment at which too much could be asked for.
TASK_MS = 3
#: Tasks that wait at least while it is looked: an idle worker holds nothing.
_STOCK = 300


async def run(options: argparse.Namespace) -> list[Row]:
    """Measure at every number of slots."""
    return await measure(SAMPLES)


async def measure(samples: int) -> list[Row]:
    """Return a row for each number of slots, from *samples* looks each."""
    async with stage() as system, outside(system.servers.nats_url) as program:
        return [await _at(slots, samples, system, program) for slots in SLOTS]


async def _at(slots: int, samples: int, system: System, program: Outside) -> Row:
    worker = system.worker(STEADY, slots=slots, ack_wait_s=30).ready()
    histogram: dict[int, int] = {}
    given = 0
    try:
        while sum(histogram.values()) < samples:
            info = await program.api(f"CONSUMER.INFO.TASKS.{AGENT}")
            if info["num_pending"] < _STOCK:
                given = await _stock_up(program, given)
            if info["num_pending"]:
                # No task fails here, so that nothing is delayed: whatever is unacknowledged is held.
                held = info["num_ack_pending"]
                if held > slots:
                    # A busy server counts an acknowledgement after it granted what was asked for behind it: who holds
                    # too much, holds it at the next look, too.
                    info = await program.api(f"CONSUMER.INFO.TASKS.{AGENT}")
                    held = min(held, info["num_ack_pending"])
                histogram[held] = histogram.get(held, 0) + 1
    finally:
        worker.kill()
        await program.api("STREAM.PURGE.TASKS")
    peak = max(histogram)
    above = sum(number for held, number in histogram.items() if held > slots)
    redelivered = info["num_redelivered"]
    return Row(
        f"slots {slots}: unacknowledged at the server <= {slots} in {samples} looks",
        f"at most {peak}, above in {above} looks, mean {_mean(histogram):.1f}, {redelivered} redelivered",
        peak <= slots,
    )


async def _stock_up(program: Outside, given: int) -> int:
    """Publish another stock of tasks, of which none is waited for, and return the number of the next one."""
    for number in range(given, given + 2 * _STOCK):
        body = json.dumps(
            program.assignment(AGENT, "work", {"number": number, "ms": TASK_MS})
        )
        await program.client.publish(f"tasks.{AGENT}.work", body.encode())
    await program.client.flush()
    return given + 2 * _STOCK


def _mean(histogram: dict[int, int]) -> float:
    return sum(held * number for held, number in histogram.items()) / max(
        1, sum(histogram.values())
    )
