"""Fixtures of the tests of commands."""

from collections.abc import Callable

import pytest
from redis.asyncio import Redis

from tasklore.runtime.servers.embedded import EmbeddedServers


@pytest.fixture
def command_servers(
    servers: EmbeddedServers, redis: Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Point the commands to the shared servers, with an empty store."""
    monkeypatch.setenv("TASKLORE_NATS_URL", servers.nats_url)
    monkeypatch.setenv("TASKLORE_REDIS_URL", servers.redis_url)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """Return a function that returns all of stdout since its last call."""
    return lambda: capsys.readouterr().out
