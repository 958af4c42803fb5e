"""Pages in browsers that ask from elsewhere (CORS): which may, and the headers on whatever they are answered."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.clients import UnknownClients
from tasklore.supervisor.http.admission.cross_origin import CrossOrigin
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.http.admission.limits import ClientLimits
from tasklore.supervisor.http.server import demand_cross_origin
from tests.http_client import Answer, Connection, ask
from tests.integration.http_stand import Stand, http_stand

PAGE = "https://app.example.com"
OTHER = "https://evil.example.com"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
#: A page's key; without keys any headers do.
Keyed = tuple[Stand, Mapping[str, str]]


@pytest.fixture
async def keyed(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> AsyncIterator[Keyed]:
    """Serve the API with a key, to pages of one origin."""
    file = tmp_path / "keys.json"
    key = {"Authorization": f"Bearer {make_key(file, 'page', ('ask',), None)}"}
    async with http_stand(
        servers,
        redis,
        keys=KeyRing(file),
        cross_origin=CrossOrigin([PAGE], METHODS, ["*"]),
        limits=ClientLimits(body_bytes=2000),
    ) as stand:
        stand.service.gate.set()
        yield stand, key


async def preflight(stand: Stand, path: str, origin: str, **asked: str) -> Answer:
    """Return the answer to the question of a browser whether a page may ask."""
    named = {
        f"Access-Control-Request-{name.title()}": value for name, value in asked.items()
    }
    return await ask(stand.url, "OPTIONS", path, headers={"Origin": origin, **named})


def may_read(answer: Answer) -> str | None:
    """Return the origin whose pages may read *answer*; each says that it differs by origin."""
    assert "Origin" in answer.headers["vary"]
    assert "access-control-allow-credentials" not in answer.headers
    return answer.headers.get("access-control-allow-origin")


async def test_no_page_may_ask_unless_that_is_set(
    servers: EmbeddedServers, redis: Redis
) -> None:
    async with http_stand(servers, redis) as stand:
        for answer in (
            await preflight(stand, "/v1/requests", PAGE, method="POST"),
            await ask(stand.url, "GET", "/v1/agents", headers={"Origin": PAGE}),
        ):
            assert not [name for name in answer.headers if name.startswith("access-")]


async def test_the_question_of_a_browser_is_answered_without_a_key(
    keyed: Keyed,
) -> None:
    """Before anything is counted, at any path, and as often as pages ask."""
    stand, _ = keyed
    wanted = "authorization,content-type,idempotency-key,x-stainless-os"
    for number in range(80):
        path = ("/v1/requests", "/v1/chat/completions", "/v1/nothing")[number % 3]
        answer = await preflight(stand, path, PAGE, method="POST", headers=wanted)
        assert (answer.status, may_read(answer)) == (200, PAGE)
        assert answer.headers["access-control-allow-headers"] == wanted
        assert "DELETE" in answer.headers["access-control-allow-methods"]
    refused = await preflight(stand, "/v1/requests", OTHER, method="POST")
    assert (refused.status, may_read(refused)) == (400, None)
    # A question that is none of a browser's is one of a client.
    answer = await ask(stand.url, "OPTIONS", "/v1/requests", headers={"Origin": PAGE})
    assert answer.status == 401


async def test_methods_and_headers_may_be_fewer(
    servers: EmbeddedServers, redis: Redis
) -> None:
    narrow = CrossOrigin([PAGE], ["GET"], ["Authorization"])
    async with http_stand(servers, redis, cross_origin=narrow) as stand:
        for asked, status in (
            ({"method": "GET", "headers": "authorization"}, 200),
            ({"method": "POST", "headers": "authorization"}, 400),
            ({"method": "GET", "headers": "x-time-zone"}, 400),
        ):
            answer = await preflight(stand, "/v1/agents", PAGE, **asked)
            assert answer.status == status


async def test_every_answer_may_be_read_by_the_page_that_asked(keyed: Keyed) -> None:
    """Also refusals by any layer, and what no route foresees: else a page only learns that something failed."""
    stand, key = keyed
    own = {"Origin": PAGE}
    keyed_own = own | dict(key)

    async def failing(*_: object, **__: object) -> None:
        raise RuntimeError("unforeseen")

    cases: list[tuple[int, str, str, Any, dict[str, str]]] = [
        (200, "GET", "/v1/models", None, keyed_own),
        (200, "POST", "/v1/requests", {"text": "hello"}, keyed_own),
        (401, "GET", "/v1/models", None, own),
        (401, "POST", "/v1/chat/completions", {"model": "tasklore"}, own),
        (403, "GET", "/v1/webhooks", None, keyed_own),
        (404, "GET", "/chat/completions", None, keyed_own),
        (404, "GET", "/v1/models/none", None, keyed_own),
        (405, "PUT", "/v1/requests", None, keyed_own),
        (413, "POST", "/v1/requests", {"text": "x" * 3000}, keyed_own),
        (415, "POST", "/v1/requests", b"x", keyed_own | {"Content-Encoding": "gzip"}),
        (422, "POST", "/v1/requests", {"text": ""}, keyed_own),
    ]
    for status, method, path, body, headers in cases:
        answer = await ask(stand.url, method, path, body, headers)
        assert (answer.status, may_read(answer)) == (status, PAGE), path
        assert "Retry-After" in answer.headers["access-control-expose-headers"]
        stranger = await ask(stand.url, method, path, body, headers | {"Origin": OTHER})
        assert (stranger.status, may_read(stranger)) == (status, None), path
        none = {name: one for name, one in headers.items() if name != "Origin"}
        assert may_read(await ask(stand.url, method, path, body, none)) is None
    stand.service.answer = failing  # type: ignore[assignment,method-assign]
    body = {"model": "tasklore", "messages": [{"role": "user", "content": "hi"}]}
    answer = await ask(stand.url, "POST", "/v1/chat/completions", body, keyed_own)
    assert (answer.status, may_read(answer)) == (500, PAGE)
    stand.parts.records.find = failing  # type: ignore[assignment,method-assign]
    answer = await ask(stand.url, "GET", "/v1/requests/a", headers=keyed_own)
    assert (answer.status, may_read(answer)) == (500, PAGE)


async def test_limits_and_streams_have_the_headers_too(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> None:
    file = tmp_path / "keys.json"
    key = {"Authorization": f"Bearer {make_key(file, 'page', ('ask',), None)}"}
    own = {"Origin": PAGE}
    async with http_stand(
        servers,
        redis,
        keys=KeyRing(file),
        cross_origin=CrossOrigin([PAGE], METHODS, ["*"]),
        limits=ClientLimits(streams=2, rate=0.01, burst=5),
        unknown=UnknownClients(rate=0.01, burst=1),
    ) as stand:
        stand.service.gate.set()
        body = {
            "model": "tasklore",
            "messages": [{"role": "user", "content": "hi"}],
            "stream": True,
        }
        async with Connection(stand.url) as page:
            page.send("POST", "/v1/chat/completions", body, own | key)
            status, headers = await page.head()
            assert (status, headers["access-control-allow-origin"]) == (200, PAGE)
            assert headers["content-type"].startswith("text/event-stream")
        stand.parts.life.draining.set()
        late = await ask(stand.url, "POST", "/v1/chat/completions", body, own | key)
        assert (late.status, may_read(late)) == (503, PAGE)
        for _ in range(3):
            assert may_read(
                await ask(stand.url, "GET", "/v1/models", headers=own | key)
            )
        fast = await ask(stand.url, "GET", "/v1/models", headers=own | key)
        assert (fast.status, may_read(fast)) == (429, PAGE)
        assert may_read(await ask(stand.url, "GET", "/v1/models", headers=own)) == PAGE
        unknown = await ask(stand.url, "GET", "/v1/models", headers=own)
        assert (unknown.status, may_read(unknown)) == (429, PAGE)


async def test_a_named_page_may_ask_where_no_keys_are(
    servers: EmbeddedServers, redis: Redis
) -> None:
    """Of this machine alone, as before; any other is refused whatever its browser lets it send."""
    named = CrossOrigin([PAGE], METHODS, ["*"])
    async with http_stand(servers, redis, cross_origin=named) as stand:
        stand.service.gate.set()
        hello = {"text": "hello"}
        for origin, status in ((PAGE, 200), (OTHER, 403), ("null", 403)):
            answer = await ask(
                stand.url, "POST", "/v1/requests", hello, {"Origin": origin}
            )
            assert answer.status == status
            assert may_read(answer) == (PAGE if origin == PAGE else None)
        rebound = {"Origin": PAGE, "Host": "app.example.com"}
        answer = await ask(stand.url, "POST", "/v1/requests", hello, rebound)
        assert answer.status == 403


async def test_any_page_needs_a_key(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> None:
    with pytest.raises(ConfigurationError, match="TASKLORE_API_CORS_ORIGINS"):
        demand_cross_origin(["*"], METHODS, ["*"], has_keys=False)
    assert demand_cross_origin([], METHODS, ["*"], has_keys=False) is None
    file = tmp_path / "keys.json"
    key = {"Authorization": f"Bearer {make_key(file, 'page', ('ask',), None)}"}
    anybody = demand_cross_origin(["*"], METHODS, ["*"], has_keys=True)
    async with http_stand(
        servers, redis, keys=KeyRing(file), cross_origin=anybody
    ) as stand:
        for origin in (PAGE, OTHER, "null"):
            answer = await ask(
                stand.url, "GET", "/v1/models", headers={"Origin": origin, **key}
            )
            assert (answer.status, may_read(answer)) == (200, "*")
        assert (await ask(stand.url, "GET", "/v1/models")).status == 401


@pytest.mark.parametrize(
    ("method", "path", "kind", "status"),
    [
        ("GET", "/approve/a", None, 429),
        ("POST", "/approve/a", "application/x-www-form-urlencoded", 429),
        ("POST", "/approve/a", "application/json", 415),
        ("GET", "/approve/a/b", None, 404),
    ],
)
async def test_a_person_with_a_link_sees_a_page_whoever_refuses(
    servers: EmbeddedServers,
    redis: Redis,
    tmp_path: Path,
    method: str,
    path: str,
    kind: str | None,
    status: int,
) -> None:
    """The headers of the refusal stay; programs get their problem, as everywhere."""
    file = tmp_path / "keys.json"
    make_key(file, "a", ("ask",), None)
    burst = 1 if status == 429 else 9
    async with http_stand(
        servers,
        redis,
        keys=KeyRing(file),
        unknown=UnknownClients(rate=0.01, burst=burst),
    ) as stand:
        await ask(stand.url, "GET", "/docs")
        headers = {} if kind is None else {"Content-Type": kind}
        body = None if kind is None else b"decision=approve"
        answer = await ask(stand.url, method, path, body, headers)
        assert answer.status == status
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        assert ("retry-after" in answer.headers) == (status == 429)
        program = await ask(stand.url, "GET", "/v1/agents")
        assert program.headers["content-type"] == "application/problem+json"


async def test_no_page_reads_what_a_signed_link_shows(keyed: Keyed) -> None:
    stand, _ = keyed
    answer = await ask(stand.url, "GET", "/approve/a", headers={"Origin": PAGE})
    assert "access-control-allow-origin" not in answer.headers
