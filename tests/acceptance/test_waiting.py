"""A worker or a supervisor that starts while a server is away: it waits, alive and not ready, and says for what."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tasklore.runtime.servers.claims import HOST, free_port
from tasklore.runtime.servers.embedded import NatsServer, ValkeyServer
from tests.acceptance.house import BUDGET, PATIENCE_S, Served

#: What serves, and what it needs beside the servers.
KINDS = {"worker": ["worker", BUDGET], "supervisor": ["supervisor"]}


@contextmanager
def starting(kind: str, nats: int, redis: str, folder: Path) -> Iterator[Served]:
    """Start one process of *kind* on servers that may be away, its probes at an address that is known beforehand."""
    port = free_port()
    environment = {
        "TASKLORE_NATS_URL": f"nats://me:secret@{HOST}:{nats}",
        "TASKLORE_REDIS_URL": redis,
        "TASKLORE_HTTP_PORT": str(port),
    }
    with Served(KINDS[kind], environment, folder / f"{kind}.log") as served:
        served.http = f"http://{HOST}:{port}"
        yield served


def await_readiness(served: Served) -> None:
    """Return once its probe takes it for ready, which is looked at anew after the wait."""
    gives_up_at = time.monotonic() + PATIENCE_S
    while served.get("/readyz")[0] != 200:
        assert time.monotonic() < gives_up_at
        time.sleep(0.05)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_process_waits_for_servers_that_are_away(
    tmp_path: Path, kind: str
) -> None:
    """First for NATS, then for Valkey; once both answer it is ready, without a restart."""
    nats = NatsServer(tmp_path / "nats", free_port())
    valkey = ValkeyServer(tmp_path / "valkey", free_port())
    with starting(kind, nats.port, valkey.url, tmp_path) as served:
        try:
            await asyncio.to_thread(served.await_log, "waiting_for_server")
            assert f"{HOST}:{nats.port}" in served.log()
            assert "secret" not in served.log()
            assert served.get("/healthz")[0] == 200
            status, page = served.get("/readyz")
            assert (status, page["checks"]["servers"]["ok"]) == (503, False)
            await nats.start()
            await asyncio.to_thread(served.await_log, "Redis or Valkey at")
            assert (
                "Redis or Valkey"
                in served.get("/readyz")[1]["checks"]["servers"]["detail"]
            )
            await valkey.start()
            await asyncio.to_thread(served.ready)
            await asyncio.to_thread(await_readiness, served)
            served.terminate()
            assert await asyncio.to_thread(served.wait) == 0
        finally:
            await nats.stop()
            await valkey.stop()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_wrong_password_ends_the_process(tmp_path: Path, kind: str) -> None:
    """No wait would mend it: the error names the variable, and the exit code is that of a server out of reach."""
    nats = NatsServer(tmp_path / "nats", free_port())
    valkey = ValkeyServer(tmp_path / "valkey", free_port())
    try:
        await nats.start()
        await valkey.start()
        wrong = valkey.url.replace("redis://", "redis://nobody:wrong@")
        with starting(kind, nats.port, wrong, tmp_path) as served:
            assert await asyncio.to_thread(served.wait) == 3
    finally:
        await nats.stop()
        await valkey.stop()
    assert "refuses the user or password in TASKLORE_REDIS_URL" in served.log()
