"""The HTTP server: uvicorn in the supervisor's event loop, without its signals, and with a drain of its own."""

import asyncio
import contextlib
import functools
import ipaddress
import socket
import ssl
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from importlib.metadata import version
from pathlib import Path
from typing import Literal

import structlog
import uvicorn
from starlette.types import ASGIApp

from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.manifest import VERSION_HEADER
from tasklore.runtime.origins import ANY
from tasklore.supervisor.feed.beats import wait_first
from tasklore.supervisor.http.admission.cross_origin import CrossOrigin
from tasklore.supervisor.http.admission.key_file import KeyRing
from tasklore.supervisor.http.dependencies import Admission
from tasklore.supervisor.http.protocol import RefusalLog, TimedProtocol

log = structlog.get_logger(__name__)

#: Seconds that an idle connection is kept for its next request: longer than the 60 of most balancers before it.
KEEP_ALIVE_S = 75
#: Seconds past its grace in which a request is told where to ask later, before its connection is cut.
_FAREWELL_S = 2.0
_BACKLOG = 1024
#: What OpenSSL says of a certificate whose time is not now, see its x509_vfy.h; the rest is a client's choice.
_UNTIMELY = {9: "is not valid yet", 10: "has expired"}
#: Turns of a handshake in memory; one of TLS 1.3 is over after two.
_TURNS = 4


class _Server(uvicorn.Server):
    """Leaves signals to the process, which calls `drain`."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Catch none."""
        yield


#: What the settings of an address begin with behind our prefix: those of the API, or of the operations.
Setting = Literal["API", "OPERATIONS"]


class HttpServer:
    """Serves *app* behind *door* at one address, from `run` until `drain`, over *tls* where that is given.

    *alongside* is open while it serves. *setting* names the settings of the address.

    Raises:
        ConfigurationError: the address cannot be listened on.
    """

    def __init__(
        self,
        app: ASGIApp,
        door: Admission,
        host: str,
        port: int,
        *,
        tls: ssl.SSLContext | None = None,
        alongside: Callable[
            [], AbstractAsyncContextManager[None]
        ] = contextlib.nullcontext,
        setting: Setting = "API",
    ) -> None:
        self._door = door
        self._alongside = alongside
        self._scheme = "http" if tls is None else "https"
        self._socket = _listen(host, port, setting)
        self._ended = asyncio.Event()
        self._has_begun = False
        unknown = door.unknown if door.keys is not None else None
        refusals = RefusalLog(door.meter)
        protocol = functools.partial(
            TimedProtocol, limits=door.limits, unknown=unknown, refusals=refusals
        )
        # Outside of everything: errors that no route foresees carry the headers too.
        config = uvicorn.Config(
            app if door.cross_origin is None else door.cross_origin.around(app),
            http=protocol,  # type: ignore[arg-type]  # makes one
            ws="none",
            lifespan="off",
            log_config=None,
            # uvicorn warns of each request that is no HTTP; `RefusalLog` counts them.
            log_level="error",
            access_log=False,
            server_header=False,
            headers=[(VERSION_HEADER, version("tasklore"))],
            proxy_headers=False,
            backlog=_BACKLOG,
            timeout_keep_alive=KEEP_ALIVE_S,
            timeout_graceful_shutdown=int(door.grace_s + _FAREWELL_S) + 1,
            ssl_context_factory=(lambda _config, _default: tls)
            if tls is not None
            else None,
        )
        self._server = _Server(config)

    @property
    def url(self) -> str:
        """The address that it listens on, for example `http://127.0.0.1:8080`."""
        host, port = self._socket.getsockname()[:2]
        return (
            f"{self._scheme}://[{host}]:{port}"
            if ":" in host
            else f"{self._scheme}://{host}:{port}"
        )

    @property
    def connections(self) -> int:
        """The number of open connections."""
        return len(self._server.server_state.connections)

    async def run(self) -> None:
        """Serve until `drain` or a cancellation; requests under way then are cut off."""
        self._has_begun = True
        log.info("api_ready", url=self.url)
        try:
            async with self._alongside():
                await self._server.serve(sockets=[self._socket])
        finally:
            self._ended.set()
            self._socket.close()

    async def drain(self, hurried: asyncio.Event) -> None:
        """Accept nothing new, and return when every request has been answered, or the grace is over.

        Clients that still wait then get the place to ask later; *hurried* ends the grace at once.
        """
        life = self._door.life
        life.draining.set()
        self._server.should_exit = True
        if not self._has_begun:
            self._socket.close()
            return
        await wait_first(life.empty(), hurried.wait(), within_s=self._door.grace_s)
        life.leaving.set()
        await wait_first(self._ended.wait(), within_s=_FAREWELL_S)
        self._server.force_exit = True


def demand_keys(
    host: str, keys: KeyRing | None, setting: Setting = "API"
) -> KeyRing | None:
    """Return *keys*, which requests need, None when they need none.

    Raises:
        ConfigurationError: other machines could reach *host*, and there are no keys.
    """
    if keys is None and not is_loopback(host):
        otherwise = {
            "API": "use 127.0.0.1, or switch the API off with TASKLORE_API_PORT=none",
            "OPERATIONS": "or use 127.0.0.1",
        }
        raise ConfigurationError(
            f"TASKLORE_{setting}_HOST is {host!r}, which other machines reach, and there are no API keys: make one "
            "with `tasklore api-key NAME --file FILE` and set TASKLORE_API_KEYS_FILE=FILE, "
            f"{otherwise[setting]}"
        )
    return keys


def demand_cross_origin(
    origins: Sequence[str],
    methods: Sequence[str],
    headers: Sequence[str],
    *,
    has_keys: bool,
) -> CrossOrigin | None:
    """Return which pages from elsewhere may ask, None where none may.

    Raises:
        ConfigurationError: any page may, and none needs a key.
    """
    if ANY in origins and not has_keys:
        raise ConfigurationError(
            "TASKLORE_API_CORS_ORIGINS cannot be '*' without TASKLORE_API_KEYS_FILE, as any page that somebody here "
            "opens could ask: name the origins, or make keys with `tasklore api-key`"
        )
    return CrossOrigin(origins, methods, headers) if origins else None


def demand_tls(cert_file: Path | None, key_file: Path | None) -> ssl.SSLContext | None:
    """Return the TLS context, 1.2 or newer, of a certificate and its key; None without them.

    Raises:
        ConfigurationError: a file cannot be read, they are no certificate and its key, or its time is not now.
    """
    if cert_file is None or key_file is None:
        return None
    for variable, file in (
        ("TASKLORE_API_TLS_CERT_FILE", cert_file),
        ("TASKLORE_API_TLS_KEY_FILE", key_file),
    ):
        try:
            file.read_bytes()
        except OSError as error:
            raise ConfigurationError(
                f"cannot read {variable} {str(file)!r}: {error.strerror or error}; correct {variable}"
            ) from error
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        # Without a password a key with a passphrase would have the process wait at a terminal.
        context.load_cert_chain(cert_file, key_file, password="")
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"{str(cert_file)!r} and {str(key_file)!r} are not a certificate and its "
            f"private key, in PEM and without a passphrase: {error}; correct "
            "TASKLORE_API_TLS_CERT_FILE and TASKLORE_API_TLS_KEY_FILE"
        ) from error
    if (problem := _find_untimely(context, cert_file)) is not None:
        raise ConfigurationError(
            f"the certificate in {str(cert_file)!r} {problem}, and no client would accept it; renew "
            "TASKLORE_API_TLS_CERT_FILE"
        )
    return context


def _find_untimely(context: ssl.SSLContext, cert_file: Path) -> str | None:
    """Return what a client that trusts the certificate itself finds wrong with its dates, by a handshake in memory."""
    client = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    client.check_hostname = False
    client.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    client.load_verify_locations(cert_file)
    there = ssl.MemoryBIO()
    back = ssl.MemoryBIO()
    ends = client.wrap_bio(back, there), context.wrap_bio(there, back, server_side=True)
    try:
        for end in ends * _TURNS:
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
    except ssl.SSLCertVerificationError as error:
        return _UNTIMELY.get(error.verify_code)
    except ssl.SSLError:
        pass  # clients say what else is wrong with it
    return None


def is_loopback(host: str) -> bool:
    """Return whether only programs of this machine reach *host*."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _listen(host: str, port: int, setting: Setting) -> socket.socket:
    found = socket.socket(
        socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM
    )
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind((host, port))
        found.listen(_BACKLOG)
        found.setblocking(False)
    except OSError as error:
        found.close()
        served = {"API": "the API", "OPERATIONS": "operations"}[setting]
        off = ", none is no API" if setting == "API" else ""
        raise ConfigurationError(
            f"cannot serve {served} on {host} port {port}: {error.strerror or error}; choose another "
            f"TASKLORE_{setting}_HOST or TASKLORE_{setting}_PORT (0 is a free port{off})"
        ) from error
    return found
