"""Recovery on real servers: a stream of tasks that was deleted or lost with its data is filled again."""

import asyncio
import contextlib
import json
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js.errors import NotFoundError

from tasklore.contracts import subjects
from tasklore.contracts.identifiers import TaskName
from tasklore.contracts.messages import (
    CompletionReport,
    MemoryNote,
    TaskAssignment,
    TaskCall,
)
from tasklore.contracts.traces import made_context, read_context
from tasklore.memory.ledger.layouts import Layout
from tasklore.memory.ledger.ledger import Ledger
from tasklore.memory.ledger.open_tasks import OpenTasks
from tasklore.memory.ledger.runs import Ended, Finish
from tasklore.memory.ledger.stream_epochs import StreamEpochs
from tasklore.runtime import tracing
from tasklore.runtime.messaging.connection import ConnectionCallbacks, connected
from tasklore.runtime.messaging.jetstream import ask_jetstream, ask_or_none
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import open_outbox
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.dispatch import Dispatch
from tasklore.supervisor.stream_recovery import Recovery
from tests.ledger_layouts import set_layout

#: Seconds for a fact on a busy machine.
PATIENCE_S = 60.0


class Meter:
    """Counts lost streams and republished tasks."""

    def __init__(self) -> None:
        self.lost = self.republished = 0

    def count_stream_lost(self) -> None:
        self.lost += 1

    def count_tasks_republished(self, number: int) -> None:
        self.republished += number


@dataclass
class Scene:
    """What a supervisor has: a dispatch and a recovery on one connection."""

    client: Client
    ledger: Ledger
    dispatch: Dispatch
    recovery: Recovery
    incarnations: StreamEpochs
    meter: Meter = field(default_factory=Meter)

    async def accept(self, count: int) -> list[str]:
        ids = [f"t{number}" for number in range(count)]
        await asyncio.gather(
            *(self.dispatch.assign(an_assignment(task_id)) for task_id in ids)
        )
        return ids

    async def finish(self, ids: list[str]) -> None:
        await self.ledger.finish_many(
            [(TaskName("A", task_id), 1, "completed", b"{}") for task_id in ids]
        )

    async def report(self, name: str, *, minutes_ago: float = 0) -> bytes:
        report = CompletionReport(
            task_id=name,
            agent_id="A",
            supervisor_id="Other",
            task_name="x",
            status="completed",
            memory=MemoryNote(outcome="off"),
            worker_id="w",
            finished_at=datetime.now(UTC) - timedelta(minutes=minutes_ago),
        )
        body = report.model_dump_json().encode()
        await self.ledger.finish_many([Finish(name, 1, "completed", body, "token")])
        return body

    async def reported(self, name: str) -> tuple[bytes, str] | None:
        try:
            found = await self.client.jetstream().get_last_msg(
                subjects.REPORTS, f"reports.Other.{name}.1"
            )
        except NotFoundError:
            return None
        return found.data or b"", (found.headers or {}).get(subjects.USER_HEADER, "")

    async def queued(self) -> list[str]:
        """Return the message id of everything in TASKS, in order of its arrival."""
        state = (await ask_jetstream(self.client, f"STREAM.INFO.{subjects.TASKS}"))[
            "state"
        ]
        found: list[str] = []
        sequence = 1
        while len(found) < state["messages"]:
            # The next one from there on: others were deleted.
            message = await self.client.jetstream().get_msg(
                subjects.TASKS, sequence, next=True, subject=">"
            )
            assert message.headers is not None
            assert message.seq is not None
            found.append(message.headers[subjects.MESSAGE_ID_HEADER])
            sequence = message.seq + 1
        return found

    async def until_queued(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while True:
                info = await ask_or_none(self.client, f"STREAM.INFO.{subjects.TASKS}")
                if info is not None and info["state"]["messages"] >= count:
                    return
                await asyncio.sleep(0.02)


def an_assignment(task_id: str) -> TaskAssignment:
    """Return a task of its own."""
    return TaskAssignment(
        task_id=task_id,
        agent_id="A",
        supervisor_id="S",
        task=TaskCall(name="x", parameters={"of": task_id}),
        created_at=datetime.now(UTC),
    )


@contextlib.asynccontextmanager
async def a_scene(
    servers: EmbeddedServers, *, may_create: bool = True
) -> AsyncIterator[Scene]:
    """Open a supervisor's parts on *servers*; its streams are there."""
    listeners: list[Recovery] = []
    told = ConnectionCallbacks(
        reconnected=lambda: [one.look_soon() for one in listeners] and None
    )
    async with contextlib.AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            connected(servers.nats_url, "recovery", told)
        )
        redis = await stack.enter_async_context(valkey.connect(servers.redis_url))
        outbox = await stack.enter_async_context(open_outbox(Link(client)))

        async def heal() -> None:
            if may_create:
                await declare_streams(client, StreamSizes())

        await declare_streams(client, StreamSizes())
        ledger = Ledger(redis, deadline_s=PATIENCE_S)
        meter = Meter()
        dispatch = Dispatch(outbox, ledger)
        incarnations = StreamEpochs(redis, deadline_s=PATIENCE_S)
        recovery = Recovery(
            client,
            outbox,
            OpenTasks(redis),
            incarnations,
            tell_ledger=dispatch.tell_ledger,
            heal=heal,
            meter=meter,
        )
        listeners.append(recovery)
        yield Scene(client, ledger, dispatch, recovery, incarnations, meter)


@contextlib.asynccontextmanager
async def at_work(scene: Scene) -> AsyncIterator[None]:
    """Let the recovery of *scene* listen and look while the block runs, which begins after its first look."""
    await scene.recovery.listen()
    running = asyncio.create_task(scene.recovery.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            while await scene.incarnations.known(subjects.REPORTS) is None:  # noqa: ASYNC110 - a store tells nobody
                await asyncio.sleep(0.02)
        yield
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running


async def delete(scene: Scene, stream: str = subjects.TASKS) -> None:
    """Delete *stream*, as an operator does with the nats command."""
    await ask_jetstream(scene.client, f"STREAM.DELETE.{stream}")


@pytest.mark.parametrize("layout", ["1", "prepared", "2"])
async def test_accepted_tasks_without_a_report_come_back_once(
    own_servers: EmbeddedServers, layout: Layout
) -> None:
    """Where all is in layout 2 the list of open runs names them, beside some that have ended."""
    async with valkey.connect(own_servers.redis_url) as client:
        await set_layout(client, layout)
    async with a_scene(own_servers) as scene, a_scene(own_servers) as other:
        assert await scene.recovery.look() == 0
        ids = await scene.accept(200)
        await scene.finish(ids[::4])
        await delete(scene)
        await declare_streams(scene.client, StreamSizes())
        assert await scene.queued() == []
        counts = await asyncio.gather(scene.recovery.look(), other.recovery.look())
        wanted = {f"{task_id}:1" for number, task_id in enumerate(ids) if number % 4}
        queued = await scene.queued()
        assert (set(queued), len(queued)) == (wanted, 150)
        assert set(counts) <= {0, 150}
        assert await scene.recovery.look() == 0
        assert await other.recovery.look() == 0
        assert len(await scene.queued()) == 150
        assert scene.meter.lost + other.meter.lost == sum(
            1 for count in counts if count
        )
        assert scene.meter.republished + other.meter.republished == sum(counts)


async def test_a_task_comes_back_as_it_was_published(
    own_servers: EmbeddedServers,
) -> None:
    async with a_scene(own_servers) as scene:
        with tracing.within(made_context(7, 8, 1, "vendor=1")):
            [task_id] = await scene.accept(1)
        await scene.ledger.begin(task_id, 1, "w1", 1, 1)
        before = await scene.client.jetstream().get_msg(subjects.TASKS, 1)
        await delete(scene)
        assert await scene.recovery.look() == 1
        after = await scene.client.jetstream().get_msg(subjects.TASKS, 1)
    assert (after.subject, after.data, after.headers) == (
        before.subject,
        before.data,
        before.headers,
    )
    assert read_context(after.headers) == made_context(7, 8, 1, "vendor=1")


@pytest.mark.parametrize("may_create", [True, False])
async def test_a_deleted_stream_is_filled_as_soon_as_the_server_tells(
    own_servers: EmbeddedServers, may_create: bool
) -> None:
    """Made by the supervisor itself, or by others where it may not create streams."""
    async with a_scene(own_servers, may_create=may_create) as scene, at_work(scene):
        await scene.accept(20)
        await delete(scene)
        if not may_create:
            assert (
                await ask_or_none(scene.client, f"STREAM.INFO.{subjects.TASKS}") is None
            )
            await declare_streams(scene.client, StreamSizes())
        await scene.until_queued(20)
        assert len(await scene.queued()) == 20


async def test_a_server_that_lost_its_data_is_filled_and_one_that_restarts_on_it_is_not(
    own_servers: EmbeddedServers,
) -> None:
    """The ledger is not lost; a stream that was not is as old as before, to the nanosecond."""
    async with a_scene(own_servers) as scene, at_work(scene):
        ids = await scene.accept(20)
        await scene.finish(ids[:5])
        own_servers.nats.kill()
        shutil.rmtree(own_servers.nats.data_dir / "jetstream")
        await own_servers.nats.start()
        await scene.until_queued(15)
        assert set(await scene.queued()) == {f"{task_id}:1" for task_id in ids[5:]}
        before = await ask_jetstream(scene.client, f"STREAM.INFO.{subjects.TASKS}")
        await scene.recovery.look()
    await own_servers.nats.stop()
    await own_servers.nats.start()
    async with a_scene(own_servers) as scene:
        assert (await ask_jetstream(scene.client, f"STREAM.INFO.{subjects.TASKS}"))[
            "created"
        ] == before["created"]
        assert await scene.recovery.look() == 0
        assert len(await scene.queued()) == 15
    assert scene.meter.lost == 0


async def test_tasks_of_a_lost_stream_of_schedules_come_back(
    own_servers: EmbeddedServers,
) -> None:
    async with a_scene(own_servers) as scene:
        await scene.recovery.look()
        ids = await scene.accept(3)
        # Taken out of TASKS, run, and put into LATER.
        await scene.ledger.begin(ids[0], 1, "w1", 1, 30_000, token="a")
        await scene.ledger.park(Ended(ids[0], 1, "a"), 60_000)
        await scene.client.jetstream().delete_msg(
            subjects.TASKS, (await scene.queued()).index(f"{ids[0]}:1") + 1
        )
        await delete(scene, subjects.LATER)
        assert await scene.recovery.look() == 1
        assert sorted(await scene.queued()) == ["t0:1:a2", "t1:1", "t2:1"]
    assert (scene.meter.lost, scene.meter.republished) == (1, 1)


@pytest.mark.parametrize("stream", [subjects.REPORTS, subjects.TASKS])
async def test_reports_of_the_last_hour_are_published_again_from_the_ledger(
    own_servers: EmbeddedServers, stream: str
) -> None:
    async with a_scene(own_servers) as scene:
        await scene.recovery.look()
        await scene.accept(1)
        fresh = [
            await scene.report(f"fresh-{number}", minutes_ago=number % 59)
            for number in range(40)
        ]
        await scene.report("old", minutes_ago=61)
        await delete(scene, stream)
        assert await scene.recovery.look() == (1 if stream == subjects.TASKS else 0)
        for number, body in enumerate(fresh):
            assert await scene.reported(f"fresh-{number}") == (body, "token")
        assert await scene.reported("old") is None
        assert await scene.recovery.look() == 0


async def test_without_the_ledger_recovery_waits_for_it(
    own_servers: EmbeddedServers,
) -> None:
    async with a_scene(own_servers) as scene, at_work(scene):
        await scene.accept(20)
        await own_servers.valkey.stop()
        await delete(scene)
        async with asyncio.timeout(PATIENCE_S):
            while (  # noqa: ASYNC110 - no event
                await ask_or_none(scene.client, f"STREAM.INFO.{subjects.TASKS}") is None
            ):
                await asyncio.sleep(0.02)
        assert await scene.queued() == []
        await own_servers.valkey.start()
        await scene.until_queued(20)
        assert len(await scene.queued()) == 20


async def test_the_server_tells_an_ordinary_connection_of_each_stream(
    own_servers: EmbeddedServers,
) -> None:
    async with connected(own_servers.nats_url, "listener") as client:
        heard: asyncio.Queue[tuple[str, str]] = asyncio.Queue()
        streams = (subjects.TASKS, subjects.LATER)

        async def hear(message: Msg) -> None:
            notice = json.loads(message.data)
            heard.put_nowait((notice["stream"], notice["action"]))

        for stream in streams:
            await client.subscribe(subjects.stream_notices(stream), cb=hear)
        await client.flush()
        await declare_streams(client, StreamSizes())
        for stream in streams:
            await ask_jetstream(client, f"STREAM.DELETE.{stream}")
        async with asyncio.timeout(PATIENCE_S):
            notices = {await heard.get() for _ in range(4)}
        assert notices == {
            (stream, action) for stream in streams for action in ("create", "delete")
        }
