"""What became of the poison: every task's end out of the streams, and whether the system still works."""

import asyncio
import contextlib
import json
import re
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import nats.errors

from tasklore.contracts import subjects
from tasklore.contracts.messages import CompletionReport, DeadLetter
from tests.acceptance.chaos.poison_letters import Letter
from tests.acceptance.chaos.table import Row
from tests.acceptance.external_program import Outside
from tests.acceptance.system import BUDGET, Served, System

#: Seconds for the last task to be dealt with.
_ENDS_S = 120.0
_TASK_ID = re.compile(rb'"task_id": "([A-Za-z0-9_-]+)"')
#: Agents that the worker serves.
AGENTS = ("GullibleAgent", "BudgetTrackerAgent")
_STATUSES = {"completed", "failed", "rejected", "expired", "cancelled"}


@dataclass
class Outcome:
    """Ends of the poisoned tasks: reports, letters buried without one, what is not as it should be, what is left."""

    reports: int = 0
    buried: int = 0
    lost: list[int] = field(default_factory=list)
    untyped: int = 0
    left: int = 0
    waiting: int = 0


async def account(program: Outside, tasks: Mapping[int, Letter]) -> Outcome:
    """Wait until nothing is left to do, and count how each of *tasks*, by sequence, ended."""
    outcome = Outcome()
    gives_up_at = time.monotonic() + _ENDS_S
    while time.monotonic() < gives_up_at:
        outcome.left = sum([await _unread(program, "TASKS", agent) for agent in AGENTS])
        outcome.waiting = await _unread(program, "REPORTS", "SupervisorAgent")
        if not outcome.left and not outcome.waiting:
            break
        await asyncio.sleep(0.2)
    buried: set[int] = set()
    for body in await _read_all(program, "DEAD"):
        letter = DeadLetter.model_validate_json(body)
        if letter.sequence in tasks and letter.reason == "unreadable":
            buried.add(letter.sequence)
    outcome.buried = len(buried)
    reported: set[str] = set()
    # What the poisoner reported to the supervisor, what people asked it, and requests to compare end no task of his.
    for others in ("reports.SupervisorAgent.>", subjects.COMPARISONS_ALL):
        await program.api("STREAM.PURGE.REPORTS", {"filter": others})
    for body in await _read_all(program, "REPORTS"):
        if json.loads(body)["supervisor_id"] == program.supervisor_id:
            continue
        outcome.reports += 1
        reported.add(json.loads(body)["task_id"])
        report = CompletionReport.model_validate_json(body)
        outcome.untyped += report.status not in _STATUSES or (report.error is None) != (
            report.status == "completed"
        )
    outcome.lost = [
        number
        for number in tasks.keys() - buried
        if _task_id(tasks[number]) not in reported
    ]
    return outcome


def _task_id(letter: Letter) -> str:
    """Return the task id that a spoiled assignment still shows; empty when it shows none."""
    found = _TASK_ID.search(letter.body)
    return found[1].decode() if found else ""


async def _unread(program: Outside, stream: str, durable: str) -> int:
    """Return what a consumer has not dealt with; a task for an agent that nobody serves waits for ever, rightly so."""
    info = await program.api(f"CONSUMER.INFO.{stream}.{durable}")
    return int(info["num_pending"]) + int(info["num_ack_pending"])


async def _read_all(program: Outside, stream: str) -> list[bytes]:
    """Return the body of every message in *stream*."""
    wanted = (await program.api(f"STREAM.INFO.{stream}"))["state"]["messages"]
    if not wanted:
        return []
    found: list[bytes] = []
    reading = await program.client.jetstream().subscribe(
        ">", stream=stream, ordered_consumer=True
    )
    while len(found) < wanted:
        message = await reading.next_msg(timeout=30)
        found.append(message.data)
    await reading.unsubscribe()
    return found


async def afterwards(
    system: System, program: Outside, processes: dict[str, Served], gullible: str
) -> list[Row]:
    """Return whether the same processes still work, and whether new ones start on what the poison left."""
    rows = [await _works("a task and a question afterwards", program)]
    rows.append(_quiet(processes))
    for process in processes.values():
        process.terminate()
    statuses = [await asyncio.to_thread(process.wait) for process in processes.values()]
    rows.append(
        Row("both leave in good order", f"exit statuses {statuses}", statuses == [0, 0])
    )
    try:
        await asyncio.to_thread(system.supervisor().ready)
        await asyncio.to_thread(system.worker(gullible, BUDGET).ready)
    except (AssertionError, TimeoutError) as error:
        return [
            *rows,
            Row("new processes start on what is left", str(error)[-300:], passed=False),
        ]
    return [*rows, await _works("new processes start on what is left", program)]


async def _works(asked: str, program: Outside) -> Row:
    parameters = {"budget_limit": 90_000, "spent": 1_000, "history": [1]}
    request = (
        b'{"text": "limit 50k, spent 42,000, history 5000, 7000", "wait_ms": 8000}'
    )
    status = kind = "none"
    with contextlib.suppress(TimeoutError, nats.errors.Error):
        status = (
            await program.ask("BudgetTrackerAgent", "analyze_budget", parameters)
        )["status"]
        reply = await program.client.request(
            "requests.SupervisorAgent", request, timeout=20
        )
        kind = str(json.loads(reply.data or b"{}").get("kind"))
    return Row(
        asked,
        f"report {status}, reply {kind}",
        (status, kind) == ("completed", "answer"),
    )


def _quiet(processes: dict[str, Served]) -> Row:
    """Return whether nothing was logged with a traceback: that is what nobody had thought of."""
    raised: Counter[str] = Counter()
    for name, process in processes.items():
        for line in process.log().splitlines():
            if "Traceback" in line:
                last = line.rstrip('"} ').split("\\n")[-1] or line[-120:]
                raised[f"{name}: {last[:120]}"] += 1
    said = "; ".join(f"{number} x {what}" for what, number in raised.most_common(5))
    return Row("nothing is logged with a traceback", said or "nothing", not raised)
