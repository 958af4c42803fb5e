"""What fair admission costs: tasks moved beside raw publishing, and a task through the open gate beside one without."""

import asyncio
import time
from contextlib import suppress

from nats.aio.client import Client
from redis.asyncio import Redis

from benchmarks.profiles import Profile
from benchmarks.table import Row, ratio
from tasklore.contracts import subjects
from tasklore.contracts.admission.limits import Shares
from tasklore.contracts.messages import TaskAssignment, TaskCall
from tasklore.memory.functions import load_functions
from tasklore.memory.ledger.ledger import Ledger
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox, open_outbox
from tasklore.runtime.messaging.streams import (
    StreamSizes,
    declare_consumer,
    declare_streams,
    task_sources,
)
from tasklore.supervisor.admission.gate import open_gate
from tasklore.supervisor.admission.queue_mover import WaitingQueueMover
from tasklore.supervisor.admission.room import MovedTasks, Room
from tasklore.supervisor.dispatch import Dispatch

AGENT = "BenchAgent"
#: Messages under way at once, and of ten thousand raw ones how many are to be moved in the same time.
_AT_ONCE = 256
ASKED = 0.3


class _Ample(Room):
    """Asks as the real one does, and has room all the same: nothing here takes tasks."""

    async def ask(self, agent_id: str, moved: MovedTasks | None = None) -> int:
        """Return a full batch."""
        await super().ask(agent_id, moved)
        return _AT_ONCE


async def measure(nats_url: str, redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows."""
    number = profile.tasks // 2
    async with (
        connected(nats_url, "bench-admission") as client,
        Redis.from_url(redis_url) as redis,
    ):
        await load_functions(redis)
        await declare_streams(client, StreamSizes())
        for source in task_sources(AGENT, 30.0):
            await declare_consumer(client, source)
        link = Link(client)
        async with open_outbox(link) as outbox:
            raw = await _publish_raw(client, number)
            moved = [
                await _move(link, redis, outbox, tenants, number, raw)
                for tenants in (1, 100, number)
            ]
            straight = await _send_straight(link, redis, outbox, number // 4)
        await ask_jetstream(client, f"STREAM.PURGE.{subjects.TASKS}")
    return [Row("raw nats-py publish, acknowledged", tasks_per_s=raw), *moved, straight]


async def _publish_raw(client: Client, number: int) -> float:
    stream = client.jetstream()
    began = time.perf_counter()
    for begin in range(0, number, _AT_ONCE):
        await asyncio.gather(
            *(
                stream.publish(
                    subjects.task(AGENT, "raw"),
                    b"x" * 400,
                    headers={subjects.MESSAGE_ID_HEADER: f"raw {one}"},
                )
                for one in range(begin, min(number, begin + _AT_ONCE))
            )
        )
    return number / (time.perf_counter() - began)


async def _move(
    link: Link, redis: Redis, outbox: Outbox, tenants: int, number: int, raw: float
) -> Row:
    """Let *number* tasks of *tenants* wait, and time the desk that moves them."""
    await ask_jetstream(link.client, f"STREAM.PURGE.{subjects.TASKS}")
    for begin in range(0, number, _AT_ONCE):
        await asyncio.gather(
            *(
                outbox.put(
                    subjects.waiting(AGENT, "normal", f"{one % tenants}", "move"),
                    b"x" * 400,
                    f"{tenants}-{one}",
                )
                for one in range(begin, min(number, begin + _AT_ONCE))
            )
        )

    async def read_shares() -> Shares:
        return Shares()

    desk = WaitingQueueMover(
        link,
        redis,
        outbox,
        _Ample(link.client),
        holder="bench",
        read_shares=read_shares,
    )
    running = asyncio.create_task(desk.run())
    began = 0.0
    while (left := (await _state(link, subjects.WAITING))["messages"]) > 0:
        began = began or (time.perf_counter() if left < number else 0.0)
        await asyncio.sleep(0.02)
    per_s = number / (time.perf_counter() - began)
    assert (await _state(link, subjects.TASKS))["messages"] == number
    consumers = (await ask_jetstream(link.client, f"STREAM.INFO.{subjects.WAITING}"))[
        "state"
    ]["consumer_count"]
    await desk.drain()
    with suppress(asyncio.CancelledError):
        running.cancel()
        await running
    return Row(
        f"{number} waiting tasks of {tenants} {'tenant' if tenants == 1 else 'tenants'} moved",
        tasks_per_s=per_s,
        compared=f"{ratio(per_s, raw)} raw publish (asked {ASKED}x)",
        how=f"one desk, room always; WAITING has {consumers} consumer for all tenants",
    )


async def _state(link: Link, stream: str) -> dict[str, int]:
    state: dict[str, int] = (await ask_jetstream(link.client, f"STREAM.INFO.{stream}"))[
        "state"
    ]
    return state


async def _send_straight(link: Link, redis: Redis, outbox: Outbox, number: int) -> Row:
    """Send in turns without and with a gate that is open, and compare the best of both."""
    ledger = Ledger(redis)
    gate = await open_gate(link, _Ample(link.client))
    found: dict[bool, list[float]] = {False: [], True: []}
    for turn in range(6):
        is_gated = turn % 2 == 1
        dispatch = Dispatch(outbox, ledger, gate if is_gated else None)
        began = time.perf_counter()
        for begin in range(0, number, _AT_ONCE):
            await asyncio.gather(
                *(
                    dispatch.assign(_assignment(f"s{turn}-{one}"))
                    for one in range(begin, begin + _AT_ONCE)
                )
            )
        found[is_gated].append(number / (time.perf_counter() - began))
    return Row(
        "task sent straight, through the open gate",
        tasks_per_s=max(found[True]),
        compared=f"{ratio(max(found[True]), max(found[False]))} without a gate (asked 0.95x)",
        how="stored, and in the ledger",
    )


def _assignment(task_id: str) -> TaskAssignment:
    call = TaskCall(name="straight", parameters={"number": 1})
    return TaskAssignment.model_validate(
        {
            "task_id": task_id,
            "agent_id": AGENT,
            "supervisor_id": "bench",
            "task": call,
            "created_at": 0,
        }
    )
