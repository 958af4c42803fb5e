"""Profile `rolling`: workers are replaced one after another under load, and nobody notices."""

import argparse
import asyncio
import json
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime

from nats.aio.msg import Msg

from tests.acceptance.chaos.rolling_leaving import (
    HAND_OVER_S,
    joiners_handed_over,
    told_twice,
    told_without_nats,
)
from tests.acceptance.chaos.stage import AGENT, STEADY, stage, submit
from tests.acceptance.chaos.table import Row
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import Served, System

#: Tasks that flow while all workers are replaced.
TASKS = 1_000
#: Milliseconds that one takes.
TASK_MS = (20, 50)
WORKERS = 3
#: Few, so that all workers together are barely enough and there is always something in each hand.
SLOTS = 4
#: Tasks published in a second: what two workers can do, so that the queue grows while one is away.
_PER_S = 220.0
#: Seconds of a lease: far longer than the profile, so that nothing is saved by its end.
LEASE_S = 300


async def run(options: argparse.Namespace) -> list[Row]:
    """Replace workers under load, then look at single ones that leave."""
    rows = await replaced_under_load(TASKS)
    for leaving in (joiners_handed_over, told_twice, told_without_nats):
        rows += await leaving()
    return rows


@dataclass
class Leaving:
    """How one worker left: when it was told, how long it took, its exit status, and what it gave back unbegun."""

    told_at: float
    took_s: float = 0.0
    status: int | None = None
    has_traceback: bool = False
    given_back_at: list[float] = field(default_factory=list)


async def replaced_under_load(tasks: int, slack: float = 1.0) -> list[Row]:
    """Send *tasks* tasks while each of the workers is told to leave and replaced."""
    async with stage() as system, outside(system.servers.nats_url) as program:
        naks: list[float] = []

        async def note(message: Msg) -> None:
            naks.append(_moment_of(message))

        await program.client.subscribe(
            f"$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED.TASKS.{AGENT}", cb=note
        )
        workers = [
            system.worker(STEADY, slots=SLOTS, ack_wait_s=LEASE_S)
            for _ in range(WORKERS)
        ]
        for worker in workers:
            await asyncio.to_thread(worker.ready)
        sending = asyncio.create_task(_send(program, tasks))
        await program.until(lambda: len(program.heard) > tasks // 10)
        leavings = [await _replace(system, worker) for worker in workers]
        ids = await sending
        await program.until(
            lambda: len({report["task_id"] for report in program.heard}) >= tasks
        )
        await program.eventually(lambda: _nothing_left(program))
        for leaving in leavings:
            leaving.given_back_at = [
                at
                for at in naks
                if leaving.told_at <= at <= leaving.told_at + leaving.took_s
            ]
        runs = len((system.folder / "runs" / "noted").read_text().splitlines())
        what = f"{WORKERS} workers replaced during {tasks} tasks"
        return [
            _reported(what, ids, await program.reports(), program),
            Row(
                f"{what}: nothing runs twice",
                f"{runs - tasks} runs too many",
                runs == tasks,
            ),
            _handed_over(what, leavings, slack * HAND_OVER_S),
            _left_in_order(what, leavings),
        ]


async def _send(program: Outside, tasks: int) -> list[str]:
    """Publish at an even pace and return the task ids."""
    loop = asyncio.get_running_loop()
    started = loop.time()
    ids = []
    lengths = random.Random(1)
    for number in range(tasks):
        ids.append(
            await submit(
                program, "noted", {"number": number, "ms": lengths.randint(*TASK_MS)}
            )
        )
        await asyncio.sleep(max(0.0, started + number / _PER_S - loop.time()))
    return ids


async def _replace(system: System, worker: Served) -> Leaving:
    """Start another worker, then tell *worker* to leave and wait until it has left."""
    await asyncio.to_thread(
        system.worker(STEADY, slots=SLOTS, ack_wait_s=LEASE_S).ready
    )
    leaving = Leaving(time.time())
    worker.terminate()
    leaving.status = await asyncio.to_thread(worker.wait)
    leaving.took_s = time.time() - leaving.told_at
    leaving.has_traceback = "Traceback" in worker.log()
    return leaving


def _reported(
    what: str, ids: list[str], stored: dict[str, int], program: Outside
) -> Row:
    reported = {subject.split(".")[2]: number for subject, number in stored.items()}
    statuses = Counter(report["status"] for report in program.heard)
    whole = (
        set(reported) == set(ids)
        and set(reported.values()) == {1}
        and set(statuses) == {"completed"}
    )
    said = ", ".join(f"{number} {status}" for status, number in statuses.items())
    return Row(
        f"{what}: one completed report each, none stranded",
        f"{len(reported)} reported, {said}",
        whole,
    )


def _handed_over(what: str, leavings: list[Leaving], within_s: float) -> Row:
    back = [
        at - leaving.told_at for leaving in leavings for at in leaving.given_back_at
    ]
    slowest_s = max(back, default=0.0)
    return Row(
        f"{what}: what was not begun is handed over within {within_s * 1000:.0f} ms",
        f"{len(back)} given back, the last after {slowest_s * 1000:.0f} ms",
        slowest_s <= within_s,
    )


def _left_in_order(what: str, leavings: list[Leaving]) -> Row:
    exits = ", ".join(
        f"{leaving.status} after {leaving.took_s:.2f} s" for leaving in leavings
    )
    tracebacks = sum(leaving.has_traceback for leaving in leavings)
    fine = tracebacks == 0 and all(leaving.status == 0 for leaving in leavings)
    return Row(
        f"{what}: exit status 0, no traceback",
        f"{exits}; {tracebacks} tracebacks",
        fine,
    )


def _moment_of(message: Msg) -> float:
    """Return when the server took the word of which it tells, in seconds since 1970."""
    stamp = str(json.loads(message.data)["timestamp"])
    # The server writes nanoseconds, of which Python reads six digits.
    whole, _, fraction = stamp.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{whole}+00:00").timestamp() + float(
        f"0.{fraction or 0}"
    )


async def _nothing_left(program: Outside) -> bool:
    info = await program.api(f"CONSUMER.INFO.TASKS.{AGENT}")
    return bool(info["num_pending"] == 0 and info["num_ack_pending"] == 0)
