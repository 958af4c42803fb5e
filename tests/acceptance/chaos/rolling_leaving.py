"""One worker that leaves: what waits in it without having begun, and what happens when it is told twice."""

import asyncio
import contextlib
import time

from nats.aio.msg import Msg

from tests.acceptance.chaos.stage import AGENT, STEADY, stage, submit
from tests.acceptance.chaos.table import Row
from tests.acceptance.external_program import Outside, outside
from tests.acceptance.system import Served, System

#: Seconds of a lease: far longer than the profile, so that nothing is saved by its end.
_LEASE_S = 300
#: Seconds within which work that was not begun is offered to others.
HAND_OVER_S = 0.1
#: Seconds in which a worker leaves that was told a second time.
AT_ONCE_S = 2.0
#: Seconds in which a process leaves that has nothing to do and nobody to say goodbye to.
ALONE_S = 10.0
#: Seconds within which a task that a worker was told twice to drop runs elsewhere.
ELSEWHERE_S = 5.0
#: Milliseconds of a task, and seconds of a worker's grace, that no profile waits for.
_ENDLESS_MS = 3_600_000
_GRACE_S = 3_600
_COPIES = 12
#: Seconds beyond what is promised for which it is waited: how late it was is worth more than that it was late.
_MORE_S = 8.0


async def joiners_handed_over(slack: float = 1.0) -> list[Row]:
    """Tell a worker to leave whose tasks all wait for an answer that another worker computes."""
    within_s = slack * HAND_OVER_S
    async with stage() as system, outside(system.servers.nats_url) as program:
        # It has no room for the copies, which therefore wait in the other one.
        leader = await asyncio.to_thread(
            system.worker(STEADY, slots=1, ack_wait_s=_LEASE_S).ready
        )
        leading = await submit(program, "let_go", {"number": 7})
        await program.eventually(lambda: _runs(system, "let_go", 1))
        worker = await asyncio.to_thread(
            system.worker(STEADY, slots=16, ack_wait_s=_LEASE_S).ready
        )
        naks: list[float] = []

        async def note(_message: Msg) -> None:
            naks.append(time.monotonic())

        await program.client.subscribe(
            f"$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED.TASKS.{AGENT}", cb=note
        )
        copies = [
            await submit(program, "let_go", {"number": 7}) for _ in range(_COPIES)
        ]
        await program.eventually(lambda: _held(program, 1 + _COPIES))
        # The server counts them from when it sends them; the worker may not have read them yet.
        await asyncio.to_thread(worker.await_metric, "tasklore_slots_used", _COPIES)
        told_at = time.monotonic()
        worker.terminate()
        status = await asyncio.to_thread(worker.wait)
        left_s = time.monotonic() - told_at

        async def all_told() -> bool:
            return len(naks) >= _COPIES

        # All that it said is said, but the server's word on it may still be on its way.
        with contextlib.suppress(TimeoutError):
            await program.eventually(all_told, within_s + _MORE_S)
        in_time = sum(1 for at in naks if at - told_at <= within_s)
        (system.folder / "runs" / "let_go-7").touch()
        wanted = {leading, *copies}
        await program.until(
            lambda: wanted <= {report["task_id"] for report in program.heard}
        )
        runs = len((system.folder / "runs" / "let_go").read_text().splitlines())
        assert leader.is_running
    asked = f"told to leave while tasks wait for another's answer: handed over within {within_s * 1000:.0f} ms"
    measured = f"{in_time} of {_COPIES} in time, left with {status} after {left_s:.2f} s, {runs} runs in all"
    return [Row(asked, measured, in_time >= _COPIES and runs == 1)]


async def told_twice(slack: float = 1.0) -> list[Row]:
    """Tell a worker twice to leave in the middle of a long task, while another one has room."""
    at_once_s = slack * AT_ONCE_S
    elsewhere_within_s = slack * ELSEWHERE_S
    async with stage() as system, outside(system.servers.nats_url) as program:
        starting = system.worker(STEADY, slots=1, ack_wait_s=_LEASE_S, grace_s=_GRACE_S)
        worker = await asyncio.to_thread(starting.ready)
        await submit(program, "noted", {"number": 1, "ms": _ENDLESS_MS})
        await program.eventually(lambda: _runs(system, "noted", 1))
        await asyncio.to_thread(
            system.worker(STEADY, slots=1, ack_wait_s=_LEASE_S).ready
        )
        worker.terminate()
        # Two signals at once would be one.
        await asyncio.to_thread(worker.await_log, "asked_to_end")
        assert worker.is_running
        told_at = time.monotonic()
        worker.terminate()
        elsewhere = program.eventually(
            lambda: _runs(system, "noted", 2), elsewhere_within_s + _MORE_S
        )
        began_elsewhere = asyncio.create_task(elsewhere)
        left = asyncio.create_task(asyncio.to_thread(worker.wait))
        await asyncio.wait([left], timeout=at_once_s + _MORE_S)
        left_s = time.monotonic() - told_at
        status = str(left.result()) if left.done() else "not left"
        if not left.done():
            worker.kill()
        await asyncio.wait([began_elsewhere, left])
        elsewhere_s = (
            None if began_elsewhere.exception() else time.monotonic() - told_at
        )
        trouble = "Traceback" in worker.log()
    asked = f"SIGTERM twice during a long task: gone within {at_once_s:.0f} s"
    measured = "not yet" if elsewhere_s is None else f"{elsewhere_s:.2f} s"
    is_in_time = elsewhere_s is not None and elsewhere_s <= elsewhere_within_s
    return [
        Row(
            asked,
            f"{left_s:.2f} s, status {status}, traceback {trouble}",
            left_s <= at_once_s and not trouble,
        ),
        Row(
            f"SIGTERM twice: the task runs elsewhere within {elsewhere_within_s:.0f} s",
            measured,
            is_in_time,
        ),
    ]


async def told_without_nats(slack: float = 1.0) -> list[Row]:
    """Tell a worker and a supervisor to leave while there is no NATS server to say goodbye to."""
    async with stage() as system:
        leaving = {"worker": system.worker(STEADY), "supervisor": system.supervisor()}
        for process in leaving.values():
            await asyncio.to_thread(process.ready)
        system.servers.nats.kill()
        # Long enough for both to have noticed.
        await asyncio.sleep(1.0)
        return [
            await _left_alone(name, process, slack * ALONE_S)
            for name, process in leaving.items()
        ]


async def _left_alone(name: str, process: Served, within_s: float) -> Row:
    told_at = time.monotonic()
    process.terminate()
    status = await asyncio.to_thread(process.wait)
    left_s = time.monotonic() - told_at
    trouble = "Traceback" in process.log()
    asked = f"{name} told to leave without NATS: exit status 0, no traceback, within {within_s:.0f} s"
    fine = not (status or trouble or left_s > within_s)
    return Row(asked, f"{status} after {left_s:.2f} s, traceback {trouble}", fine)


async def _runs(system: System, name: str, number: int) -> bool:
    """Return whether *number* runs have left a line under *name*."""
    path = system.folder / "runs" / name
    return path.exists() and len(path.read_text().splitlines()) >= number


async def _held(program: Outside, number: int) -> bool:
    return bool(
        (await program.api(f"CONSUMER.INFO.TASKS.{AGENT}"))["num_ack_pending"] == number
    )
