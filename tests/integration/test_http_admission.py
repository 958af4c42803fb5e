"""Admission to the HTTP API: keys, users, hosts, sizes and rates; every refusal is a problem that names the cure."""

import asyncio
import gzip
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Role
from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.metrics import Metrics
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.http.admission.limits import ClientLimits
from tasklore.supervisor.http.app import make_app
from tasklore.supervisor.http.server import HttpServer, demand_keys
from tests.http_client import PATIENCE_S, Answer, Connection, ask, until
from tests.integration.http_stand import Stand, assigned, http_stand

HELLO = {"text": "hello"}


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    async with http_stand(
        servers, redis, limits=ClientLimits(body_bytes=2000)
    ) as found:
        found.service.gate.set()
        yield found


@pytest.fixture
async def guarded(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[tuple[Stand, dict[str, Any]]]:
    """Serve the API with keys: the headers of each by name."""
    path = tmp_path / "keys.json"
    headers = {}
    made: list[tuple[str, Role, str | None]] = [
        ("ann", "ask", "ann"),
        ("bob", "ask", "bob"),
        ("annread", "read", "ann"),
        ("reader", "read", None),
        ("admin", "admin", None),
    ]
    for name, role, user in made:
        headers[name] = {
            "Authorization": f"Bearer {make_key(path, name, (role,), user)}"
        }
    async with http_stand(servers, redis, keys=KeyRing(path)) as found:
        found.service.gate.set()
        yield found, headers


def problem(answer: Answer, status: int) -> str:
    assert (answer.status, answer.headers["content-type"]) == (
        status,
        "application/problem+json",
    )
    assert answer.body["status"] == status
    assert answer.body["type"].startswith("urn:tasklore:problem:")
    return str(answer.body["detail"])


async def test_what_nothing_can_keep_is_refused_with_its_field_at_every_door(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """Half of a surrogate pair, and a number that is none; the connection goes on."""
    bodies = {
        rb'{"text": "a", "value": {"deep": ["b", "\ud83d."]}}': "value.deep.1",
        rb'{"value": {"\udc00": 1}}': "value",
        rb'"\uD800\uD800"': "body",
        b'{"text": "a", "value": [-Infinity]}': "value.0",
        b'{"text": "a", "value": ["\xed\xa0\xbd"]}': "value.0",
        b'{"value": {"\xed\xb0\x80": 1}}': "value",
        rb'{"text": "a", "value": "\ud83d"}'.decode().encode("utf-16"): "value",
        b'{"text": "a", "value": {"n": 1e400}}': "value.n",
        b'{"text": "a", "value": -' + b"9" * 400 + b".5}": "value",
        b'{"text": "a", "value": 1' + b"0" * 300 + b"e20}": "value",
    }
    async with (
        http_stand(
            servers, redis, limits=ClientLimits(rate=100_000, burst=100_000)
        ) as stand,
        httpx.AsyncClient(base_url=stand.url, timeout=PATIENCE_S) as client,
    ):
        paths = (await client.get("/openapi.json")).json()["paths"]
        doors = [
            (method, re.sub(r"\{[^}]*\}", "a", path))
            for path, operations in paths.items()
            for method, operation in operations.items()
            if "requestBody" in operation
        ]
        assert len(doors) > 15
        for method, path in doors:
            for body, field in bodies.items():
                async with Connection(stand.url) as connection:
                    connection.send(method.upper(), path, body)
                    connection.send("GET", "/v1/agents")
                    refused = await connection.answer()
                    # OpenAI's clients know 400.
                    status = 400 if path.startswith("/v1/chat/") else 422
                    assert (path, body, refused.status) == (path, body, status)
                    assert "connection" not in refused.headers
                    shown = json.dumps(refused.body)
                    assert f"{field}: " in shown or f'"param": "{field}"' in shown
                    assert (await connection.answer()).status == 200


async def test_whole_pairs_are_taken(stand: Stand) -> None:
    """In either spelling, and halves that are only spelled: a backslash, then letters."""
    for body in (
        rb'{"text": "\ud83d\ude00"}',
        rb'{"text": "\\ud83d NaN"}',
        '{"text": "\U0001f600 \ud7ff 1e400"}'.encode(),
    ):
        async with Connection(stand.url) as connection:
            connection.send("POST", "/v1/requests", body)
            assert (await connection.answer()).status == 200


async def test_a_key_with_the_right_role_is_needed_where_there_are_keys(
    guarded: tuple[Stand, dict[str, Any]],
) -> None:
    stand, headers = guarded
    for wrong in (
        {},
        {"Authorization": "Bearer tlk_guess"},
        {"Authorization": "Basic YTpi"},
    ):
        answer = await ask(stand.url, "POST", "/v1/requests", HELLO, wrong)
        assert "tasklore api-key" in problem(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"
    assert (await ask(stand.url, "GET", "/v1/nothing")).status == 401
    assert (await ask(stand.url, "GET", "/openapi.json")).status == 200
    assert (
        await ask(stand.url, "GET", "/v1/agents", headers=headers["ann"])
    ).status == 200
    refused = await ask(stand.url, "POST", "/v1/requests", HELLO, headers["reader"])
    assert "'ask'" in problem(refused, 403)
    assert (
        await ask(stand.url, "POST", "/v1/requests", HELLO, headers["admin"])
    ).status == 200


async def test_a_key_for_one_user_acts_for_no_other(
    guarded: tuple[Stand, dict[str, Any]],
) -> None:
    stand, headers = guarded
    own = await ask(
        stand.url,
        "POST",
        "/v1/requests",
        HELLO | {"conversation": "talk"},
        headers["ann"],
    )
    assert (own.status, stand.service.asked[0].user_id) == (200, "ann")
    assert "another user" in problem(
        await ask(
            stand.url, "POST", "/v1/requests", HELLO | {"user": "bob"}, headers["ann"]
        ),
        403,
    )
    path = f"/v1/requests/{own.body['request_id']}"
    assert (await ask(stand.url, "GET", path, headers=headers["ann"])).status == 200
    for method, place in (("GET", path), ("GET", f"{path}/events"), ("DELETE", path)):
        problem(await ask(stand.url, method, place, headers=headers["bob"]), 404)
    problem(
        await ask(
            stand.url,
            "POST",
            "/v1/requests",
            HELLO | {"conversation": "talk"},
            headers["bob"],
        ),
        403,
    )


async def test_a_key_for_one_user_reads_nobody_elses_words_in_a_shared_conversation(
    guarded: tuple[Stand, dict[str, Any]],
) -> None:
    stand, headers = guarded
    talk = {"conversation": "bob-1"}
    path = "/v1/conversations/bob-1"
    own = headers["annread"]
    key = headers["ann"] | {"Idempotency-Key": "one"}
    await ask(stand.url, "POST", "/v1/requests", talk | {"text": "I am ann"}, key)
    other = headers["admin"] | {"Idempotency-Key": "one"}
    await ask(
        stand.url,
        "POST",
        "/v1/requests",
        talk | {"text": "bob's secret", "user": "bob"},
        other,
    )
    await ask(
        stand.url,
        "POST",
        "/v1/requests",
        talk | {"text": "nobody's secret"},
        headers["admin"],
    )

    shown = await ask(stand.url, "GET", path, headers=own)
    assert [one["message"] for one in shown.body["messages"]] == [
        "I am ann",
        "Heard: I am ann",
    ]
    again = await ask(stand.url, "GET", "/v1/requests/one", headers=headers["ann"])
    assert again.body["reply"]["text"] == "Heard: I am ann"
    assert (
        len(
            (await ask(stand.url, "GET", path, headers=headers["admin"])).body[
                "messages"
            ]
        )
        == 6
    )


async def test_a_key_for_one_user_finds_the_task_of_its_request_and_no_other_key_does(
    guarded: tuple[Stand, dict[str, Any]],
) -> None:
    stand, headers = guarded
    stand.service.gate.clear()
    stand.service.assigns = True
    body = HELLO | {"wait_seconds": 0}
    await ask(
        stand.url,
        "POST",
        "/v1/requests",
        body,
        headers["ann"] | {"Idempotency-Key": "mine"},
    )
    await until(lambda: bool(stand.service.asked))
    own = await ask(stand.url, "GET", "/v1/tasks/r-mine", headers=headers["ann"])
    assert (own.status, own.body["task_id"]) == (200, "r-mine")
    await stand.parts.ledger.accept(
        "r-mine", 1, assigned("r-mine").model_dump_json().encode()
    )
    traced = await ask(
        stand.url, "GET", "/v1/tasks/r-mine/trace", headers=headers["ann"]
    )
    assert (
        traced.status,
        traced.body["root"]["task"],
        traced.body["sums"]["tasks"],
    ) == (200, "echo", 1)
    for path in ("/v1/tasks/r-mine", "/v1/tasks/r-mine/trace"):
        problem(await ask(stand.url, "GET", path, headers=headers["bob"]), 404)
    stand.service.gate.set()


async def test_without_keys_only_this_machine_is_answered(stand: Stand) -> None:
    assert "TASKLORE_API_KEYS_FILE" in problem(
        await ask(stand.url, "GET", "/v1/agents", headers={"Host": "evil.example"}), 403
    )
    for host in ("localhost:1", "127.0.0.1", "[::1]:80"):
        answer = await ask(
            stand.url,
            "GET",
            "/v1/agents",
            headers={"Host": host, "Origin": "http://evil.example"},
        )
        assert answer.status == 200
        assert not [
            name for name in answer.headers if name.startswith("access-control")
        ]


async def test_a_page_from_elsewhere_changes_nothing(stand: Stand) -> None:
    """A browser sends a request without a body for any page, and only says where that page is from."""
    path = "/v1/pipelines/run-1/cancel"
    for origin in ("http://evil.example", "http://127.0.0.1.evil.example:80", "null"):
        detail = problem(
            await ask(stand.url, "POST", path, headers={"Origin": origin}), 403
        )
        assert "cross-origin request refused" in detail
    for origin in ("http://localhost:3000", "http://127.0.0.1:8000"):
        problem(await ask(stand.url, "POST", path, headers={"Origin": origin}), 404)


async def test_a_reachable_address_without_keys_or_a_taken_one_is_refused_at_the_start(
    stand: Stand,
) -> None:
    assert demand_keys("127.0.0.1", None) is None
    assert demand_keys("::1", None) is None
    with pytest.raises(ConfigurationError, match="tasklore api-key"):
        demand_keys("0.0.0.0", None)
    with pytest.raises(ConfigurationError, match="TASKLORE_API_PORT"):
        HttpServer(
            make_app(stand.parts),
            stand.parts,
            "127.0.0.1",
            int(stand.url.rpartition(":")[2]),
        )


async def test_a_body_is_limited_in_size(stand: Stand) -> None:
    large = {"text": "x" * 3000}
    assert "2,000 bytes" in problem(
        await ask(stand.url, "POST", "/v1/requests", large), 413
    )
    async with Connection(stand.url) as connection:
        connection.writer.write(
            b"POST /v1/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n"
            b"c00\r\n" + b"x" * 0xC00 + b"\r\n0\r\n\r\n"
        )
        problem(await connection.answer(), 413)


async def test_requests_beyond_the_rate_are_refused_with_a_time_to_retry(
    servers: EmbeddedServers, redis: Redis
) -> None:
    # So slow that no machine sees a fourth token.
    async with http_stand(
        servers, redis, limits=ClientLimits(rate=0.01, burst=3)
    ) as stand:
        answers = [await ask(stand.url, "GET", "/v1/agents") for _ in range(4)]
    assert [answer.status for answer in answers[:3]] == [200] * 3
    assert problem(answers[3], 429)
    assert 1 <= int(answers[3].headers["retry-after"]) <= 100


#: What is asked, the status of the answer, and a word of its problem.
#: What is asked, the status of the answer, and words of its problem.
ERRORS: tuple[tuple[str, str, object, dict[str, str], int, str], ...] = (
    ("GET", "/v2", None, {}, 404, "GET /docs"),
    ("PATCH", "/v1/requests/r1", None, {}, 405, "DELETE, GET"),
    ("POST", "/v1/requests", b"{", {}, 400, "not valid JSON"),
    ("POST", "/v1/requests", b'{"text": "\xff"}', {}, 400, "not UTF-8 text"),
    (
        "POST",
        "/v1/requests",
        gzip.compress(b"{}"),
        {"Content-Encoding": "gzip"},
        415,
        "without `Content-Encoding`",
    ),
    (
        "POST",
        "/v1/requests",
        HELLO,
        {"Content-Type": "text/plain"},
        415,
        "application/json",
    ),
    ("POST", "/v1/requests", {"text": ""}, {}, 422, "text: "),
    (
        "POST",
        "/v1/requests",
        {"txt": "x"},
        {},
        422,
        "text: is needed; txt: is not known; remove it, or correct its name",
    ),
    (
        "POST",
        "/v1/requests",
        {"text": "x", "time_zone": "Asia/Tokio"},
        {},
        422,
        "did you mean 'Asia/Tokyo'?",
    ),
    ("POST", "/v1/requests", [], {}, 422, "body: "),
    ("GET", "/v1/requests/a%20b", None, {}, 422, "request_id: "),
    ("GET", "/v1/requests/unknown", None, {}, 404, "'unknown'"),
    ("GET", "/v1/tasks/unknown", None, {}, 404, "'unknown'"),
    ("GET", "/v1/agents/EchoAgnt", None, {}, 404, "did you mean 'EchoAgent'?"),
    # Messages that an agent hears belong into a field of their own.
    (
        "POST",
        "/v1/agents/EchoAgent/brain/decide",
        {
            "name": "Ana",
            "simulation_time": 1,
            "sensory_data": {"position": {"x": 1, "z": 1}, "receivedTexts": ["hi"]},
        },
        {},
        422,
        "send it in new_messages",
    ),
)


async def test_every_error_is_a_problem_with_its_cure(stand: Stand) -> None:
    for method, path, body, headers, status, words in ERRORS:
        answer = await ask(stand.url, method, path, body, headers)
        assert words in problem(answer, status), (method, path)
        if status == 405:
            assert answer.headers["allow"] == "DELETE, GET, HEAD"


async def test_bytes_that_are_no_http_end_the_connection_and_are_not_logged(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    for sent in (
        b"no http\r\n\r\n",
        b"GET /v1/agents HTTP/1.1\r\nHost: localhost\r\ntraceparent: \x00\r\n\r\n",
    ):
        async with Connection(stand.url) as asked:
            asked.writer.write(sent)
            status, headers = await asked.head()
            assert (status, headers["connection"]) == (400, "close")
    async with Connection(stand.url) as asked:
        head = b"Host: localhost\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n"
        asked.writer.write(b"POST /v1/requests HTTP/1.1\r\n" + head)
        assert (await asked.answer()).status == 415
        asked.writer.write(b"no length\r\n")
        async with asyncio.timeout(PATIENCE_S):
            assert await asked.reader.read() == b""
    assert not [one for one in caplog.records if one.levelname in ("ERROR", "WARNING")]


async def test_head_is_answered_like_get_without_the_body(stand: Stand) -> None:
    """Also of a stream, which would not end."""
    for path in (
        "/v1/agents",
        "/v1/agents/Nobody",
        "/v1/chat/completions",
        "/openapi.json",
        "/docs",
    ):
        async with Connection(stand.url) as asked:
            asked.send("GET", path, headers={"Connection": "close"})
            expected = await asked.head()
            body = await asked.reader.read()
        async with Connection(stand.url) as asked:
            asked.send("HEAD", path, headers={"Connection": "close"})
            found = await asked.head()
            rest = await asked.reader.read()

        assert (found[0], rest) == (expected[0], b""), path
        assert {**found[1], "date": ""} == {**expected[1], "date": ""}, path
        assert int(found[1]["content-length"]) == len(body) > 0, path

    sent = await ask(
        stand.url,
        "POST",
        "/v1/requests",
        HELLO | {"conversation": "c", "wait_seconds": 0},
    )
    async with Connection(stand.url) as connection:
        connection.send(
            "HEAD",
            f"/v1/requests/{sent.body['request_id']}/events",
            headers={"Connection": "close"},
        )
        assert ((await connection.head())[0], await connection.reader.read()) == (
            200,
            b"",
        )
    async with asyncio.timeout(PATIENCE_S):
        await stand.parts.life.empty()


async def test_requests_are_counted_by_route_and_never_by_path(
    servers: EmbeddedServers, redis: Redis
) -> None:
    metrics = Metrics("1")
    async with http_stand(servers, redis, meter=metrics) as stand:
        for user in ("ann", "bob"):
            await ask(stand.url, "GET", f"/v1/memory/{user}/documents/resource_none")
        await ask(stand.url, "GET", "/ann")
        await ask(stand.url, "FETCH", "/ann")
    counted = {
        line
        for line in metrics.render().decode().splitlines()
        if line.startswith("tasklore_http_requests_total")
    }
    assert counted == {
        'tasklore_http_requests_total{method="GET",route="/v1/memory/{user}/documents/{resource}",status="404"} 2.0',
        'tasklore_http_requests_total{method="GET",route="unrouted",status="404"} 1.0',
        'tasklore_http_requests_total{method="other",route="unrouted",status="404"} 1.0',
    }


#: What is asked where nothing is, and what its problem names.
MEANT = (
    ("GET", "//v1//agents/", "did you mean '/v1/agents'?"),
    ("GET", "/V1/AGENTS/EchoAgent", "did you mean '/v1/agents/EchoAgent'?"),
    ("POST", "/v1/v1/chat/completions", "did you mean '/v1/chat/completions'?"),
    ("POST", "/v1/responses", "there are /v1/chat/completions and /v1/models"),
    ("GET", "/metrics", "TASKLORE_HTTP_PORT"),
    ("GET", "/v1", "GET /docs lists them all"),
    ("GET", "/" + "v1/" * 2000, "GET /docs lists them all"),
)


async def test_an_unknown_path_names_the_one_that_was_meant(stand: Stand) -> None:
    for method, path, cure in MEANT:
        answer = await ask(
            stand.url, method, path, {"text": "hello"} if method == "POST" else None
        )
        detail = answer.body.get("detail") or answer.body["error"]["message"]
        assert (answer.status, cure in detail) == (404, True), (method, path, detail)


#: Paths with a slash in a value, the name of that, and the cure.
SLASHED = (
    ("/v1/memory/agent%2Fx/export", "user", "say 'x', and 'agent' as `scope`"),
    ("/v1/memory/ana%2Fx/documents/a", "user", "which no name in a path has"),
    ("/v1/memory/ana/documents/a%2fb", "resource", "which no name in a path has"),
    ("/v1/agents/a%2Fb", "agent_id", "which no name in a path has"),
)


async def test_a_slash_in_a_value_of_a_path_is_told_by_its_name(stand: Stand) -> None:
    """It parts the path, so that nothing is there."""
    for path, name, cure in SLASHED:
        answer = await ask(stand.url, "GET", path)
        (fault,) = answer.body["problems"]
        assert answer.status == 422, path
        assert (fault["where"], cure in fault["message"]) == (name, True), fault
    assert (await ask(stand.url, "GET", "/v1/nothing/a%2Fb")).status == 404


async def test_options_returns_the_methods_and_permits_no_other_origin(
    stand: Stand,
) -> None:
    """A browser asks so before it sends the request of another page."""
    for path, methods in (
        ("/v1/requests/one", "DELETE, GET, HEAD"),
        ("/v1/chat/completions", "POST"),
    ):
        answer = await ask(
            stand.url,
            "OPTIONS",
            path,
            headers={"Access-Control-Request-Method": "POST"},
        )
        assert (answer.status, answer.headers["allow"]) == (204, methods)
        assert not [
            name for name in answer.headers if name.startswith("access-control")
        ]
    assert (await ask(stand.url, "OPTIONS", "/v1/nothing")).status == 404


async def test_the_page_of_paths_is_complete_and_loads_nothing_from_elsewhere(
    stand: Stand,
) -> None:
    home = await ask(stand.url, "GET", "/")
    assert (home.status, home.headers["location"]) == (307, "/docs")
    page = await ask(stand.url, "GET", "/docs")
    assert page.headers["content-security-policy"].startswith("default-src 'none'")
    assert not re.search(r"<script|https?://|src=", page.body)

    document = (await ask(stand.url, "GET", "/openapi.json")).body
    assert all(path in page.body for path in document["paths"])
    assert "/v1/requests/{request_id}/events" in document["paths"]
    for operation in [
        one for operations in document["paths"].values() for one in operations.values()
    ]:
        statuses = set(operation["responses"])
        assert {"401", "403", "429", "500", "503"} <= statuses
        assert ("413" in statuses) == ("requestBody" in operation)
        assert operation["security"] == [{"ApiKey": []}]
    assert "HTTPValidationError" not in document["components"]["schemas"]
