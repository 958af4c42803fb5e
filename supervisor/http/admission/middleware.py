"""The admission middleware: checks each request before any route sees it."""

import asyncio
import re

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tasklore.contracts.errors import MessageTooLarge
from tasklore.contracts.manifest import LINES
from tasklore.contracts.parameters.body_sizes import demand_few_values
from tasklore.supervisor.http.admission.body_text import find_unkeepable
from tasklore.supervisor.http.admission.console_sessions import CONSOLE
from tasklore.supervisor.http.admission.cross_origin import CrossOrigin, is_own_page
from tasklore.supervisor.http.admission.key_file import KeyEntry
from tasklore.supervisor.http.admission.keys import ANYBODY, CALLER, Caller
from tasklore.supervisor.http.admission.limits import Rates
from tasklore.supervisor.http.admission.stream_tokens import take_token
from tasklore.supervisor.http.dependencies import Admission
from tasklore.supervisor.http.problems import respond
from tasklore.supervisor.operations.refusals import (
    Refused,
    over_share,
    unavailable,
    unusable,
)

#: Paths that need a key; the OpenAPI document and its page are public, as the repository is.
GUARDED = "/v1/"
#: Paths that take a form of a page.
FORMS = ("/approve/", CONSOLE)
#: Pages of the console that nobody has to sign in for: the way in, and what every page looks like.
_OPEN_PAGES = (f"{CONSOLE}sign-in", f"{CONSOLE}static/")

#: Types of bodies, the usual one first: JSON, or a line of it for each thing of a file.
_OF_PROGRAMS = ("application/json", LINES)
_OF_FORMS = ("application/x-www-form-urlencoded",)

#: This machine in a `Host` header or an origin, with nothing around it but a port.
_LOCAL = re.compile(
    r"(localhost|127(\.(25[0-5]|(2[0-4]|1?[0-9])?[0-9])){3}|\[::1\])(:[0-9]{1,5})?",
    re.IGNORECASE,
)


class AdmissionMiddleware:
    """Demands a key, a fitting host, a rate and a size, and refuses with a problem.

    Without keys only programs of this machine reach the API, and browsers that were sent here under another name are
    refused: a page from outside could otherwise speak to it. A request with a caller was admitted elsewhere, by a
    process that handed it over: no request from a socket has one.
    """

    def __init__(self, app: ASGIApp, parts: Admission) -> None:
        self._app = app
        self._parts = parts
        self._rates = Rates(parts.limits.rate, parts.limits.burst)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or refuse it."""
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        holder = ANYBODY.holder
        handed = scope.get(CALLER)
        try:
            if isinstance(handed, Caller):
                holder = handed.holder
                self._demand_place(handed)
            else:
                if self._parts.keys is None:
                    _check_browser(scope, headers, self._parts.cross_origin)
                caller = self._admit_request(scope, headers)
                if caller is not None:
                    scope[CALLER] = caller
                    holder = caller.holder
            _check_body(
                headers,
                self._parts.limits.body_bytes,
                is_form=scope["path"].startswith(FORMS),
            )
        except Refused as refused:
            await respond(refused)(scope, receive, send)
            return
        limits = self._parts.limits
        with self._parts.life.count(holder):
            await self._app(
                scope,
                BodyReader(receive, limits.body_bytes, limits.body_s).receive,
                send,
            )

    def _admit_request(self, scope: Scope, headers: Headers) -> Caller | None:
        """Return who asks for a path that needs a caller; None for any other path."""
        if scope["path"].startswith(CONSOLE):
            return self._admit_browser(scope, headers)
        token = take_token(scope)
        caller = self._identify(scope, headers, token)
        if not scope["path"].startswith(GUARDED):
            return None
        if caller is None:
            detail = "send a valid API key, as `Authorization: Bearer KEY`; `tasklore api-key` creates one"
            if token:
                detail = (
                    "invalid stream token: it has expired, is for another stream, or "
                    "its API key was removed; create a new one with POST "
                    "/v1/stream-tokens"
                )
            raise Refused(401, "no-key", detail, headers={"WWW-Authenticate": "Bearer"})
        return self._admit(caller)

    def _admit_browser(self, scope: Scope, headers: Headers) -> Caller | None:
        """Return who has signed in to the console; None on its pages that are open to all.

        Of a page from elsewhere the cookie is not sent, and its browser says so too.
        """
        sessions = self._parts.console
        public = sessions.address if sessions is not None else None
        if scope["method"] not in ("GET", "HEAD") and not is_own_page(headers, public):
            raise Refused(
                403,
                "origin",
                "no page from elsewhere may send a form of the console; behind a proxy that changes `Host`, set "
                "TASKLORE_APPROVAL_URL to the address that browsers open",
            )
        if self._parts.keys is None:
            return self._admit(ANYBODY)
        found = (
            sessions.find_session(headers.get("cookie", ""))
            if sessions is not None
            else None
        )
        if found is not None:
            self._parts.unknown.settle(scope.get("client"))
            return self._admit(found[1].caller)
        self._count_unknown(scope, headers)
        if scope["path"].startswith(_OPEN_PAGES):
            return None
        raise Refused(
            401,
            "no-session",
            "not signed in, or the session has expired; run `tasklore console` for a "
            "new sign-in link",
        )

    def _identify(
        self, scope: Scope, headers: Headers, token: str | None
    ) -> Caller | None:
        """Return the caller by the key of a request, or by the *token* of a stream; None without a known one.

        Requests without a known key count against the rate of their address.
        """
        keys = self._parts.keys
        if keys is None:
            return ANYBODY
        scheme, _, key = headers.get("authorization", "").partition(" ")
        entry = keys.find(key.strip()) if scheme.lower() == "bearer" else None
        if not scheme and token is not None:
            entry = self._open_stream(scope, headers, token)
        if entry is not None:
            self._parts.unknown.settle(scope.get("client"))
            return entry.caller
        self._count_unknown(scope, headers)
        return None

    def _count_unknown(self, scope: Scope, headers: Headers) -> None:
        """Count a request without a known key to its address.

        Raises:
            Refused: 429, there are too many.
        """
        if wait_s := self._parts.unknown.take(
            scope.get("client"), headers.getlist("x-forwarded-for")
        ):
            detail = f"too many requests without a known key from this address; retry in {wait_s} s, or send a key"
            # A client that goes on all the same has to connect anew.
            raise Refused(
                429,
                "rate",
                detail,
                headers={"Retry-After": str(wait_s), "Connection": "close"},
            )

    def _open_stream(
        self, scope: Scope, headers: Headers, token: str
    ) -> KeyEntry | None:
        """Return the key that *token* was made with, None where it does not open this stream.

        The place in the stream that it has counts unless the client knows a later one.
        """
        tokens = self._parts.stream_tokens
        found = tokens.read(token, scope["path"]) if tokens is not None else None
        if found is None:
            return None
        grant, entry = found
        if grant.after is not None and "last-event-id" not in headers:
            place = (b"last-event-id", grant.after.encode())
            scope["headers"] = [*scope["headers"], place]
        return entry

    def _admit(self, caller: Caller) -> Caller:
        """Return *caller*, unless they ask for more than their share.

        Raises:
            Refused: 429, 503.
        """
        if wait_s := self._rates.take(caller.name):
            detail = f"too many requests with this key; retry in {wait_s} s, and send fewer per second"
            raise Refused(429, "rate", detail, headers={"Retry-After": str(wait_s)})
        self._demand_place(caller)
        return caller

    def _demand_place(self, caller: Caller) -> None:
        """Return where one more request of *caller* may be answered.

        Raises:
            Refused: 429, the caller has as many as one may; 503, there are as many as may be.
        """
        life = self._parts.life
        most = self._parts.limits.at_once
        if life.inside_of[caller.holder] >= (own := self._parts.share(most)):
            raise over_share(
                f"{own} requests with this key are being answered; ask again when one has ended"
            )
        if life.inside >= most:
            raise unavailable(
                f"{life.inside} requests are being answered; retry in a second, or use "
                "another supervisor"
            )


def _check_browser(
    scope: Scope, headers: Headers, cross_origin: CrossOrigin | None
) -> None:
    if not is_local(headers.get("host", "")):
        detail = "remote access requires API keys: use 127.0.0.1, or set TASKLORE_API_KEYS_FILE"
        raise Refused(403, "host", detail)
    # A browser lets any page send a request that changes something, as long as it has no body of JSON. Forms of the
    # console are of its own pages alone, see `is_own_page`.
    origin = headers.get("origin")
    if cross_origin is not None and origin is not None and cross_origin.names(origin):
        return
    if (
        origin is not None
        and not is_local(origin.partition("://")[2])
        and scope["method"] != "GET"
        and not scope["path"].startswith(CONSOLE)
    ):
        raise Refused(
            403,
            "origin",
            "cross-origin request refused: add the origin to TASKLORE_API_CORS_ORIGINS",
        )


def _check_body(headers: Headers, most_bytes: int, *, is_form: bool) -> None:
    length = headers.get("content-length", "0")
    if not length.isdecimal() or int(length) > most_bytes:
        raise _too_large(most_bytes)
    if length == "0" and "transfer-encoding" not in headers:
        return
    kinds = _OF_FORMS if is_form else _OF_PROGRAMS
    if headers.get("content-type", "").partition(";")[0].strip().lower() not in kinds:
        raise Refused(415, "no-json", f"send the body as `Content-Type: {kinds[0]}`")
    if headers.get("content-encoding", "identity").strip().lower() != "identity":
        raise Refused(
            415,
            "encoded",
            "send the body as it is, without `Content-Encoding`; nothing is unpacked here",
        )


class BodyReader:
    """Reads the body of one request as a whole: so many bytes and values, within *within_s* seconds."""

    def __init__(self, receive: Receive, most: int, within_s: float) -> None:
        self._receive = receive
        self._most = most
        self._until = asyncio.get_running_loop().time() + within_s
        self._is_read = False

    async def receive(self) -> Message:
        """Return the whole body as one message; later calls wait for the end of the connection.

        Raises:
            Refused: It is too large (413), did not come in time (408), or holds what is no Unicode (422).
        """
        if self._is_read:
            # After the body only the end of the connection can come, however long the answer takes.
            return await self._receive()
        try:
            async with asyncio.timeout_at(self._until) as deadline:
                message = await self._read()
        except TimeoutError:
            if not deadline.expired():
                raise
            # The rest of the body would be read as the next request.
            detail = "the body did not come in time; send it at once, or a reference to what is larger"
            raise Refused(
                408, "too-slow", detail, headers={"Connection": "close"}
            ) from None
        self._is_read = True
        try:
            demand_few_values(message.get("body", b""))
        except MessageTooLarge as error:
            raise Refused(413, "too-large", str(error)) from error
        if fault := find_unkeepable(message.get("body", b"")):
            raise unusable([fault])
        return message

    async def _read(self) -> Message:
        pieces = list[bytes]()
        left = self._most
        while True:
            message = await self._receive()
            pieces.append(message.get("body", b""))
            left -= len(pieces[-1])
            if left < 0:
                raise _too_large(self._most)
            if not message.get("more_body", False):
                return (
                    {**message, "body": b"".join(pieces)}
                    if message["type"] == "http.request"
                    else message
                )


def _too_large(most: int) -> Refused:
    return Refused(
        413,
        "too-large",
        f"a body may have {most:,} bytes; send a reference to what is larger",
    )


def is_local(host: str) -> bool:
    """Return whether *host*, from a `Host` header or an origin, is this machine."""
    return _LOCAL.fullmatch(host) is not None
