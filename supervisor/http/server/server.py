"""The HTTP server in the supervisor's process: in its event loop, without its signals, and with an end of its own."""

import asyncio
import contextlib
import functools
import ipaddress
import socket
from collections.abc import Coroutine, Iterator
from pathlib import Path

import structlog
import uvicorn

from contracts.errors import ConfigurationError
from supervisor.http.admission.key_file import KeyRing
from supervisor.http.app import make_app
from supervisor.http.parts import Parts
from supervisor.http.server import log_limits as complaints
from supervisor.http.server.certificates import Certificate
from supervisor.http.server.handshakes import Handshakes
from supervisor.http.server.timeouts import KEEP_ALIVE_S, PatientProtocol

log = structlog.get_logger(__name__)

#: Seconds past its grace in which a request is told where to ask later, before its connection is cut.
_FAREWELL_S = 2.0
_BACKLOG = 1024


class _Server(uvicorn.Server):
    """Signals belong to the process's frame, which calls `drain`; connections over TLS begin with *handshakes*."""

    def __init__(self, config: uvicorn.Config, handshakes: Handshakes | None) -> None:
        super().__init__(config)
        self._handshakes = handshakes

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to accept connections."""
        if self._handshakes is None or not sockets:
            await super().startup(sockets)
            return
        self._handshakes.begin(sockets[0], self._protocol, self.server_state.connections)  # type: ignore[arg-type]  # to count
        self.servers = [self._handshakes]  # type: ignore[list-item]  # it ends as one does
        self.started = True

    def _protocol(self) -> PatientProtocol:
        made = self.config.http_protocol_class
        return made(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)  # type: ignore[return-value,call-arg]  # ours

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Catch none."""
        yield


class HttpServer:
    """Serves *parts* at one address, from `run` until `drain`, over *tls* where that is given.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """

    def __init__(self, parts: Parts, host: str, port: int, tls: Certificate | None = None) -> None:
        self._parts = parts
        self._scheme = "http" if tls is None else "https"
        self._socket = _listener(host, port)
        self._ended = asyncio.Event()
        self._has_begun = False
        strangers = parts.strangers if parts.keys is not None else None
        self._handshakes = Handshakes(tls, strangers) if tls is not None else None
        config = uvicorn.Config(
            make_app(parts),
            http=functools.partial(PatientProtocol, strangers=strangers),  # type: ignore[arg-type]  # it makes one
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="warning",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=_BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=int(parts.grace_s + _FAREWELL_S) + 1,
        )
        self._server = _Server(config, self._handshakes)

    @property
    def url(self) -> str:
        """Where it listens, for example `http://127.0.0.1:8080`."""
        host, port = self._socket.getsockname()[:2]
        return f"{self._scheme}://[{host}]:{port}" if ":" in host else f"{self._scheme}://{host}:{port}"

    @property
    def connections(self) -> int:
        """How many connections are open, those included whose handshake goes on."""
        greeting = len(self._handshakes) if self._handshakes is not None else 0
        return len(self._server.server_state.connections) + greeting

    async def run(self) -> None:
        """Serve until `drain` or a cancellation; what is under way then is cut off."""
        self._has_begun = True
        log.info("api_ready", url=self.url)
        try:
            async with self._parts.work.going():
                with complaints.seldom():
                    await self._server.serve(sockets=[self._socket])
        finally:
            if self._handshakes is not None:
                self._handshakes.close()
                await self._handshakes.wait_closed()
            self._ended.set()
            self._socket.close()

    async def drain(self, hurried: asyncio.Event) -> None:
        """Accept nothing new, and return when what is under way has been answered, or its grace is over.

        Whoever still waits then is told where to ask later; *hurried* ends the grace at once.
        """
        life = self._parts.life
        life.draining.set()
        self._server.should_exit = True
        if not self._has_begun:
            self._socket.close()
            return
        await _first_of(life.empty(), hurried.wait(), within_s=self._parts.grace_s)
        life.leaving.set()
        await _first_of(self._ended.wait(), within_s=_FAREWELL_S)
        self._server.force_exit = True


def demand_keys(host: str, keys_file: Path | None) -> KeyRing | None:
    """Return the keys that requests need, None when they need none.

    Raises:
        ConfigurationError: other machines could reach *host*, and there are no keys; or the file cannot be read.
    """
    if keys_file is not None:
        return KeyRing(keys_file)
    if not is_loopback(host):
        raise ConfigurationError(
            f"TASKLORE_API_HOST is {host!r}, which other machines reach, and there are no API keys: make one with "
            "`tasklore api-key NAME --file FILE` and set TASKLORE_API_KEYS_FILE=FILE, use 127.0.0.1, or switch the API "
            "off with TASKLORE_API_PORT=none"
        )
    return None


def is_loopback(host: str) -> bool:
    """Tell whether only programs of this machine reach *host*."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listener(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    found = socket.socket(family, socket.SOCK_STREAM)
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(_BACKLOG)
        found.setblocking(False)
    except OSError as error:
        found.close()
        msg = (
            f"cannot serve the API on {host} port {port}: {error.strerror or error}; "
            "choose another TASKLORE_API_HOST or TASKLORE_API_PORT (0 is a free port, none is no API)"
        )
        raise ConfigurationError(msg) from error
    return found


async def _first_of(*waits: Coroutine[object, object, object], within_s: float) -> None:
    """Return when one of *waits* has ended, or after *within_s* seconds."""
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
