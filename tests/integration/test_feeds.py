"""The feed of a task on real servers: what stands beside its output, and where a client goes on that was cut off."""

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.admission.waits import RunWait, Wait, WaitAnswer
from tasklore.contracts.identifiers import TaskName
from tasklore.contracts.messages import Progress
from tasklore.memory import keys
from tasklore.memory.ledger.expired import REPORT_EXPIRED
from tasklore.memory.ledger.ledger import LedgerEntry
from tasklore.memory.ledger.runs import Ended, RunPermission
from tasklore.memory.ledger.waits import Waits
from tasklore.runtime.messaging.outbox import Outbox
from tasklore.runtime.messaging.output import (
    Item,
    OutputGap,
    OutputPosition,
    OutputRestart,
)
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.feed.events import (
    FROM_START,
    BeganWaiting,
    Done,
    FeedPosition,
    PersonQuestion,
    Restarted,
    TextEmission,
)
from tasklore.supervisor.feed.runs import RunPosition
from tasklore.supervisor.feed.signs import TaskSigns
from tasklore.workers.context.output import TaskOutputWriter
from tests.http_client import Connection, ask
from tests.integration.http_stand import SUPERVISOR, Stand, assigned, http_stand
from tests.integration.test_task_output import (
    events_on,
    read_all,
    reading,
    report_of,
    settled,
    text_of,
    worker,
)
from tests.ledger_layouts import set_layout
from tests.servers import PATIENCE_S

Heard = list[tuple[str, str, Any]]


def a_writer(outbox: Outbox, task_id: str, **run: Any) -> TaskOutputWriter:
    return TaskOutputWriter(
        send=outbox.send,
        supervisor_id=SUPERVISOR,
        task_id=task_id,
        generation=1,
        **{"attempt": 1, **run},
    )


async def emit(output: TaskOutputWriter, *words: str) -> int:
    """Emit *words* as a run that ends then, and return where the next one of the attempt counts on."""
    for word in words:
        await output.emit(word)
        await settled(output)
    await output.close()
    return output.numbered + 1


def a_question(slot: str, asked_at: datetime, text: str = "Pay?") -> Wait:
    return Wait(
        kind="ask",
        slot=slot,
        digest=slot * 32,
        agent_id="EchoAgent",
        task_name="echo",
        generation=1,
        text=text,
        who="role:finance",
        asked_at=asked_at,
        until=asked_at + timedelta(days=1),
    )


async def park(stand: Stand, redis: Redis, task_id: str, *asked: Wait) -> None:
    """Let a run of the task begin, and end in the questions *asked*."""
    begun = await stand.parts.ledger.begin(
        task_id, 1, "w", now_ms=1, lease_ms=30_000, token="run"
    )
    assert isinstance(begun, RunPermission)
    waits = Waits(redis, deadline_s=PATIENCE_S)
    ended = Ended(task_id, 1, "run")
    await waits.begin(ended, asked, wait_s=86_400, due_s=0, assignment=b"{}")


async def listen(
    stand: Stand, path: str, until: str, after: str | None = None
) -> Heard:
    """Return the events on *path* behind *after*, up to one of the kind *until*."""
    found: Heard = []
    async with Connection(stand.url) as connection, asyncio.timeout(PATIENCE_S):
        headers = {"Last-Event-ID": after} if after is not None else {}
        connection.send("GET", path, headers=headers)
        assert (await connection.head())[0] == 200
        async for event in connection.events():
            if event[1] != ":":
                found.append(event)
            if event[1] == until:
                break
    return found


async def test_a_question_is_an_event_once_at_whichever_supervisor_a_client_comes_back(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """Also one of two of a millisecond, and one that another worker asked by a clock that is behind."""
    now = datetime.now(UTC)
    path = "/v1/tasks/asking/output"
    async with (
        http_stand(servers, redis) as one,
        http_stand(servers, redis) as two,
        worker(servers) as outbox,
    ):
        await one.parts.dispatch.assign(assigned("asking"))
        await emit(a_writer(outbox, "asking"), "before")
        first = (a_question("1", now, "Pay?"), a_question("3", now, "Ship?"))
        await park(one, redis, "asking", *first)
        told = await listen(one, path, "question")
        assert [kind for _, kind, _ in told] == ["text", "question"]
        rest = await listen(two, path, "question", after=told[1][0])
        assert [data["question"] for _, _, data in rest] == ["Ship?"]
        both = await listen(two, path, "question", after=told[0][0])
        assert both == told[1:]

        last = await following(one, path, told[0][0], 2)
        assert [data["question"] for _, _, data in last] == ["Pay?", "Ship?"]
        later = a_question("7", now - timedelta(seconds=30), "Sure?")
        await park(one, redis, "asking", *first[1:], later)
        resumed = await listen(two, path, "question", after=last[1][0])
        assert [data["question"] for _, _, data in resumed] == ["Sure?"]
        await report_of(one, outbox, "asking")
        ended = await listen(two, path, "done", after=resumed[0][0])
    assert [kind for _, kind, _ in ended] == ["done"]
    question = told[1][2]
    assert (question["id"], question["who"]) == ("asking.1", ["role:finance"])
    assert question.keys().isdisjoint({"answer", "state", "refused"})


async def following(stand: Stand, path: str, after: str, number: int) -> Heard:
    """Return the next *number* events on *path*."""
    found: Heard = []
    async with Connection(stand.url) as connection, asyncio.timeout(PATIENCE_S):
        connection.send("GET", path, headers={"Last-Event-ID": after})
        assert (await connection.head())[0] == 200
        async for event in connection.events():
            if event[1] != ":":
                found.append(event)
            if len(found) == number:
                break
    return found


async def test_why_a_task_waits_is_an_event_of_it_and_of_its_request(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """Once for the whole wait, however often runs found the same, and to a client that comes back not again."""
    since = datetime.now(UTC).replace(microsecond=0)
    wait = RunWait(
        kind="limit",
        name="day",
        text="the budget of the day",
        since=since,
        until=since + timedelta(hours=1),
    )
    async with http_stand(servers, redis) as stand, worker(servers) as outbox:
        stand.service.gate.clear()
        stand.service.assigns = True
        body = {"text": "hello", "wait_seconds": 0}
        key = {"Idempotency-Key": "poor"}
        await ask(stand.url, "POST", "/v1/requests", body, key)
        task_path = "/v1/tasks/r-poor/output"
        async with asyncio.timeout(PATIENCE_S):
            while await stand.parts.ledger.read("r-poor") is None:  # noqa: ASYNC110 - a server is asked
                await asyncio.sleep(0.01)
        await stand.parts.ledger.note_wait("r-poor", 1, wait)
        told = await listen(stand, task_path, "waiting")
        asked = await listen(stand, "/v1/requests/poor/events", "waiting")
        assert [kind for _, kind, _ in asked] == ["accepted", "routed", "waiting"]
        for path, events in (
            (task_path, told),
            ("/v1/requests/poor/events", asked),
        ):
            assert events[-1][2]["text"] == "the budget of the day"
            ending = asyncio.create_task(listen(stand, path, "done", events[-1][0]))
            later = wait.model_copy(update={"until": since + timedelta(hours=2)})
            await stand.parts.ledger.note_wait("r-poor", 1, later)
            await asyncio.sleep(0.5)
            stand.service.gate.set()
            if path == task_path:
                await report_of(stand, outbox, "r-poor")
            assert [kind for _, kind, _ in await ending] == ["done"]


async def test_the_progress_of_a_task_that_was_sent_by_name_is_heard(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """As the task says it; a client that was away goes on behind the output that it has."""
    async with http_stand(servers, redis) as stand, worker(servers) as outbox:
        sent = await ask(
            stand.url,
            "POST",
            "/v1/tasks",
            {"task": "echo", "parameters": {"word": "hi"}, "wait_seconds": 0},
        )
        task_id = sent.body["task_id"]
        path = f"/v1/tasks/{task_id}/output"
        listening = asyncio.create_task(listen(stand, path, "done"))
        output = a_writer(outbox, task_id)
        await output.emit("begun")
        progress = Progress(
            task_id=task_id,
            agent_id="EchoAgent",
            fraction=0.5,
            text="half",
            at=datetime.now(UTC),
        )
        subject = subjects.progress(SUPERVISOR, task_id)
        async with asyncio.timeout(PATIENCE_S):
            while not stand.parts.feeds.demand_sources().watched:  # noqa: ASYNC110
                await asyncio.sleep(0.01)
        await stand.parts.client.publish(subject, progress.model_dump_json().encode())
        await output.close()
        await asyncio.sleep(0.1)
        await report_of(stand, outbox, task_id)
        heard = await listening
    assert [kind for _, kind, _ in heard] == ["text", "progress", "done"]
    assert [name for name, _, _ in heard] == ["1.1.1", "", "1.1.end"]
    assert heard[1][2]["fraction"] == 0.5


@pytest.mark.parametrize("has_waited", [False, True])
async def test_a_new_run_says_whether_the_one_before_it_waited(
    has_waited: bool, servers: EmbeddedServers, redis: Redis
) -> None:
    name = f"again-{has_waited}"
    async with http_stand(servers, redis) as stand, worker(servers) as outbox:
        await stand.parts.dispatch.assign(assigned(name))
        await emit(a_writer(outbox, name), "half")
        listening = asyncio.create_task(
            listen(stand, f"/v1/tasks/{name}/output", "restarted")
        )
        async with asyncio.timeout(PATIENCE_S):
            while not stand.parts.life.streams:  # noqa: ASYNC110 - it has the first output before the second run
                await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        await emit(a_writer(outbox, name, attempt=2, has_waited=has_waited), "whole")
        heard = await listening
    restarted = {"generation": 1, "attempt": 2, "waited": has_waited}
    assert heard[-1] == ("1.2.0", "restarted", restarted)


async def test_a_run_that_follows_one_that_waited_for_room_is_read_from_any_place_on(
    servers: EmbeddedServers,
) -> None:
    """Both are one attempt; whoever reads the first goes on with the second, also where the first is no longer kept."""
    async with worker(servers) as outbox, reading(servers) as desk:
        before = await emit(a_writer(outbox, "room"), "a", "b", "c")
        second = a_writer(outbox, "room", has_waited=True, before=before)
        assert before == 4
        await emit(second, "d", "e")

        def is_last(item: Item) -> bool:
            return item.at == (1, 1, 6)

        async with desk.follow("room") as reader:
            whole = await read_all(reader, until=is_last)
            rest = [item async for items in reader.read_rest(1) for item in items]
        assert text_of(whole) == "abcde"
        restarts = [item for item in whole if isinstance(item, OutputRestart)]
        assert restarts == [OutputRestart(OutputPosition(1, 1, 4), has_waited=True)]
        assert rest == []
        for after in range(6):
            async with desk.follow("room", OutputPosition(1, 1, after)) as reader:
                resumed = await read_all(reader, until=is_last)
            assert text_of(resumed) == "abcde"[after if after < 4 else after - 1 :]
            assert any(isinstance(item, OutputRestart) for item in resumed) == (
                after < 4
            )
            assert not any(isinstance(item, OutputGap) for item in resumed)

        await emit(a_writer(outbox, "later", has_waited=True, before=before), "d", "e")
        for after, text in ((0, "de"), (2, "de"), (4, "de"), (5, "e")):
            async with desk.follow("later", OutputPosition(1, 1, after)) as reader:
                resumed = await read_all(reader, until=is_last)
            assert text_of(resumed) == text


async def test_a_run_that_follows_one_that_waited_is_read_to_its_end_behind_the_report(
    servers: EmbeddedServers,
) -> None:
    """Although the one before it, of the same attempt, said that nothing follows."""
    async with worker(servers) as outbox, reading(servers) as desk:
        before = await emit(a_writer(outbox, "ends"), "a")
        async with desk.follow("ends") as reader:
            await read_all(reader, until=lambda item: item.at == (1, 1, 1))
            await reader.wait(0.5)
            await reader.read()
            assert reader.has_ended
            await desk._live.leave([subjects.output_on("ends")], reader.hear)
            second = a_writer(outbox, "ends", has_waited=True, before=before)
            await emit(second, *(f"{number} " for number in range(200)))
            reader.look_soon()
            rest = [item async for items in reader.read_rest(1) for item in items]
    assert text_of(rest) == "".join(f"{number} " for number in range(200))
    assert reader.has_ended


async def test_a_feed_ends_without_an_end_where_its_task_is_no_longer_known(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """A user who is forgotten takes their tasks along; a client that comes back finds none."""
    async with http_stand(servers, redis) as stand, worker(servers):
        await stand.parts.dispatch.assign(assigned("forgotten"))
        path = "/v1/tasks/forgotten/output"
        async with Connection(stand.url) as connection, asyncio.timeout(PATIENCE_S):
            connection.send("GET", path)
            assert (await connection.head())[0] == 200
            # The feed has seen the task by then.
            await asyncio.sleep(0.5)
            await redis.delete(keys.task("forgotten"))
            kinds = [kind async for _, kind, _ in connection.events()]
        assert [kind for kind in kinds if kind != ":"] == []
        assert (await ask(stand.url, "GET", path)).status == 404


async def test_a_stream_of_a_request_ends_where_it_is_no_longer_known(
    servers: EmbeddedServers, redis: Redis
) -> None:
    async with http_stand(servers, redis) as stand:
        stand.service.gate.clear()
        body = {"text": "hello", "wait_seconds": 0}
        key = {"Idempotency-Key": "gone"}
        await ask(stand.url, "POST", "/v1/requests", body, key)
        async with Connection(stand.url) as connection, asyncio.timeout(PATIENCE_S):
            connection.send("GET", "/v1/requests/gone/events")
            assert (await connection.head())[0] == 200
            kinds = []
            async for _, kind, _ in connection.events():
                kinds.append(kind)
                if kind == "accepted":
                    async for name in redis.scan_iter("tl:request:*"):
                        await redis.delete(name)
                    async for name in redis.scan_iter("tl:requests:*"):
                        await redis.delete(name)
        assert [kind for kind in kinds if kind != ":"] == ["accepted"]
        stand.service.gate.set()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "1",
        "1.1",
        "1.1.",
        "1.1.1.",
        "-1.1.1",
        "1.1.1.1",
        "1.1.0x1",
        "1.1.end.1",
        "٣.1.1",
        "1.1.1" + "0" * 9,
        "1.1.1.0a1b2c3",
        "1.1.1.0A1B2C3D",
        "1.1.1" + ".0a1b2c3d" * 257,
        "9" * 400,
        "1.1.1\tX",
    ],
)
async def test_what_is_no_place_is_refused(
    text: str, servers: EmbeddedServers, redis: Redis
) -> None:
    async with http_stand(servers, redis) as stand:
        await stand.parts.dispatch.assign(assigned("hostile"))
        path = "/v1/tasks/hostile/output"
        headers = {"Last-Event-ID": text.encode().decode("latin-1")}
        answer = await ask(stand.url, "GET", path, headers=headers)
        assert answer.status == 422
    with pytest.raises(ValueError, match="not a position"):
        FeedPosition.parse(text)


@pytest.mark.parametrize(
    "text", ["", "1", "1.", "1.1.ends", "1.A", "a.1", "1.1-", "1.1--1", "1.1.end.1"]
)
def test_what_is_no_place_in_a_run_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not a position"):
        RunPosition.parse(text)


@pytest.mark.parametrize("text", ["1.0", "2.4-93-0.over", "7.5-5-3.end"])
def test_a_place_in_a_run_is_spelled_as_it_was_read(text: str) -> None:
    assert str(RunPosition.parse(text)) == text


@pytest.mark.parametrize(
    "after",
    ["0.0.0", "999999999.999999999.999999999", "1.1.1" + ".0a1b2c3d" * 256, "7.0.3"],
)
async def test_a_place_that_nobody_was_given_costs_no_more_than_its_client_its_events(
    after: str, servers: EmbeddedServers, redis: Redis
) -> None:
    async with http_stand(servers, redis) as stand, worker(servers) as outbox:
        await stand.parts.dispatch.assign(assigned("invented"))
        await emit(a_writer(outbox, "invented"), "word")
        await report_of(stand, outbox, "invented")
        heard = await events_on(stand.url, "invented", after)
    assert heard[-1][1] == "done"


async def test_a_slow_reader_of_a_feed_gets_all_in_order(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """A bounded part of the output waits for it; the rest it reads from the stream."""
    async with http_stand(servers, redis) as stand, worker(servers) as outbox:
        await stand.parts.dispatch.assign(assigned("slow"))
        feed = stand.parts.feeds.follow(
            "slow", FROM_START, leaving=asyncio.Event(), beat_s=PATIENCE_S
        )
        output = a_writer(outbox, "slow")
        await output.emit("0:")
        texts = []
        async for events in feed:
            texts += [event.text for event in events if isinstance(event, TextEmission)]
            assert not [event for event in events if isinstance(event, Restarted)]
            if len(texts) == 1:
                for number in range(200):
                    await output.emit(f"{number:05}" * 1000)
                await output.close()
                await report_of(stand, outbox, "slow")
    assert "".join(texts) == "0:" + "".join(
        f"{number:05}" * 1000 for number in range(200)
    )


async def test_a_question_is_told_while_another_branch_of_its_run_goes_on_emitting(
    servers: EmbeddedServers, redis: Redis
) -> None:
    async with http_stand(servers, redis) as stand, worker(servers) as outbox:
        await stand.parts.dispatch.assign(assigned("busy"))
        output = a_writer(outbox, "busy")
        listening = asyncio.create_task(
            listen(stand, "/v1/tasks/busy/output", "question")
        )
        words = 0
        while not listening.done():
            await output.emit("word ")
            await asyncio.sleep(0.1)
            words += 1
            if words == 5:
                await park(stand, redis, "busy", a_question("1", datetime.now(UTC)))
        heard = await listening
    assert heard[-1][1] == "question"


async def test_a_question_that_has_its_answer_is_not_told_to_a_client_that_comes_later(
    servers: EmbeddedServers, redis: Redis
) -> None:
    now = datetime.now(UTC)
    asked = a_question("1", now), a_question("3", now, "Ship?")
    async with http_stand(servers, redis) as stand, worker(servers):
        await stand.parts.dispatch.assign(assigned("answered"))
        await park(stand, redis, "answered", *asked)
        answer = WaitAnswer(
            value={"approved": True},
            by="ada",
            at=now,
            door="http",
            digest=asked[0].digest,
        )
        waits = stand.parts.feeds.demand_sources().waits
        assert await waits.answer("answered", "1", answer) is None
        heard = await listen(stand, "/v1/tasks/answered/output", "question")
    assert [data["question"] for _, _, data in heard] == ["Ship?"]


async def look(signs: TaskSigns) -> list[BeganWaiting | PersonQuestion]:
    """Return what the next look finds."""
    await asyncio.sleep(signs.due_in_s)
    return await signs.look(FROM_START)


async def test_a_task_that_is_sent_again_is_no_longer_cancelled(
    servers: EmbeddedServers, redis: Redis
) -> None:
    async with http_stand(servers, redis) as stand, worker(servers):
        ledger = stand.parts.ledger
        await stand.parts.dispatch.assign(assigned("again"))
        await ledger.cancel("again", 1, "no longer wanted")
        signs = TaskSigns(stand.parts.feeds.demand_sources(), asyncio.Event())
        await signs.watch(["again"], hears=False)
        await look(signs)
        found = [signs.is_cancelled]
        begun = await ledger.begin(
            "again", 2, "w", now_ms=1, lease_ms=30_000, token="run"
        )
        assert isinstance(begun, RunPermission)
        await look(signs)
        found.append(signs.is_cancelled)
        await signs.close()
    assert found == [True, False]


async def test_the_entry_of_a_task_that_goes_on_is_read_once(
    servers: EmbeddedServers, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its assignment may be large, and each of its followers looks at it every two seconds."""
    async with http_stand(servers, redis) as stand, worker(servers):
        await stand.parts.dispatch.assign(assigned("large"))
        ledger = stand.parts.ledger
        read: list[str] = []
        read_entry = ledger.read

        async def note(task_id: str) -> LedgerEntry | None:
            read.append(task_id)
            return await read_entry(task_id)

        monkeypatch.setattr(ledger, "read", note)
        signs = TaskSigns(stand.parts.feeds.demand_sources(), asyncio.Event())
        await signs.watch(["large"], hears=False)
        assert await look(signs) == []
        wait = RunWait(
            kind="limit",
            name="day",
            text="the budget of the day",
            since=datetime.now(UTC),
            until=datetime.now(UTC) + timedelta(hours=1),
        )
        await ledger.note_wait("large", 1, wait)
        assert [type(sign) for sign in await look(signs)] == [BeganWaiting]
        assert read == ["large"]
        await signs.close()


async def test_a_feed_of_a_task_whose_report_has_expired_says_so_and_ends(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """Of a ledger by agent that keeps the end of a task for longer than its report."""
    await set_layout(redis, "2")
    task = TaskName("EchoAgent", "late")
    async with http_stand(servers, redis) as stand, worker(servers) as outbox:
        await stand.parts.dispatch.assign(assigned("late"))
        await report_of(stand, outbox, "late")
        await stand.parts.client.jetstream().purge_stream(subjects.REPORTS)
        await redis.delete(keys.entry_report(keys.entry(task), 1))
        await redis.delete(keys.task_agent("late"))
        feed = stand.parts.feeds.follow(
            "late", FROM_START, leaving=asyncio.Event(), beat_s=PATIENCE_S
        )
        async with asyncio.timeout(PATIENCE_S / 2):
            events = [event async for some in feed for event in some]
    assert isinstance(events[-1], Done)
    report = events[-1].report
    assert report is not None
    assert report.error is not None
    assert report.error.type == REPORT_EXPIRED
