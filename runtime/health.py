"""Liveness and readiness of a process, served over HTTP from a thread of its own.

The thread answers also while the event loop is blocked, and then says so; a loop that served its own probes could only
be silent.
"""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import TCPServer, ThreadingMixIn
from types import TracebackType
from typing import Any, ClassVar, Self

from tasklore.contracts.errors import ConfigurationError
from tasklore.runtime.metrics import CONTENT_TYPE

#: Whether all is well, and a few words on it for a person; called from another thread, must not wait.
Check = Callable[[], tuple[bool, str]]

#: Seconds between two beats of an event loop: fine enough to see the lag that a person would notice.
BEAT_S = 0.25
#: Seconds without a beat after which the process counts as stuck: a long C call is bad manners, no reason to be killed.
STUCK_AFTER_S = 8.0

#: Seconds without a beat after which others have waited for the loop, and need a moment to go on.
SILENCE_S = 1.0

#: Seconds that a client may take over its request.
_PATIENCE_S = 5.0
#: Connections served at once; a probe and a scraper need two.
_CONNECTIONS = 16
#: Seconds that stopping may take.
_POLL_S = 0.05


class Pulse:
    """The heartbeat of an event loop, felt from another thread; stuck when it does not beat for *stuck_after_s*.

    With each beat *on_beat* is called.
    """

    def __init__(
        self,
        stuck_after_s: float = STUCK_AFTER_S,
        monotonic: Callable[[], float] = time.monotonic,
        on_beat: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_beat = on_beat
        self._stuck_after_s = stuck_after_s
        self._monotonic = monotonic
        self._beat_at = monotonic()
        self._late_s = 0.0
        self._resumed_at = monotonic()
        self._next: asyncio.TimerHandle | None = None

    def beat(self) -> None:
        """Note that the event loop runs, and how late this beat is."""
        now = self._monotonic()
        self._late_s = max(0.0, now - self._beat_at - BEAT_S)
        self._beat_at = now
        if self._late_s >= SILENCE_S:
            self._resumed_at = now

    def lag_s(self) -> float:
        """Return how many seconds late the next beat is, or how late the last one was when that is more."""
        return max(self._late_s, self._monotonic() - self._beat_at - BEAT_S)

    def silent_s(self) -> float:
        """Return the seconds since the last beat."""
        return self._monotonic() - self._beat_at

    def steady_s(self) -> float:
        """Return the seconds since the loop went on after `SILENCE_S` or more without a beat; 0 in such a silence."""
        now = self._monotonic()
        return 0.0 if now - self._beat_at >= SILENCE_S else now - self._resumed_at

    def check(self) -> tuple[bool, str]:
        """Say whether the loop has beaten in time."""
        silent_s = self.silent_s()
        return (
            silent_s < self._stuck_after_s,
            f"the event loop beat {silent_s:.1f} s ago",
        )

    def start(self) -> None:
        """Beat in the running event loop until `stop`."""
        self._beat_at = self._monotonic()
        self._schedule(asyncio.get_running_loop())

    def stop(self) -> None:
        """Beat no more."""
        if self._next is not None:
            self._next.cancel()

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        def beat() -> None:
            self.beat()
            self._on_beat()
            self._schedule(loop)

        self._next = loop.call_later(BEAT_S, beat)


class HealthServer:
    """Serves `/healthz` (alive), `/readyz` (may be given work) and `/metrics` from `start` to `stop`, or in a `with`.

    *alive* and *ready* map a name to its check; all must hold for a 200, else the answer is 503 with the same body.
    *metrics* renders what the scraper gets. Port 0 is a free one.
    """

    def __init__(
        self,
        host: str,
        port: int,
        *,
        alive: Mapping[str, Check],
        ready: Mapping[str, Check],
        metrics: Callable[[], bytes],
    ) -> None:
        self._pages: dict[str, Callable[[], _Page]] = {
            "/healthz": lambda: _examined(alive),
            "/readyz": lambda: _examined(ready),
            "/metrics": lambda: (HTTPStatus.OK, CONTENT_TYPE, metrics()),
        }
        self._host = host
        self._port = port
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None

    @property
    def url(self) -> str:
        """Where it listens, for example `http://127.0.0.1:8080`; the port is known once it has started."""
        return (
            f"http://[{self._host}]:{self._port}"
            if ":" in self._host
            else f"http://{self._host}:{self._port}"
        )

    def start(self) -> None:
        """Listen, and answer in a thread.

        Raises:
            ConfigurationError: the address cannot be listened on.
        """
        try:
            self._server = _Server((self._host, self._port), self._pages)
        except OSError as error:
            msg = (
                f"cannot listen on {self.url}: {error.strerror or error}; "
                "choose another TASKLORE_HTTP_HOST or TASKLORE_HTTP_PORT (0 is a free port)"
            )
            raise ConfigurationError(msg) from error
        self._port = int(self._server.server_address[1])
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            args=(_POLL_S,),
            name="tasklore-health",
            daemon=True,
        )
        self._thread.start()

    def stop(self) -> None:
        """Stop listening, and return when the thread has ended; takes up to 50 ms."""
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._server.server_close()
            self._thread.join(_PATIENCE_S)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


_Page = tuple[HTTPStatus, str, bytes]


def _examined(checks: Mapping[str, Check]) -> _Page:
    results = {name: _result(check) for name, check in checks.items()}
    well = all(ok for ok, _ in results.values())
    body = {
        "status": "ok" if well else "failing",
        "checks": {
            name: {"ok": ok, "detail": detail} for name, (ok, detail) in results.items()
        },
    }
    status = HTTPStatus.OK if well else HTTPStatus.SERVICE_UNAVAILABLE
    return status, "application/json", json.dumps(body).encode()


def _result(check: Check) -> tuple[bool, str]:
    try:
        return check()
    except Exception as error:  # noqa: BLE001  # a check that crashes is a check that fails
        return False, f"the check failed: {type(error).__name__}"


class _Server(ThreadingMixIn, TCPServer):
    """Not the library's HTTPServer, which asks the name service for its own name before it listens."""

    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(
        self, address: tuple[str, int], pages: Mapping[str, Callable[[], _Page]]
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        self.pages = pages
        self._free = threading.BoundedSemaphore(_CONNECTIONS)
        super().__init__(address, _Handler)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Serve in a thread of its own, unless too many are busy: then hang up."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection and free its place."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a client that hangs up is its own affair."""


class _Handler(BaseHTTPRequestHandler):
    """One request a connection; the library bounds the length and number of header lines, and no body is read."""

    server: _Server
    timeout: ClassVar[float] = _PATIENCE_S
    server_version = "tasklore"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with a page."""
        page = self.server.pages.get(self.path.partition("?")[0])
        if page is None:
            self._answer(
                HTTPStatus.NOT_FOUND, "text/plain", " ".join(self.server.pages).encode()
            )
        else:
            self._answer(*page())

    def do_HEAD(self) -> None:
        """Answer as GET does, without the page itself."""
        self.do_GET()

    def _answer(self, status: HTTPStatus, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the library's name
        """Say nothing: probes come every few seconds."""
