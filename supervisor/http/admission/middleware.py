"""The door: who comes in, how often and with how much, before any route sees the request."""

import asyncio
import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contracts.errors import MessageTooLarge
from contracts.parameters.body_sizes import demand_few_values
from supervisor.http.admission.keys import ANYBODY, CALLER, Caller
from supervisor.http.admission.limits import Rates
from supervisor.http.parts import Parts
from supervisor.http.problems import Refused, crowded, response_of, unavailable

#: Where keys are demanded; the document and its page say nothing that is not in the repository.
GUARDED = "/v1/"

#: Programs of this machine as a browser names them, with nothing before or after but a port.
_LOCAL = re.compile(r"(localhost|127(\.(25[0-5]|(2[0-4]|1?[0-9])?[0-9])){3}|\[::1\])(:[0-9]{1,5})?", re.IGNORECASE)


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
        headers, caller = Headers(scope=scope), ANYBODY
        try:
            self._demand_host(headers)
            self._demand_origin(scope["method"], headers)
            known = self._known(scope, headers)
            if scope["path"].startswith(GUARDED):
                scope[CALLER] = caller = _demanded(known)
                self._demand_rate(caller)
                self._demand_room(caller)
            self._demand_size(headers)
            self._demand_json(headers)
        except Refused as refused:
            await response_of(refused)(scope, receive, send)
            return
        limits = self._parts.limits
        with self._parts.life.counted(caller.name):
            await self._app(scope, _Limited(receive, limits.body_bytes, limits.body_s).receive, send)

    def _demand_host(self, headers: Headers) -> None:
        host = headers.get("host", "")
        if self._parts.keys is None and not is_local(host):
            detail = (
                "without API keys this is for programs of this machine; use 127.0.0.1, or set TASKLORE_API_KEYS_FILE"
            )
            raise Refused(403, "host", detail)

    def _demand_origin(self, method: str, headers: Headers) -> None:
        # A browser lets any page send a request that changes something, as long as it has no body of JSON.
        origin = headers.get("origin")
        is_foreign = origin is not None and not is_local(origin.partition("://")[2])
        if is_foreign and self._parts.keys is None and method != "GET":
            raise Refused(403, "origin", "without API keys no page from elsewhere may ask; set TASKLORE_API_KEYS_FILE")

    def _known(self, scope: Scope, headers: Headers) -> Caller | None:
        """Return who sent a request, None for a stranger, of whom an address has only so many at a time."""
        keys = self._parts.keys
        if keys is None:
            return ANYBODY
        scheme, _, key = headers.get("authorization", "").partition(" ")
        entry = keys.find(key.strip()) if scheme.lower() == "bearer" else None
        if entry is not None:
            self._parts.strangers.settle(scope.get("client"))
            return Caller(entry.name, frozenset(entry.roles), entry.user)
        if wait_s := self._parts.strangers.take(scope.get("client"), headers.getlist("x-forwarded-for")):
            detail = f"too many requests without a known key from this address; go on in {wait_s} s, or send a key"
            # Whoever goes on all the same has to connect anew.
            raise Refused(429, "rate", detail, headers={"Retry-After": str(wait_s), "Connection": "close"})
        return None

    def _demand_rate(self, caller: Caller) -> None:
        if wait_s := self._rates.take(caller.name):
            detail = f"too many requests with this key; go on in {wait_s} s, and send fewer a second"
            raise Refused(429, "rate", detail, headers={"Retry-After": str(wait_s)})

    def _demand_room(self, caller: Caller) -> None:
        life, most = self._parts.life, self._parts.limits.at_once
        if life.inside_of[caller.name] >= (own := self._parts.share(most)):
            raise crowded(f"{own} requests with this key are being answered; ask again when one has ended")
        if life.inside >= most:
            raise unavailable(f"{life.inside} requests are being answered; ask again in a second, or elsewhere")

    def _demand_size(self, headers: Headers) -> None:
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > self._parts.limits.body_bytes:
            raise _too_large(self._parts.limits.body_bytes)

    def _demand_json(self, headers: Headers) -> None:
        has_body = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if has_body and kind != "application/json":
            raise Refused(415, "no-json", "send the body as `Content-Type: application/json`")
        if has_body and headers.get("content-encoding", "identity").strip().lower() != "identity":
            raise Refused(
                415, "encoded", "send the body as it is, without `Content-Encoding`; nothing is unpacked here"
            )


def _demanded(known: Caller | None) -> Caller:
    if known is None:
        detail = "send an API key that is known, as `Authorization: Bearer KEY`; `tasklore api-key` makes one"
        raise Refused(401, "no-key", detail, headers={"WWW-Authenticate": "Bearer"})
    return known


class _Limited:
    """The body of one request as a whole: so many bytes and values, within *within_s* seconds."""

    def __init__(self, receive: Receive, most: int, within_s: float) -> None:
        self._receive = receive
        self._most = most
        self._until = asyncio.get_running_loop().time() + within_s
        self._is_read = False

    async def receive(self) -> Message:
        if self._is_read:
            # After the body only the end of the connection is waited for, however long the answer takes.
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until) as deadline:
                message = await self._whole()
        except TimeoutError:
            if not deadline.expired():
                raise
            raise _too_slow() from None
        self._is_read = True
        try:
            demand_few_values(message.get("body", b""))
        except MessageTooLarge as error:
            raise Refused(413, "too-large", str(error)) from error
        return message

    async def _whole(self) -> Message:
        pieces, left = list[bytes](), self._most
        while True:
            message = await self._receive()
            pieces.append(message.get("body", b""))
            left -= len(pieces[-1])
            if left < 0:
                raise _too_large(self._most)
            if not message.get("more_body", False):
                return {**message, "body": b"".join(pieces)} if message["type"] == "http.request" else message


def _too_large(most: int) -> Refused:
    return Refused(413, "too-large", f"a body may have {most:,} bytes; send a reference to what is larger")


def _too_slow() -> Refused:
    # What is left of the body would be read as the next request.
    detail = "the body did not come in time; send it at once, or a reference to what is larger"
    return Refused(408, "too-slow", detail, headers={"Connection": "close"})


def is_local(host: str) -> bool:
    """Tell whether *host*, as a `Host` header or an origin names it, is this machine."""
    return _LOCAL.fullmatch(host) is not None
