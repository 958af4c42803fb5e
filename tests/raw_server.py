"""A server of HTTP that answers by the hand of a test: exact bytes, and a note of each request."""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

#: Seconds after which a connection that nobody uses is closed, so that no test hangs.
_PATIENCE_S = 30.0


@dataclass(frozen=True)
class Received:
    """A request as it came."""

    line: str
    headers: dict[str, str]
    body: bytes

    @property
    def path(self) -> str:
        """The path with its query."""
        return self.line.split()[1]


Reply = Callable[[socket.socket, Received], None]


@dataclass
class RawServer:
    """Answers each connection once, by the next of *replies*, the last of them for ever."""

    replies: list[Reply]
    received: list[Received] = field(default_factory=list)
    port: int = 0
    scheme: str = "http"

    @property
    def url(self) -> str:
        """Its address."""
        return f"{self.scheme}://127.0.0.1:{self.port}"


def answer(
    body: Any = None,
    status: int = 200,
    *,
    media_type: str = "application/json",
    headers: dict[str, str] | None = None,
) -> Reply:
    """Return the reply of *body*: bytes as they are, anything else as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    told = {
        "Content-Type": media_type,
        "Content-Length": str(len(content)),
        **(headers or {}),
    }
    head = "".join(f"{name}: {value}\r\n" for name, value in told.items())
    return raw(f"HTTP/1.1 {status} Answer\r\n{head}\r\n".encode() + content)


def problem(status: int, detail: str, **more: Any) -> Reply:
    """Return the reply of a problem of the API."""
    body = {"type": "urn:x", "title": "t", "status": status, "detail": detail, **more}
    return answer(body, status, media_type="application/problem+json")


def raw(content: bytes) -> Reply:
    """Return a reply of exactly *content*, and the end of the connection."""

    def reply(connection: socket.socket, _received: Received) -> None:
        connection.sendall(content)

    return reply


def endless(head: bytes, piece: bytes, pause_s: float = 0.0) -> Reply:
    """Return a reply of *head*, and of *piece* again and again, until the client has gone."""
    waits = threading.Event()

    def reply(connection: socket.socket, _received: Received) -> None:
        connection.sendall(head)
        while True:
            connection.sendall(piece)
            waits.wait(pause_s)

    return reply


def silence(connection: socket.socket, _received: Received) -> None:
    """Reply nothing until the client has gone."""
    while connection.recv(65536):
        pass


@contextlib.contextmanager
def serving(*replies: Reply, tls: ssl.SSLContext | None = None) -> Iterator[RawServer]:
    """Yield a server on loopback that answers by *replies*."""
    listener = socket.create_server(("127.0.0.1", 0))
    server = RawServer(list(replies), port=listener.getsockname()[1])
    if tls is not None:
        server.scheme = "https"

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), connection:
                connection.settimeout(_PATIENCE_S)
                if tls is not None:
                    connection = tls.wrap_socket(connection, server_side=True)
                received = _receive(connection)
                server.received.append(received)
                reply = server.replies[0]
                if len(server.replies) > 1:
                    server.replies.pop(0)
                reply(connection, received)
                # The client has it all before the connection ends.
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(65536):
                    pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join(_PATIENCE_S)


def _receive(connection: socket.socket) -> Received:
    with connection.makefile("rb") as file:
        line = file.readline().decode("latin-1").strip()
        headers: dict[str, str] = {}
        while given := file.readline().decode("latin-1").strip():
            name, _, value = given.partition(":")
            headers[name.lower()] = value.strip()
        body = file.read(int(headers.get("content-length", "0")))
    return Received(line, headers, body)
