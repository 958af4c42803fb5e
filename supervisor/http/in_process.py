"""A request to an application of the same process: without socket and key, and with a response that is read whole."""

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import unquote, urlsplit

import structlog
from starlette.types import ASGIApp, Message, Scope

from tasklore.contracts import subjects
from tasklore.contracts.handed_requests import HandedRequest, HandedResponse
from tasklore.supervisor.http.admission.keys import CALLER
from tasklore.supervisor.http.event_streams import EventStream
from tasklore.supervisor.http.problems import respond
from tasklore.supervisor.operations.refusals import Refused

log = structlog.get_logger(__name__)

#: Headers of a response that are about one connection, or that whoever passes it on says anew.
_OF_CONNECTIONS = frozenset({"connection", "content-length", "transfer-encoding"})
_EVENTS = EventStream.media_type.encode()


async def call_in_process(
    app: ASGIApp,
    request: HandedRequest,
    url: str,
    *,
    left: asyncio.Event | None = None,
    keep: Callable[[asyncio.Task[None]], None] | None = None,
    most_bytes: int = subjects.MAX_BODY,
) -> HandedResponse:
    """Return the response of *app*, which is served at *url*, to *request*; a refusal is a response, too.

    A stream of events, a response of more than *most_bytes*, by default those that one message takes, one that is not
    there within `request.within_s`, and one that breaks off are refused.

    *left* is set when the request is given up, or late: the application hears a client leave. *keep* is given the task
    of a late one, to hold it until its end; without it that is cancelled.
    """
    collected = _Collected(url, most_bytes)
    left = left or asyncio.Event()
    sent = _Sent(request.body, left)
    answering = asyncio.create_task(
        _answer(app(_scope_of(request, url), sent.receive, collected.take), collected)
    )
    is_kept = False
    try:
        await asyncio.wait({answering}, timeout=request.within_s)
        is_late = not answering.done()
        if is_late and keep is not None:
            keep(answering)
            is_kept = True
            left.set()
    finally:
        if not is_kept:
            answering.cancel()
            await asyncio.gather(answering, return_exceptions=True)
    if is_late:
        collected.problem = Refused(
            504,
            "late",
            f"this was not answered within {request.within_s:g} s, and may still come about; look, or send it again "
            "with the same Idempotency-Key",
        )
    else:
        answering.result()
    if collected.problem is None and not collected.is_whole:
        collected.problem = Refused(
            502,
            "broken-off",
            "the response broke off before its end, and what was asked may have come about; look, or send it again "
            "with the same Idempotency-Key",
        )
    if collected.problem is not None:
        return await refuse_in_process(collected.problem)
    return HandedResponse(
        status=collected.status,
        headers=tuple(collected.headers),
        body=b"".join(collected.pieces),
    )


async def _answer(response: Awaitable[None], collected: "_Collected") -> None:
    """Wait for the end of *response*, which is collected in *collected*."""
    try:
        await response
    except Exception:
        # Of the refusal of what was sent, or said in a response by then.
        if collected.problem is None and not collected.status:
            raise
        if collected.problem is None and not collected.is_whole:
            log.exception("response_broke_off", status=collected.status)


async def refuse_in_process(problem: Refused) -> HandedResponse:
    """Return *problem* as a response."""
    response = respond(problem)
    return HandedResponse(
        status=response.status_code,
        headers=tuple(response.headers.items()),
        body=bytes(response.body),
    )


def _scope_of(request: HandedRequest, url: str) -> Scope:
    address = urlsplit(url)
    return {
        "type": "http",
        "asgi": {"version": "3.0", "spec_version": "2.3"},
        "http_version": "1.1",
        "method": request.method,
        "scheme": address.scheme,
        "server": (address.hostname or "", address.port),
        "client": None,
        "root_path": "",
        "path": unquote(request.path),
        "raw_path": request.path.encode(),
        "query_string": request.query.encode(),
        "headers": [
            (b"host", address.netloc.encode()),
            (b"content-length", str(len(request.body)).encode()),
            *((name.encode(), value.encode()) for name, value in request.headers),
        ],
        CALLER: request.caller,
    }


class _Sent:
    """The body of a request, and then nothing: its client stays until *left* is set."""

    def __init__(self, body: bytes, left: asyncio.Event) -> None:
        self._unsent: list[bytes] = [body]
        self._left = left

    async def receive(self) -> Message:
        """Return the body, and behind it that the client left, once it did."""
        if self._unsent:
            return {"type": "http.request", "body": self._unsent.pop()}
        await self._left.wait()
        return {"type": "http.disconnect"}


class _Collected:
    """A response as it is collected; `problem` is why it is given up, and once it `is_whole` nothing follows."""

    def __init__(self, url: str, most_bytes: int) -> None:
        self.status = 0
        self.headers: list[tuple[str, str]] = []
        self.pieces: list[bytes] = []
        self.problem: Refused | None = None
        self.is_whole = False
        self._url = url
        self._most = most_bytes
        self._left = most_bytes

    async def take(self, message: Message) -> None:
        """Take the next message of the response.

        Raises:
            Refused: it is a stream, or too large.
        """
        if message["type"] == "http.response.start":
            self.status = message["status"]
            for name, value in message["headers"]:
                word = name.decode("latin-1").lower()
                if word not in _OF_CONNECTIONS:
                    self.headers.append((word, value.decode("latin-1")))
                if word == "content-type" and value.startswith(_EVENTS):
                    self._give_up(refuse_stream(self._url))
            return
        piece = message.get("body", b"")
        self._left -= len(piece)
        if self._left < 0:
            self._give_up(
                Refused(
                    413,
                    "too-large",
                    f"the response is larger than the {self._most:,} bytes that are passed on; "
                    f"ask for a smaller page, or ask at {self._url} itself",
                )
            )
        self.pieces.append(piece)
        self.is_whole = not message.get("more_body", False)

    def _give_up(self, problem: Refused) -> None:
        self.problem = problem
        raise problem


def refuse_stream(url: str) -> Refused:
    """Return the refusal of a stream, which the API at *url* alone sends."""
    return Refused(
        421,
        "elsewhere",
        f"this is followed, or opened, at the API of a supervisor itself, with a key of it; here that is {url}",
    )
