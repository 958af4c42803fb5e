"""One worker that leaves: what waits in it without having begun, and what happens when it is told twice."""

import asyncio
import time

from nats.aio.msg import Msg

from tests.acceptance.chaos.stage import AGENT, STEADY, stage, submit
from tests.acceptance.chaos.table import Row
from tests.acceptance.house import House, Served
from tests.acceptance.outside import Outside, outside

#: Seconds of a lease: far longer than the profile, so that nothing is saved by its end.
_LEASE_S = 300
#: Seconds within which work that was not begun is offered to others.
HAND_OVER_S = 0.1
#: Seconds in which a worker leaves that was told a second time.
AT_ONCE_S = 2.0
#: Seconds in which a process leaves that has nothing to do and nobody to say goodbye to.
ALONE_S = 10.0
#: Milliseconds that the question takes for whose answer the others wait.
_LEADING_MS = 3_000
_COPIES = 12


async def joiners_handed_over(within_s: float = HAND_OVER_S) -> list[Row]:
    """Tell a worker to leave whose tasks all wait for an answer that another worker computes."""
    async with stage() as house, outside(house.servers.nats_url) as program:
        # It has no room for the copies, which therefore wait in the other one.
        leader = house.worker(STEADY, slots=1, ack_wait_s=_LEASE_S).ready()
        leading = await submit(program, "known", {"number": 7, "ms": _LEADING_MS})
        await program.eventually(lambda: _runs(house, "known", 1))
        worker = house.worker(STEADY, slots=16, ack_wait_s=_LEASE_S).ready()
        naks: list[float] = []

        async def note(_message: Msg) -> None:
            naks.append(time.monotonic())

        await program.client.subscribe(f"$JS.EVENT.ADVISORY.CONSUMER.MSG_NAKED.TASKS.{AGENT}", cb=note)
        copies = [await submit(program, "known", {"number": 7, "ms": _LEADING_MS}) for _ in range(_COPIES)]
        await program.eventually(lambda: _held(program, 1 + _COPIES))
        waiting = int(worker.metric("tasklore_slots_used"))
        told_at = time.monotonic()
        worker.terminate()
        status = await asyncio.to_thread(worker.wait)
        left_s = time.monotonic() - told_at
        in_time = sum(1 for at in naks if at - told_at <= within_s)
        wanted = {leading, *copies}
        await program.until(lambda: wanted <= {report["task_id"] for report in program.heard})
        runs = len((house.folder / "runs" / "known").read_text().splitlines())
        assert leader.is_running
    asked = f"told to leave while tasks wait for another's answer: handed over within {within_s * 1000:.0f} ms"
    measured = f"{in_time} of {waiting} in time, left with {status} after {left_s:.2f} s, {runs} runs in all"
    return [Row(asked, measured, in_time >= waiting > 0 and runs == 1)]


async def told_twice() -> list[Row]:
    """Tell a worker twice to leave in the middle of a long task, while another one has room."""
    async with stage() as house, outside(house.servers.nats_url) as program:
        worker = house.worker(STEADY, slots=1, ack_wait_s=_LEASE_S, grace_s=60).ready()
        await submit(program, "noted", {"number": 1, "ms": 60_000})
        await program.eventually(lambda: _runs(house, "noted", 1))
        house.worker(STEADY, slots=1, ack_wait_s=_LEASE_S).ready()
        worker.terminate()
        # Long enough for the first word to be acted on; a task of a minute is still at work then.
        await asyncio.sleep(0.5)
        assert worker.is_running
        told_at = time.monotonic()
        worker.terminate()
        began_elsewhere = asyncio.create_task(program.eventually(lambda: _runs(house, "noted", 2), 10))
        left = asyncio.create_task(asyncio.to_thread(worker.wait))
        await asyncio.wait([left], timeout=10)
        left_s = time.monotonic() - told_at
        status = str(left.result()) if left.done() else "not left"
        if not left.done():
            worker.kill()
        await asyncio.wait([began_elsewhere, left])
        elsewhere_s = None if began_elsewhere.exception() else time.monotonic() - told_at
        trouble = "Traceback" in worker.log()
    asked = f"SIGTERM twice during a long task: gone within {AT_ONCE_S:.0f} s"
    elsewhere = "not within 10 s" if elsewhere_s is None else f"{elsewhere_s:.2f} s"
    return [
        Row(asked, f"{left_s:.2f} s, status {status}, traceback {trouble}", left_s <= AT_ONCE_S and not trouble),
        Row(
            "SIGTERM twice: the task runs elsewhere within 5 s", elsewhere, elsewhere_s is not None and elsewhere_s <= 5
        ),
    ]


async def told_without_nats() -> list[Row]:
    """Tell a worker and a supervisor to leave while there is no NATS server to say goodbye to."""
    async with stage() as house:
        leaving = {"worker": house.worker(STEADY).ready(), "supervisor": house.supervisor().ready()}
        house.servers.nats.kill()
        # Long enough for both to have noticed.
        await asyncio.sleep(1.0)
        return [await _left_alone(name, process) for name, process in leaving.items()]


async def _left_alone(name: str, process: Served) -> Row:
    told_at = time.monotonic()
    process.terminate()
    status = await asyncio.to_thread(process.wait)
    left_s = time.monotonic() - told_at
    trouble = "Traceback" in process.log()
    asked = f"{name} told to leave without NATS: exit status 0, no traceback, within {ALONE_S:.0f} s"
    fine = not (status or trouble or left_s > ALONE_S)
    return Row(asked, f"{status} after {left_s:.2f} s, traceback {trouble}", fine)


async def _runs(house: House, name: str, number: int) -> bool:
    """Return whether *number* runs have left a line under *name*."""
    path = house.folder / "runs" / name
    return path.exists() and len(path.read_text().splitlines()) >= number


async def _held(program: Outside, number: int) -> bool:
    return bool((await program.api(f"CONSUMER.INFO.TASKS.{AGENT}"))["num_ack_pending"] == number)
