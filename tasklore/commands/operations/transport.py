"""One request and its answer over HTTP, with the standard library: bounded in time and size, and never redirected."""

import http.client
import io
import json
import os
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import quote, urlencode

from tasklore.commands.operations.entries import client_version
from tasklore.commands.operations.target import CA_VARIABLE, Target
from tasklore.commands.render.screen import printable
from tasklore.contracts.errors import ConfigurationError, TaskloreError, Unreachable
from tasklore.contracts.manifest import VERSION_HEADER

#: Seconds in which a server accepts a connection, TLS included.
CONNECT_S = 5.0
#: Seconds for a request as a whole beyond what the server was asked to wait.
WHOLE_S = 120.0
#: Bytes of an answer, from which on it is no view that anybody reads.
MOST_BYTES = 64 * 1024**2
_CHUNK = 64 * 1024
#: Levels of an answer, beyond which no view goes.
_DEEPEST = 200
#: Characters of another program's words in a message.
_WORDS = 200

Json = dict[str, Any]


@dataclass(frozen=True)
class Request:
    """A request: *path* begins with a slash and is quoted; *body* is JSON, or bytes of *media_type*."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    media_type: str = "application/json"


@dataclass(frozen=True)
class HttpAnswer:
    """An answer; *headers* have small letters, *url* is the address that answered, without its query."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    url: str

    @property
    def is_json(self) -> bool:
        """Whether the body says that it is JSON."""
        media = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        return media == "application/json" or media.endswith("+json")

    @property
    def is_text(self) -> bool:
        """Whether the body is a text of the API's own, and no page of something before it."""
        media = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        is_ours = VERSION_HEADER.lower() in self.headers
        return is_ours and media.startswith("text/") and media != "text/html"

    def read_json(self) -> object:
        """Return the body.

        Raises:
            TaskloreError: it is none, or cut.
        """
        try:
            found: object = json.loads(self.body)
        except (ValueError, RecursionError) as error:
            raise TaskloreError(
                f"the answer of {self.url} is not valid JSON ({type(error).__name__}); "
                "check for a proxy in between"
            ) from error
        _demand_shallow(found, self.url)
        return found


def _demand_shallow(value: object, url: str) -> None:
    """Return when *value* can be walked through by functions that call themselves.

    Raises:
        TaskloreError: it is nested deeper than anybody reads.
    """
    level = [value]
    for _ in range(_DEEPEST):
        level = [
            inner
            for one in level
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not level:
            return
    raise TaskloreError(
        f"the answer of {url} is nested deeper than {_DEEPEST} levels; see it by `tasklore api GET PATH`"
    )


class RequestDeadline:
    """The end of a request, in the clock of this process."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self.renew()

    def renew(self) -> None:
        """Begin anew: something came."""
        self._ends_at = time.monotonic() + self._seconds

    def left(self) -> float:
        """Return the seconds left.

        Raises:
            TimeoutError: there are none.
        """
        left = self._ends_at - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class ConnectionBroke(Unreachable):
    """A connection ended before the answer: whether the request was taken is not known."""


class AnswerLate(Unreachable):
    """A server that was reached did not answer in time."""


class AnswerCut(TaskloreError):
    """A server that was reached left before the end of its answer."""


class _Unwritable(Exception):
    """A sink does not take its piece; the cause says why."""


class _BoundedReader(io.RawIOBase):
    """Reads a socket until a deadline, however little comes at a time."""

    def __init__(self, given: socket.socket, deadline: RequestDeadline) -> None:
        super().__init__()
        self._socket = given
        self._deadline = deadline

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, into: Any) -> int:
        """Fill *into* with the bytes that are there, at least one but at the end."""
        self._socket.settimeout(self._deadline.left())
        return self._socket.recv_into(into)


class _BoundedSocket:
    """As much of a socket as `http.client` uses, each step within a deadline."""

    def __init__(self, given: socket.socket, deadline: RequestDeadline) -> None:
        self._socket = given
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        """Send *data*."""
        self._socket.settimeout(self._deadline.left())
        self._socket.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return what reads from it."""
        return io.BufferedReader(_BoundedReader(self._socket, self._deadline))

    def close(self) -> None:
        """Leave it open: the answer is still read, and `send` closes it."""


def send(
    target: Target,
    request: Request,
    *,
    within_s: float = WHOLE_S,
    sink: Callable[[bytes], object] | None = None,
) -> HttpAnswer:
    """Return the answer of *target* to *request*, whatever its status; the body of a good one goes to *sink* instead.

    For a sink the time is that between two pieces, and there may be any number of them.

    Raises:
        Unreachable: no server answers there, or not within *within_s* seconds; the message names the cure.
        ConfigurationError: the file of certificates cannot be read.
        TaskloreError: the answer is none of HTTP, is cut, or is too large.
    """
    if target.scheme == "direct":
        return _send_directly(target, request, within_s, sink)
    deadline = RequestDeadline(within_s)
    opened = _connect(target, min(CONNECT_S, within_s))
    connection = http.client.HTTPConnection(target.host, target.port)
    connection.sock = _BoundedSocket(opened, deadline)
    try:
        _write(connection, target, request)
        answer = connection.getresponse()
        is_good = answer.status < HTTPStatus.MULTIPLE_CHOICES
        if sink is not None and is_good:
            body = b""
            _pour(answer, deadline, sink)
        else:
            body = _read(answer, target)
    except _Unwritable as error:
        raise error.__cause__ or error from None
    except TimeoutError as error:
        raise AnswerLate(
            f"the API at {target.url} gave no complete answer within {within_s:.0f} s; "
            "retry, and check its log if that persists"
        ) from error
    except http.client.IncompleteRead as error:
        raise AnswerCut(
            f"the answer of {target.url} was cut before its end; ask again"
        ) from error
    except http.client.RemoteDisconnected as error:
        raise AnswerCut(
            f"{target.url} closed the connection without an answer; is it https://? correct {target.source}"
        ) from error
    except (http.client.HTTPException, ValueError) as error:
        raise TaskloreError(_name_stranger(target, error)) from error
    except OSError as error:
        raise ConnectionBroke(
            f"the connection to {target.url} broke ({error.strerror or type(error).__name__}); ask again"
        ) from error
    finally:
        opened.close()
    headers = {name.lower(): value for name, value in answer.getheaders()}
    place = f"{target.url}{request.path}"
    return HttpAnswer(status=answer.status, headers=headers, body=body, url=place)


def _send_directly(
    target: Target,
    request: Request,
    within_s: float,
    sink: Callable[[bytes], object] | None,
) -> HttpAnswer:
    """Return the answer of the API in this process, with all that this loads."""
    from tasklore.commands import direct

    headers = {
        "accept": "application/json, application/problem+json",
        **dict(request.headers),
    }
    if request.body is not None:
        headers["content-type"] = request.media_type
    status, found, body = direct.send(
        method=request.method,
        path=request.path,
        query=urlencode(request.query),
        headers=headers,
        body=request.body or b"",
        within_s=within_s,
    )
    if sink is not None and status < HTTPStatus.MULTIPLE_CHOICES:
        sink(body)
        body = b""
    return HttpAnswer(
        status=status,
        headers=found | {VERSION_HEADER.lower(): client_version()},
        body=body,
        url=f"{target.url} {request.path}",
    )


def _connect(target: Target, within_s: float) -> socket.socket:
    try:
        opened = socket.create_connection((target.host, target.port), within_s)
    except TimeoutError as error:
        raise Unreachable(
            f"nothing answers at {target.url} within {within_s:.0f} s; correct {target.source}"
        ) from error
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or type(error).__name__
        raise Unreachable(
            f"no API answers at {target.url} ({why}): start one with `tasklore up` or `tasklore supervisor`, or "
            f"correct {target.source}"
        ) from error
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    if target.scheme == "http":
        return opened
    return _secure(target, opened)


def _secure(target: Target, opened: socket.socket) -> socket.socket:
    import ssl

    file = os.environ.get(CA_VARIABLE) or None
    try:
        context = ssl.create_default_context(cafile=file)
    except OSError as error:
        opened.close()
        raise ConfigurationError(
            f"{CA_VARIABLE} {file!r} holds no certificates that can be read "
            f"({error.strerror or type(error).__name__}); correct it"
        ) from error
    try:
        return context.wrap_socket(opened, server_hostname=target.host)
    except ssl.SSLCertVerificationError as error:
        why = error.verify_message or "it cannot be verified"
        cure = f"set {CA_VARIABLE} to the file of its authority, or correct {target.source}"
        opened.close()
        raise Unreachable(
            f"the certificate of {target.url} is refused: {why}; {cure}"
        ) from error
    except OSError as error:
        opened.close()
        raise Unreachable(
            f"no TLS with {target.url} ({getattr(error, 'reason', None) or type(error).__name__}); is it http://? "
            f"correct {target.source}"
        ) from error


def _write(
    connection: http.client.HTTPConnection, target: Target, request: Request
) -> None:
    query = f"?{urlencode(request.query)}" if request.query else ""
    connection.putrequest(
        request.method,
        f"{target.path}{request.path}{query}",
    )
    connection.putheader("Accept", "application/json, application/problem+json")
    connection.putheader("Connection", "close")
    connection.putheader(VERSION_HEADER, client_version())
    if target.key is not None:
        connection.putheader("Authorization", f"Bearer {target.key}")
    for name, value in request.headers:
        connection.putheader(name, value)
    if request.body is not None:
        connection.putheader("Content-Type", request.media_type)
    if request.body is not None or request.method in ("POST", "PUT", "PATCH"):
        connection.putheader("Content-Length", str(len(request.body or b"")))
    connection.endheaders()
    if request.body:
        connection.send(request.body)


def _read(answer: http.client.HTTPResponse, target: Target) -> bytes:
    """Return the body.

    Raises:
        TaskloreError: it is larger than anybody reads.
        IncompleteRead: the connection ended before it.
    """
    body = bytearray()
    while chunk := answer.read(_CHUNK):
        body += chunk
        if len(body) > MOST_BYTES:
            raise TaskloreError(
                f"the answer of {target.url} is larger than {MOST_BYTES // 1024**2} MiB; ask for less, by --limit for "
                "example"
            )
    if answer.length:
        raise http.client.IncompleteRead(bytes(body))
    return bytes(body)


def _pour(
    answer: http.client.HTTPResponse,
    deadline: RequestDeadline,
    sink: Callable[[bytes], object],
) -> None:
    """Give the body to *sink* as it comes.

    Raises:
        IncompleteRead: the connection ended before it.
    """
    while chunk := answer.read1(_CHUNK):
        deadline.renew()
        try:
            sink(chunk)
        except OSError as error:
            # No fault of the connection: a program that read the output has gone, or its disk is full.
            raise _Unwritable from error
    if answer.length:
        raise http.client.IncompleteRead(b"")


def _name_stranger(target: Target, error: Exception) -> str:
    words = " ".join(printable(str(error)).split())[:_WORDS]
    said = f" ({words})" if words else ""
    return f"{target.url} does not speak HTTP{said}; correct {target.source}"


def quote_path(text: str) -> str:
    """Return *text* as one segment of a path; a dot or two alone would be taken for another place."""
    if text in (".", ".."):
        return text.replace(".", "%2E")
    return quote(text, safe="")
