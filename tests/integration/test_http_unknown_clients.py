"""Clients without a known key are limited by address, while callers with a key are admitted."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis

from runtime.networks import networks_in
from runtime.servers.embedded import EmbeddedServers
from supervisor.http.admission.clients import Origins, UnknownClients
from supervisor.http.admission.key_file import KeyRing, make_key
from supervisor.http.admission.limits import Limits
from tests.http_client import PATIENCE_S, Connection, ask, until
from tests.integration.http_stand import Stand, http_stand

#: So slow that no test sees a second token.
SLOW = 0.001
AGENTS = "/v1/agents"
WRONG = {"Authorization": "Bearer tlk_guess"}


@pytest.fixture
def key(tmp_path: Path) -> tuple[KeyRing, dict[str, str]]:
    """Return a ring with one key, and the header that shows it."""
    shown = make_key(tmp_path / "keys.json", "shop", ("ask",), None)
    return KeyRing(tmp_path / "keys.json"), {"Authorization": f"Bearer {shown}"}


@pytest.fixture
async def stand(servers: EmbeddedServers, redis: Redis, key: tuple[KeyRing, dict[str, str]]) -> AsyncIterator[Stand]:
    """Serve the API with a key, on two connections, of which an unknown client may send three requests."""
    unknown, limits = UnknownClients(rate=SLOW, burst=3), Limits(connections=2, head_s=2.0)
    async with http_stand(servers, redis, keys=key[0], unknown=unknown, limits=limits) as found:
        yield found


async def is_closed(connection: Connection) -> bool:
    """Return whether the server ends *connection* without a word."""
    async with asyncio.timeout(PATIENCE_S):
        return await connection.reader.read() == b""


async def test_unknown_clients_are_limited_by_address_and_known_keys_are_not(
    stand: Stand, key: tuple[KeyRing, dict[str, str]]
) -> None:
    """Guesses, requests without a key and the page of paths count alike."""
    statuses = [
        (await ask(stand.url, "GET", AGENTS, headers=WRONG)).status,
        (await ask(stand.url, "GET", AGENTS)).status,
        (await ask(stand.url, "GET", "/openapi.json")).status,
    ]
    assert statuses == [401, 401, 200]
    for path, headers in ((AGENTS, WRONG), ("/docs", {}), ("/nothing", {"X-Forwarded-For": "6.6.6.6"})):
        refused = await ask(stand.url, "GET", path, headers=headers)
        assert (refused.status, refused.body["type"]) == (429, "urn:tasklore:problem:rate")
        assert (int(refused.headers["retry-after"]) >= 1, refused.headers["connection"]) == (True, "close")
    for path in (AGENTS, "/openapi.json") * 3:
        assert (await ask(stand.url, "GET", path, headers=key[1])).status == 200


async def test_the_oldest_connection_without_a_key_makes_room_when_all_are_open(
    stand: Stand, key: tuple[KeyRing, dict[str, str]]
) -> None:
    async with Connection(stand.url) as first, Connection(stand.url) as known:
        known.send("GET", AGENTS, headers=key[1])
        assert (await known.answer()).status == 200
        async with Connection(stand.url) as second:
            assert await is_closed(first)
            async with Connection(stand.url):
                assert await is_closed(second)
                known.send("GET", AGENTS, headers=key[1])
                assert (await known.answer()).status == 200


async def test_a_new_connection_is_closed_when_every_open_one_has_shown_a_key(
    stand: Stand, key: tuple[KeyRing, dict[str, str]]
) -> None:
    async with Connection(stand.url) as one, Connection(stand.url) as two:
        for known in (one, two):
            known.send("GET", AGENTS, headers=key[1])
            assert (await known.answer()).status == 200
        async with Connection(stand.url) as third:
            for known in (one, two):
                known.send("GET", AGENTS, headers=key[1])
                assert (await known.answer()).status == 200
            assert await is_closed(third)
    await until(lambda: stand.server.connections == 0)


async def test_a_known_key_gets_in_amid_a_burst_of_connects(
    servers: EmbeddedServers, redis: Redis, key: tuple[KeyRing, dict[str, str]]
) -> None:
    async with http_stand(servers, redis, keys=key[0], limits=Limits(connections=8)) as stand:
        address = (urlsplit(stand.url).hostname, urlsplit(stand.url).port)
        waiting = [socket.create_connection(address) for _ in range(8)]
        await until(lambda: stand.server.connections == 8)
        waiting += [socket.create_connection(address) for _ in range(8)]
        known = waiting[12]
        known.sendall(f"GET {AGENTS} HTTP/1.1\r\nHost: x\r\nAuthorization: {key[1]['Authorization']}\r\n\r\n".encode())
        known.setblocking(False)
        async with asyncio.timeout(PATIENCE_S):
            first = await asyncio.get_running_loop().sock_recv(known, 12)
        assert first == b"HTTP/1.1 200"
        assert stand.server.connections == 8
        for one in waiting:
            one.close()


async def test_a_known_key_is_waited_for_longer_than_an_unknown_client(
    stand: Stand, key: tuple[KeyRing, dict[str, str]]
) -> None:
    async with Connection(stand.url) as known:
        known.send("POST", "/v1/requests", {"text": "hello"}, key[1])
        async with Connection(stand.url) as unknown:
            assert await is_closed(unknown)
        stand.service.gate.set()
        assert (await known.answer()).status == 200


async def test_an_answer_that_an_unknown_client_does_not_read_is_dropped(
    servers: EmbeddedServers, redis: Redis, key: tuple[KeyRing, dict[str, str]]
) -> None:
    # Longer than the loop of a busy machine stands still: that it waits has to be seen before it is over.
    async with http_stand(servers, redis, keys=key[0], limits=Limits(head_s=2.0)) as stand:
        # Making the document for the first time takes long.
        assert (await ask(stand.url, "GET", "/openapi.json", headers=key[1])).status == 200
        await until(lambda: stand.server.connections == 0)
        with socket.socket() as deaf:
            deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
            place = urlsplit(stand.url)
            deaf.connect((place.hostname, place.port))
            deaf.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: here\r\n\r\n" * 40)
            await until(lambda: stand.server.connections == 1 == stand.parts.life.inside)
            await until(lambda: stand.server.connections == 0 == stand.parts.life.inside)


async def test_unknown_clients_behind_a_trusted_proxy_have_their_own_rates(
    servers: EmbeddedServers, redis: Redis, key: tuple[KeyRing, dict[str, str]]
) -> None:
    """By the address that the proxy adds; those that the client wrote before it do not count."""
    unknown = UnknownClients(Origins(networks_in("127.0.0.0/8")), rate=SLOW, burst=1)
    async with http_stand(servers, redis, keys=key[0], unknown=unknown) as stand:
        statuses = [
            (await ask(stand.url, "GET", AGENTS, headers={"X-Forwarded-For": hops})).status
            for hops in ("192.0.2.1", "192.0.2.2", "192.0.2.1", "6.6.6.6, 192.0.2.2", "192.0.2.3")
        ]
    assert statuses == [401, 401, 429, 429, 401]


async def test_without_keys_there_are_no_unknown_clients(servers: EmbeddedServers, redis: Redis) -> None:
    async with http_stand(servers, redis, unknown=UnknownClients(rate=SLOW, burst=1)) as stand:
        assert [(await ask(stand.url, "GET", path)).status for path in ("/docs", "/docs", AGENTS)] == [200] * 3
