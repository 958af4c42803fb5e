"""What a worker lists of the tasks that it runs, on a real ledger: each end, each wait, and the end that stands."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore import Context
from tasklore.contracts.errors import GiveUp, MemoryUnavailable, RetryLater
from tasklore.contracts.messages import CompletionReport, ErrorNote, MemoryNote
from tasklore.memory import keys
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.task_index import TaskIndex
from tasklore.memory.ledger.task_list import ListedTask, TaskFilter, TaskList
from tasklore.memory.ledger.task_rows import TaskRow
from tests.servers import PATIENCE_S
from tests.unit.workers.execution.fake_worker import (
    NOW,
    FakeWorker,
    a_task,
    raising,
)

AGENT = "DeskAgent"


@pytest.fixture
def ledger(valkey_or_redis: Redis) -> Ledger:
    return Ledger(valkey_or_redis, deadline_s=PATIENCE_S)


@pytest.fixture
def worker(ledger: Ledger) -> FakeWorker:
    return FakeWorker(ledger=ledger)


async def listed(redis: Redis) -> list[ListedTask]:
    page = await TaskList(redis, deadline_s=PATIENCE_S).read(TaskFilter())
    assert page.after is None
    return list(page.tasks)


async def opened(redis: Redis) -> set[str]:
    index = TaskIndex(redis, deadline_s=PATIENCE_S)
    return {one async for _, page in index.open_runs() for one in page}


async def until_none_is_open(redis: Redis) -> None:
    """Wait until no run is open: those that have ended leave these a moment later."""
    async with asyncio.timeout(PATIENCE_S):
        while await opened(redis):  # noqa: ASYNC110 - a store tells nobody
            await asyncio.sleep(0.01)


def report(status: str) -> bytes:
    made = CompletionReport(
        task_id="t1",
        agent_id=AGENT,
        supervisor_id="S",
        task_name="mutter",
        status=status,
        error=ErrorNote(type="TaskCancelled", message="enough"),
        memory=MemoryNote(outcome="off"),
        worker_id="elsewhere",
        finished_at=NOW + timedelta(seconds=9),
    )
    return made.model_dump_json().encode()


async def test_each_task_is_listed_with_its_end(
    worker: FakeWorker, valkey_or_redis: Redis
) -> None:
    """Computed, remembered and failed: the memory's part, the class of the error, user, tenant and parent."""
    whose = {"user_id": "ana", "tenant": "acme", "parent_id": "p1"}
    await worker.work(a_task(task_id="t1", **whose))
    await worker.work(a_task(task_id="t2"))
    worker.does = raising(GiveUp("no"))
    await worker.work(a_task("other", task_id="t3"))
    found = {one.task_id: one for one in await listed(valkey_or_redis)}
    assert {name: (one.state, one.memory) for name, one in found.items()} == {
        "t1": ("completed", "miss"),
        "t2": ("completed", "hit"),
        "t3": ("failed", "miss"),
    }
    first = found["t1"]
    assert (first.user, first.tenant, first.parent_id) == ("ana", "acme", "p1")
    assert first.began_ms == int(NOW.timestamp() * 1000)
    assert found["t3"].error == "GiveUp"
    await until_none_is_open(valkey_or_redis)


async def test_a_task_that_waits_for_its_next_run_is_among_the_open_ones(
    worker: FakeWorker, valkey_or_redis: Redis
) -> None:
    worker.does = raising(RetryLater(60))
    await worker.work(a_task())
    [one] = await listed(valkey_or_redis)
    assert (one.state, one.attempts) == ("waiting", 1)
    assert await opened(valkey_or_redis) == {"t1"}


async def test_a_report_that_is_refused_leaves_the_row_of_the_one_that_stands(
    worker: FakeWorker, ledger: Ledger, valkey_or_redis: Redis
) -> None:
    """Another one was quicker, whose process died before it listed its own."""

    async def overtaken(_word: str, _context: Context) -> None:
        await ledger.finish("t1", 1, "cancelled", report("cancelled"))

    worker.does = overtaken
    await worker.work(a_task(task="mutter", tenant="acme"))
    rows = await rows_in(valkey_or_redis)
    assert [(one.state, one.error, one.tenant) for one in rows] == [
        ("cancelled", "TaskCancelled", "acme")
    ]


async def test_a_task_that_comes_again_is_listed_as_it_ended(
    worker: FakeWorker, ledger: Ledger, valkey_or_redis: Redis
) -> None:
    """A process died between the report and the row, and before the acknowledgement."""
    await worker.work(a_task(task="mutter"))
    [row] = await rows_in(valkey_or_redis)
    still_open = row._replace(state="accepted", ended_ms=None)
    await valkey_or_redis.delete(*keys.runs(AGENT))
    await TaskIndex(valkey_or_redis, deadline_s=PATIENCE_S).write([still_open])
    assert await opened(valkey_or_redis) == {"t1"}

    await worker.work(a_task(task="mutter", deliveries=2))
    [again] = await rows_in(valkey_or_redis)
    assert again.state == "completed"
    await until_none_is_open(valkey_or_redis)


async def test_a_list_that_is_away_keeps_no_known_report_back(
    worker: FakeWorker, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a redelivery repeats is published all the same."""
    await worker.work(a_task(task="mutter"))

    async def refuse(_rows: Sequence[TaskRow]) -> None:
        raise MemoryUnavailable("away")

    monkeypatch.setattr(ledger, "list_runs", refuse)
    await worker.work(a_task(task="mutter", deliveries=2))
    first, second = (body for _, body, _ in worker.outbox.stored)
    assert first == second

    async def overtaken(_word: str, _context: Context) -> None:
        await ledger.finish("t2", 1, "cancelled", report("cancelled"))

    worker.does = overtaken
    await worker.work(a_task(task="mutter", task_id="t2"))
    assert [body for _, body, _ in worker.outbox.stored[2:]] == [report("cancelled")]


async def rows_in(redis: Redis) -> list[TaskRow]:
    """Return the rows as they are stored, whatever the ledger says of their tasks."""
    index = TaskIndex(redis, deadline_s=PATIENCE_S)
    asked: list[Any] = [
        TaskRow(task_id=one.decode(), agent_id=AGENT, task="", created_ms=0)
        for one in await redis.zrange(keys.runs(AGENT).listed, 0, -1)
    ]
    return [row for row in await index.find(asked) if row is not None]
