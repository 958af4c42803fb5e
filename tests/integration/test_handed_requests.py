"""Requests that an operator's process hands over: whole, with their caller, within bounds, and to nobody for ever."""

import asyncio
import contextlib
import dataclasses
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg
from redis.asyncio import Redis
from starlette.applications import Starlette
from starlette.types import Message, Receive, Scope, Send

from tasklore.contracts import subjects
from tasklore.contracts.callers import Caller, Role
from tasklore.contracts.handed_requests import HandedRequest, HandedResponse
from tasklore.runtime.messaging.connection import connected
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http import hand_over
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.http.admission.keys import CALLER as KEY_OF_CALLER
from tasklore.supervisor.http.admission.limits import ClientLimits
from tasklore.supervisor.http.app import make_app
from tasklore.supervisor.http.dependencies import Admission, Life
from tasklore.supervisor.http.hand_over import HandOver, HandOverMiddleware
from tasklore.supervisor.http.handed import HandedRequests
from tasklore.supervisor.http.in_process import call_in_process
from tasklore.supervisor.http.operations_app import make_operations_app
from tasklore.supervisor.http.server import HttpServer
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.table import bind, operation
from tests.http_client import PATIENCE_S, Answer, Connection, ask, until
from tests.integration.http_stand import SUPERVISOR, Stand, http_stand

HELLO = {"text": "hello"}
CALLER = Caller(name="desk", roles=frozenset({"admin"}))


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    async with http_stand(servers, redis) as found:
        found.service.gate.set()
        yield found


@pytest.fixture
async def client(servers: EmbeddedServers) -> AsyncIterator[Client]:
    async with connected(servers.nats_url, "operations-test") as found:
        yield found


@contextlib.asynccontextmanager
async def hearing(
    client: Client, handed: HandedRequests, supervisor_id: str = SUPERVISOR
) -> AsyncIterator[list[bytes]]:
    """Answer handed requests within the block, as one of a queue group; yield what came."""
    came: list[bytes] = []
    answering: set[asyncio.Task[None]] = set()

    async def respond(message: Msg) -> None:
        await message.respond(await handed.answer_bytes(message.data))

    async def answer(message: Msg) -> None:
        came.append(message.data)
        # Side by side, as a supervisor does.
        task = asyncio.create_task(respond(message))
        answering.add(task)
        task.add_done_callback(answering.discard)

    async def note_left(message: Msg) -> None:
        handed.note_left(message.data.decode())

    subscription = await client.subscribe(
        subjects.operations(supervisor_id), queue=supervisor_id, cb=answer
    )
    left = await client.subscribe(subjects.operations_left(supervisor_id), cb=note_left)
    await client.flush()
    try:
        yield came
    finally:
        await left.unsubscribe()
        await subscription.unsubscribe()


class LetterView(View):
    """Which letter was asked for, and whose rights read it."""

    number: str
    by: str


@operation(
    "letters",
    "show",
    "GET /v1/letters/{number}",
    roles=("read",),
    mounted="operations",
)
async def show_letter(services: str, caller: Caller, number: str) -> LetterView:
    """Show a letter."""
    del caller
    return LetterView(number=number, by=services)


@operation("letters", "ask", "POST /v1/requests", roles=("ask",))
async def never_run(services: str, caller: Caller) -> LetterView:
    """Stand in the way of requests in words."""
    raise AssertionError("a supervisor was to run this", services, caller)


#: An operation that the process answers itself, and one that a supervisor does.
OWN = bind("operator", (show_letter,))
TABLE = (show_letter, never_run)


@contextlib.asynccontextmanager
async def operations(
    client: Client, supervisor_id: str = SUPERVISOR, **door: Any
) -> AsyncIterator[str]:
    """Serve operations behind *door* within the block; yield their address."""
    guard = Admission(grace_s=5.0, **door)
    app = make_operations_app(guard, HandOver(client, supervisor_id), OWN, TABLE)
    server = HttpServer(app, guard, "127.0.0.1", 0, setting="OPERATIONS")
    running = asyncio.create_task(server.run())
    hurried = asyncio.Event()
    hurried.set()
    try:
        yield server.url
    finally:
        await server.drain(hurried)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


def handing(stand: Stand, **parts: Any) -> HandedRequests:
    """Return what answers handed requests at *stand*, with other *parts* in place of some."""
    whole = dataclasses.replace(stand.parts, **parts)
    return HandedRequests(make_app(whole), stand.url, whole.life.draining)


def problem(answer: Answer, status: int) -> str:
    assert (answer.status, answer.headers["content-type"]) == (
        status,
        "application/problem+json",
    ), answer.body
    return str(answer.body["detail"])


def made_keys(path: Path) -> tuple[KeyRing, dict[str, dict[str, str]]]:
    """Return a ring with a key for each role, and for each the header that shows it."""
    roles: tuple[Role, ...] = ("ask", "read", "operate", "admin")
    shown = {
        role: {"Authorization": f"Bearer {make_key(path, role, (role,), None)}"}
        for role in roles
    }
    return KeyRing(path), shown


async def test_what_starts_work_is_handed_over_whole_and_the_rest_is_answered_here(
    stand: Stand, client: Client
) -> None:
    handed = handing(stand)
    async with hearing(client, handed) as came, operations(client) as url:
        own = await ask(url, "GET", "/v1/letters/7")
        assert (own.status, own.body) == (200, {"number": "7", "by": "operator"})
        assert came == []

        first = await ask(
            url, "POST", "/v1/requests", HELLO, {"Idempotency-Key": "once"}
        )
        again = await ask(
            url, "POST", "/v1/requests", HELLO, {"Idempotency-Key": "once"}
        )
        assert first.status == 200
        assert first.body["reply"]["text"] == "Heard: hello"
        assert again.body["reply"] == first.body["reply"]
        assert len(stand.service.asked) == 1
        (one, _) = map(HandedRequest.decode, came)
        assert (one.method, one.path, json.loads(one.body)) == (
            "POST",
            "/v1/requests",
            HELLO,
        )
        assert one.caller.name == "local"

        # At the API itself it is the same request, made by the same caller.
        there = await ask(
            stand.url, "POST", "/v1/requests", HELLO, {"Idempotency-Key": "once"}
        )
        assert there.body["reply"] == first.body["reply"]

        refused = await ask(url, "POST", "/v1/requests", {"text": ""})
        assert "text" in problem(refused, 422)
        assert "no such path" in problem(await ask(url, "GET", "/v1/nothing"), 404)
        async with Connection(url) as connection:
            connection.send("HEAD", "/v1/agents")
            assert (await connection.head())[0] == 200
        assert (await ask(url, "GET", "/v1/agents?limit=1")).status == 200


async def test_the_caller_goes_along_whole_and_the_supervisor_holds_its_roles_too(
    stand: Stand, client: Client, tmp_path: Path
) -> None:
    """The supervisor knows no such key: the operator's process vouches for the caller, and for no role beyond it."""
    keys, shown = made_keys(tmp_path / "keys.json")
    (tmp_path / "other.json").write_text('{"keys": []}')
    parts = {"keys": KeyRing(tmp_path / "other.json")}
    handed = handing(stand, **parts)
    async with hearing(client, handed) as came, operations(client, keys=keys) as url:
        assert (await ask(url, "POST", "/v1/requests", HELLO)).status == 401
        assert came == []
        detail = problem(
            await ask(url, "POST", "/v1/requests", HELLO, shown["read"]), 403
        )
        assert "'ask'" in detail
        assert (
            await ask(url, "POST", "/v1/requests", HELLO, shown["operate"])
        ).status == 403
        assert stand.service.asked == []
        asked = await ask(url, "POST", "/v1/requests", HELLO, shown["ask"])
        assert asked.status == 200
        caller = stand.service.asked[-1].caller
        assert caller is not None
        assert (caller.name, caller.roles) == ("ask", {"ask"})
        # Nobody's key is handed on.
        assert not any(b"tlk_" in one or b"uthorization" in one for one in came)


async def test_a_client_that_leaves_while_it_sends_has_asked_for_nothing(
    client: Client,
) -> None:
    came: list[Msg] = []

    async def hear(message: Msg) -> None:
        came.append(message)
        await message.respond(HandedResponse(status=200, body=b"").encode())

    async def leave() -> Message:
        return {"type": "http.disconnect"}

    sent: list[Message] = []

    async def take(message: Message) -> None:
        sent.append(message)

    subscription = await client.subscribe(subjects.operations("Left"), cb=hear)
    await client.flush()
    door = HandOverMiddleware(
        Starlette(), HandOver(client, "Left"), lambda _scope: False
    )
    scope: Scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/dead-letters/redrive",
        "raw_path": b"/v1/dead-letters/redrive",
        "query_string": b"",
        "headers": [],
        KEY_OF_CALLER: CALLER,
    }
    await door(scope, leave, take)
    await subscription.unsubscribe()
    assert came == []
    assert sent[0]["status"] == 499


async def test_no_header_makes_a_request_a_handed_one(
    stand: Stand, servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> None:
    """Whoever comes through the socket shows a key, whatever else they send."""
    keys, _ = made_keys(tmp_path / "keys.json")
    async with http_stand(servers, redis, keys=keys) as guarded:
        for name in ("tasklore.caller", "Tasklore-Caller", "X-Tasklore-Caller"):
            headers = {name: CALLER.model_dump_json()}
            answer = await ask(guarded.url, "GET", "/v1/agents", headers=headers)
            assert answer.status == 401


async def test_streams_are_refused_with_the_place_where_they_are(
    stand: Stand, client: Client
) -> None:
    handed = handing(stand)
    async with hearing(client, handed), operations(client) as url:
        begun = await ask(url, "POST", "/v1/requests", HELLO)
        request_id = begun.body["request_id"]
        detail = problem(
            await ask(url, "GET", f"/v1/requests/{request_id}/events"), 421
        )
        assert stand.url in detail
        chat = {
            "model": "tasklore",
            "stream": True,
            "messages": [{"role": "user", "content": "hello"}],
        }
        before = len(stand.service.asked)
        refused = await ask(url, "POST", "/v1/chat/completions", chat)
        assert refused.status == 421
        # However its path is spelled, and also without a stream.
        whole = chat | {"stream": False}
        spelled = await ask(url, "POST", "/v1/ch%61t/completions", whole)
        assert spelled.status == 421
        assert len(stand.service.asked) == before
        assert stand.parts.life.streams == 0
        await until(lambda: stand.parts.life.inside == 0)


async def test_bodies_and_responses_are_bounded_by_one_message(
    stand: Stand, client: Client
) -> None:
    handed = handing(stand)
    large = ClientLimits(body_bytes=4 * 1024**2)
    async with hearing(client, handed) as came, operations(client, limits=large) as url:
        huge = {"text": "x" * subjects.MAX_BODY}
        detail = problem(await ask(url, "POST", "/v1/requests", huge), 413)
        assert f"{subjects.MAX_BODY:,}" in detail
        assert came == []
        beyond = {"text": "x" * (5 * 1024**2)}
        assert (await ask(url, "POST", "/v1/requests", beyond)).status == 413
        long = await ask(url, "GET", f"/v1/agents?q={'x' * 17_000}")
        assert long.status in (400, 414, 431)
        # The next one is served.
        assert (await ask(url, "POST", "/v1/requests", HELLO)).status == 200

    async def answers_much(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        await send({"type": "http.response.start", "status": 200, "headers": []})
        for _ in range(40):
            piece: Message = {
                "type": "http.response.body",
                "body": b"x" * 65_536,
                "more_body": True,
            }
            await send(piece)

    response = await call_in_process(answers_much, a_request(), stand.url)
    assert response.status == 413
    assert stand.url in response.body.decode()


@pytest.mark.parametrize("is_raised", [True, False])
async def test_a_response_that_breaks_off_is_no_whole_one(*, is_raised: bool) -> None:
    """An error behind the last piece is of no concern to who asked: they have all of the response."""

    async def breaks_off(scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        is_whole = scope["path"] == "/v1/whole"
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send(
            {"type": "http.response.body", "body": b"half", "more_body": not is_whole}
        )
        if is_raised:
            raise ConnectionError("the store is away")

    response = await call_in_process(breaks_off, a_request(), "http://here")
    assert response.status == 502
    assert "broke off" in json.loads(response.body)["detail"]
    whole = await call_in_process(breaks_off, a_request("/v1/whole"), "http://here")
    assert (whole.status, whole.body) == (200, b"half")


async def test_an_application_that_answers_nothing_is_a_502() -> None:
    async def says_nothing(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send

    response = await call_in_process(says_nothing, a_request(), "http://here")
    assert response.status == 502


async def test_no_supervisor_is_a_503_with_the_cure_within_seconds(
    client: Client,
) -> None:
    """What this process answers itself it answers all the same."""
    async with operations(client, "NobodyThere") as url:
        began = time.monotonic()
        answer = await ask(url, "POST", "/v1/requests", HELLO)
        assert "tasklore supervisor" in problem(answer, 503)
        assert answer.headers["retry-after"]
        assert time.monotonic() - began < PATIENCE_S / 2
        assert (await ask(url, "GET", "/v1/letters/7")).status == 200


async def test_a_supervisor_that_starts_meanwhile_is_waited_for(
    stand: Stand, client: Client
) -> None:
    handed = handing(stand)
    async with operations(client) as url:
        asking = asyncio.create_task(ask(url, "POST", "/v1/requests", HELLO))
        await asyncio.sleep(0.3)
        async with hearing(client, handed):
            assert (await asking).status == 200


async def test_a_frozen_supervisor_and_a_slow_one_are_given_up_in_time(
    stand: Stand, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A silent one by whoever waits, a slow one by itself; both say that the same key finds what became of it."""
    monkeypatch.setattr(hand_over, "_BEYOND_S", 0.2)
    monkeypatch.setattr(hand_over, "_FAREWELL_S", 1.0)

    async def hear_in_silence(message: Msg) -> None:
        del message

    silent = await client.subscribe(
        subjects.operations("Frozen"), queue="Frozen", cb=hear_in_silence
    )
    await client.flush()
    body = HELLO | {"wait_seconds": 0}
    async with operations(client, "Frozen") as url:
        detail = problem(await ask(url, "POST", "/v1/requests", body), 504)
        assert "Idempotency-Key" in detail
    await silent.unsubscribe()

    stand.service.gate.clear()

    async def never_answers(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        await asyncio.Event().wait()

    slow = HandedRequests(never_answers, stand.url, asyncio.Event())
    async with hearing(client, slow), operations(client) as url:
        detail = problem(await ask(url, "POST", "/v1/requests", body), 504)
        assert "may still come about" in detail


async def test_the_time_that_a_client_waits_for_is_the_time_that_is_given(
    stand: Stand, client: Client
) -> None:
    handed = handing(stand)
    async with hearing(client, handed) as came, operations(client) as url:
        await ask(url, "POST", "/v1/requests", HELLO | {"wait_seconds": 300})
        await ask(url, "GET", "/v1/agents?wait_seconds=5")
        await ask(url, "POST", "/v1/requests", HELLO | {"wait_seconds": "soon"})
        await ask(url, "POST", "/v1/requests", HELLO | {"wait_seconds": 1e300})
        await ask(url, "POST", "/v1/requests", HELLO | {"wait_seconds": "2m"})
        await ask(url, "POST", "/v1/requests", HELLO | {"wait_seconds": "90"})
        await ask(url, "POST", "/v1/requests", HELLO | {"wait_seconds": 10**400})
        await ask(url, "POST", "/v1/requests", HELLO | {"wait_seconds": [5]})
        await ask(url, "GET", "/v1/agents?wait_seconds=1m")
        times = [HandedRequest.decode(one).within_s for one in came]
        assert times == [315.0, 20.0, 45.0, 615.0, 135.0, 105.0, 45.0, 45.0, 75.0]


async def test_of_two_supervisors_one_answers_and_two_operators_ask_alike(
    stand: Stand, client: Client, servers: EmbeddedServers
) -> None:
    handed = handing(stand)
    async with (
        connected(servers.nats_url, "second") as second,
        hearing(client, handed) as one,
        hearing(second, handed) as other,
        operations(client) as url,
        operations(second) as beside,
    ):
        asked = [
            ask(where, "POST", "/v1/requests", HELLO) for where in (url, beside) * 10
        ]
        found = await asyncio.gather(*asked)
        assert {answer.status for answer in found} == {200}
        # Each was heard once, by either.
        assert len(stand.service.asked) == len(one) + len(other) == 20
        assert one
        assert other
        # What one of them began, the other one finds.
        key = {"Idempotency-Key": "both"}
        first = await ask(url, "POST", "/v1/requests", HELLO, key)
        again = await ask(beside, "POST", "/v1/requests", HELLO, key)
        assert again.body["reply"] == first.body["reply"]
        assert len(stand.service.asked) == 21


async def test_a_supervisor_that_is_about_to_end_takes_nothing_and_another_one_does(
    stand: Stand,
    client: Client,
    servers: EmbeddedServers,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing is lost by a restart, and nothing is begun by whoever leaves; alone it is a 503."""
    leaving = Life()
    leaving.draining.set()
    async with (
        connected(servers.nats_url, "second") as second,
        hearing(client, handing(stand, life=leaving)) as left,
        operations(client) as url,
    ):
        monkeypatch.setattr(hand_over, "_NOBODY_S", 0.3)
        alone = await ask(url, "POST", "/v1/requests", HELLO)
        assert "about to end" in problem(alone, 503)
        assert alone.headers["retry-after"]
        assert stand.service.asked == []
        monkeypatch.setattr(hand_over, "_NOBODY_S", PATIENCE_S)
        left.clear()
        async with hearing(second, handing(stand)):
            for _ in range(30):
                answer = await ask(url, "POST", "/v1/requests", HELLO)
                assert answer.status == 200
        assert left
        assert len(stand.service.asked) == 30


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"\n",
        b"{}\n",
        b"\xff\xfe\n{}",
        b'{"method": "GET", "path": "/v1/agents", "within_s": 1}\n',
        b'{"method": "GET", "path": "/v1/agents", "caller": {}, "within_s": 1e9}\n',
        b"[" * 100_000,
    ],
)
async def test_what_is_no_handed_request_is_refused(
    stand: Stand, message: bytes
) -> None:
    handed = handing(stand)
    response = HandedResponse.decode(await handed.answer_bytes(message))
    assert response.status == 400
    assert "versions" in response.body.decode()


async def test_a_supervisor_that_answers_something_else_is_told_of(
    client: Client,
) -> None:
    async def mumble(message: Msg) -> None:
        await message.respond(b"what?")

    subscription = await client.subscribe(subjects.operations("Odd"), cb=mumble)
    await client.flush()
    async with operations(client, "Odd") as url:
        assert "versions" in problem(await ask(url, "POST", "/v1/requests", HELLO), 502)
    await subscription.unsubscribe()


def test_a_noun_with_something_to_run_here_needs_its_services() -> None:
    with pytest.raises(ValueError, match="letters_show is to be run here"):
        make_operations_app(
            Admission(),
            HandOver(None, SUPERVISOR),  # type: ignore[arg-type]  # nothing is asked
            own=(),
            table=(show_letter,),
        )


def a_request(path: str = "/v1/agents") -> HandedRequest:
    return HandedRequest(method="GET", path=path, caller=CALLER, within_s=PATIENCE_S)


async def test_a_client_that_leaves_is_told_of_and_what_waits_is_given_up(
    stand: Stand, client: Client
) -> None:
    """By the supervisor that has it; the others remember, as it may yet come to them."""
    ended: list[str] = []

    async def waits(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, send
        await receive()
        ended.append((await receive())["type"])

    handed = HandedRequests(waits, stand.url, asyncio.Event())
    async with (
        hearing(client, handed) as came,
        operations(client) as url,
        Connection(url) as connection,
    ):
        connection.send("POST", "/v1/requests", HELLO)
        await until(lambda: bool(came))
        connection.writer.transport.abort()
        await until(lambda: ended == ["http.disconnect"])


async def test_what_was_given_up_before_its_turn_is_not_begun(
    stand: Stand,
) -> None:
    request = a_request().model_copy(update={"id": "left"})
    handed = handing(stand)
    handed.note_left("left")
    response = HandedResponse.decode(await handed.answer_bytes(request.encode()))
    assert response.status == 503
    other = request.model_copy(update={"id": "other"})
    response = HandedResponse.decode(await handed.answer_bytes(other.encode()))
    assert response.status == 200


async def test_what_is_late_and_does_not_wait_is_done_to_its_end(stand: Stand) -> None:
    """As at the API itself, where a client that leaves ends nothing but what waits."""
    may_end = asyncio.Event()
    done: list[bool] = []

    async def mends(scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive, send
        await may_end.wait()
        done.append(True)

    handed = HandedRequests(mends, stand.url, asyncio.Event())
    late = a_request().model_copy(update={"within_s": 0.05})
    response = HandedResponse.decode(await handed.answer_bytes(late.encode()))
    assert response.status == 504
    may_end.set()
    await until(lambda: done == [True])


async def test_many_that_wait_leave_room_for_one_that_does_not(
    servers: EmbeddedServers, redis: Redis, client: Client
) -> None:
    """A supervisor answers as many handed requests at once as the API may have, and refuses what is more."""
    limits = ClientLimits(at_once=3)
    async with http_stand(servers, redis, limits=limits) as narrow:
        handed = handing(narrow)
        async with hearing(client, handed), operations(client) as url:
            waiting = [
                asyncio.create_task(
                    ask(url, "POST", "/v1/requests", {"text": f"hello {number}"})
                )
                for number in range(3)
            ]
            await until(lambda: narrow.parts.life.inside == 3)
            refused = await ask(url, "GET", "/v1/agents")
            assert refused.status in (429, 503)
            narrow.service.gate.set()
            assert {one.status for one in await asyncio.gather(*waiting)} == {200}


async def test_two_keys_of_one_name_have_places_of_their_own(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> None:
    """Processes with files of their own may call the keys of two tenants alike."""
    keys, _ = made_keys(tmp_path / "keys.json")
    limits = ClientLimits(at_once=4)
    async with http_stand(servers, redis, keys=keys, limits=limits) as narrow:
        handed = handing(narrow)

        def asked_by(tenant: str, number: int) -> bytes:
            caller = Caller(name="ask", roles=frozenset({"ask"}), tenant=tenant)
            request = HandedRequest(
                method="POST",
                path="/v1/requests",
                headers=(("content-type", "application/json"),),
                caller=caller,
                within_s=PATIENCE_S,
                body=json.dumps({"text": f"hello {number}"}).encode(),
            )
            return request.encode()

        waiting = [
            asyncio.create_task(handed.answer_bytes(asked_by("red", number)))
            for number in range(2)
        ]
        await until(lambda: narrow.parts.life.inside == 2)
        third = HandedResponse.decode(await handed.answer_bytes(asked_by("red", 3)))
        assert third.status == 429
        waiting.append(asyncio.create_task(handed.answer_bytes(asked_by("blue", 4))))
        await until(lambda: narrow.parts.life.inside == 3)
        narrow.service.gate.set()
        statuses = {
            HandedResponse.decode(one).status for one in await asyncio.gather(*waiting)
        }
        assert statuses == {200}
