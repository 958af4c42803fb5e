"""A Valkey of 20 MB that is full: nothing is lost or grows past the limit, and everything ends once there is room."""

import asyncio
import uuid

from redis.asyncio import Redis
from redis.exceptions import OutOfMemoryError

from tasklore.memory import keys
from tests.acceptance.external_program import outside
from tests.acceptance.system import PROBE, System

LIMIT = 20 * 2**20
#: What the allocator and buffers of connections may take beside it; measured: 0.3 % on an idle machine.
SLACK = 1.05
PLAIN = 60
EFFECTS = 20
#: Seconds for which the store stays full under the tasks with effects, and the most runs of each of these in all.
FULL_S = 8.0
MOST_RUNS = 20


async def test_a_full_store_loses_nothing_and_everything_ends(
    own_system: System,
) -> None:
    """Counters keep their value, plain tasks are reported, and effects are made once there is room."""
    own_system.worker(PROBE, ack_wait_s=5).ready()
    plain, effects = (
        [str(uuid.uuid4()) for _ in range(count)] for count in (PLAIN, EFFECTS)
    )
    counters = [keys.end_counts(keys.task(task_id)) for task_id in (*plain, *effects)]
    async with (
        Redis.from_url(own_system.servers.redis_url) as store,
        outside(own_system.servers.nats_url) as program,
    ):
        for counter in counters:
            await store.hset(counter, "completed", 1000)
        await store.config_set("maxmemory", LIMIT)
        fillers = await fill(store)
        is_over = asyncio.Event()
        watch = asyncio.create_task(most_used(store, is_over))
        for task_id in plain:
            await program.assign(
                "ProbeAgent", "plain", {"label": task_id}, task_id=task_id
            )
        for task_id in effects:
            await program.assign(
                "ProbeAgent", "effect", {"label": task_id, "times": 0}, task_id=task_id
            )
        reports = [await program.report_of(task_id) for task_id in plain]
        await asyncio.sleep(FULL_S)
        assert [report["status"] for report in reports] == ["completed"] * PLAIN
        # Buffers of connections come and go, so that a call or two may find room.
        assert [report["fence"] for report in reports].count("none") > PLAIN / 2
        waiting = [
            task_id for task_id in effects if not own_system.runs(f"{task_id}-mail")
        ]
        assert len(waiting) > EFFECTS / 2
        assert all(
            [
                int(await store.hget(counter, "completed") or 0) >= 1000
                for counter in counters
            ]
        )
        is_over.set()
        most = max(await watch)
        await store.unlink(*fillers)
        reports = [await program.report_of(task_id) for task_id in effects]
        assert [report["status"] for report in reports] == ["completed"] * EFFECTS
        assert [len(own_system.runs(f"{task_id}-mail")) for task_id in effects] == [
            1
        ] * EFFECTS
        runs = [len(own_system.runs(f"{task_id}-begun")) for task_id in effects]
        assert most <= LIMIT * SLACK
        assert max(runs) <= MOST_RUNS


async def fill(store: Redis) -> list[str]:
    """Store keys until the server refuses one, large ones first, and return their names."""
    names: list[str] = []
    for size in (100_000, 1_000, 10):
        while True:
            try:
                await store.set(f"filler:{len(names)}", "x" * size)
            except OutOfMemoryError:
                break
            names.append(f"filler:{len(names)}")
    return names


async def most_used(store: Redis, is_over: asyncio.Event) -> list[int]:
    """Return the memory used at every look until *is_over*; a client may swallow a cancellation."""
    found: list[int] = []
    while not is_over.is_set():
        found.append((await store.info("memory"))["used_memory"])
        await asyncio.sleep(0.05)
    return found
