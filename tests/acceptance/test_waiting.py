"""A worker or a supervisor that starts while a server is away: it waits, alive and not ready, and says for what."""

import asyncio
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tasklore.runtime.servers.claims import HOST, free_port
from tasklore.runtime.servers.embedded import NatsServer, ValkeyServer
from tasklore.runtime.servers.valkey import connect
from tests.acceptance.command import environment, tasklore
from tests.acceptance.system import BUDGET, PATIENCE_S, Served

#: What serves, and what it needs beside the servers.
KINDS = {"worker": ["worker", BUDGET], "supervisor": ["supervisor"]}


class KeyedNats(NatsServer):
    """One that knows a single user, at first by another password."""

    password = "other"

    def command(self, port: int) -> list[str]:
        """Return the command with that user."""
        return [*super().command(port), "--user", "me", "--pass", self.password]

    async def probe(self, port: int) -> None:
        """Return when it introduces itself."""
        reader, writer = await asyncio.open_connection(HOST, port)
        try:
            if not (await reader.readline()).startswith(b"INFO"):
                raise EOFError("not our server")
        finally:
            writer.close()


@contextmanager
def starting(
    kind: str, nats: int, redis: str, folder: Path, provision: str = "auto"
) -> Iterator[Served]:
    """Start one process of *kind* on servers that may be away, its probes at an address that is known beforehand."""
    port = free_port()
    environment = {
        "TASKLORE_NATS_URL": f"nats://me:secret@{HOST}:{nats}",
        "TASKLORE_REDIS_URL": redis,
        "TASKLORE_HTTP_PORT": str(port),
        "TASKLORE_PROVISION": provision,
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
async def test_a_process_waits_for_a_user_that_the_servers_do_not_know_yet(
    tmp_path: Path, kind: str
) -> None:
    """It says so with the cure, not anew at each look, and begins by itself when they know it."""
    nats = KeyedNats(tmp_path / "nats", free_port())
    valkey = ValkeyServer(tmp_path / "valkey", free_port())
    try:
        await nats.start()
        await valkey.start()
        address = valkey.url.replace("redis://", "redis://us:ours@")
        with starting(kind, nats.port, address, tmp_path) as served:
            await asyncio.to_thread(served.await_log, "waiting_for_server")
            assert "TASKLORE_NATS_SEED_FILE" in served.log()
            assert served.get("/healthz")[0] == 200
            assert served.get("/readyz")[0] == 503
            await nats.stop()
            nats.password = "secret"
            await nats.start()
            await asyncio.to_thread(served.await_log, "user or password in TASKLORE_RE")
            assert served.is_running
            async with connect(valkey.url) as client:
                await client.acl_setuser(
                    "us",
                    enabled=True,
                    passwords=["+ours"],
                    keys=["*"],
                    channels=["*"],
                    categories=["+@all"],
                )
            await asyncio.to_thread(served.ready)
            assert "nats_error" not in served.log()
    finally:
        await nats.stop()
        await valkey.stop()


@pytest.mark.parametrize("kind", KINDS)
async def test_a_process_waits_for_the_bootstrap(tmp_path: Path, kind: str) -> None:
    """One that may make nothing is there before what it needs: alive, not ready, and no restart is needed."""
    nats = NatsServer(tmp_path / "nats", free_port())
    valkey = ValkeyServer(tmp_path / "valkey", free_port())
    try:
        await nats.start()
        await valkey.start()
        with starting(
            kind, nats.port, valkey.url, tmp_path, provision="never"
        ) as served:
            await asyncio.to_thread(served.await_log, "waiting_for_server")
            assert "run `tasklore bootstrap`" in served.log()
            assert served.get("/healthz")[0] == 200
            assert "bootstrap" in str(served.get("/readyz")[1])
            done = await asyncio.to_thread(
                tasklore,
                "bootstrap",
                BUDGET,
                cwd=tmp_path,
                env=environment(
                    TASKLORE_NATS_URL=nats.url, TASKLORE_REDIS_URL=valkey.url
                ),
            )
            assert done.returncode == 0, done.stderr
            await asyncio.to_thread(served.ready)
            await asyncio.to_thread(await_readiness, served)
    finally:
        await nats.stop()
        await valkey.stop()
