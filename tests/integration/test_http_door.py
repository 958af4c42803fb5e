"""The door of the HTTP API: keys, users, hosts, sizes and rates; every refusal is a problem that says the cure."""

import asyncio
import gzip
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import openai
import pytest
from redis.asyncio import Redis

from contracts.errors import ConfigurationError
from runtime.metrics import Metrics
from runtime.servers.embedded import EmbeddedServers
from supervisor.http.admission.key_file import KeyRing, Role, make_key
from supervisor.http.admission.limits import Limits
from supervisor.http.server import HttpServer, demand_keys
from tests.http_client import PATIENCE_S, Answer, Connection, ask, until
from tests.integration.http_stand import Stand, http_stand

HELLO = {"text": "hello"}


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    """Serve the API without keys, with small limits."""
    async with http_stand(servers, redis, limits=Limits(body_bytes=2000)) as found:
        found.service.gate.set()
        yield found


@pytest.fixture
async def guarded(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[tuple[Stand, dict[str, Any]]]:
    """Serve the API with keys: the headers of each by name."""
    path, headers = tmp_path / "keys.json", {}
    made: list[tuple[str, Role, str | None]] = [
        ("ann", "ask", "ann"),
        ("bob", "ask", "bob"),
        ("annread", "read", "ann"),
        ("reader", "read", None),
        ("admin", "admin", None),
    ]
    for name, role, user in made:
        headers[name] = {"Authorization": f"Bearer {make_key(path, name, (role,), user)}"}
    async with http_stand(servers, redis, keys=KeyRing(path)) as found:
        found.service.gate.set()
        yield found, headers


def problem(answer: Answer, status: int) -> str:
    """Return the detail of *answer*, which is a problem with *status* and no more than it says."""
    assert (answer.status, answer.headers["content-type"]) == (status, "application/problem+json")
    assert answer.body["status"] == status
    assert answer.body["type"].startswith("urn:tasklore:problem:")
    return str(answer.body["detail"])


async def test_a_key_is_needed_where_there_are_keys(guarded: tuple[Stand, dict[str, Any]]) -> None:
    """None, a wrong one and another scheme are refused, also for paths that are not there; the page is for all."""
    stand, headers = guarded
    for wrong in ({}, {"Authorization": "Bearer tlk_guess"}, {"Authorization": "Basic YTpi"}):
        answer = await ask(stand.url, "POST", "/v1/requests", HELLO, wrong)
        assert "tasklore api-key" in problem(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"
    assert (await ask(stand.url, "GET", "/v1/nothing")).status == 401
    assert (await ask(stand.url, "GET", "/openapi.json")).status == 200
    assert (await ask(stand.url, "GET", "/v1/agents", headers=headers["ann"])).status == 200


async def test_a_role_that_is_missing_is_named(guarded: tuple[Stand, dict[str, Any]]) -> None:
    """Reading is not asking; admin is both."""
    stand, headers = guarded
    refused = await ask(stand.url, "POST", "/v1/requests", HELLO, headers["reader"])
    assert "'ask'" in problem(refused, 403)
    assert (await ask(stand.url, "POST", "/v1/requests", HELLO, headers["admin"])).status == 200


async def test_a_key_for_one_user_acts_for_no_other(guarded: tuple[Stand, dict[str, Any]]) -> None:
    """It asks as that user without naming them; neither their requests nor their talks are another's."""
    stand, headers = guarded
    own = await ask(stand.url, "POST", "/v1/requests", HELLO | {"conversation": "talk"}, headers["ann"])
    assert (own.status, stand.service.asked[0].user_id) == (200, "ann")
    assert "another user" in problem(
        await ask(stand.url, "POST", "/v1/requests", HELLO | {"user": "bob"}, headers["ann"]), 403
    )
    path = f"/v1/requests/{own.body['request_id']}"
    assert (await ask(stand.url, "GET", path, headers=headers["ann"])).status == 200
    for method, place in (("GET", path), ("GET", f"{path}/events"), ("DELETE", path)):
        problem(await ask(stand.url, method, place, headers=headers["bob"]), 404)
    problem(await ask(stand.url, "POST", "/v1/requests", HELLO | {"conversation": "talk"}, headers["bob"]), 403)


async def test_a_key_for_one_user_hears_nobody_else_in_their_conversation(
    guarded: tuple[Stand, dict[str, Any]],
) -> None:
    """Whoever speaks there for another, under whatever id: neither the words nor the answer are theirs to read."""
    stand, headers = guarded
    talk, path = {"conversation": "bob-1"}, "/v1/conversations/bob-1"
    own, key = headers["annread"], headers["ann"] | {"Idempotency-Key": "one"}
    await ask(stand.url, "POST", "/v1/requests", talk | {"text": "I am ann"}, key)
    other = headers["admin"] | {"Idempotency-Key": "one"}
    await ask(stand.url, "POST", "/v1/requests", talk | {"text": "bob's secret", "user": "bob"}, other)
    await ask(stand.url, "POST", "/v1/requests", talk | {"text": "nobody's secret"}, headers["admin"])

    shown = await ask(stand.url, "GET", path, headers=own)
    assert [one["message"] for one in shown.body["messages"]] == ["I am ann", "Heard: I am ann"]
    again = await ask(stand.url, "GET", "/v1/requests/one", headers=headers["ann"])
    assert again.body["reply"]["text"] == "Heard: I am ann"
    assert len((await ask(stand.url, "GET", path, headers=headers["admin"])).body["messages"]) == 6


async def test_a_key_for_one_user_finds_the_task_of_its_request(guarded: tuple[Stand, dict[str, Any]]) -> None:
    """Under the id that the answer names; nobody else's key does."""
    stand, headers = guarded
    stand.service.gate.clear()
    stand.service.assigns = True
    body = HELLO | {"wait_seconds": 0}
    await ask(stand.url, "POST", "/v1/requests", body, headers["ann"] | {"Idempotency-Key": "mine"})
    await until(lambda: bool(stand.service.asked))
    own = await ask(stand.url, "GET", "/v1/tasks/r-mine", headers=headers["ann"])
    assert (own.status, own.body["task_id"]) == (200, "r-mine")
    problem(await ask(stand.url, "GET", "/v1/tasks/r-mine", headers=headers["bob"]), 404)
    stand.service.gate.set()


async def test_two_users_may_choose_one_id(guarded: tuple[Stand, dict[str, Any]]) -> None:
    """Each has their own request under it, in a conversation of its own."""
    stand, headers = guarded
    for name in ("ann", "bob"):
        key = headers[name] | {"Idempotency-Key": "same"}
        answer = await ask(stand.url, "POST", "/v1/requests", {"text": f"I am {name}"}, key)
        assert answer.body["reply"]["text"] == f"Heard: I am {name}"
    first, second = stand.service.asked
    assert first.conversation_id != second.conversation_id


async def test_without_keys_only_this_machine_is_answered(stand: Stand) -> None:
    """A page that a browser loaded from elsewhere comes under another name, and no page may read an answer."""
    assert "TASKLORE_API_KEYS_FILE" in problem(
        await ask(stand.url, "GET", "/v1/agents", headers={"Host": "evil.example"}), 403
    )
    for host in ("localhost:1", "127.0.0.1", "[::1]:80"):
        answer = await ask(stand.url, "GET", "/v1/agents", headers={"Host": host, "Origin": "http://evil.example"})
        assert answer.status == 200
        assert not [name for name in answer.headers if name.startswith("access-control")]


async def test_a_page_from_elsewhere_changes_nothing(stand: Stand) -> None:
    """A browser sends a request without a body for any page, and only says where that page is from."""
    path = "/v1/pipelines/run-1/cancel"
    for origin in ("http://evil.example", "http://127.0.0.1.evil.example:80", "null"):
        detail = problem(await ask(stand.url, "POST", path, headers={"Origin": origin}), 403)
        assert "no page from elsewhere" in detail
    for origin in ("http://localhost:3000", "http://127.0.0.1:8000"):
        problem(await ask(stand.url, "POST", path, headers={"Origin": origin}), 404)


def test_an_address_that_others_reach_needs_keys() -> None:
    """It is refused at the start, with the ways out."""
    assert demand_keys("127.0.0.1", None) is None
    assert demand_keys("::1", None) is None
    with pytest.raises(ConfigurationError, match="tasklore api-key"):
        demand_keys("0.0.0.0", None)


async def test_an_address_that_is_taken_is_told(stand: Stand) -> None:
    """With the settings that choose another."""
    port = int(stand.url.rpartition(":")[2])
    with pytest.raises(ConfigurationError, match="TASKLORE_API_PORT"):
        HttpServer(stand.parts, "127.0.0.1", port)


async def test_a_body_may_only_be_so_large(stand: Stand) -> None:
    """Whether its sender says so or not."""
    large = {"text": "x" * 3000}
    assert "2,000 bytes" in problem(await ask(stand.url, "POST", "/v1/requests", large), 413)
    async with Connection(stand.url) as connection:
        connection.writer.write(
            b"POST /v1/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n" + b"c00\r\n" + b"x" * 0xC00 + b"\r\n0\r\n\r\n"
        )
        problem(await connection.answer(), 413)


async def test_what_comes_too_fast_is_told_when_to_go_on(servers: EmbeddedServers, redis: Redis) -> None:
    """429 with whole seconds."""
    # So slow that no machine sees a fourth token.
    async with http_stand(servers, redis, limits=Limits(rate=0.01, burst=3)) as stand:
        answers = [await ask(stand.url, "GET", "/v1/agents") for _ in range(4)]
    assert [answer.status for answer in answers[:3]] == [200] * 3
    assert problem(answers[3], 429)
    assert 1 <= int(answers[3].headers["retry-after"]) <= 100


#: What is asked, the status of the answer, and a word of its problem.
ERRORS: tuple[tuple[str, str, object, int, str], ...] = (
    ("GET", "/v2", None, 404, "GET /docs"),
    ("PATCH", "/v1/requests/r1", None, 405, "DELETE, GET"),
    ("POST", "/v1/requests", b"{", 400, "no JSON"),
    ("POST", "/v1/requests", {"text": ""}, 422, "text: "),
    ("POST", "/v1/requests", {"text": "x", "wait": 1}, 422, "wait: "),
    ("POST", "/v1/requests", {"text": "x", "time_zone": "Asia/Tokio"}, 422, "did you mean 'Asia/Tokyo'?"),
    ("POST", "/v1/requests", [], 422, "body: "),
    ("GET", "/v1/requests/a%20b", None, 422, "request_id: "),
    ("GET", "/v1/requests/unknown", None, 404, "'unknown'"),
    ("GET", "/v1/tasks/unknown", None, 404, "'unknown'"),
    ("GET", "/v1/agents/Nobody", None, 404, "'Nobody'"),
    ("GET", "/v1/agents/EchoAgnt", None, 404, "did you mean 'EchoAgent'?"),
)


async def test_every_error_is_a_problem(stand: Stand) -> None:
    """Of one form, with what is wrong and what to do."""
    for method, path, body, status, word in ERRORS:
        answer = await ask(stand.url, method, path, body)
        assert word in problem(answer, status), (method, path)
        if status == 405:
            assert answer.headers["allow"] == "DELETE, GET, HEAD"


async def test_what_is_no_http_after_an_answer_ends_the_connection(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    """Without a second answer, and without a traceback in the log that any stranger could fill."""
    async with Connection(stand.url) as asked:
        headers = b"Host: localhost\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
        asked.writer.write(b"POST /v1/requests HTTP/1.1\r\n" + headers)
        assert (await asked.answer()).status == 415
        asked.writer.write(b"no length\r\n")
        async with asyncio.timeout(PATIENCE_S):
            assert await asked.reader.read() == b""
    assert not [one for one in caplog.records if one.levelname == "ERROR"]


async def test_bytes_that_are_no_http_are_refused_and_do_not_fill_the_log(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    """With 400 and the end of the connection."""
    for sent in (b"no http\r\n\r\n", b"GET /v1/agents HTTP/1.1\r\nHost: localhost\r\ntraceparent: \x00\r\n\r\n"):
        async with Connection(stand.url) as asked:
            asked.writer.write(sent)
            status, headers = await asked.head()
            assert (status, headers["connection"]) == (400, "close")
    assert not caplog.records


async def test_head_is_answered_as_get_is_without_the_body(stand: Stand) -> None:
    """Status and headers are the same, also of what is not there and of what takes no GET; and nothing follows."""
    for path in ("/v1/agents", "/v1/agents/Nobody", "/v1/chat/completions", "/openapi.json", "/docs"):
        async with Connection(stand.url) as asked:
            asked.send("GET", path, headers={"Connection": "close"})
            expected, body = await asked.head(), await asked.reader.read()
        async with Connection(stand.url) as asked:
            asked.send("HEAD", path, headers={"Connection": "close"})
            found, rest = await asked.head(), await asked.reader.read()

        assert (found[0], rest) == (expected[0], b""), path
        assert {**found[1], "date": ""} == {**expected[1], "date": ""}, path
        assert int(found[1]["content-length"]) == len(body) > 0, path


async def test_head_of_a_stream_ends(stand: Stand) -> None:
    """There would be no end to it, and nobody is there to read it."""
    asked = {"text": "hello", "conversation": "c", "wait_seconds": 0}
    sent = await ask(stand.url, "POST", "/v1/requests", asked)
    async with Connection(stand.url) as connection:
        connection.send("HEAD", f"/v1/requests/{sent.body['request_id']}/events", headers={"Connection": "close"})
        assert ((await connection.head())[0], await connection.reader.read()) == (200, b"")
    async with asyncio.timeout(PATIENCE_S):
        await stand.parts.life.empty()


async def test_requests_are_counted_by_route_and_never_by_path(servers: EmbeddedServers, redis: Redis) -> None:
    """With their status, also where there is no route; names of users and methods of strangers make no series."""
    metrics = Metrics("1")
    async with http_stand(servers, redis, meter=metrics) as stand:
        for user in ("ann", "bob"):
            await ask(stand.url, "GET", f"/v1/memory/{user}/resource_none")
        await ask(stand.url, "GET", "/ann")
        await ask(stand.url, "FETCH", "/ann")
    counted = {
        line for line in metrics.render().decode().splitlines() if line.startswith("tasklore_http_requests_total")
    }
    assert counted == {
        'tasklore_http_requests_total{method="GET",route="/v1/memory/{user}/{resource}",status="404"} 2.0',
        'tasklore_http_requests_total{method="GET",route="unrouted",status="404"} 1.0',
        'tasklore_http_requests_total{method="other",route="unrouted",status="404"} 1.0',
    }


#: What is asked where nothing is, and what its problem names.
MEANT = (
    ("POST", "/v1/requests/", "did you mean '/v1/requests'?"),
    ("GET", "//v1//agents/", "did you mean '/v1/agents'?"),
    ("GET", "/V1/Agents", "did you mean '/v1/agents'?"),
    ("GET", "/V1/AGENTS/EchoAgent", "did you mean '/v1/agents/EchoAgent'?"),
    ("POST", "/chat/completions", "did you mean '/v1/chat/completions'?"),
    ("POST", "/v1/v1/chat/completions", "did you mean '/v1/chat/completions'?"),
    ("POST", "/v1/responses", "there are /v1/chat/completions and /v1/models"),
    ("GET", "/metrics", "TASKLORE_HTTP_PORT"),
    ("GET", "/v1", "GET /docs lists them all"),
    ("GET", "/" + "v1/" * 2000, "GET /docs lists them all"),
)


async def test_a_path_that_there_is_not_names_the_one_that_was_meant(stand: Stand) -> None:
    """A slash too many, a base URL without its version, a path of OpenAI's that is not served."""
    for method, path, cure in MEANT:
        told = await ask(stand.url, method, path, {"text": "hello"} if method == "POST" else None)
        said = told.body.get("detail") or told.body["error"]["message"]
        assert (told.status, said.endswith(cure) or cure in said) == (404, True), (method, path, said)


async def test_openais_client_shows_what_was_meant(stand: Stand) -> None:
    """It tells of an error only in its own form, whatever its base URL was."""
    for base in ("", "/v1/v1"):
        async with openai.AsyncOpenAI(base_url=stand.url + base, api_key="any", max_retries=0) as client:
            with pytest.raises(openai.NotFoundError, match="did you mean '/v1/chat/completions'"):
                await client.chat.completions.create(model="tasklore", messages=[])


async def test_a_body_that_cannot_be_read_names_the_cure(stand: Stand) -> None:
    """Packed, of another encoding, or with a name that was mistyped."""
    packed = gzip.compress(b'{"text": "hello"}')
    for body, headers, status, cure in (
        (packed, {"Content-Encoding": "gzip"}, 415, "without `Content-Encoding`"),
        (packed, {}, 400, "no text in UTF-8"),
        (b'{"text": "\xff"}', {}, 400, "no text in UTF-8"),
        (b'{"txt": "hello"}', {}, 422, "text: is needed; txt: is not known; take it out, or mend its name"),
    ):
        told = await ask(stand.url, "POST", "/v1/requests", body, headers)
        assert (told.status, cure in told.body["detail"]) == (status, True), told.body


async def test_whoever_opens_the_address_gets_to_the_page(stand: Stand) -> None:
    """It is what is printed at the start, and what one clicks."""
    home = await ask(stand.url, "GET", "/")
    assert (home.status, home.headers["location"]) == (307, "/docs")


@pytest.mark.parametrize(
    ("path", "methods"),
    [("/v1/requests", "POST"), ("/v1/requests/one", "DELETE, GET, HEAD"), ("/v1/chat/completions", "POST")],
)
async def test_options_tells_the_methods_and_lets_no_page_from_elsewhere_in(
    stand: Stand, path: str, methods: str
) -> None:
    """A browser asks so before it sends what another page wishes, and goes on only when it is told that it may."""
    told = await ask(stand.url, "OPTIONS", path, headers={"Access-Control-Request-Method": "POST"})
    assert (told.status, told.headers["allow"]) == (204, methods)
    assert not [name for name in told.headers if name.startswith("access-control")]
    assert (await ask(stand.url, "OPTIONS", "/v1/nothing")).status == 404


async def test_a_body_of_another_kind_is_refused(stand: Stand) -> None:
    """A form, which any page may send, too."""
    answer = await ask(stand.url, "POST", "/v1/requests", HELLO, {"Content-Type": "text/plain"})
    assert "application/json" in problem(answer, 415)


async def test_what_an_agent_hears_is_no_sense(stand: Stand) -> None:
    """Messages among the senses are refused with the field where they belong."""
    senses = {"position": {"x": 1, "z": 1}, "receivedTexts": ["hi"]}
    body = {"name": "Ana", "simulation_time": 1, "sensory_data": senses}
    answer = await ask(stand.url, "POST", "/v1/agents/EchoAgent/brain/decide", body)
    assert "send it in new_messages" in problem(answer, 422)


async def test_the_page_needs_nothing_from_anywhere_else(stand: Stand) -> None:
    """No script, no address but its own, and it may load none; every path is on it."""
    page = await ask(stand.url, "GET", "/docs")
    document = (await ask(stand.url, "GET", "/openapi.json")).body

    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert not re.search(r"<script|https?://|src=", page.body)
    assert all(path in page.body for path in document["paths"])
    assert "/v1/requests/{request_id}/events" in document["paths"]


async def test_the_document_tells_every_answer(stand: Stand) -> None:
    """Each operation of ours names its problems, and what takes no body no answer about one."""
    document = (await ask(stand.url, "GET", "/openapi.json")).body
    for operations in document["paths"].values():
        for operation in operations.values():
            told = set(operation["responses"])
            assert {"401", "403", "429", "500", "503"} <= told
            assert ("413" in told) == ("requestBody" in operation)
            assert operation["security"] == [{"ApiKey": []}]
    assert "HTTPValidationError" not in document["components"]["schemas"]
