"""Every request seen from outside: its span in the trace that it came with, and its count by route."""

import time
from typing import Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contracts import subjects
from contracts.traces import TraceContext, read_context
from runtime import tracing
from runtime.metrics import Metrics

#: The methods that HTTP has; a stranger may call one anything.
_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"})
#: What no route is there for: the path itself is a stranger's choice, and may name a person.
UNROUTED = "unrouted"
#: Nothing was answered: whoever asked has gone away.
_GONE = 499


class Observed:
    """Wraps an application; neither path nor query is told of, as both may name a person."""

    def __init__(self, app: ASGIApp, meter: Metrics) -> None:
        self._app = app
        self._meter = meter

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, within its span."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), _GONE
        method = scope["method"] if scope["method"] in _METHODS else "other"

        async def told(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        parent = _parent_of(Headers(scope=scope))
        with tracing.span(method, kind="server", parent=parent, attributes={"http.request.method": method}) as span:
            try:
                await self._app(scope, receive, told)
            finally:
                route = _route_of(scope)
                span.rename(f"{method} {route}")
                span.note({"http.route": route, "http.response.status_code": status})
                if status >= 500:
                    span.fail(str(status))
                self._meter.count_http_request(route, method, status, time.monotonic() - started)


class Headed:
    """Wraps an application: HEAD is answered as GET is, without the body."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass everything on but HEAD, which becomes GET."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return
        inner: dict[str, Any] = {**scope, "method": "GET"}
        has_ended = False

        async def head_only(message: Message) -> None:
            nonlocal has_ended
            if message["type"] == "http.response.start":
                await send(message)
            elif not has_ended:
                # At once, so that a stream, which finds nobody there any more, ends too.
                has_ended = True
                await send({"type": "http.response.body", "body": b"", "more_body": False})

        await self._app(inner, receive, head_only)
        if (route := inner.get("route")) is not None:
            scope["route"] = route


def _parent_of(headers: Headers) -> TraceContext | None:
    """Return the context that a request came with: none of several, and whose state stands in several lines is one."""
    parents = headers.getlist(subjects.TRACE_HEADER)
    if len(parents) != 1:
        return None
    states = ",".join(headers.getlist(subjects.TRACE_STATE_HEADER))
    return read_context({subjects.TRACE_HEADER: parents[0], subjects.TRACE_STATE_HEADER: states})


def _route_of(scope: Scope) -> str:
    path = getattr(scope.get("route"), "path_format", None)
    return path if isinstance(path, str) else UNROUTED
