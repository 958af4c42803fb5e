"""Strangers at the door of the HTTP API: limited by address, while whoever has a key goes in and out."""

import asyncio
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from redis.asyncio import Redis

from runtime.networks import networks_in
from runtime.servers.embedded import EmbeddedServers
from supervisor.http.admission.addresses import Origins
from supervisor.http.admission.key_file import KeyRing, make_key
from supervisor.http.admission.unknown_clients import Strangers
from supervisor.http.server.timeouts import PatientProtocol
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
    """Serve the API with a key, where a stranger may come three times and with two connections."""
    strangers = Strangers(rate=SLOW, burst=3, connections=2)
    async with http_stand(servers, redis, keys=key[0], strangers=strangers) as found:
        yield found


async def test_a_stranger_is_told_to_wait_and_who_has_a_key_is_not(
    stand: Stand, key: tuple[KeyRing, dict[str, str]]
) -> None:
    """From one and the same address; guesses, requests without a key and the page of paths count alike."""
    statuses = [
        (await ask(stand.url, "GET", AGENTS, headers=WRONG)).status,
        (await ask(stand.url, "GET", AGENTS)).status,
        (await ask(stand.url, "GET", "/openapi.json")).status,
    ]
    assert statuses == [401, 401, 200]
    for path, headers in ((AGENTS, WRONG), (AGENTS, {}), ("/docs", {}), ("/nothing", {"X-Forwarded-For": "6.6.6.6"})):
        refused = await ask(stand.url, "GET", path, headers=headers)
        assert (refused.status, refused.body["type"]) == (429, "urn:tasklore:problem:rate")
        assert (int(refused.headers["retry-after"]) >= 1, refused.headers["connection"]) == (True, "close")
    for path in (AGENTS, "/openapi.json") * 3:
        assert (await ask(stand.url, "GET", path, headers=key[1])).status == 200


async def test_silent_connections_of_a_stranger_leave_room(stand: Stand, key: tuple[KeyRing, dict[str, str]]) -> None:
    """Two may be open that have shown no key; for another the oldest makes room, also for one with a key."""
    async with Connection(stand.url) as first, Connection(stand.url) as second:
        await until(lambda: stand.server.connections == 2)
        async with Connection(stand.url) as known:
            refused = await first.answer()
            assert (refused.status, refused.headers["connection"]) == (429, "close")
            async with asyncio.timeout(PATIENCE_S):
                assert await first.reader.read() == b""
            known.send("GET", AGENTS, headers=key[1])
            assert (await known.answer()).status == 200
            async with Connection(stand.url), Connection(stand.url):
                assert (await second.answer()).status == 429
                known.send("GET", AGENTS, headers=key[1])
                assert (await known.answer()).status == 200


async def test_where_no_connection_is_left_who_has_a_key_gets_that_of_a_stranger(
    stand: Stand, key: tuple[KeyRing, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever has shown a key keeps theirs, and when all have, there is none to be had."""
    monkeypatch.setattr(PatientProtocol, "most", 2)
    async with Connection(stand.url) as stranger, Connection(stand.url) as known:
        await until(lambda: stand.server.connections == 2)
        for one in (known, Connection(stand.url)):
            if one is not known:
                await one.__aenter__()
                assert (await stranger.answer()).status == 429
            one.send("GET", AGENTS, headers=key[1])
            assert (await one.answer()).status == 200
        async with Connection(stand.url) as late:
            assert (await late.answer()).status == 503
        await one.__aexit__(None, None, None)


async def test_who_has_a_key_is_waited_for_longer_than_a_stranger(
    stand: Stand, key: tuple[KeyRing, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Although nobody knew of the key when the connection began."""
    monkeypatch.setattr(PatientProtocol, "head_s", 2.0)
    async with Connection(stand.url) as known:
        known.send("POST", "/v1/requests", {"text": "hello"}, key[1])
        async with Connection(stand.url) as stranger, asyncio.timeout(PATIENCE_S):
            assert await stranger.reader.read() == b""
        stand.service.gate.set()
        assert (await known.answer()).status == 200


async def test_an_answer_that_a_stranger_does_not_read_is_not_kept_for_them(
    servers: EmbeddedServers, redis: Redis, key: tuple[KeyRing, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their connection ends in time, although what was sent never arrives."""
    # Longer than the loop of a busy machine stands still: that it waits has to be seen before it is over.
    monkeypatch.setattr(PatientProtocol, "head_s", 4.0)
    async with http_stand(servers, redis, keys=key[0]) as stand:
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


async def test_strangers_behind_a_believed_proxy_are_told_apart(
    servers: EmbeddedServers, redis: Redis, key: tuple[KeyRing, dict[str, str]]
) -> None:
    """By what the proxy says of them; what they say themselves before it counts for nothing."""
    strangers = Strangers(Origins(networks_in("127.0.0.0/8")), rate=SLOW, burst=1)
    async with http_stand(servers, redis, keys=key[0], strangers=strangers) as stand:
        told = [
            (await ask(stand.url, "GET", AGENTS, headers={"X-Forwarded-For": hops})).status
            for hops in ("192.0.2.1", "192.0.2.2", "192.0.2.1", "6.6.6.6, 192.0.2.2", "192.0.2.3")
        ]
    assert told == [401, 401, 429, 429, 401]


async def test_where_no_keys_are_there_are_no_strangers(servers: EmbeddedServers, redis: Redis) -> None:
    """Programs of this machine are asked for none."""
    async with http_stand(servers, redis, strangers=Strangers(rate=SLOW, burst=1, connections=1)) as stand:
        async with Connection(stand.url), Connection(stand.url) as other:
            other.send("GET", AGENTS)
            assert (await other.answer()).status == 200
        assert [(await ask(stand.url, "GET", "/docs")).status for _ in range(3)] == [200] * 3
