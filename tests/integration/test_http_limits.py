"""Limits on HTTP clients: incomplete requests are not waited for, and no key takes more than its share."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis
from structlog.testing import capture_logs

from runtime.servers.embedded import EmbeddedServers
from supervisor.http.admission.key_file import KeyRing, make_key
from supervisor.http.admission.limits import Limits
from tests.http_client import PATIENCE_S, Connection, ask, until
from tests.integration.http_stand import Stand, http_stand

HELLO = {"text": "hello"}
#: A request whose body stops in the middle.
HALF = (
    b"POST /v1/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
)


@pytest.fixture
async def keys(tmp_path: Path) -> tuple[KeyRing, dict[str, dict[str, str]]]:
    """Make two keys that may ask: the headers of each by name."""
    path = tmp_path / "keys.json"
    headers = {name: {"Authorization": f"Bearer {make_key(path, name, ('ask',), None)}"} for name in ("greedy", "meek")}
    return KeyRing(path), headers


@pytest.fixture
async def shared(
    servers: EmbeddedServers, redis: Redis, keys: tuple[KeyRing, dict[str, dict[str, str]]]
) -> AsyncIterator[Stand]:
    """Serve the API, each key with half of eight requests and four streams, and nothing answered yet."""
    async with http_stand(servers, redis, keys=keys[0], limits=Limits(at_once=8, streams=4)) as found:
        yield found


async def closed(connection: Connection) -> bool:
    """Return whether the other side ends *connection*, having said nothing more."""
    async with asyncio.timeout(PATIENCE_S):
        return await connection.reader.read() == b""


async def test_a_body_that_does_not_come_is_not_waited_for(servers: EmbeddedServers, redis: Redis) -> None:
    async with http_stand(servers, redis, limits=Limits(body_s=0.2)) as stand, Connection(stand.url) as connection:
        connection.writer.write(HALF)
        answer = await connection.answer()
        assert (answer.status, answer.body["type"]) == (408, "urn:tasklore:problem:too-slow")
        assert await closed(connection)
        await until(lambda: stand.parts.life.inside == 0)
        # The deadline ends with the body.
        async with Connection(stand.url) as patient:
            patient.send("POST", "/v1/requests", HELLO | {"wait_seconds": 1})
            assert (await patient.answer()).status == 202


async def test_headers_that_do_not_come_are_not_waited_for(servers: EmbeddedServers, redis: Redis) -> None:
    async with http_stand(servers, redis, limits=Limits(head_s=0.2)) as stand:
        for sent in (b"", b"GET /v1/agents HTTP/1.1\r\nHost: local"):
            async with Connection(stand.url) as connection:
                connection.writer.write(sent)
                assert await closed(connection)


async def test_a_connection_too_many_is_closed_and_the_others_are_served(
    servers: EmbeddedServers, redis: Redis
) -> None:
    async with http_stand(servers, redis, limits=Limits(connections=1)) as stand:
        async with Connection(stand.url) as first:
            await until(lambda: stand.server.connections == 1)
            for _ in range(2):
                burst = [await Connection(stand.url).__aenter__() for _ in range(3)]
                assert all([await closed(one) for one in burst])
                first.send("GET", "/v1/agents")
                assert (await first.answer()).status == 200
                assert stand.server.connections == 1
        await until(lambda: stand.server.connections == 0)
        assert (await ask(stand.url, "GET", "/v1/agents")).status == 200


async def test_refused_connections_are_counted_and_logged_in_one_line(
    servers: EmbeddedServers, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.http.protocol._REPORT_S", 2.0)
    with capture_logs() as logged:
        async with http_stand(servers, redis, limits=Limits(connections=1, head_s=0.5)) as stand:
            async with Connection(stand.url) as first:
                await until(lambda: stand.server.connections == 1)
                for _ in range(3):
                    async with Connection(stand.url) as one:
                        assert await closed(one)
                first.writer.write(b"no HTTP\r\n\r\n")
                assert (await first.head())[0] == 400
            await until(lambda: stand.server.connections == 0)
            async with Connection(stand.url) as silent:
                assert await closed(silent)
            await until(lambda: any(line["event"] == "api_connections_refused" for line in logged))
    lines = [line for line in logged if line["event"] == "api_connections_refused"]
    counts = {"over_limit": 3, "invalid_http": 1, "timed_out": 1}
    assert lines == [{"event": "api_connections_refused", "log_level": "warning", **counts}]
    shown = stand.parts.meter.render().decode().splitlines()
    for reason, number in (counts | {"evicted": 0}).items():
        assert f'tasklore_http_connections_refused_total{{reason="{reason}"}} {number}.0' in shown


async def test_requests_of_one_key_at_once_are_limited_to_its_share(
    shared: Stand, keys: tuple[KeyRing, dict[str, dict[str, str]]]
) -> None:
    greedy, meek = keys[1]["greedy"], keys[1]["meek"]
    waiting = [Connection(shared.url) for _ in range(4)]
    for one in waiting:
        await one.__aenter__()
        one.send("POST", "/v1/requests", HELLO, greedy)
    await until(lambda: shared.parts.life.inside == 4)
    refused = await ask(shared.url, "GET", "/v1/agents", headers=greedy)
    assert (refused.status, refused.body["type"]) == (429, "urn:tasklore:problem:share")
    assert int(refused.headers["retry-after"]) >= 1
    assert (await ask(shared.url, "GET", "/v1/agents", headers=meek)).status == 200
    shared.service.gate.set()
    for one in waiting:
        assert (await one.answer()).status == 200
        await one.__aexit__(None, None, None)
    assert (await ask(shared.url, "GET", "/v1/agents", headers=greedy)).status == 200
    assert not shared.parts.life.inside_of


async def test_streams_of_one_key_are_limited_to_its_share(
    shared: Stand, keys: tuple[KeyRing, dict[str, dict[str, str]]]
) -> None:
    greedy, meek = keys[1]["greedy"], keys[1]["meek"]
    body, path = HELLO | {"wait_seconds": 0}, "/v1/requests/r1/events"
    await ask(shared.url, "POST", "/v1/requests", body, greedy | {"Idempotency-Key": "r1"})
    async with Connection(shared.url) as first, Connection(shared.url) as second, Connection(shared.url) as other:
        for one in (first, second):
            one.send("GET", path, headers=greedy)
            assert (await one.head())[0] == 200
        refused = await ask(shared.url, "GET", path, headers=greedy)
        assert (refused.status, refused.body["type"]) == (429, "urn:tasklore:problem:share")
        other.send("GET", path, headers=meek)
        assert (await other.head())[0] == 200


async def test_unanswered_requests_of_one_key_are_limited_to_its_share(
    shared: Stand, keys: tuple[KeyRing, dict[str, dict[str, str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("supervisor.http.requests.outcome.MOST", 4)
    greedy, meek = keys[1]["greedy"], keys[1]["meek"]
    body = HELLO | {"wait_seconds": 0}
    came = [(await ask(shared.url, "POST", "/v1/requests", body, greedy)).status for _ in range(3)]
    assert came == [202, 202, 429]
    assert (await ask(shared.url, "POST", "/v1/requests", body, meek)).status == 202


async def test_without_keys_there_is_no_share(servers: EmbeddedServers, redis: Redis) -> None:
    async with http_stand(servers, redis, limits=Limits(at_once=2)) as stand, Connection(stand.url) as first:
        first.send("POST", "/v1/requests", HELLO)
        await until(lambda: stand.parts.life.inside == 1)
        assert (await ask(stand.url, "GET", "/v1/agents")).status == 200
