"""The door: who comes in, how often and with how much, before any route sees the request."""

import ipaddress

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from supervisor.http.keys import ANYBODY, CALLER, Caller
from supervisor.http.limits import Rates
from supervisor.http.parts import Parts
from supervisor.http.problems import Refused, response_of, unavailable

#: Where keys are demanded; the document and its page say nothing that is not in the repository.
GUARDED = "/v1/"


class Door:
    """Wraps an application: demands a key, a fitting host, a rate and a size, and refuses with a problem.

    Without keys only programs of this machine reach the API, and it says no to a browser that was sent here under
    another name: a page from outside could otherwise speak to it.
    """

    def __init__(self, app: ASGIApp, parts: Parts) -> None:
        self._app = app
        self._parts = parts
        self._rates = Rates(parts.limits.rate, parts.limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the request in, or answer it here."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        try:
            self._demand_host(headers)
            if scope["path"].startswith(GUARDED):
                scope[CALLER] = caller = self._caller(headers)
                self._demand_rate(caller)
            self._demand_size(headers)
            self._demand_json(headers)
        except Refused as refused:
            await response_of(refused)(scope, receive, send)
            return
        with self._parts.life.counted():
            await self._app(scope, _Limited(receive, self._parts.limits.body_bytes).receive, send)

    def _demand_host(self, headers: Headers) -> None:
        host = headers.get("host", "")
        if self._parts.keys is None and not _is_local(host):
            detail = (
                "without API keys this is for programs of this machine; use 127.0.0.1, or set TASKLORE_API_KEYS_FILE"
            )
            raise Refused(403, "host", detail)

    def _caller(self, headers: Headers) -> Caller:
        keys = self._parts.keys
        if keys is None:
            return ANYBODY
        scheme, _, key = headers.get("authorization", "").partition(" ")
        entry = keys.find(key.strip()) if scheme.lower() == "bearer" else None
        if entry is None:
            detail = "send an API key that is known, as `Authorization: Bearer KEY`; `tasklore api-key` makes one"
            raise Refused(401, "no-key", detail, headers={"WWW-Authenticate": "Bearer"})
        return Caller(entry.name, frozenset(entry.roles), entry.user)

    def _demand_rate(self, caller: Caller) -> None:
        if wait_s := self._rates.take(caller.name):
            detail = f"too many requests with this key; go on in {wait_s} s, with fewer at once"
            raise Refused(429, "rate", detail, headers={"Retry-After": str(wait_s)})
        if (inside := self._parts.life.inside) >= self._parts.limits.at_once:
            raise unavailable(f"{inside} requests are being answered; ask again in a second, or elsewhere")

    def _demand_size(self, headers: Headers) -> None:
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._parts.limits.body_bytes:
            raise _too_large(self._parts.limits.body_bytes)

    def _demand_json(self, headers: Headers) -> None:
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if has_body and kind != "application/json":
            raise Refused(415, "no-json", "send the body as `Content-Type: application/json`")


class _Limited:
    """The body of one request, up to so many bytes: its sender may not have said how long it is."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._left = most
        self._most = most

    async def receive(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise _too_large(self._most)
        return message


def _too_large(most: int) -> Refused:
    return Refused(413, "too-large", f"a body may have {most:,} bytes; send a reference to what is larger")


def _is_local(host: str) -> bool:
    name = host.rpartition(":")[0] if host.count(":") == 1 else host.partition("]")[0].lstrip("[")
    name = name or host
    if name == "localhost":
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False
