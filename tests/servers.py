"""Fixtures with real servers: `servers` for the whole run, `own_servers` to kill, `redis` and `valkey_or_redis` to ask.

Server fixtures that outlive a test are plain functions, since pytest-asyncio gives every test an event loop of its own.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from redis.asyncio import Redis

from tasklore.runtime.servers.embedded import EmbeddedServers, ValkeyServer

#: Seconds for one answer of a store in tests that are not about how long it is waited for: a second, which is shipped,
#: may pass on a busy machine.
PATIENCE_S = 60.0

_DEBIAN_REDIS = shutil.which("redis-server")


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServers]:
    """Run one pair for all tests that neither stop nor freeze a server: `nats_url`, `redis_url`, `nats`, `valkey`."""
    pair = EmbeddedServers(tmp_path_factory.mktemp("servers"))
    asyncio.run(pair.start())
    yield pair
    asyncio.run(pair.stop())


@pytest.fixture
async def own_servers(tmp_path: Path) -> AsyncIterator[EmbeddedServers]:
    """Run a pair for one test alone, which may kill, pause and restart them."""
    async with EmbeddedServers(tmp_path / "servers") as pair:
        yield pair


@pytest.fixture
async def redis(servers: EmbeddedServers) -> AsyncIterator[Redis]:
    """Open a client that answers in bytes, on an empty Valkey database."""
    async for client in _emptied(servers.redis_url):
        yield client


@pytest.fixture
async def valkey_or_redis(store_server: ValkeyServer) -> AsyncIterator[Redis]:
    """Open a client as `redis` does; the test runs once on Valkey and once on the machine's redis-server, if any."""
    async for client in _emptied(store_server.url):
        yield client


@pytest.fixture(
    scope="session", params=["valkey", *(["redis"] if _DEBIAN_REDIS else [])]
)
def store_server(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ValkeyServer]:
    """Run each kind of store that this machine has."""
    binary = Path(_DEBIAN_REDIS) if request.param == "redis" and _DEBIAN_REDIS else None
    server = ValkeyServer(tmp_path_factory.mktemp("store"), binary=binary)
    asyncio.run(server.start())
    yield server
    asyncio.run(server.stop())


async def _emptied(url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(
        url,
        socket_timeout=None,
        socket_connect_timeout=PATIENCE_S,
        # More than tests have calls under way: the library refuses one over its bound, where ours waits.
        max_connections=1_000,
    ) as client:
        await client.flushdb()
        yield client
