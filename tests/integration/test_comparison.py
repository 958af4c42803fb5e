"""The ledger and REPORTS on real servers: whatever they held, they end with one report that every reader gets."""

import asyncio
import contextlib
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from nats.aio.client import Client
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.identifiers import TaskName, new_id
from tasklore.contracts.messages import (
    CompletionReport,
    Fence,
    MemoryNote,
    Status,
    TaskAssignment,
    TaskCall,
)
from tasklore.memory import keys
from tasklore.memory.ledger.expired import spell_expired
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.runs import Finish, ReportExpired
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox, open_outbox
from tasklore.runtime.messaging.pull import Delivery
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.reports.comparison import ReportReconciler
from tasklore.supervisor.reports.reports import ReportWaiter
from tests.ledger_layouts import finish_long_ago, set_layout
from tests.servers import PATIENCE_S
from tests.unit.workers.execution.fake_worker import FakeEngine


@dataclass
class Stores:
    """Both stores, and a desk that compares them."""

    client: Client
    link: Link
    outbox: Outbox
    ledger: Ledger
    task: str

    def desk(self, ledger: Ledger | None = None) -> ReportReconciler:
        return ReportReconciler(self.client, ledger or self.ledger, self.outbox)

    async def publish(
        self, task_id: str, body: bytes, *, generation: int = 1, user: str = ""
    ) -> list[str]:
        """Publish a report as a worker does; return ["known"] when the stream had one."""
        heard: list[str] = []
        stored = asyncio.get_running_loop().create_future()
        self.outbox.send(
            f"reports.Other.{task_id}.{generation}",
            body,
            f"{task_id}:{generation}:report",
            stored.set_result,
            headers={subjects.USER_HEADER: user} if user else None,
            known=lambda: heard.append("known"),
        )
        assert await stored is None
        return heard

    async def in_stream(self, task_id: str, generation: int = 1) -> bytes | None:
        subject = f"$JS.API.DIRECT.GET.REPORTS.reports.Other.{task_id}.{generation}"
        stored = await self.client.request(subject, timeout=PATIENCE_S)
        return None if (stored.headers or {}).get("Status") else stored.data

    async def in_ledger(self, task_id: str, generation: int = 1) -> bytes | None:
        entry = await self.ledger.read(task_id)
        known = entry.generations.get(generation) if entry is not None else None
        return known.report if known is not None else None

    async def compare(
        self, task_id: str, generation: int = 1, *, deliveries: int = 1
    ) -> FakeEngine:
        line = FakeEngine()
        await self.desk().work([asked(task_id, generation, deliveries)], line)  # type: ignore[arg-type]  # a fake
        return line


@pytest.fixture
async def stores(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stores]:
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            connected(servers.nats_url, "comparison")
        )
        await declare_streams(client, StreamSizes())
        link = Link(client)
        outbox = await stack.enter_async_context(open_outbox(link))
        yield Stores(
            client, link, outbox, Ledger(redis, deadline_s=PATIENCE_S), new_id(0)
        )


def asked(task_id: str, generation: int = 1, deliveries: int = 1) -> Delivery:
    where = f"reports.Other.{task_id}.{generation}"
    return Delivery(
        subject=subjects.comparison(where, "t"),
        body=where.encode(),
        headers=None,
        reply=f"ack.{task_id}",
        deliveries=deliveries,
        sequence=1,
        arrived_at=0.0,
    )


def a_report(
    task_id: str,
    status: Status = "completed",
    *,
    fence: Fence = "none",
    generation: int = 1,
    minutes_ago: float = 0,
) -> bytes:
    report = CompletionReport(
        task_id=task_id,
        generation=generation,
        agent_id="A",
        supervisor_id="Other",
        task_name="x",
        status=status,
        memory=MemoryNote(outcome="off"),
        fence=fence,
        worker_id="w1",
        finished_at=datetime.now(UTC) - timedelta(minutes=minutes_ago),
    )
    return report.model_dump_json().encode()


def an_assignment(task_id: str) -> TaskAssignment:
    return TaskAssignment(
        task_id=task_id,
        agent_id="A",
        supervisor_id="Other",
        task=TaskCall(name="x"),
        created_at=datetime.now(UTC),
    )


@pytest.mark.parametrize(
    "before", ["nothing", "another status", "its own lost answer", "a wish to cancel"]
)
async def test_the_report_in_the_stream_replaces_the_one_in_the_ledger(
    stores: Stores, before: str
) -> None:
    stored = a_report(stores.task)
    await stores.publish(stores.task, stored, user="token")
    if before == "a wish to cancel":
        await stores.ledger.cancel(stores.task, None, "enough")
    elif before != "nothing":
        status: Status = "expired" if before == "another status" else "completed"
        await stores.ledger.finish(
            stores.task, 1, status, a_report(stores.task, status, fence="ledger")
        )

    line = await stores.compare(stores.task)

    entry = await stores.ledger.read(stores.task)
    assert entry is not None
    assert (entry.generations[1].report, entry.generations[1].state, entry.user) == (
        stored,
        "completed",
        "token",
    )
    assert await stores.in_stream(stores.task) == stored
    assert len(line.settled) == 1
    assert await stores.ledger.finish(stores.task, 1, "cancelled", b"late") == stored


async def test_a_report_that_only_the_ledger_has_is_published(stores: Stores) -> None:
    report = a_report(stores.task, "cancelled", fence="ledger")
    await stores.ledger.finish_many(
        [Finish(stores.task, 1, "cancelled", report, "token")]
    )

    assert [
        len(said) for said in (await stores.compare(stores.task)).__dict__.values()
    ] == [0, 0, 1]
    assert len((await stores.compare(stores.task)).settled) == 1

    stored = await stores.client.jetstream().get_last_msg(
        "REPORTS", f"reports.Other.{stores.task}.1"
    )
    assert (stored.data, (stored.headers or {})[subjects.USER_HEADER]) == (
        report,
        "token",
    )


async def test_a_report_older_than_an_hour_is_not_published_again(
    stores: Stores,
) -> None:
    report = a_report(stores.task, fence="ledger", minutes_ago=61)
    await stores.ledger.finish(stores.task, 1, "completed", report)
    assert len((await stores.compare(stores.task)).settled) == 1
    assert (
        await stores.in_stream(stores.task),
        await stores.in_ledger(stores.task),
    ) == (None, report)


async def test_a_task_whose_report_has_expired_is_compared_no_more(
    stores: Stores, redis: Redis
) -> None:
    """In the ledger by agent the pointer to the agent has expired as well."""
    await finish_long_ago(redis, TaskName("A", stores.task))
    assert len((await stores.compare(stores.task)).settled) == 1


async def test_a_report_that_neither_store_has_is_looked_for_again_and_then_dropped(
    stores: Stores,
) -> None:
    assert len((await stores.compare(stores.task)).handed_back) == 1
    assert len((await stores.compare(stores.task, deliveries=15)).settled) == 1
    assert await stores.ledger.read(stores.task) is None


@pytest.mark.parametrize(
    "body", [b"rubbish", b"reports.Other.TASK.1", b"\xff.a.b.c", b"reports.Other..1"]
)
async def test_an_unusable_comparison_request_is_settled_and_changes_nothing(
    stores: Stores, body: bytes
) -> None:
    await stores.publish(stores.task, a_report("t2"))
    held = a_report(stores.task, fence="ledger")
    await stores.ledger.finish(stores.task, 1, "completed", held)
    line = FakeEngine()
    wish = asked(stores.task)
    wish.body = body.replace(b"TASK", stores.task.encode())
    await stores.desk().work([wish], line)  # type: ignore[arg-type]  # a fake
    assert line.settled == [wish]
    assert await stores.in_ledger(stores.task) == held


async def test_without_the_ledger_comparisons_wait(stores: Stores) -> None:
    async with Redis.from_url("redis://127.0.0.1:1") as nowhere:
        line = FakeEngine()
        batch = [asked(f"t{number}", deliveries=99) for number in range(256)]
        async with asyncio.timeout(PATIENCE_S):
            await stores.desk(Ledger(nowhere, deadline_s=0.5)).work(batch, line)  # type: ignore[arg-type]  # a fake
    assert ([delivery for delivery, _ in line.handed_back], line.settled) == (batch, [])


async def test_two_supervisors_and_finishing_workers_at_once_leave_one_report(
    stores: Stores,
) -> None:
    ids = [f"{stores.task}-{number}" for number in range(60)]

    async def worker(task_id: str, status: Status, fence: Fence) -> None:
        body = a_report(task_id, status, fence=fence)
        await asyncio.sleep(
            0.001 * (zlib.crc32(f"{task_id[-2:]}{status}".encode()) % 7)
        )
        if fence == "ledger":
            earlier = await stores.ledger.finish(task_id, 1, status, body)
            body = earlier if isinstance(earlier, bytes) else body
        if await stores.publish(task_id, body) or fence == "none":
            wishes.append(asked(task_id))

    async def supervisor() -> None:
        line = FakeEngine()
        for _ in range(20):
            await stores.desk().work(list(wishes), line)  # type: ignore[arg-type]  # a fake
            await asyncio.sleep(0.002)

    wishes: list[Delivery] = []
    rivals = (("completed", "none"), ("expired", "ledger"), ("failed", "ledger"))
    workers = [worker(task_id, *rival) for task_id in ids for rival in rivals]  # type: ignore[arg-type]  # literals
    await asyncio.gather(*workers, supervisor(), supervisor())
    await stores.desk().work(wishes, FakeEngine())  # type: ignore[arg-type]  # a fake

    for task_id in ids:
        stored = await stores.in_stream(task_id)
        assert stored is not None
        assert stored == await stores.in_ledger(task_id)


async def test_a_request_a_program_and_the_ledger_read_the_same_report(
    stores: Stores,
) -> None:
    """A second run's report, which the ledger took and the stream refused, is returned to nobody."""
    desk = ReportWaiter(stores.client, stores.ledger)
    await stores.link.listen("reports.Other.>", desk.hear_hint)
    assignment = an_assignment(stores.task)
    stored = a_report(stores.task)
    rival = a_report(stores.task, "expired", fence="ledger")
    await stores.publish(stores.task, stored)
    await stores.ledger.finish(stores.task, 1, "expired", rival)
    waiting = asyncio.create_task(desk.report_of(assignment, PATIENCE_S, is_new=True))
    await asyncio.sleep(0)

    assert await stores.publish(stores.task, rival) == ["known"]
    told = await waiting
    again = await desk.report_of(assignment, PATIENCE_S)
    await stores.compare(stores.task)

    assert told == again == CompletionReport.model_validate_json(stored)
    assert (
        await stores.in_stream(stores.task)
        == await stores.in_ledger(stores.task)
        == stored
    )


async def test_a_hint_of_an_older_generation_returns_the_newest_report(
    stores: Stores,
) -> None:
    desk = ReportWaiter(stores.client, stores.ledger)
    assignment = an_assignment(stores.task)
    await stores.link.listen("reports.Other.>", desk.hear_hint)
    for generation in (2, 3):
        report = a_report(stores.task, generation=generation, fence="ledger")
        await stores.ledger.finish(stores.task, generation, "completed", report)
        await stores.publish(stores.task, report, generation=generation)
    waiting = asyncio.create_task(desk.report_of(assignment, PATIENCE_S, is_new=True))
    await asyncio.sleep(0)
    await stores.publish(
        stores.task, a_report(stores.task, generation=2, fence="ledger"), generation=2
    )
    told = await waiting
    assert told is not None
    assert told.generation == 3


async def test_a_report_that_says_that_one_has_expired_is_taken_over_by_no_ledger(
    stores: Stores, redis: Redis
) -> None:
    """The second of two late copies of a task finds it in the stream; the fence says completed, and goes on to."""
    await set_layout(redis, "2")
    task = TaskName("A", stores.task)
    ledger = Ledger(redis, deadline_s=PATIENCE_S)
    await ledger.finish(task, 1, "completed", a_report(task))
    await redis.delete(keys.task_agent(task), keys.entry_report(keys.entry(task), 1))
    expired = await ledger.begin(task, 1, "w2", 1, 30_000)
    assert isinstance(expired, ReportExpired)
    await stores.publish(task, spell_expired(an_assignment(task), 1, expired))
    for fence in (True, False):
        if not fence:
            await redis.delete(keys.entry(task))
        line = FakeEngine()
        await stores.desk(ledger).work([asked(task)], line)  # type: ignore[arg-type]  # a fake
        assert len(line.settled) == 1
        there = await redis.hget(keys.entry(task), "state:1")
        assert there == (b"completed" if fence else None)
