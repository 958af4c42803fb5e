"""Requests over HTTP: answered, streamed, repeated, found on another replica, and never lost with a client."""

import asyncio
import itertools
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import openai
import pytest
import structlog
from redis.asyncio import Redis

from tasklore.contracts import subjects
from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.identifiers import TaskName
from tasklore.contracts.messages import (
    ChatTurn,
    CompletionReport,
    MemoryNote,
    PersonReply,
    PersonRequest,
    Progress,
    ReplyPart,
    TaskAssignment,
)
from tasklore.memory.command_batch import Command
from tasklore.memory.ledger.requests import (
    Reply,
    RequestRecord,
    RequestRecords,
    place_of,
)
from tasklore.memory.sessions.pipeline_records import NewRun
from tasklore.memory.sessions.pipeline_runs import PipelineRuns
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.http.requests import routes as requests
from tasklore.supervisor.replies.combined import combine
from tasklore.supervisor.requests.request import (
    Ended,
    ExtraCommands,
    ignore_part,
    part_task_id,
)
from tests.http_client import PATIENCE_S, Connection, ask, until
from tests.integration.http_stand import (
    SUPERVISOR,
    Scripted,
    Stand,
    assigned,
    http_stand,
)
from tests.ledger_layouts import finish_long_ago, set_layout
from tests.unit.supervisor.pipelines.fake_system import FakeSystem, a_chain, echo

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
    async with http_stand(servers, redis, heartbeat_s=0.05) as found:
        found.service.gate.set()
        yield found


def report_on(task_id: str) -> CompletionReport:
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
    async with asyncio.timeout(PATIENCE_S):
        while True:
            answer = await ask(stand.url, "GET", path)
            if answer.body.get("state") == state:
                return dict(answer.body)
            await asyncio.sleep(0.02)


async def test_an_answer_comes_at_once_or_at_the_place_that_is_named(
    stand: Stand,
) -> None:
    answer = await ask(stand.url, "POST", "/v1/requests", HELLO)
    assert (answer.status, answer.body["state"], answer.body["reply"]["text"]) == (
        200,
        "done",
        "Heard: hello",
    )
    later = await ask(stand.url, "GET", f"/v1/requests/{answer.body['request_id']}")
    assert (later.status, later.body["reply"]["text"]) == (200, "Heard: hello")

    stand.service.gate.clear()
    answer = await ask(stand.url, "POST", "/v1/requests", HELLO | {"wait_seconds": 0})
    assert (answer.status, answer.body["state"], answer.headers["retry-after"]) == (
        202,
        "accepted",
        "1",
    )
    stand.service.gate.set()
    done = await shown(stand, answer.headers["location"], "done")
    assert done["reply"]["text"] == "Heard: hello"  # type: ignore[index]  # it is done


async def test_requests_with_one_key_are_answered_by_one_run(stand: Stand) -> None:
    key = {"Idempotency-Key": "once"}
    stand.service.gate.clear()
    asking = [
        asyncio.create_task(ask(stand.url, "POST", "/v1/requests", HELLO, key))
        for _ in range(10)
    ]
    await shown(stand, "/v1/requests/once", "accepted")
    stand.service.gate.set()
    answers = [
        *await asyncio.gather(*asking),
        await ask(stand.url, "POST", "/v1/requests", HELLO, key),
    ]

    assert {(answer.status, answer.body["reply"]["text"]) for answer in answers} == {
        (200, "Heard: hello")
    }
    assert len(stand.service.asked) == 1
    other = await ask(stand.url, "POST", "/v1/requests", {"text": "other"}, key)
    assert (other.status, other.body["type"]) == (
        409,
        "urn:tasklore:problem:other-body",
    )


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
        assert second.service.asked[0].caller == first.service.asked[0].caller


async def test_an_internal_error_is_a_500_without_details_and_may_be_retried(
    stand: Stand,
) -> None:
    key = {"Idempotency-Key": "broken"}
    stand.service.error = RuntimeError("secret")
    answer = await ask(stand.url, "POST", "/v1/requests", HELLO, key)
    assert (answer.status, "secret" in str(answer.body)) == (500, False)
    assert (await ask(stand.url, "GET", "/v1/requests/broken")).body["reply"][
        "kind"
    ] == "failed"
    stand.service.error = None

    assert (await ask(stand.url, "POST", "/v1/requests", HELLO, key)).body["reply"][
        "text"
    ] == "Heard: hello"


async def test_a_listener_gets_every_stage_and_a_late_one_the_end(stand: Stand) -> None:
    stand.service.gate.clear()
    stand.service.assigns = True
    await ask(
        stand.url,
        "POST",
        "/v1/requests",
        HELLO | {"wait_seconds": 0},
        {"Idempotency-Key": "told"},
    )
    path = "/v1/requests/told/events"
    said = Progress(task_id="r-told", agent_id="EchoAgent", at="2026-01-01T00:00:00Z")  # type: ignore[arg-type]
    subject = subjects.progress(SUPERVISOR, "r-told")
    heard = []
    async with Connection(stand.url) as listener:
        listener.send("GET", path)
        assert (await listener.head())[1]["content-type"].startswith(
            "text/event-stream"
        )
        async for number, name, _ in listener.events():
            heard.append((number, name))
            if name == "routed":
                for change in ({"fraction": 0.5}, {"text": "half"}):
                    await stand.parts.client.publish(
                        subject,
                        said.model_copy(update=change).model_dump_json().encode(),
                    )
            elif name == ":" and ("3", "partial") in heard:
                stand.service.gate.set()
    stages = [one for one in heard if one[1] != ":"]
    assert stages == [
        ("1", "accepted"),
        ("2", "routed"),
        ("3", "progress"),
        ("3", "partial"),
        ("4", "done"),
    ]

    async with Connection(stand.url) as late:
        late.send("GET", path, headers={"Last-Event-ID": "2"})
        await late.head()
        assert [name async for _, name, _ in late.events()] == ["done"]
    assert (
        await ask(stand.url, "GET", path, headers={"Last-Event-ID": "4"})
    ).status == 204
    assert (await ask(stand.url, "GET", "/v1/requests/nobody/events")).status == 404


async def test_a_client_that_hangs_up_leaves_nothing_behind(stand: Stand) -> None:
    """Tasks, subscriptions, streams and connections are as many as before, and the work is done all the same."""
    stand.service.gate.clear()
    await ask(
        stand.url,
        "POST",
        "/v1/requests",
        HELLO | {"wait_seconds": 0},
        {"Idempotency-Key": "left"},
    )
    await until(lambda: (stand.parts.life.inside, stand.server.connections) == (0, 0))

    def open_things() -> tuple[int, int, int, int, int]:
        subscriptions = len(stand.parts.client._subs)
        life = stand.parts.life
        return (
            len(asyncio.all_tasks()),
            subscriptions,
            life.streams,
            life.inside,
            stand.server.connections,
        )

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


async def test_a_task_is_sent_once_and_its_report_comes_back(stand: Stand) -> None:
    body = {
        "agent_id": "EchoAgent",
        "task": "echo",
        "parameters": {"text": "hi"},
        "wait_seconds": 0,
    }
    key = {"Idempotency-Key": "task-1"}
    sent = await ask(stand.url, "POST", "/v1/tasks", body, key)
    assert (sent.status, sent.body["state"]) == (202, "accepted")
    task_id = sent.body["task_id"]
    place = sent.headers["location"]
    await stand.parts.ledger.finish(
        task_id, 1, "completed", report_on(task_id).model_dump_json().encode()
    )

    again = await ask(stand.url, "POST", "/v1/tasks", body | {"wait_seconds": 60}, key)
    assert (again.status, again.body["report"]["result"]) == (200, {"word": "hi"})
    assert (await ask(stand.url, "GET", place)).body["state"] == "done"
    assert (await ask(stand.url, "DELETE", place)).body == {
        "outcome": "too_late",
        "status": "completed",
    }
    assert (
        await ask(stand.url, "POST", "/v1/tasks", body | {"max_attempts": 1}, key)
    ).status == 409
    assert (
        await stand.parts.client.jetstream().get_last_msg(
            "TASKS", "tasks.EchoAgent.echo"
        )
    ).data


@pytest.mark.parametrize(
    "body",
    [
        {"agent_id": "EchoAgent", "task": "echo", "parameters": {"word": "hi"}},
        {"task": {"name": "echo", "parameters": {"word": "hi"}}},
        {
            "agent_id": "EchoAgent",
            "task": {"name": "echo"},
            "parameters": {"word": "hi"},
        },
    ],
)
async def test_a_task_is_taken_by_its_name_and_as_an_assignment_has_it(
    stand: Stand, body: dict[str, Any]
) -> None:
    """One agent alone has a task of that name, so that it need not be named."""
    sent = await ask(stand.url, "POST", "/v1/tasks", body | {"wait_seconds": 0})
    assert sent.status == 202, sent.body
    kept = await stand.parts.client.jetstream().get_last_msg(
        "TASKS", "tasks.EchoAgent.echo"
    )
    assignment = TaskAssignment.model_validate_json(kept.data or b"")
    assert (assignment.agent_id, assignment.task.name, assignment.task.parameters) == (
        "EchoAgent",
        "echo",
        {"word": "hi"},
    )


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({"task": {"name": "echo", "args": {}}}, 422, "task has args"),
        ({"task": {"parameters": {}}}, 422, "task"),
        ({"task": {"name": "echo", "parameters": {}}, "parameters": {}}, 422, "once"),
        ({"task": "ecko", "parameters": {}}, 404, "no agent has a task 'ecko'"),
    ],
)
async def test_a_task_that_is_spelled_otherwise_is_refused(
    stand: Stand, body: dict[str, Any], status: int, said: str
) -> None:
    refused = await ask(stand.url, "POST", "/v1/tasks", body)
    assert refused.status == status
    assert said in str(refused.body)


async def test_a_task_whose_report_has_expired_is_shown_with_its_end(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """In the ledger by agent the pointer to the agent has expired as well."""
    body = {"agent_id": "EchoAgent", "task": "echo", "parameters": {"word": "hi"}}
    await set_layout(redis, "2")
    async with http_stand(servers, redis) as stand:
        sent = await ask(stand.url, "POST", "/v1/tasks", body | {"wait_seconds": 0})
        task = TaskName("EchoAgent", sent.body["task_id"])
        await finish_long_ago(redis, task)
        found = (await ask(stand.url, "GET", f"/v1/tasks/{task}")).body
    assert found["state"] == "done"
    error = found["report"]["error"]
    assert error["type"] == "ReportExpired"
    assert "its report has expired" in error["message"]


async def test_a_cancelled_task_is_shown_as_running_while_it_still_runs(
    stand: Stand,
) -> None:
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
    assert (await ask(stand.url, "DELETE", "/v1/tasks/never-sent")).body == {
        "outcome": "noted",
        "status": None,
    }


async def test_a_task_that_does_not_fit_its_card_is_refused_with_the_cure(
    stand: Stand,
) -> None:
    for change, status, words in (
        ({"agent_id": "EchoAgnt"}, 404, "did you mean 'EchoAgent'?"),
        ({"task": "ecco"}, 404, "did you mean 'echo'?"),
        ({"parameters": {}}, 422, "parameters.word: is needed"),
        ({"parameters": {"word": "x", "wrod": 1}}, 422, "did you mean 'word'?"),
        ({"max_attempts": 0}, 422, "max_attempts"),
    ):
        body = {
            "agent_id": "EchoAgent",
            "task": "echo",
            "parameters": {"word": "hi"},
        } | change
        answer = await ask(stand.url, "POST", "/v1/tasks", body)
        assert (answer.status, words in answer.body["detail"]) == (status, True), (
            answer.body
        )


async def test_a_leaving_process_answers_what_ends_within_its_grace(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """A task that does not is answered with the place where it will be, once whoever ends the process has enough."""
    async with http_stand(servers, redis, grace_s=PATIENCE_S) as leaving:
        body = {"agent_id": "EchoAgent", "task": "echo", "parameters": {"word": "hi"}}
        soon, timely, never = (
            asyncio.create_task(
                ask(leaving.url, "POST", path, sent, {"Idempotency-Key": key})
            )
            for path, sent, key in (
                ("/v1/requests", HELLO, "soon"),
                ("/v1/tasks", body, "timely"),
                ("/v1/tasks", body, "never"),
            )
        )
        await until(
            lambda: leaving.parts.life.inside == 3 and bool(leaving.service.asked)
        )
        hurried = asyncio.Event()
        draining = asyncio.create_task(leaving.server.drain(hurried))
        await until(leaving.parts.life.draining.is_set)
        leaving.service.gate.set()
        assert (await soon).body["reply"]["text"] == "Heard: hello"
        task_id = f"t-{place_of('', 'task', 'timely')}"
        hint = subjects.report(SUPERVISOR, task_id, 1)
        await leaving.parts.client.publish(
            hint, report_on(task_id).model_dump_json().encode()
        )

        assert (await timely).body["report"]["result"] == {"word": "hi"}
        assert not never.done()
        hurried.set()
        assert (await never).status == 202
        await draining
        with pytest.raises(OSError):
            await ask(leaving.url, "GET", "/v1/agents")


async def test_the_grace_of_a_leaving_process_ends(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """And with it the wait for a task that does not."""
    async with http_stand(servers, redis, grace_s=0.2) as leaving:
        body = {"agent_id": "EchoAgent", "task": "echo", "parameters": {"word": "hi"}}
        never = asyncio.create_task(ask(leaving.url, "POST", "/v1/tasks", body))
        await until(lambda: leaving.parts.life.inside == 1)
        await leaving.server.drain(asyncio.Event())
        assert (await never).status == 202


async def test_the_fast_route_answers_like_the_framework(
    stand: Stand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Status and problem are the same, also where an id is odd."""
    for body, named in itertools.product(ODD, ({}, {"Idempotency-Key": "no id"})):
        answers = []
        for parse in (requests._parse, lambda _scope, _message: None):
            monkeypatch.setattr(requests, "_parse", parse)
            answer = await ask(stand.url, "POST", "/v1/requests", body, named)
            answers.append(
                (
                    answer.status,
                    answer.body
                    if answer.status >= 400
                    else answer.body["reply"]["text"],
                )
            )
            monkeypatch.undo()
        assert answers[0] == answers[1], body


TWO = {"text": "echo one and echo two", "wait_seconds": 0}
WHOLE = "1. Said one\n\n2. Said two"


class InParts(Scripted):
    """A service that makes two tasks of every request: of the first it tells at once, of the second at the gate."""

    #: Which place is answered before the gate is opened.
    first = 1

    async def answer(
        self,
        request: PersonRequest,
        *,
        routed: Callable[[TaskAssignment], None] = lambda _assignment: None,
        before: Sequence[ChatTurn] | None = None,
        ended: Ended = ignore_part,
        is_new: bool = False,
        alongside: ExtraCommands | None = None,
        among: Catalogue | None = None,
    ) -> PersonReply:
        self.asked.append(request)
        await self._keep(
            request,
            "person",
            request.text,
            alongside.words if alongside is not None else (),
        )
        whole = self.task_id_of(request)
        parts = {}
        for place, word in ((1, "one"), (2, "two")):
            task_id = part_task_id(whole, place)
            assignment = assigned(task_id, word).model_copy(update={"parent_id": whole})
            await self.dispatch.assign(assignment)
            routed(assignment)
            about = {
                "task_id": task_id,
                "agent_id": "EchoAgent",
                "report": report_on(task_id),
            }
            parts[place] = ReplyPart.model_validate(
                {"kind": "answer", "text": f"Said {word}", **about}
            )
        ended(self.first, parts[self.first])
        await self.gate.wait()
        ended(3 - self.first, parts[3 - self.first])
        named = {
            "request_id": request.request_id or "none",
            "conversation_id": request.conversation_id or "none",
        }
        return combine(list(parts.values()), **named)


@pytest.fixture
async def two_tasks(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    async with http_stand(servers, redis, heartbeat_s=0.05, scripted=InParts) as found:
        yield found


def client_of(two_tasks: Stand, **options: Any) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(
        base_url=f"{two_tasks.url}/v1", api_key="any", max_retries=0, **options
    )


async def test_each_answer_is_an_event_before_the_end(two_tasks: Stand) -> None:
    """Once, with its reply; the request shows it too, and the end has it in the reply alone."""
    await ask(two_tasks.url, "POST", "/v1/requests", TWO, {"Idempotency-Key": "both"})
    heard = []
    async with Connection(two_tasks.url) as listener, asyncio.timeout(PATIENCE_S):
        listener.send("GET", "/v1/requests/both/events")
        await listener.head()
        async for number, name, body in listener.events():
            heard.append((number, name, body))
            if name == "partial" and body["task_id"] == "r-both-1":
                first, second = (
                    await ask(two_tasks.url, "GET", "/v1/requests/both")
                ).body["parts"]
                assert (first["reply"], "reply" in second) == (body, False)
                two_tasks.service.gate.set()
    told = [one for one in heard if one[1] == "partial"]
    assert [(number, body["text"]) for number, _, body in told][:1] == [
        ("3", "Said one")
    ]
    assert len({body["task_id"] for _, _, body in told}) == len(told)
    routed, done = (
        next(body for _, name, body in heard if name == stage)
        for stage in ("routed", "done")
    )
    assert all("reply" not in part for part in routed["parts"] + done["parts"])
    assert len(done["reply"]["parts"]) == 2


async def test_another_replica_sends_the_answers_from_the_ledger(
    two_tasks: Stand, servers: EmbeddedServers, redis: Redis
) -> None:
    await ask(two_tasks.url, "POST", "/v1/requests", TWO, {"Idempotency-Key": "far"})
    await shown(two_tasks, "/v1/requests/far", "running")
    await two_tasks.parts.ledger.finish(
        "r-far-2", 1, "completed", report_on("r-far-2").model_dump_json().encode()
    )
    async with http_stand(servers, redis) as other, asyncio.timeout(PATIENCE_S):
        for last in ("0", "3"):
            async with Connection(other.url) as listener:
                listener.send(
                    "GET", "/v1/requests/far/events", headers={"Last-Event-ID": last}
                )
                await listener.head()
                told = await anext(
                    body
                    async for _, name, body in listener.events()
                    if name == "partial"
                )
            assert (told["task_id"], told["kind"], "Word: hi" in told["text"]) == (
                "r-far-2",
                "answer",
                True,
            )
    two_tasks.service.gate.set()


@pytest.mark.parametrize("first", [1, 2])
async def test_a_streamed_chat_has_the_answers_in_the_order_of_the_question(
    two_tasks: Stand, first: int
) -> None:
    assert isinstance(two_tasks.service, InParts)
    two_tasks.service.first = first
    said = ""
    async with client_of(two_tasks) as client, asyncio.timeout(PATIENCE_S):
        stream = await client.chat.completions.create(
            model="tasklore",
            messages=[{"role": "user", "content": "echo one and echo two"}],
            stream=True,
        )
        if first == 2:
            two_tasks.service.gate.set()
        async for chunk in stream:
            said += chunk.choices[0].delta.content or ""
            if said == "1. Said one":
                two_tasks.service.gate.set()
    assert said == WHOLE


async def test_the_time_zone_of_a_chat_comes_from_the_body_or_else_the_header(
    two_tasks: Stand,
) -> None:
    two_tasks.service.gate.set()
    zone = {"time_zone": "Asia/Tokyo"}
    header = {"X-Time-Zone": "Europe/Berlin"}
    asked: dict[str, Any] = {
        "model": "tasklore",
        "messages": [{"role": "user", "content": "what is tomorrow?"}],
    }
    found = []
    async with (
        client_of(two_tasks) as plain,
        client_of(two_tasks, default_headers=header) as zoned,
    ):
        for client, extra in ((plain, {}), (plain, zone), (zoned, {}), (zoned, zone)):
            await client.chat.completions.create(**asked, extra_body=extra)
            found.append(two_tasks.service.asked[-1].time_zone)
        for extra_body, headers, param in (
            ({"time_zone": "Asia/Tokio"}, {}, "time_zone"),
            ({}, {"X-Time-Zone": "../x"}, "header.X-Time-Zone"),
        ):
            with pytest.raises(
                openai.BadRequestError, match="there is no time zone"
            ) as refusal:
                await plain.chat.completions.create(
                    **asked, extra_body=extra_body, extra_headers=headers
                )
            assert refusal.value.param == param
    assert found == [None, "Asia/Tokyo", "Europe/Berlin", "Asia/Tokyo"]
    await until(lambda: two_tasks.parts.life.inside == 0)


COMPLETIONS = "/v1/chat/completions"
CHAT = {"model": "tasklore", "messages": [{"role": "user", "content": "hello"}]}
STREAMED = {**CHAT, "stream": True}


class Unanswered(Scripted):
    """A service whose two tasks are not done yet: one is at work, no worker is there for the other."""

    async def answer(self, request: PersonRequest, **_: Any) -> PersonReply:
        at_work = ReplyPart(
            kind="pending", text="EchoAgent is ...", agent_id="EchoAgent"
        )
        unserved = ReplyPart(
            kind="pending",
            text="No worker ...",
            agent_id="LetterAgent",
            waits_for="worker",
        )
        return combine([at_work, unserved], request_id="r", conversation_id="c")


async def test_who_chats_with_an_agent_without_a_worker_is_told_so(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """Of an agent that nobody runs it is not said that it still works."""
    async with http_stand(servers, redis, scripted=Unanswered) as stand:
        refused = await ask(stand.url, "POST", COMPLETIONS, CHAT)
    assert (refused.status, refused.headers["x-should-retry"]) == (504, "false")
    message = refused.body["error"]["message"]
    assert "EchoAgent is still working on it" in message
    assert "no worker of LetterAgent is running; the task waits for one" in message
    assert "LetterAgent is still" not in message


@pytest.fixture
async def slow(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    async with http_stand(servers, redis, heartbeat_s=0.05) as found:
        yield found


async def reached(is_so: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not is_so():  # noqa: ASYNC110 - nothing tells of it
            await asyncio.sleep(0.01)


async def test_clients_that_leave_early_leave_nothing_behind(slow: Stand) -> None:
    """Neither a stream, nor a request, nor a task of the event loop that waits for the answer."""
    await ask(slow.url, "GET", "/v1/models")
    before = len(asyncio.all_tasks())
    async with Connection(slow.url) as whole, Connection(slow.url) as connection:
        whole.send("POST", COMPLETIONS, CHAT)
        await reached(lambda: slow.parts.life.inside == 1)
        connection.send("POST", COMPLETIONS, STREAMED)
        await connection.head()
        events = connection.events()
        _, _, first = await anext(events)
        assert first["choices"][0]["delta"]["role"] == "assistant"
        # A sign of life is no part of the answer.
        assert (await anext(events))[1] == ":"
        assert slow.parts.life.streams == 1
    await reached(lambda: slow.parts.life.streams == slow.parts.life.inside == 0)
    await reached(lambda: len(asyncio.all_tasks()) <= before)


async def test_an_error_after_the_first_event_is_the_last_event(slow: Stand) -> None:
    slow.service.error = MemoryUnavailable("the store is away")
    slow.service.gate.set()
    async with Connection(slow.url) as connection:
        connection.send("POST", COMPLETIONS, STREAMED)
        status, headers = await connection.head()
        events = [data async for _, name, data in connection.events() if name != ":"]
    assert (status, headers["content-type"]) == (
        200,
        "text/event-stream; charset=utf-8",
    )
    assert events[-1]["error"]["type"] == "server_error"
    assert len(events) == 2


async def test_errors_have_openais_form_and_show_nothing_internal(slow: Stand) -> None:
    # Drawing the traceback for a terminal takes seconds.
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL)
    )
    slow.service.error = RuntimeError("secret")
    slow.service.gate.set()
    answer = await ask(slow.url, "POST", COMPLETIONS, CHAT)
    assert (answer.status, answer.body["error"]["code"]) == (500, "internal")
    assert "secret" not in str(answer.body)
    slow.service.error = MemoryUnavailable("the store is away")
    answer = await ask(slow.url, "POST", COMPLETIONS, CHAT)
    assert (answer.status, answer.headers["retry-after"]) == (503, "1")
    assert answer.body["error"]["type"] == "server_error"


async def test_when_the_process_leaves_waiting_clients_are_told_to_ask_again(
    slow: Stand,
) -> None:
    whole = asyncio.create_task(ask(slow.url, "POST", COMPLETIONS, CHAT))
    async with Connection(slow.url) as connection:
        connection.send("POST", COMPLETIONS, STREAMED)
        await connection.head()
        await reached(lambda: len(slow.service.asked) == 2)
        slow.parts.life.leaving.set()
        events = [data async for _, name, data in connection.events() if name != ":"]
    assert events[-1]["error"]["code"] == "unavailable"
    assert (await whole).status == 503


PLACE = place_of("", "request", "r1")
RECORD = RequestRecord(
    digest="d1", task_id="t1", at_ms=1, conversation_id="c1", memory="bypass"
)


async def test_of_many_claims_of_an_id_one_succeeds(valkey_or_redis: Redis) -> None:
    records = RequestRecords(valkey_or_redis, deadline_s=PATIENCE_S)
    others = [
        RECORD.model_copy(update={"digest": f"d{number}"}) for number in range(20)
    ]
    found = await asyncio.gather(*(records.claim(PLACE, one) for one in others))

    [first] = [
        one for one, earlier in zip(others, found, strict=True) if earlier is None
    ]
    assert {earlier for earlier in found if earlier is not None} == {first}
    assert await records.find(PLACE) == (first, None, False)


async def test_one_process_at_a_time_holds_a_request(valkey_or_redis: Redis) -> None:
    """Until it lets go, or stops renewing."""
    records = RequestRecords(valkey_or_redis, deadline_s=PATIENCE_S)
    assert [await records.hold(PLACE, 60_000), await records.hold(PLACE, 60_000)] == [
        True,
        False,
    ]
    assert (await records.find(PLACE)).is_held
    await records.let_go(PLACE, None)
    assert await records.hold(PLACE, 1)
    await records.keep_holding([PLACE], 60_000)
    assert not await records.hold(PLACE, 1)


async def test_a_new_id_is_claimed_and_held_in_one_step(valkey_or_redis: Redis) -> None:
    records = RequestRecords(valkey_or_redis, deadline_s=PATIENCE_S)
    assert await records.claim(PLACE, RECORD, 60_000) is None
    assert not await records.hold(PLACE, 1)
    assert await records.find(PLACE) == (RECORD, None, True)


async def test_the_first_reply_is_known_until_it_is_forgotten(
    valkey_or_redis: Redis,
) -> None:
    """And listed for its user, as long; that no process works on a request any more says nothing of it."""
    records = RequestRecords(
        valkey_or_redis, keep=timedelta(minutes=1), deadline_s=PATIENCE_S
    )
    await records.claim(PLACE, RECORD)
    assert await records.let_go(PLACE, Reply(b"first", "ann"))
    assert not await records.let_go(PLACE, Reply(b"second", "ann"))
    await records.let_go(PLACE, None)
    assert await records.find(PLACE) == (RECORD, b"first", False)
    lives_ms = [
        await valkey_or_redis.pttl(key) for key in await valkey_or_redis.keys("*")
    ]
    assert len(lives_ms) == 3
    assert all(0 < one <= 60_000 for one in lives_ms)
    assert (await records.count("ann"), await records.count("bob")) == (1, 0)
    assert await records.forget_replies([PLACE]) == 1
    assert await records.find(PLACE) == (RECORD, None, False)


async def test_all_replies_to_a_user_are_forgotten_and_those_that_are_over_not_listed(
    valkey_or_redis: Redis,
) -> None:
    now = time.time()
    records = RequestRecords(valkey_or_redis, deadline_s=PATIENCE_S, now=lambda: now)
    for number in range(30):
        assert await records.let_go(f"p{number}", Reply(b"x", "ann"))
    await records.let_go("bobs", Reply(b"x", "bob"))
    await records.let_go("nobodys", Reply(b"x", None))
    later = RequestRecords(
        valkey_or_redis, deadline_s=PATIENCE_S, now=lambda: now + 86_400
    )
    await later.let_go("new", Reply(b"x", "ann"))
    assert await records.count("ann") == 1
    for number in range(30):
        await records.let_go(f"q{number}", Reply(b"x", "ann"))
    assert await records.forget("ann") == 31
    assert await records.count("ann") == 0
    left = {key for key in await valkey_or_redis.keys("*") if b"{p" not in key}
    assert len(left) == 3
    assert (await records.find("bobs")).reply == b"x"


def test_a_place_contains_no_id_and_differs_by_space_kind_and_id() -> None:
    places = {
        place_of(space, kind, name)
        for space in ("", "YQ")
        for kind in ("request", "task")
        for name in "ab"
    }
    assert len(places) == 8
    assert all(len(place) == 32 for place in places)


class Forgetful(RequestRecords):
    """Keeps no record while it is away, also where others are stored beside it."""

    away = True

    async def claim(
        self, request: str, record: RequestRecord, hold_ms: int = 0
    ) -> RequestRecord | None:
        if self.away:
            raise MemoryUnavailable("no usable answer within 1 s")
        return await super().claim(request, record, hold_ms)

    def claiming(
        self, request: str, record: RequestRecord, hold_ms: int = 0
    ) -> list[Command]:
        return [("PING",)] if self.away else super().claiming(request, record, hold_ms)


@pytest.mark.parametrize("wait", [0, 1])
async def test_nothing_is_promised_that_was_not_kept(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path, wait: float
) -> None:
    """202 names what is found from then on; where the record is not kept it is 503, with when to ask again."""
    file = tmp_path / "keys.json"
    users = {
        user: {
            "Authorization": f"Bearer {make_key(file, user or 'all', ('ask',), user)}"
        }
        for user in ("ann", None)
    }
    records = Forgetful(redis, deadline_s=PATIENCE_S)
    task = {"agent_id": "EchoAgent", "task": "echo", "parameters": {"word": "hi"}}
    async with http_stand(servers, redis, keys=KeyRing(file), records=records) as stand:
        for headers in users.values():
            for path, body in (("/v1/requests", HELLO), ("/v1/tasks", task)):
                asked = {**body, "wait_seconds": wait}
                records.away = True
                refused = await ask(stand.url, "POST", path, asked, headers)
                assert refused.status == 503, refused.body
                assert int(refused.headers["retry-after"]) >= 1
                records.away = False
                taken = await ask(stand.url, "POST", path, asked, headers)
                assert taken.status == 202
                where = taken.headers["location"]
                assert (await ask(stand.url, "GET", where, None, headers)).status == 200


async def test_what_ends_in_time_is_answered_though_its_record_is_not_kept(
    servers: EmbeddedServers, redis: Redis
) -> None:
    records = Forgetful(redis, deadline_s=PATIENCE_S)
    async with http_stand(servers, redis, records=records) as stand:
        stand.service.gate.set()
        for more in ({}, {"conversation": "c-1"}):
            answered = await ask(stand.url, "POST", "/v1/requests", {**HELLO, **more})
            assert (answered.status, answered.body["state"]) == (200, "done")


async def test_a_pipeline_that_a_full_store_could_not_keep_is_sent_again(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> None:
    """As 503 with a time; it is not refused for something that is wrong with it."""
    system = FakeSystem(tmp_path, echo=echo)

    class Full(PipelineRuns):
        async def create(self, new: NewRun) -> bool:
            raise MemoryUnavailable(f"no room for {new.session_id}")

    system.requests._parts = replace(
        system.parts, runs=Full(redis, deadline_s=PATIENCE_S)
    )
    body = {"pipeline": a_chain("one").model_dump(mode="json", exclude_unset=True)}
    async with http_stand(servers, redis, pipelines=system.requests) as stand:
        answer = await ask(stand.url, "POST", "/v1/pipelines", body)
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) >= 1
