"""What is deleted or killed under a worker, and how soon a new task is reported again."""

import asyncio
import time
from typing import Any

from tests.acceptance.chaos.stage import AGENT, STEADY, stage, submit, warnings_in
from tests.acceptance.chaos.table import Row
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import Served, System

#: Seconds within which the system takes new tasks again; a *slack* of n allows n times as many.
HEALS_S = 5.0


async def reported_after(program: Outside, began: float, number: int) -> float:
    """Publish a fresh task, wait for its report, and return the seconds since *began* (`time.monotonic`)."""
    report = await program.report_of(await submit(program, "work", {"number": number}))
    assert report["status"] == "completed", report
    return time.monotonic() - began


def heal_row(what: str, healed_s: float, slack: float, remark: str = "") -> Row:
    """Return the row that says how soon a new task was reported after *what*."""
    within_s = slack * HEALS_S
    measured = f"{healed_s:.2f} s{', ' if remark else ''}{remark}"
    return Row(
        f"{what}: a new task is reported within {within_s:.0f} s",
        measured,
        healed_s <= within_s,
    )


async def consumer_deleted(slack: float = 1.0) -> list[Row]:
    """Delete the agent's consumer under its worker."""
    return await _deleted("consumer deleted", f"CONSUMER.DELETE.TASKS.{AGENT}", slack)


async def stream_deleted(slack: float = 1.0) -> list[Row]:
    """Delete the stream of tasks with all its consumers."""
    return await _deleted("TASKS deleted", "STREAM.DELETE.TASKS", slack)


async def _deleted(what: str, call: str, slack: float) -> list[Row]:
    async with stage() as system, outside(system.servers.nats_url) as program:
        worker = await _warm(system, program)
        began = time.monotonic()
        await program.api(call)
        healed_s = await reported_after(program, began, 1)
        return [heal_row(what, healed_s, slack), _loud(what, worker)]


async def dead_letters_deleted(slack: float = 1.0) -> list[Row]:
    """Delete the stream that a given up task has to be put into before it is reported."""
    async with stage() as system, outside(system.servers.nats_url) as program:
        worker = await _warm(system, program)
        within_s = slack * HEALS_S
        await program.api("STREAM.DELETE.DEAD")
        began = time.monotonic()
        task = await submit(program, "refuse", {"number": 1})
        try:
            await program.until(
                lambda: any(report["task_id"] == task for report in program.heard),
                6 * within_s,
            )
        except TimeoutError:
            healed = f"not within {6 * within_s:.0f} s"
        else:
            healed = f"{time.monotonic() - began:.2f} s"
        fine = time.monotonic() - began <= within_s
        asked = (
            f"DEAD deleted: a task that is given up is reported within {within_s:.0f} s"
        )
        return [Row(asked, healed, fine), _loud("DEAD deleted", worker)]


async def nats_killed(slack: float = 1.0) -> list[Row]:
    """Kill the NATS server and start it again at once."""
    async with stage() as system, outside(system.servers.nats_url) as program:
        await _warm(system, program)
        system.servers.nats.kill()
        await system.servers.nats.start()
        healed_s = await reported_after(program, time.monotonic(), 1)
        return [heal_row("nats-server killed and started", healed_s, slack)]


async def valkey_killed(slack: float = 1.0) -> list[Row]:
    """Kill Valkey, work without it, start it, and see when the ledger and the memory are used again."""
    async with stage() as system, outside(system.servers.nats_url) as program:
        await _warm(system, program)
        within_s = slack * HEALS_S
        system.servers.valkey.kill()
        began = time.monotonic()
        # Many, so that whatever saves the cost of asking a dead server has begun to.
        await asyncio.gather(*(_known(program, number) for number in range(100, 120)))
        without_s = await reported_after(program, began, 1)
        await system.servers.valkey.start()
        began = time.monotonic()
        number = 2
        while not _whole(report := await _known(program, number)):
            number += 1
            if time.monotonic() - began > 6 * within_s:
                break
        healed_s = time.monotonic() - began
    remark = f"fence {report['fence']}, memory {report['memory']['outcome']}"
    asked = f"Valkey killed and started: ledger and memory serve again within {within_s:.0f} s"
    return [
        heal_row("Valkey killed", without_s, slack, "after 20 others, all without it"),
        Row(asked, f"{healed_s:.2f} s, {remark}", healed_s <= within_s),
    ]


async def _warm(system: System, program: Outside) -> Served:
    """Start a worker that has done one task, and waits for a store no longer than it does as shipped."""
    worker = await asyncio.to_thread(
        system.worker(STEADY, memory_budget_ms=50, ledger_deadline_ms=1000).ready
    )
    await reported_after(program, time.monotonic(), 0)
    return worker


async def _known(program: Outside, number: int) -> dict[str, Any]:
    return await program.report_of(await submit(program, "known", {"number": number}))


def _whole(report: dict[str, Any]) -> bool:
    return bool(report["fence"] == "ledger" and report["memory"]["outcome"] == "miss")


def _loud(what: str, worker: Served) -> Row:
    """Return the row that says whether the log warned of *what*: whoever deleted it may not know what it was."""
    said = [line["event"] for line in warnings_in(worker.log())]
    return Row(f"{what}: the log warns", ", ".join(said) or "nothing", bool(said))
