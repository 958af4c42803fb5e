"""Observation: a tracing span and a count by route for every request; and HEAD, answered as GET is."""

import time
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tasklore.contracts import subjects
from tasklore.contracts.traces import read_context
from tasklore.runtime import tracing
from tasklore.runtime.metrics import Metrics

#: The methods of HTTP; a client may send any word.
_METHODS = frozenset(
    {"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"}
)
#: The route of a path without one: the path itself is the client's choice, and may name a person.
UNROUTED = "unrouted"
#: The status of a request whose client left before the response.
_GONE = 499


class ObservationMiddleware:
    """Traces and counts requests by route; path and query stay out, as both may name a person."""

    def __init__(self, app: ASGIApp, meter: Metrics) -> None:
        self._app = app
        self._meter = meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, within its span."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        status = _GONE
        method = scope["method"] if scope["method"] in _METHODS else "other"

        async def note_status(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        headers = Headers(scope=scope)
        parents = headers.getlist(subjects.TRACE_HEADER)
        states = ",".join(headers.getlist(subjects.TRACE_STATE_HEADER))
        traced = (
            {subjects.TRACE_HEADER: parents[0], subjects.TRACE_STATE_HEADER: states}
            if len(parents) == 1
            else {}
        )
        parent = read_context(traced) if traced else None
        with tracing.span(
            method,
            kind="server",
            parent=parent,
            attributes={"http.request.method": method},
        ) as span:
            try:
                await self._app(scope, receive, note_status)
            finally:
                path = getattr(scope.get("route"), "path_format", None)
                route = path if isinstance(path, str) else UNROUTED
                span.rename(f"{method} {route}")
                span.note({"http.route": route, "http.response.status_code": status})
                if status >= 500:
                    span.fail(str(status))
                self._meter.count_http_request(
                    route, method, status, time.monotonic() - started
                )


class HeadMiddleware:
    """Answers HEAD as GET, without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on HEAD as GET, and everything else as it is."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        inner: dict[str, Any] = {**scope, "method": "GET"}
        has_ended = False

        async def send_head(message: Message) -> None:
            nonlocal has_ended
            if message["type"] == "http.response.start":
                await send(message)
            elif not has_ended:
                # At once, so that a stream, which loses its client by that, ends too.
                has_ended = True
                await send(
                    {"type": "http.response.body", "body": b"", "more_body": False}
                )

        await self._app(inner, receive, send_head)
        if (route := inner.get("route")) is not None:
            scope["route"] = route
