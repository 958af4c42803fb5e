"""Requests over HTTP: answered, waited for, repeated, found on another replica, and never lost with a client."""

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest
from redis.asyncio import Redis

from contracts import subjects
from contracts.messages import ChatTurn, CompletionReport, MemoryNote, Progress
from memory.ledger.requests import place_of
from runtime.servers.embedded import EmbeddedServers
from supervisor.http.requests import routes as requests
from tests.http_client import PATIENCE_S, Connection, ask, until
from tests.integration.http_stand import SUPERVISOR, Stand, assigned, http_stand

HELLO = {"text": "hello"}


#: Bodies that the short way cannot read, or whose words the framework reads otherwise than a reader of JSON alone.
ODD = (
    b"",
    b"nothing",
    b"[]",
    b'"hello"',
    b'{"text": ""}',
    b'{"text": 7}',
    b'{"text": "a", "more": 1}',
    b'{"text": "a", "wait_seconds": "1"}',
    b'{"text": "a", "wait_seconds": NaN}',
    b'{"text": "a", "wait_seconds": 601}',
    b'{"text": "a", "time_zone": "Nowhere"}',
    b'{"text": "\xff"}',
    b'{"text": "\\ud800"}',
    b'{"text": "a", "text": "b"}',
    b'\xef\xbb\xbf{"text": "a"}',
    '{"text": "a"}'.encode("utf-16"),
)


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    """Serve the API; the service answers at once unless its gate is shut."""
    async with http_stand(servers, redis, heartbeat_s=0.05) as found:
        found.service.gate.set()
        yield found


def report_on(task_id: str) -> CompletionReport:
    """Return the report of a task that went well."""
    return CompletionReport(
        task_id=task_id,
        agent_id="EchoAgent",
        supervisor_id=SUPERVISOR,
        task_name="echo",
        status="completed",
        result={"word": "hi"},
        memory=MemoryNote(outcome="miss"),
        worker_id="w",
        finished_at="2026-01-01T00:00:00Z",  # type: ignore[arg-type]  # read as every message is
    )


async def shown(stand: Stand, path: str, state: str) -> dict[str, object]:
    """Return what *path* shows once its state is *state*."""
    async with asyncio.timeout(PATIENCE_S):
        while True:
            answer = await ask(stand.url, "GET", path)
            if answer.body.get("state") == state:
                return dict(answer.body)
            await asyncio.sleep(0.02)


async def test_an_answer_comes_at_once_or_at_the_place_that_is_named(stand: Stand) -> None:
    answer = await ask(stand.url, "POST", "/v1/requests", HELLO)
    assert (answer.status, answer.body["state"], answer.body["reply"]["text"]) == (200, "done", "Heard: hello")
    later = await ask(stand.url, "GET", f"/v1/requests/{answer.body['request_id']}")
    assert (later.status, later.body["reply"]["text"]) == (200, "Heard: hello")

    stand.service.gate.clear()
    answer = await ask(stand.url, "POST", "/v1/requests", HELLO | {"wait_seconds": 0})
    assert (answer.status, answer.body["state"], answer.headers["retry-after"]) == (202, "accepted", "1")
    stand.service.gate.set()
    done = await shown(stand, answer.headers["location"], "done")
    assert done["reply"]["text"] == "Heard: hello"  # type: ignore[index]  # it is done


async def test_requests_with_one_key_are_answered_by_one_run(stand: Stand) -> None:
    key = {"Idempotency-Key": "once"}
    stand.service.gate.clear()
    asking = [asyncio.create_task(ask(stand.url, "POST", "/v1/requests", HELLO, key)) for _ in range(10)]
    await shown(stand, "/v1/requests/once", "accepted")
    stand.service.gate.set()
    answers = [*await asyncio.gather(*asking), await ask(stand.url, "POST", "/v1/requests", HELLO, key)]

    assert {(answer.status, answer.body["reply"]["text"]) for answer in answers} == {(200, "Heard: hello")}
    assert len(stand.service.asked) == 1
    other = await ask(stand.url, "POST", "/v1/requests", {"text": "other"}, key)
    assert (other.status, other.body["type"]) == (409, "urn:tasklore:problem:other-body")


async def test_another_replica_shows_a_request_while_it_runs_and_when_it_is_done(
    stand: Stand, servers: EmbeddedServers, redis: Redis
) -> None:
    stand.service.gate.clear()
    answer = await ask(stand.url, "POST", "/v1/requests", HELLO | {"wait_seconds": 0})
    place = answer.headers["location"]
    async with http_stand(servers, redis) as other:
        assert (await ask(other.url, "GET", place)).body["state"] == "accepted"
        stand.service.gate.set()
        done = await shown(other, place, "done")
        assert done["reply"]["text"] == "Heard: hello"  # type: ignore[index]  # it is done
        assert other.service.asked == []


async def test_a_request_whose_process_died_is_begun_again_by_the_replica_that_is_asked(
    servers: EmbeddedServers, redis: Redis
) -> None:
    asked = HELLO | {"wait_seconds": 0, "user": "ann", "time_zone": "Asia/Tokyo"}
    async with http_stand(servers, redis) as first:
        answer = await ask(first.url, "POST", "/v1/requests", asked)
        await shown(first, answer.headers["location"], "accepted")
        await until(lambda: bool(first.service.asked))
    async with http_stand(servers, redis) as second:
        second.service.gate.set()
        done = await shown(second, answer.headers["location"], "done")
        assert done["reply"]["text"] == "Heard: hello"  # type: ignore[index]  # it is done
        again = [(one.text, one.user_id, one.time_zone) for one in second.service.asked]
        assert again == [("hello", "ann", "Asia/Tokyo")]


async def test_the_latest_answer_to_a_request_counts(stand: Stand, servers: EmbeddedServers, redis: Redis) -> None:
    stand.service.gate.clear()
    await ask(stand.url, "POST", "/v1/requests", HELLO | {"wait_seconds": 0}, {"Idempotency-Key": "twice"})
    words = {"conversation_id": "twice", "request_id": "twice", "at": "2026-01-01T00:00:00Z"}
    for speaker in ("person", "assistant"):
        turn = ChatTurn.model_validate(words | {"turn_id": f"early-{speaker}", "speaker": speaker, "text": "early"})
        await stand.parts.conversations.append("twice", turn.model_dump_json().encode(), turn.turn_id)
    stand.service.gate.set()
    await shown(stand, "/v1/requests/twice", "done")
    async with http_stand(servers, redis) as other:
        seen = await ask(other.url, "GET", "/v1/requests/twice")

    assert seen.body["reply"]["text"] == "Heard: hello"


async def test_an_internal_error_is_a_500_without_details_and_may_be_retried(stand: Stand) -> None:
    key = {"Idempotency-Key": "broken"}
    stand.service.error = RuntimeError("secret")
    answer = await ask(stand.url, "POST", "/v1/requests", HELLO, key)
    assert (answer.status, "secret" in str(answer.body)) == (500, False)
    assert (await ask(stand.url, "GET", "/v1/requests/broken")).body["reply"]["kind"] == "failed"
    stand.service.error = None

    assert (await ask(stand.url, "POST", "/v1/requests", HELLO, key)).body["reply"]["text"] == "Heard: hello"


async def test_a_listener_gets_every_stage_and_a_late_one_the_end(stand: Stand) -> None:
    stand.service.gate.clear()
    stand.service.assigns = True
    await ask(stand.url, "POST", "/v1/requests", HELLO | {"wait_seconds": 0}, {"Idempotency-Key": "told"})
    path, said = "/v1/requests/told/events", Progress(task_id="r-told", agent_id="EchoAgent", at="2026-01-01T00:00:00Z")  # type: ignore[arg-type]
    subject = subjects.progress(SUPERVISOR, "r-told")
    heard = []
    async with Connection(stand.url) as listener:
        listener.send("GET", path)
        assert (await listener.head())[1]["content-type"].startswith("text/event-stream")
        async for number, name, _ in listener.events():
            heard.append((number, name))
            if name == "routed":
                for change in ({"fraction": 0.5}, {"text": "half"}):
                    await stand.parts.client.publish(subject, said.model_copy(update=change).model_dump_json().encode())
            elif name == ":" and ("3", "partial") in heard:
                stand.service.gate.set()
    stages = [one for one in heard if one[1] != ":"]
    assert stages == [("1", "accepted"), ("2", "routed"), ("3", "progress"), ("3", "partial"), ("4", "done")]

    async with Connection(stand.url) as late:
        late.send("GET", path, headers={"Last-Event-ID": "2"})
        await late.head()
        assert [name async for _, name, _ in late.events()] == ["done"]
    assert (await ask(stand.url, "GET", path, headers={"Last-Event-ID": "4"})).status == 204
    assert (await ask(stand.url, "GET", "/v1/requests/nobody/events")).status == 404


async def test_a_client_that_hangs_up_leaves_nothing_behind(stand: Stand) -> None:
    """Tasks, subscriptions, streams and connections are as many as before, and the work is done all the same."""
    stand.service.gate.clear()
    await ask(stand.url, "POST", "/v1/requests", HELLO | {"wait_seconds": 0}, {"Idempotency-Key": "left"})
    await until(lambda: (stand.parts.life.inside, stand.server.connections) == (0, 0))

    def open_things() -> tuple[int, int, int, int, int]:
        subscriptions = len(stand.parts.client._subs)
        life = stand.parts.life
        return len(asyncio.all_tasks()), subscriptions, life.streams, life.inside, stand.server.connections

    before = open_things()
    clients = [Connection(stand.url) for _ in range(40)]
    for number, client in enumerate(clients):
        await client.__aenter__()
        if number % 2:
            client.send("GET", "/v1/requests/left/events")
        else:
            client.send("POST", "/v1/requests", HELLO, {"Idempotency-Key": "left"})
    await until(lambda: (stand.parts.life.inside, stand.parts.life.streams) == (40, 20))
    for client in clients:
        await client.__aexit__(None, None, None)

    await until(lambda: open_things() == before)
    stand.service.gate.set()
    await shown(stand, "/v1/requests/left", "done")


async def test_a_report_in_the_ledger_answers_the_request(stand: Stand, servers: EmbeddedServers, redis: Redis) -> None:
    stand.service.gate.clear()
    stand.service.assigns = True
    await ask(stand.url, "POST", "/v1/requests", HELLO | {"wait_seconds": 0}, {"Idempotency-Key": "long"})
    running = await shown(stand, "/v1/requests/long", "running")
    assert (running["agent_id"], running["task_id"]) == ("EchoAgent", "r-long")
    await stand.parts.ledger.finish("r-long", 1, "completed", report_on("r-long").model_dump_json().encode())
    async with http_stand(servers, redis) as other:
        done = await shown(other, "/v1/requests/long", "done")
    assert done["reply"]["kind"] == "answer"  # type: ignore[index]  # it is done
    assert "Word: hi" in done["reply"]["text"]  # type: ignore[index]


async def test_a_task_is_sent_once_and_its_report_comes_back(stand: Stand) -> None:
    body = {"agent_id": "EchoAgent", "task": "echo", "parameters": {"text": "hi"}, "wait_seconds": 0}
    key = {"Idempotency-Key": "task-1"}
    sent = await ask(stand.url, "POST", "/v1/tasks", body, key)
    assert (sent.status, sent.body["state"]) == (202, "accepted")
    task_id, place = sent.body["task_id"], sent.headers["location"]
    await stand.parts.ledger.finish(task_id, 1, "completed", report_on(task_id).model_dump_json().encode())

    again = await ask(stand.url, "POST", "/v1/tasks", body | {"wait_seconds": 60}, key)
    assert (again.status, again.body["report"]["result"]) == (200, {"word": "hi"})
    assert (await ask(stand.url, "GET", place)).body["state"] == "done"
    assert (await ask(stand.url, "DELETE", place)).body == {"outcome": "too_late", "status": "completed"}
    assert (await ask(stand.url, "POST", "/v1/tasks", body | {"max_attempts": 1}, key)).status == 409
    assert (await stand.parts.client.jetstream().get_last_msg("TASKS", "tasks.EchoAgent.echo")).data


async def test_a_cancelled_task_is_shown_as_running_while_it_still_runs(stand: Stand) -> None:
    """One that waits, or was never sent, is cancelled: it will not run."""
    ledger = stand.parts.ledger
    for task_id in ("at-work", "in-line"):
        await ledger.accept(task_id, 1, assigned(task_id).model_dump_json().encode())
    await ledger.begin("at-work", 1, "w", 0, 60_000)
    states = []
    for task_id in ("at-work", "in-line", "never-sent"):
        await ledger.cancel(task_id, None, "changed my mind")
        found = await ask(stand.url, "GET", f"/v1/tasks/{task_id}")
        states.append(found.body["state"])
    assert states == ["running", "cancelled", "cancelled"]
    assert (found.status, found.body["report"]) == (200, None)
    assert (await ask(stand.url, "DELETE", "/v1/tasks/never-sent")).body == {"outcome": "noted", "status": None}


async def test_a_task_that_does_not_fit_its_card_is_refused_with_the_cure(stand: Stand) -> None:
    for change, status, words in (
        ({"agent_id": "EchoAgnt"}, 404, "did you mean 'EchoAgent'?"),
        ({"task": "ecco"}, 404, "did you mean 'echo'?"),
        ({"parameters": {}}, 422, "parameters.word: is needed"),
        ({"parameters": {"word": "x", "wrod": 1}}, 422, "did you mean 'word'?"),
        ({"max_attempts": 0}, 422, "max_attempts"),
    ):
        body = {"agent_id": "EchoAgent", "task": "echo", "parameters": {"word": "hi"}} | change
        answer = await ask(stand.url, "POST", "/v1/tasks", body)
        assert (answer.status, words in answer.body["detail"]) == (status, True), answer.body


async def test_a_leaving_process_answers_what_ends_within_its_grace(servers: EmbeddedServers, redis: Redis) -> None:
    """A task that does not is answered with the place where it will be."""
    async with http_stand(servers, redis, grace_s=2.0) as leaving:
        body = {"agent_id": "EchoAgent", "task": "echo", "parameters": {"word": "hi"}}
        soon, timely, never = (
            asyncio.create_task(ask(leaving.url, "POST", path, sent, {"Idempotency-Key": key}))
            for path, sent, key in (
                ("/v1/requests", HELLO, "soon"),
                ("/v1/tasks", body, "timely"),
                ("/v1/tasks", body, "never"),
            )
        )
        await until(lambda: leaving.parts.life.inside == 3 and bool(leaving.service.asked))
        draining = asyncio.create_task(leaving.server.drain(asyncio.Event()))
        await until(leaving.parts.life.draining.is_set)
        leaving.service.gate.set()
        assert (await soon).body["reply"]["text"] == "Heard: hello"
        task_id = f"t-{place_of('', 'task', 'timely')}"
        hint = subjects.report(SUPERVISOR, task_id, 1)
        await leaving.parts.client.publish(hint, report_on(task_id).model_dump_json().encode())

        assert (await timely).body["report"]["result"] == {"word": "hi"}
        assert (await never).status == 202
        await draining
        with pytest.raises(OSError):
            await ask(leaving.url, "GET", "/v1/agents")


async def test_the_fast_route_answers_like_the_framework(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    """Status and problem are the same, also where an id is odd."""
    for body, named in itertools.product(ODD, ({}, {"Idempotency-Key": "no id"})):
        answers = []
        for parse in (requests._parse, lambda _scope, _message: None):
            monkeypatch.setattr(requests, "_parse", parse)
            answer = await ask(stand.url, "POST", "/v1/requests", body, named)
            answers.append((answer.status, answer.body if answer.status >= 400 else answer.body["reply"]["text"]))
            monkeypatch.undo()
        assert answers[0] == answers[1], body
