"""Strangers at the door of the HTTP API: limited by address, while whoever has a key goes in and out."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from runtime.embedded import EmbeddedServers
from runtime.networks import networks_in
from supervisor.http.addresses import Origins
from supervisor.http.key_file import KeyRing, make_key
from supervisor.http.strangers import Strangers
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
    """Two may be open that have shown no key, however many have; when one ends another may come."""
    known = [Connection(stand.url) for _ in range(4)]
    for one in known:
        await one.__aenter__()
        one.send("GET", AGENTS, headers=key[1])
        assert (await one.answer()).status == 200
    async with Connection(stand.url), Connection(stand.url) as second:
        await until(lambda: stand.server.connections == 6)
        async with Connection(stand.url) as third:
            refused = await third.answer()
            assert (refused.status, refused.headers["connection"]) == (429, "close")
            async with asyncio.timeout(PATIENCE_S):
                assert await third.reader.read() == b""
        for one in known:
            one.send("GET", AGENTS, headers=key[1])
            assert (await one.answer()).status == 200
        await second.__aexit__(None, None, None)
        await until(lambda: stand.server.connections == 5)
        assert (await ask(stand.url, "GET", AGENTS, headers=key[1])).status == 200
    for one in known:
        await one.__aexit__(None, None, None)


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
