"""Open tasks read out of a real ledger: every task without a report, and none with one."""

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import TaskName
from tasklore.memory import keys
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.open_tasks import SCAN_COUNT, OpenTask, OpenTasks
from tasklore.memory.ledger.runs import Ended
from tasklore.memory.ledger.stream_epochs import StreamEpochs
from tasklore.memory.ledger.task_index import TaskIndex
from tasklore.memory.ledger.user_tasks import UserTasks
from tests.ledger_layouts import (
    AGENT,
    LayoutUnderTest,
    ListingLedger,
    row_for,
)
from tests.servers import PATIENCE_S

LEASE_MS = 30_000
KEEP_MS = 7 * 24 * 3600 * 1000


@pytest.fixture
def ledger(valkey_or_redis: Redis, layout: LayoutUnderTest) -> Ledger:
    return ListingLedger(valkey_or_redis, deadline_s=PATIENCE_S)


async def everything(client: Redis) -> dict[tuple[str, int], OpenTask]:
    """Return the open tasks by id and generation; one may come twice, but not with two contents."""
    found: dict[tuple[str, int], OpenTask] = {}
    async for batch in OpenTasks(client).read():
        for task in batch:
            assert found.setdefault((task.task_id, task.generation), task) == task
    return found


async def test_an_accepted_task_without_a_report_is_open(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    await ledger.accept("new", 1, b"assignment of new")
    await ledger.accept("running", 1, b"assignment of running")
    await ledger.begin("running", 1, "w", 1, LEASE_MS)
    await ledger.accept("done", 1, b"assignment of done")
    await ledger.finish("done", 1, "completed", b"{}")
    await ledger.begin("of another program", 1, "w", 1, LEASE_MS)
    await ledger.begin("parked", 1, "w", 1, LEASE_MS, token="a")
    await ledger.park(Ended("parked", 1, "a"), 60_000, b"assignment of parked")
    await valkey_or_redis.set(keys.task("foreign"), b"a string")
    assert await everything(valkey_or_redis) == {
        ("new", 1): OpenTask("new", 1, b"assignment of new", 0, is_waiting=False),
        ("running", 1): OpenTask(
            "running", 1, b"assignment of running", 1, is_waiting=False
        ),
        ("parked", 1): OpenTask(
            "parked", 1, b"assignment of parked", 1, is_waiting=True
        ),
    }


async def test_an_open_task_keeps_its_trace_until_it_ends(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    await ledger.accept("t1", 1, b"assignment", "00-trace-1")
    await ledger.accept("t1", 1, b"again", "00-trace-2")
    assert (await everything(valkey_or_redis))["t1", 1].trace == "00-trace-1"
    await ledger.finish("t1", 1, "completed", b"{}")
    assert not {b"trace:1", b"assignment:1"} & set(
        await valkey_or_redis.hkeys(keys.task("t1"))
    )


async def test_a_task_that_fails_while_open_tasks_are_read_is_not_open(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    """Its assignment is kept for good, and would be published once more: bodies are read later than names."""
    numbers = range(40)
    found = list[int]()
    for number in numbers:
        await ledger.accept(f"t{number}", 1, b"assignment")
    async for batch in OpenTasks(valkey_or_redis).read():
        found.append(len(batch))
        await ledger.finish_many(
            [(f"t{number}", 1, "failed", b"{}") for number in numbers]
        )
    assert sum(found) == found[0] < len(numbers)


async def test_foreign_values_hide_no_open_task(
    ledger: Ledger, valkey_or_redis: Redis, layout: LayoutUnderTest
) -> None:
    await ledger.accept("t1", 1, b"ours", row=row_for("t1")._replace(user="token"))
    odd = {
        f"{name}:1": b"\xff"
        for name in (
            "state",
            "attempts",
            "crashes",
            "refused",
            "worker",
            "started_at",
            "trace",
        )
    }
    odd |= {
        "assignment:1": b"{}",
        "user": b"\xff",
        "cancel:1": b"\xff",
        "assignment:" + "9" * 5000: b"{}",
    }
    mine = layout.key("odd").encode()
    index = TaskIndex(valkey_or_redis, deadline_s=PATIENCE_S)
    await index.write([row_for(one) for one in ("odd", "foreign", "")])
    if layout.is_by_agent:
        await valkey_or_redis.set(layout.key("foreign"), b"a string")
    for key in (mine, b"tl:task:{\xff\xfe}", b"tl:task:{", b"tl:task:{}"):
        await valkey_or_redis.hset(key, mapping=odd)  # type: ignore[arg-type]
        await valkey_or_redis.pexpire(key, KEEP_MS)
    assert (await everything(valkey_or_redis))["t1", 1].assignment == b"ours"
    recent = [
        entry.task_id
        async for batch in OpenTasks(valkey_or_redis).read_recent(60)
        for entry in batch
    ]
    assert {"t1", "odd"} <= set(recent)
    theirs = UserTasks(valkey_or_redis).read("token", lambda body: body == b"ours")
    assert {task.task_id async for task in theirs} == {"t1"}
    entry = await ledger.read(TaskName(AGENT, "odd"))
    assert (
        entry.newest,
        entry.generations[1].attempts,
        entry.generations[1].started_at_ms,
    ) == (1, 0, None)


async def test_generations_are_open_by_themselves(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    await ledger.accept("t1", 1, b"first")
    await ledger.finish("t1", 1, "failed", b"{}")
    await ledger.accept("t1", 2, b"second")
    await ledger.accept("t1", 12, b"twelfth")
    found = {
        key: task.assignment
        for key, task in (await everything(valkey_or_redis)).items()
    }
    assert found == {("t1", 2): b"second", ("t1", 12): b"twelfth"}


async def test_any_task_id_comes_back_as_it_was(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    for task_id in ("plain-1", "with {braces}:and/more", "ümläut", "a.b_c"):
        await ledger.accept(task_id, 1, task_id.encode())
        assert keys.parse_task(keys.task(task_id).encode()) == task_id
    found = await everything(valkey_or_redis)
    assert len(found) == 4
    assert all(
        task.assignment.decode() == task.task_id == task_id
        for (task_id, _), task in found.items()
    )


async def test_more_tasks_than_one_scan_are_all_read(
    layout: LayoutUnderTest, valkey_or_redis: Redis
) -> None:
    pipeline = valkey_or_redis.pipeline(transaction=False)
    total = 3 * SCAN_COUNT
    for number in range(total):
        done = {b"report:1": b"{}"} if number % 3 else {}
        pipeline.hset(
            layout.key(f"t{number}"), mapping={b"assignment:1": b"%d" % number} | done
        )
        pipeline.set(f"other:{number}", b"x")
    await pipeline.execute()
    index = TaskIndex(valkey_or_redis, deadline_s=PATIENCE_S)
    await index.write([row_for(f"t{number}") for number in range(total)])
    found = await everything(valkey_or_redis)
    assert {task_id for task_id, _ in found} == {
        f"t{number}" for number in range(0, total, 3)
    }
    assert all(task.assignment == task.task_id[1:].encode() for task in found.values())


async def test_a_server_that_is_not_there_is_unavailable() -> None:
    async with Redis(host="127.0.0.1", port=1) as nowhere:
        with pytest.raises(MemoryUnavailable):
            await anext(OpenTasks(nowhere, step_s=0.2).read())
        with pytest.raises(MemoryUnavailable):
            await StreamEpochs(nowhere, deadline_s=0.2).known("TASKS")


async def test_the_epoch_of_a_stream_is_kept_for_all(
    ledger: Ledger, valkey_or_redis: Redis
) -> None:
    epochs = StreamEpochs(valkey_or_redis, deadline_s=PATIENCE_S)
    assert await epochs.known("TASKS") is None
    await epochs.note("TASKS", "2026-11-21T10:00:00.123456789Z")
    await epochs.note("LATER", "2026-11-21T11:00:00Z")
    assert (
        await StreamEpochs(valkey_or_redis, deadline_s=PATIENCE_S).known("TASKS")
        == "2026-11-21T10:00:00.123456789Z"
    )
    assert await valkey_or_redis.ttl(keys.stream("TASKS")) == -1
