"""The output of tasks on real servers: order, batches, resuming at any place and any supervisor, bounded memory."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.messages import (
    CompletionReport,
    EmittedValue,
    MemoryNote,
    TaskOutput,
)
from tasklore.runtime.messaging import output as output_readers
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.messaging.jetstream import ask_jetstream
from tasklore.runtime.messaging.link import Link
from tasklore.runtime.messaging.outbox import Outbox, open_outbox
from tasklore.runtime.messaging.output import (
    EmittedEvents,
    Item,
    OutputFollower,
    OutputGap,
    OutputPosition,
    OutputReader,
    OutputRestart,
    open_output,
)
from tasklore.runtime.messaging.streams import StreamSizes, declare_streams
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.workers.context import output as task_output
from tasklore.workers.context.output import MOST_WAITING, TaskOutputWriter
from tests.http_client import Connection, ask
from tests.integration.http_stand import SUPERVISOR, Stand, assigned, http_stand
from tests.servers import PATIENCE_S


@asynccontextmanager
async def reading(servers: EmbeddedServers) -> AsyncIterator[OutputFollower]:
    """Open the output of tasks on a connection of its own."""
    async with (
        connected(servers.nats_url, "reader") as client,
        open_output(Link(client)) as desk,
    ):
        yield desk


@asynccontextmanager
async def worker(servers: EmbeddedServers) -> AsyncIterator[Outbox]:
    """Open the outbox of a worker on streams that are declared.

    Nothing is left in them of earlier tests: a task of the same name there would have run already.
    """
    async with connected(servers.nats_url, "test-output") as client:
        await declare_streams(client, StreamSizes())
        for stream in (subjects.OUTPUT, subjects.REPORTS):
            await client.jetstream().purge_stream(stream)
        async with open_outbox(Link(client)) as outbox:
            yield outbox


class Patient(TaskOutputWriter):
    """Notes of each wait for room whether it brought some."""

    def __init__(self, **more: Any) -> None:
        super().__init__(**more)
        self.waits: list[bool] = []

    async def _wait_for_room(self, size: int) -> None:
        await super()._wait_for_room(size)
        self.waits.append(self._size + size <= MOST_WAITING)


async def settled(output: TaskOutputWriter) -> None:
    """Return once the server's word on all that was emitted is there."""
    async with asyncio.timeout(PATIENCE_S):
        while output._size:  # noqa: ASYNC110 - a server is asked
            await asyncio.sleep(0.01)


def writer(outbox: Outbox, task_id: str, attempt: int = 1) -> Patient:
    return Patient(
        send=outbox.send,
        supervisor_id=SUPERVISOR,
        task_id=task_id,
        generation=1,
        attempt=attempt,
    )


async def read_all(reader: OutputReader, *, until: Any) -> list[Item]:
    """Return items until *until* says of one that it is the last."""
    found: list[Item] = []
    async with asyncio.timeout(PATIENCE_S):
        while True:
            for item in await reader.read():
                found.append(item)
                if until(item):
                    return found
            await reader.wait(0.2)


def text_of(items: list[Item]) -> str:
    return "".join(
        str(event)
        for item in items
        if isinstance(item, EmittedEvents)
        for event in item.events
    )


async def test_the_first_event_goes_out_at_once_and_later_ones_in_batches(
    servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What comes within the time between two batches is one message; the first is one of its own, read before them."""
    monkeypatch.setattr(task_output, "WINDOW_S", PATIENCE_S)
    async with worker(servers) as outbox, reading(servers) as desk:
        output = writer(outbox, "batched")
        await output.emit("0 ")
        async with desk.follow("batched") as reader:
            found = await read_all(reader, until=lambda item: item.at.sequence == 1)
            for number in range(1, 100):
                await output.emit(f"{number} ")
            await output.close()
            found += await read_all(reader, until=lambda item: item.at.sequence == 100)
    assert text_of(found) == "".join(f"{number} " for number in range(100))
    assert isinstance(found[0], EmittedEvents)
    assert found[0].events == ("0 ",)
    assert len(found) == 2
    assert reader.has_ended


async def test_a_reader_resumes_after_any_event_with_exactly_the_rest(
    servers: EmbeddedServers,
) -> None:
    """Whether it comes while the task emits, or later."""
    words = [f"word{number}é " for number in range(120)]
    async with worker(servers) as outbox, reading(servers) as desk:
        output = writer(outbox, "resumed")

        async def emit() -> None:
            for word in words:
                await output.emit(word)
                await asyncio.sleep(0.005)
            await output.close()

        async def read_on(after: int) -> str:
            async with desk.follow("resumed", OutputPosition(1, 1, after)) as reader:
                return text_of(
                    await read_all(
                        reader, until=lambda item: item.at.sequence == len(words)
                    )
                )

        emitting = asyncio.create_task(emit())
        await asyncio.sleep(0.1)
        live = await asyncio.gather(*(read_on(after) for after in range(1, 120, 7)))
        await emitting
        assert live == ["".join(words[after:]) for after in range(1, 120, 7)]
        assert await read_on(119) == words[119]


async def test_a_new_attempt_is_announced_and_an_old_one_no_longer_read(
    servers: EmbeddedServers,
) -> None:
    """Even when the earlier worker goes on, or another one runs the same attempt."""
    async with (
        worker(servers) as outbox,
        reading(servers) as desk,
        desk.follow("again") as reader,
    ):
        first = writer(outbox, "again")
        second = writer(outbox, "again", 2)
        copy = writer(outbox, "again", 2)
        await first.emit("half ")
        assert text_of(await read_all(reader, until=lambda _: True)) == "half "
        await second.emit("a whole ")
        await settled(second)
        await first.emit("zombie")
        await copy.emit("another ")
        await first.close()
        await copy.close()
        await second.emit("answer")
        await second.close()
        found = await read_all(reader, until=lambda item: item.at == (1, 2, 2))
        assert isinstance(found[0], OutputRestart)
        assert text_of(found) == "a whole answer"
        async with desk.follow("again", OutputPosition(1, 1, 1)) as late:
            resumed = await read_all(late, until=lambda item: item.at == (1, 2, 2))
        assert isinstance(resumed[0], OutputRestart)
        assert text_of(resumed) == "a whole answer"


@pytest.mark.parametrize("seen", [0, 1, 3])
async def test_a_run_that_was_replaced_and_reports_first_is_shown_in_place_of_the_other(
    seen: int, servers: EmbeddedServers
) -> None:
    """However much a reader has of the run that replaced it, the text before its report is that of the report."""
    async with worker(servers) as outbox, reading(servers) as desk:
        task_id = f"replaced-{seen}"
        first = writer(outbox, task_id)
        await first.emit("from the first")
        await first.close()
        second = writer(outbox, task_id, attempt=2)
        for word in ("from ", "the ", "second"):
            await second.emit(word)
        await second.close()
        async with desk.follow(task_id) as reader:
            before: list[Item] = []
            if seen:
                before = await read_all(
                    reader, until=lambda item: item.at[1:] >= (2, seen)
                )
            rest = [item async for items in reader.read_rest(1) for item in items]
    restarts = [
        item.at.attempt for item in before + rest if isinstance(item, OutputRestart)
    ]
    assert restarts == ([2, 1] if seen else [])
    assert text_of(rest) == "from the first"
    assert not [item for item in rest if isinstance(item, OutputGap)]


async def test_what_cannot_be_sent_is_left_out_and_shows_as_a_gap(
    servers: EmbeddedServers,
) -> None:
    """The task goes on; the reader learns which numbers are missing."""
    async with (
        worker(servers) as outbox,
        reading(servers) as desk,
        desk.follow("gap") as reader,
    ):
        output = writer(outbox, "gap")
        await output.emit("before")
        await output.emit("x" * 300_000, kind="picture")
        loop: list[Any] = []
        loop.append(loop)
        await output.emit(loop)
        await output.emit(
            {"tool": "search", "nan": float("nan"), "odd": object}, kind="tool_call"
        )
        await output.emit("\ud800after")
        await output.close()
        found = await read_all(reader, until=lambda item: item.at.sequence == 5)
    assert [type(item) for item in found] == [EmittedEvents, OutputGap, EmittedEvents]
    assert found[1] == OutputGap(OutputPosition(1, 1, 3), 2)
    assert isinstance(found[2], EmittedEvents)
    value, after = found[2].events
    assert isinstance(value, EmittedValue)
    assert value.kind == "tool_call"
    assert after == "?after"


async def test_a_server_that_is_away_costs_a_task_little_and_no_memory(
    own_servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Emits wait for room once, then events are left out; what was stored is read without a doubt."""
    monkeypatch.setattr(task_output, "ROOM_S", 0.5)
    async with worker(own_servers) as outbox:
        output = writer(outbox, "away")
        await output.emit("begun ")
        await settled(output)
        await own_servers.nats.stop()
        for _ in range(100):
            await output.emit("x" * 16_000)
        assert output.waits == [False]
        assert output._size <= MOST_WAITING
        await own_servers.nats.start()
        await output.emit("ended")
        await settled(output)
        await output.emit("really")
        await output.close()
        async with reading(own_servers) as desk, desk.follow("away") as reader:
            found = await read_all(reader, until=lambda item: item.at.sequence == 103)
    assert [type(item) for item in found if not isinstance(item, EmittedEvents)] == [
        OutputGap
    ]
    assert text_of(found).startswith("begun xxx")
    assert text_of(found).endswith("really")


async def test_a_reader_that_does_not_read_keeps_a_bounded_part_and_misses_nothing(
    servers: EmbeddedServers,
) -> None:
    """It reads from the stream what it did not keep."""
    async with (
        worker(servers) as outbox,
        reading(servers) as desk,
        desk.follow("slow") as reader,
    ):
        output = writer(outbox, "slow")
        for number in range(200):
            await output.emit(f"{number:05}" * 3000)
        await output.close()
        assert reader._live_bytes < 300_000
        found = await read_all(reader, until=lambda item: item.at.sequence == 200)
    assert text_of(found) == "".join(f"{number:05}" * 3000 for number in range(200))


async def test_a_lost_live_message_is_read_from_the_stream(
    servers: EmbeddedServers,
) -> None:
    """A message that was heard before it is stored, or without the one before it, is no reason to skip."""
    async with (
        worker(servers) as outbox,
        connected(servers.nats_url, "reader") as client,
    ):
        link = Link(client)
        async with open_output(link) as desk, desk.follow("lost") as reader:
            assert await reader.read() == []
            subject = subjects.output(SUPERVISOR, "lost", 1, 1)
            parts = [
                TaskOutput(run="r", first=number, events=(f"{number} ",))
                for number in (1, 2, 3)
            ]
            live = subjects.output_on("lost")
            await desk._live.leave([live], reader.hear)
            await outbox.put(subject, parts[0].model_dump_json().encode(), "lost-1")
            await outbox.put(subject, parts[1].model_dump_json().encode(), "lost-2")
            await desk._live.listen(live, reader.hear)
            await client.flush()
            await outbox.put(subject, parts[2].model_dump_json().encode(), "lost-3")
            found = await read_all(reader, until=lambda item: item.at.sequence == 3)
    assert text_of(found) == "1 2 3 "


async def test_a_lost_last_message_is_found_by_a_reader_that_reads_for_other_reasons(
    servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often it reads without news: the stream is looked into all the same."""
    monkeypatch.setattr(output_readers, "LOOK_S", 1.0)
    async with (
        worker(servers) as outbox,
        reading(servers) as desk,
        desk.follow("lost-last") as reader,
    ):
        assert await reader.read() == []
        await desk._live.leave([subjects.output_on("lost-last")], reader.hear)
        await writer(outbox, "lost-last").emit("there")
        found = await read_all(reader, until=lambda _: True)
    assert text_of(found) == "there"


async def events_on(
    url: str, task_id: str, after: str | None = None
) -> list[tuple[str, str, Any]]:
    """Return id, kind and data of each event of a task, after the one with id *after*."""
    async with Connection(url) as connection:
        headers = {"Last-Event-ID": after} if after else {}
        connection.send("GET", f"/v1/tasks/{task_id}/output", headers=headers)
        assert (await connection.head())[0] == 200
        return [event async for event in connection.events()]


async def report_of(
    stand: Stand, outbox: Outbox, task_id: str, attempt: int = 1
) -> None:
    report = CompletionReport(
        task_id=task_id,
        agent_id="EchoAgent",
        supervisor_id=SUPERVISOR,
        task_name="echo",
        status="completed",
        result={"said": "hi"},
        memory=MemoryNote(outcome="off"),
        attempt=attempt,
        worker_id="w",
        finished_at="2026-01-01T00:00:00Z",  # type: ignore[arg-type]  # read as every message is
    )
    body = report.model_dump_json().encode()
    await stand.parts.ledger.finish(task_id, 1, "completed", body)
    await outbox.put(
        subjects.report(SUPERVISOR, task_id, 1), body, f"{task_id}:1:report"
    )


async def test_events_over_http_resume_at_another_supervisor_byte_for_byte(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """From any place, and with the report at the end; after that there is nothing more."""
    rng = random.Random(7)
    words = [f"{number}ß " for number in range(200)]
    async with (
        http_stand(servers, redis) as one,
        http_stand(servers, redis) as two,
        worker(servers) as outbox,
    ):
        await one.parts.dispatch.assign(assigned("http"))
        output = writer(outbox, "http")

        async def read_with_breaks() -> tuple[str, Any]:
            text = ""
            last = None
            while True:
                stand = rng.choice((one, two))
                most = rng.randrange(1, 20)
                async with Connection(stand.url) as connection:
                    connection.send(
                        "GET",
                        "/v1/tasks/http/output",
                        headers={"Last-Event-ID": last} if last else {},
                    )
                    assert (await connection.head())[0] == 200
                    async for name, kind, data in connection.events():
                        if kind == "done":
                            return text, (name, data)
                        assert kind == "text"
                        last = name
                        text = text + data["text"]
                        most = most - 1
                        if not most:
                            break

        readers = [asyncio.create_task(read_with_breaks()) for _ in range(10)]
        for word in words:
            await output.emit(word)
            await asyncio.sleep(0.003)
        await output.close()
        await report_of(one, outbox, "http")
        for text, (name, done) in await asyncio.gather(*readers):
            assert text == "".join(words)
            assert name == "1.1.end"
            assert done["report"]["result"] == {"said": "hi"}
        path = "/v1/tasks/http/output"
        assert (
            await ask(two.url, "GET", path, headers={"Last-Event-ID": "1.1.end"})
        ).status == 204
        assert (
            await ask(two.url, "GET", path, headers={"Last-Event-ID": "7"})
        ).status == 422
        assert (await ask(two.url, "GET", "/v1/tasks/no-such/output")).status == 404


async def test_output_that_is_no_longer_stored_is_said_to_be_gone(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """The report follows, as it does for a task that emitted nothing."""
    async with http_stand(servers, redis) as stand, worker(servers) as outbox:
        for name in ("old", "silent"):
            await stand.parts.dispatch.assign(assigned(name))
            await report_of(stand, outbox, name)
        old = await events_on(stand.url, "old", "1.1.57")
        assert [kind for _, kind, _ in old] == ["expired", "done"]
        assert "/v1/tasks/old" in old[0][2]["detail"]
        assert [kind for _, kind, _ in await events_on(stand.url, "silent")] == ["done"]


async def test_an_end_that_was_not_stored_is_a_gap(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """A reader with a report knows that it does not have everything."""
    async with http_stand(servers, redis) as stand, worker(servers) as outbox:
        await stand.parts.dispatch.assign(assigned("cut"))
        await writer(outbox, "cut").emit("begun")
        await report_of(stand, outbox, "cut")
        found = await events_on(stand.url, "cut")
    assert [(kind, data.get("text")) for _, kind, data in found[:2]] == [
        ("text", "begun"),
        ("gap", None),
    ]
    assert found[1][2] == {"first": 2, "last": None}
    assert found[2][1] == "done"


async def test_a_stream_that_is_gone_costs_a_client_its_output_and_not_the_report(
    own_servers: EmbeddedServers,
) -> None:
    """Where no process may make it anew, too."""
    async with (
        Redis.from_url(own_servers.redis_url) as redis,
        http_stand(own_servers, redis) as stand,
    ):
        async with worker(own_servers) as outbox:
            await stand.parts.dispatch.assign(assigned("gone"))
            await report_of(stand, outbox, "gone")
        await ask_jetstream(stand.parts.client, f"STREAM.DELETE.{subjects.OUTPUT}")
        assert [kind for _, kind, _ in await events_on(stand.url, "gone")] == [
            "gap",
            "done",
        ]


@pytest.mark.parametrize("refuses", [False, True], ids=["drops the oldest", "refuses"])
async def test_a_full_stream_costs_a_client_output_and_not_the_report(
    own_servers: EmbeddedServers, monkeypatch: pytest.MonkeyPatch, *, refuses: bool
) -> None:
    """The run waits for no room, and a client learns that words are missing; one that was there hears more."""
    for patience in ("ROOM_S", "FLUSH_S"):
        monkeypatch.setattr(task_output, patience, PATIENCE_S)
    async with (
        Redis.from_url(own_servers.redis_url) as redis,
        http_stand(own_servers, redis) as stand,
    ):
        async with worker(own_servers) as outbox:
            for name in ("full", "late"):
                await stand.parts.dispatch.assign(assigned(name))
            output = writer(outbox, "full")
            late = writer(outbox, "late")
            await late.emit("begun")
            await settled(late)
            config = (
                await ask_jetstream(
                    stand.parts.client, f"STREAM.INFO.{subjects.OUTPUT}"
                )
            )["config"]
            small = (
                {"max_bytes": 200_000}
                if not refuses
                else {"max_bytes": 1_000, "discard": "new"}
            )
            await ask_jetstream(
                stand.parts.client,
                f"STREAM.UPDATE.{subjects.OUTPUT}",
                {**config, **small},
            )
            live = asyncio.create_task(events_on(stand.url, "late"))
            for _ in range(40):
                await output.emit("x" * 16_000)
                await late.emit("y" * 100)
            await output.close()
            await late.close()
            await report_of(stand, outbox, "full")
            await report_of(stand, outbox, "late")
        full = await events_on(stand.url, "full")
        cut = await events_on(stand.url, "late", "1.1.1")
        heard = await live
    assert all(output.waits + late.waits)
    assert output._size == late._size == 0
    assert [events[-1][1] for events in (full, cut, heard)] == ["done"] * 3
    assert heard[0][1:] == ("text", {"text": "begun"})
    assert "gap" in [kind for _, kind, _ in (cut if refuses else full)]
