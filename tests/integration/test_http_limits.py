"""ClientLimits on HTTP clients: incomplete requests, large bodies, shares of keys, and clients without a key."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis

from tasklore.contracts.parameters.body_sizes import MOST_VALUES
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.http.admission.clients import UnknownClients
from tasklore.supervisor.http.admission.key_file import KeyRing, make_key
from tasklore.supervisor.http.admission.limits import ClientLimits
from tasklore.supervisor.http.protocol import MOST_CHUNKS
from tests.http_client import PATIENCE_S, Connection, ask, until
from tests.integration.http_stand import Stand, http_stand

HELLO = {"text": "hello"}
#: A request whose body stops in the middle.
HALF = (
    b"POST /v1/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: "
    b"application/json\r\nContent-Length: 100\r\n\r\n{"
)


@pytest.fixture
async def keys(tmp_path: Path) -> tuple[KeyRing, dict[str, dict[str, str]]]:
    path = tmp_path / "keys.json"
    headers = {
        name: {"Authorization": f"Bearer {make_key(path, name, ('ask',), None)}"}
        for name in ("greedy", "meek")
    }
    return KeyRing(path), headers


@pytest.fixture
async def shared(
    servers: EmbeddedServers,
    redis: Redis,
    keys: tuple[KeyRing, dict[str, dict[str, str]]],
) -> AsyncIterator[Stand]:
    """Serve the API, each key with half of eight requests and four streams, and nothing answered yet."""
    async with http_stand(
        servers, redis, keys=keys[0], limits=ClientLimits(at_once=8, streams=4)
    ) as found:
        yield found


async def closed(connection: Connection) -> bool:
    async with asyncio.timeout(PATIENCE_S):
        return await connection.reader.read() == b""


async def test_a_body_that_does_not_come_is_not_waited_for(
    servers: EmbeddedServers, redis: Redis
) -> None:
    async with (
        http_stand(servers, redis, limits=ClientLimits(body_s=0.2)) as stand,
        Connection(stand.url) as connection,
    ):
        connection.writer.write(HALF)
        answer = await connection.answer()
        assert (answer.status, answer.body["type"]) == (
            408,
            "urn:tasklore:problem:too-slow",
        )
        assert await closed(connection)
        await until(lambda: stand.parts.life.inside == 0)
        # The deadline ends with the body.
        async with Connection(stand.url) as patient:
            patient.send("POST", "/v1/requests", HELLO | {"wait_seconds": 1})
            assert (await patient.answer()).status == 202


async def test_headers_that_do_not_come_are_not_waited_for(
    servers: EmbeddedServers, redis: Redis
) -> None:
    async with http_stand(servers, redis, limits=ClientLimits(head_s=0.2)) as stand:
        for sent in (b"", b"GET /v1/agents HTTP/1.1\r\nHost: local"):
            async with Connection(stand.url) as connection:
                connection.writer.write(sent)
                assert await closed(connection)


async def test_a_connection_too_many_is_closed_and_the_others_are_served(
    servers: EmbeddedServers, redis: Redis
) -> None:
    async with http_stand(servers, redis, limits=ClientLimits(connections=1)) as stand:
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


async def test_refused_connections_are_counted_by_reason(
    servers: EmbeddedServers, redis: Redis
) -> None:
    async with http_stand(
        servers, redis, limits=ClientLimits(connections=1, head_s=0.5)
    ) as stand:
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
    metrics = stand.parts.meter.render().decode().splitlines()
    for reason, number in (
        ("over_limit", 3),
        ("invalid_http", 1),
        ("timed_out", 1),
        ("evicted", 0),
    ):
        assert (
            f'tasklore_http_connections_refused_total{{reason="{reason}"}} {number}.0'
            in metrics
        )


async def test_requests_of_one_key_at_once_are_limited_to_its_share(
    shared: Stand, keys: tuple[KeyRing, dict[str, dict[str, str]]]
) -> None:
    greedy = keys[1]["greedy"]
    meek = keys[1]["meek"]
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
    greedy = keys[1]["greedy"]
    meek = keys[1]["meek"]
    body = HELLO | {"wait_seconds": 0}
    path = "/v1/requests/r1/events"
    await ask(
        shared.url, "POST", "/v1/requests", body, greedy | {"Idempotency-Key": "r1"}
    )
    async with (
        Connection(shared.url) as first,
        Connection(shared.url) as second,
        Connection(shared.url) as other,
    ):
        for one in (first, second):
            one.send("GET", path, headers=greedy)
            assert (await one.head())[0] == 200
        refused = await ask(shared.url, "GET", path, headers=greedy)
        assert (refused.status, refused.body["type"]) == (
            429,
            "urn:tasklore:problem:share",
        )
        other.send("GET", path, headers=meek)
        assert (await other.head())[0] == 200


@pytest.mark.parametrize("streams", [100, pytest.param(1_000, marks=pytest.mark.long)])
async def test_many_followers_of_one_key_are_limited_and_hold_one_subscription(
    servers: EmbeddedServers,
    redis: Redis,
    keys: tuple[KeyRing, dict[str, dict[str, str]]],
    streams: int,
) -> None:
    """All of one task: half of the streams are its share; those that leave give their places back."""
    greedy = keys[1]["greedy"]
    meek = keys[1]["meek"]
    async with (
        http_stand(
            servers, redis, keys=keys[0], limits=ClientLimits(streams=streams)
        ) as stand,
        AsyncExitStack() as stack,
    ):
        body = {
            "agent_id": "EchoAgent",
            "task": "echo",
            "parameters": {"word": "hi"},
            "wait_seconds": 0,
        }
        tasks = [
            (await ask(stand.url, "POST", "/v1/tasks", body, who)).body["task_id"]
            for who in (greedy, meek)
        ]
        path = f"/v1/tasks/{tasks[0]}/output"
        statuses = list[int]()
        for _ in range(streams // 2 + 20):
            one = await stack.enter_async_context(Connection(stand.url))
            one.send("GET", path, headers=greedy)
            statuses.append((await one.head())[0])
        assert statuses == [200] * (streams // 2) + [429] * 20
        feeds = stand.parts.feeds
        assert len(feeds._output) == len(feeds.demand_sources().progress) == 1
        other = await stack.enter_async_context(Connection(stand.url))
        other.send("GET", f"/v1/tasks/{tasks[1]}/output", headers=meek)
        assert (await other.head())[0] == 200
        await stack.aclose()
        await until(
            lambda: (
                stand.parts.life.streams == 0
                and not feeds._output
                and not feeds.demand_sources().progress
            )
        )


async def test_unanswered_requests_of_one_key_are_limited_to_its_share(
    shared: Stand,
    keys: tuple[KeyRing, dict[str, dict[str, str]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tasklore.supervisor.requests.outcome.MOST", 4)
    greedy = keys[1]["greedy"]
    meek = keys[1]["meek"]
    body = HELLO | {"wait_seconds": 0}
    came = [
        (await ask(shared.url, "POST", "/v1/requests", body, greedy)).status
        for _ in range(3)
    ]
    assert came == [202, 202, 429]
    assert (await ask(shared.url, "POST", "/v1/requests", body, meek)).status == 202


async def test_without_keys_there_is_no_share(
    servers: EmbeddedServers, redis: Redis
) -> None:
    async with (
        http_stand(servers, redis, limits=ClientLimits(at_once=2)) as stand,
        Connection(stand.url) as first,
    ):
        first.send("POST", "/v1/requests", HELLO)
        await until(lambda: stand.parts.life.inside == 1)
        assert (await ask(stand.url, "GET", "/v1/agents")).status == 200


BODY = b'{"text": "hello"}'
HEAD = "POST /v1/requests HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
#: Far more than the buffers of both ends of a connection hold.
ENDLESS = 64 * 1024**2


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis) -> AsyncIterator[Stand]:
    async with http_stand(servers, redis) as found:
        found.service.gate.set()
        yield found


async def _sent_until_the_end(asked: Connection, piece: bytes) -> int:
    """Return how many bytes of an endless body the other end took before it closed the connection."""
    sent = 0
    try:
        async with asyncio.timeout(PATIENCE_S):
            while sent < ENDLESS:
                asked.writer.write(piece)
                await asked.writer.drain()
                sent += len(piece)
    except ConnectionError:
        pass
    return sent


async def test_a_refused_body_is_not_read_to_its_end(
    servers: EmbeddedServers, redis: Redis, tmp_path: Path
) -> None:
    """The answer can be read while it is still sent, and the connection is closed soon after."""
    make_key(tmp_path / "keys.json", "ann", ("ask",), None)
    async with http_stand(
        servers, redis, keys=KeyRing(tmp_path / "keys.json")
    ) as stand:
        for length in ("Transfer-Encoding: chunked", f"Content-Length: {ENDLESS}"):
            async with Connection(stand.url) as asked:
                asked.writer.write(f"{HEAD}{length}\r\n\r\n".encode())
                status, _ = await asked.head()
                chunk = b"10000\r\n" + b"x" * 0x10000 + b"\r\n"
                assert status in (401, 413)
                assert await _sent_until_the_end(asked, chunk) < ENDLESS // 2


async def test_a_body_of_too_many_chunks_is_refused(stand: Stand) -> None:
    for length, status in ((MOST_CHUNKS, 200), (MOST_CHUNKS + 1, 400)):
        body = BODY + b" " * (length - len(BODY))
        chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
        async with Connection(stand.url) as asked:
            asked.writer.write(
                f"{HEAD}Transfer-Encoding: chunked\r\n\r\n".encode()
                + chunks
                + b"0\r\n\r\n"
            )
            answer = await asked.answer()
        assert answer.status == status, answer.body


async def test_a_body_with_too_many_values_is_refused(stand: Stand) -> None:
    """A megabyte of wrong ones took three to twelve seconds to refuse, in which nobody else was answered."""
    for path, field, value in (
        ("/v1/chat/completions", "messages", [1] * MOST_VALUES),
        ("/v1/agents/EchoAgent/brain/decide", "new_messages", [{}] * MOST_VALUES),
        (
            "/v1/tasks",
            "parameters",
            {f"p{number}": number for number in range(MOST_VALUES + 1)},
        ),
        ("/v1/pipelines", "pipeline", {"phases": [{}] * MOST_VALUES}),
    ):
        refused = await ask(
            stand.url, "POST", path, {"model": "tasklore", field: value}
        )
        assert refused.status == 413
        assert f"{MOST_VALUES:,} values; send fewer" in json.dumps(refused.body)


#: So slow that no test sees a second token.
SLOW = 0.001
AGENTS = "/v1/agents"
WRONG = {"Authorization": "Bearer tlk_guess"}


@pytest.fixture
def key(tmp_path: Path) -> tuple[KeyRing, dict[str, str]]:
    shown = make_key(tmp_path / "keys.json", "shop", ("ask",), None)
    return KeyRing(tmp_path / "keys.json"), {"Authorization": f"Bearer {shown}"}


@pytest.fixture
async def guarded(
    servers: EmbeddedServers, redis: Redis, key: tuple[KeyRing, dict[str, str]]
) -> AsyncIterator[Stand]:
    """Serve the API with a key, on two connections, of which an unknown client may send three requests."""
    unknown = UnknownClients(rate=SLOW, burst=3)
    limits = ClientLimits(connections=2, head_s=2.0)
    async with http_stand(
        servers, redis, keys=key[0], unknown=unknown, limits=limits
    ) as found:
        yield found


async def test_unknown_clients_are_limited_by_address_and_known_keys_are_not(
    guarded: Stand, key: tuple[KeyRing, dict[str, str]]
) -> None:
    """Guesses, requests without a key and the page of paths count alike."""
    statuses = [
        (await ask(guarded.url, "GET", AGENTS, headers=WRONG)).status,
        (await ask(guarded.url, "GET", AGENTS)).status,
        (await ask(guarded.url, "GET", "/openapi.json")).status,
    ]
    assert statuses == [401, 401, 200]
    for path, headers in (
        (AGENTS, WRONG),
        ("/docs", {}),
        ("/nothing", {"X-Forwarded-For": "6.6.6.6"}),
    ):
        refused = await ask(guarded.url, "GET", path, headers=headers)
        assert (refused.status, refused.body["type"]) == (
            429,
            "urn:tasklore:problem:rate",
        )
        assert (
            int(refused.headers["retry-after"]) >= 1,
            refused.headers["connection"],
        ) == (True, "close")
    for path in (AGENTS, "/openapi.json") * 3:
        assert (await ask(guarded.url, "GET", path, headers=key[1])).status == 200


async def test_a_new_connection_is_closed_when_every_open_one_has_shown_a_key(
    guarded: Stand, key: tuple[KeyRing, dict[str, str]]
) -> None:
    async with Connection(guarded.url) as one, Connection(guarded.url) as two:
        for known in (one, two):
            known.send("GET", AGENTS, headers=key[1])
            assert (await known.answer()).status == 200
        async with Connection(guarded.url) as third:
            for known in (one, two):
                known.send("GET", AGENTS, headers=key[1])
                assert (await known.answer()).status == 200
            assert await closed(third)
    await until(lambda: guarded.server.connections == 0)


async def test_a_known_key_gets_in_amid_a_burst_of_connects(
    servers: EmbeddedServers, redis: Redis, key: tuple[KeyRing, dict[str, str]]
) -> None:
    async with http_stand(
        servers, redis, keys=key[0], limits=ClientLimits(connections=8)
    ) as stand:
        address = (urlsplit(stand.url).hostname, urlsplit(stand.url).port)
        waiting = [socket.create_connection(address) for _ in range(8)]
        await until(lambda: stand.server.connections == 8)
        waiting += [socket.create_connection(address) for _ in range(8)]
        known = waiting[12]
        known.sendall(
            f"GET {AGENTS} HTTP/1.1\r\nHost: x\r\nAuthorization: {key[1]['Authorization']}\r\n\r\n".encode()
        )
        known.setblocking(False)
        async with asyncio.timeout(PATIENCE_S):
            first = await asyncio.get_running_loop().sock_recv(known, 12)
        assert first == b"HTTP/1.1 200"
        assert stand.server.connections == 8
        for one in waiting:
            one.close()


async def test_a_known_key_is_waited_for_longer_than_an_unknown_client(
    guarded: Stand, key: tuple[KeyRing, dict[str, str]]
) -> None:
    async with Connection(guarded.url) as known:
        known.send("POST", "/v1/requests", {"text": "hello"}, key[1])
        async with Connection(guarded.url) as unknown:
            assert await closed(unknown)
        guarded.service.gate.set()
        assert (await known.answer()).status == 200


async def test_an_answer_that_an_unknown_client_does_not_read_is_dropped(
    servers: EmbeddedServers, redis: Redis, key: tuple[KeyRing, dict[str, str]]
) -> None:
    # Longer than the loop of a busy machine stands still: that it waits has to be seen before it is over.
    async with http_stand(
        servers, redis, keys=key[0], limits=ClientLimits(head_s=2.0)
    ) as stand:
        # Making the document for the first time takes long.
        assert (
            await ask(stand.url, "GET", "/openapi.json", headers=key[1])
        ).status == 200
        await until(lambda: stand.server.connections == 0)
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            place = urlsplit(stand.url)
            deaf.connect((place.hostname, place.port))
            deaf.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: here\r\n\r\n" * 40)
            await until(
                lambda: stand.server.connections == 1 == stand.parts.life.inside
            )
            await until(
                lambda: stand.server.connections == 0 == stand.parts.life.inside
            )
