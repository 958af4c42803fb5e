"""Requests that a process with the rights of `operator` does not answer itself: handed over to a supervisor over NATS.

What starts work, or answers a question, needs interpreter, dispatch and signatures, which supervisors have.
"""

import asyncio
import json
import math
import secrets
import time
from collections.abc import Callable
from urllib.parse import parse_qs

import structlog
from nats.aio.client import Client
from nats.errors import ConnectionClosedError, NoRespondersError
from nats.errors import Error as NatsError
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from tasklore.contracts import subjects
from tasklore.contracts.errors import TaskloreError, Unreachable
from tasklore.contracts.handed_requests import HandedRequest, HandedResponse
from tasklore.runtime.messaging.refusals import unless_refused
from tasklore.supervisor.http.admission.keys import CALLER, Caller
from tasklore.supervisor.http.admission.middleware import GUARDED
from tasklore.supervisor.http.problems import respond
from tasklore.supervisor.http.responses import while_connected
from tasklore.supervisor.operations.forms import read_seconds
from tasklore.supervisor.operations.refusals import Refused, unavailable

log = structlog.get_logger(__name__)

#: Headers that the application reads; who asks, and over which connection, is said otherwise.
_PASSED_ON = frozenset(
    {
        "accept",
        "content-type",
        "idempotency-key",
        "if-match",
        "if-none-match",
        "last-event-id",
        subjects.TRACE_HEADER,
        subjects.TRACE_STATE_HEADER,
    }
)
#: The field of a body, or of a query, by which a client says how long the response may take, and the seconds without.
_WAIT = "wait_seconds"
_WAIT_S = 30.0
_LONGEST_WAIT_S = 600.0
#: Seconds beyond that: a look into the stores, and a model that reads the words.
_BEYOND_S = 15.0
#: Seconds in which a supervisor that is late says so itself.
_FAREWELL_S = 2.0
#: Seconds in which a supervisor that was just started, or restarted, begins to take requests, and between two tries.
_NOBODY_S = 3.0
_PAUSE_S = 0.1


class HandOver:
    """Hands requests over to the supervisors of *supervisor_id*: one of them answers."""

    def __init__(self, client: Client, supervisor_id: str) -> None:
        self._client = client
        self._subject = subjects.operations(supervisor_id)
        self._left = subjects.operations_left(supervisor_id)

    async def ask(self, request: HandedRequest) -> HandedResponse:
        """Return the response of a supervisor to *request*, which is sent once.

        Where it is given up, by a cancellation too, every supervisor hears so: it may be in the queue of one.

        Raises:
            Refused: 413, it is too large; 503, no supervisor takes it; 504, the one that took it is silent.
            Forbidden: this process may not hand anything over.
        """
        message = request.encode()
        if len(message) > subjects.MAX_BODY:
            raise Refused(
                413,
                "too-large",
                f"the request has {len(message):,} bytes, and one message takes {subjects.MAX_BODY:,}; "
                "send a reference to what is larger",
            )
        is_over = False
        try:
            response = await unless_refused(
                self._client, self._subject, self._request(message, request.within_s)
            )
            is_over = True
        finally:
            if not is_over and request.id:
                await self._tell_left(request.id)
        return response

    async def _tell_left(self, request_id: str) -> None:
        try:
            await self._client.publish(self._left, request_id.encode())
        except (NatsError, OSError) as error:
            # The supervisor gives up by itself, a little later.
            log.info("giving_up_not_told", error=str(error))

    async def _request(self, message: bytes, within_s: float) -> HandedResponse:
        """Return the response of a supervisor that goes on; one that is about to end takes nothing."""
        given_up = time.monotonic() + _NOBODY_S
        while True:
            try:
                reply = await self._client.request(
                    self._subject, message, timeout=within_s + _FAREWELL_S
                )
            except NoRespondersError as error:
                if time.monotonic() > given_up:
                    raise unavailable(
                        "no supervisor accepts requests: start one with `tasklore "
                        "supervisor` (TASKLORE_API_PORT must not be none); read and "
                        "admin operations work without it"
                    ) from error
            except TimeoutError as error:
                raise Refused(
                    504,
                    "late",
                    f"no supervisor answered within {within_s:g} s, and the request may "
                    "still be executed: check that one runs and is ready (its "
                    "/readyz), and send it again with the same Idempotency-Key",
                ) from error
            except (ConnectionClosedError, OSError) as error:
                raise Unreachable(
                    "NATS does not answer; see whether it runs, then ask again"
                ) from error
            else:
                answer = _read_response(reply.data)
                if not answer.is_leaving or time.monotonic() > given_up:
                    return answer
            await asyncio.sleep(_PAUSE_S)


class HandOverMiddleware:
    """Answers the requests that *answers_itself* holds for; hands over all others below `/v1/`."""

    def __init__(
        self,
        app: ASGIApp,
        hand_over: HandOver,
        answers_itself: Callable[[Scope], bool],
    ) -> None:
        self._app = app
        self._hand_over = hand_over
        self._answers_itself = answers_itself

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on to the application, or to a supervisor."""
        caller = scope.get(CALLER)
        if (
            scope["type"] != "http"
            or not scope["path"].startswith(GUARDED)
            or not isinstance(caller, Caller)
            or self._answers_itself(scope)
        ):
            await self._app(scope, receive, send)
            return
        try:
            request = _read_request(scope, await _read_body(receive), caller)
            found = await while_connected(receive, self._hand_over.ask(request))
        except (ClientDisconnect, Refused, TaskloreError) as error:
            await respond(error)(scope, receive, send)
            return
        response = Response(found.body, found.status)
        for name, value in found.headers:
            response.headers.append(name, value)
        await response(scope, receive, send)


async def _read_body(receive: Receive) -> bytes:
    """Return the body of a request, which comes as one message.

    Raises:
        ClientDisconnect: the client left before all of it was there.
    """
    message = await receive()
    if message["type"] == "http.disconnect":
        raise ClientDisconnect
    body: bytes = message.get("body", b"")
    return body


def _read_response(message: bytes) -> HandedResponse:
    """Return the response in *message*.

    Raises:
        Refused: 502, it is none.
    """
    try:
        return HandedResponse.decode(message)
    except ValueError as error:
        raise Refused(
            502,
            "unreadable",
            "the supervisor answered with something else than a response; are the versions the same?",
        ) from error


def _read_request(scope: Scope, body: bytes, caller: Caller) -> HandedRequest:
    """Return the request of *scope* with its whole *body*.

    Raises:
        Refused: its path, its query or its headers are longer than any that there is.
    """
    try:
        return HandedRequest(
            id=secrets.token_hex(16),
            method=scope["method"],
            path=scope["raw_path"].decode("ascii"),
            query=scope["query_string"].decode("ascii"),
            headers=tuple(
                (name, value)
                for name, value in Headers(scope=scope).items()
                if name in _PASSED_ON
            ),
            caller=caller,
            within_s=_read_wait(scope, body) + _BEYOND_S,
            body=body,
        )
    except ValueError as error:
        raise Refused(
            400,
            "too-long",
            "the path, the query or the headers are not text, or too long; shorten "
            "them",
        ) from error


def _read_wait(scope: Scope, body: bytes) -> float:
    """Return the seconds for which a request asks to be waited for; one that names none waits like most."""
    named: object = parse_qs(scope["query_string"].decode("ascii", "ignore")).get(
        _WAIT, [None]
    )[-1]
    try:
        if named is None and body:
            content = json.loads(body)
            named = content.get(_WAIT) if isinstance(content, dict) else None
        wait_s = _WAIT_S if named is None else float(str(read_seconds(named)))
    except (ValueError, RecursionError):
        # The application explains what is wrong with it.
        return _WAIT_S
    return min(max(wait_s, 0.0), _LONGEST_WAIT_S) if math.isfinite(wait_s) else _WAIT_S
