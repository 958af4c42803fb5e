"""Sessions of the web console: signed cookies in place of a key, checked anew with each request.

A session is of one caller, and holds no key. It is signed by what all supervisors share, and by the hash of the key
that it was made with, which ends it too: any supervisor, and a process of operations, takes it.
"""

import base64
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Iterator
from itertools import islice
from typing import ClassVar, Protocol

from pydantic import BaseModel, ConfigDict, ValidationError

from tasklore.contracts.callers import Caller
from tasklore.supervisor.http.admission.key_file import KeyRing
from tasklore.supervisor.http.admission.keys import ANYBODY

#: Where the console is; the cookie goes to no other path.
CONSOLE = "/console/"
COOKIE = "tasklore_console"
#: Seconds in which a link signs in, and those of a session.
LINK_S = 300
LIFE_S = 3600
#: What is signed begins with one of these, so that the secret signs nothing else by accident.
_LINK = b"tasklore console link 1\n"
_SESSION = b"tasklore console session 1\n"
_FORM = b"tasklore console form 1\n"
#: Without keys everybody on this machine is the same caller: a signature would prove nothing.
_LOCAL_SECRET = "without keys"  # noqa: S105 - it is no secret
#: Cookies called as ours that are looked at; a browser sends one.
_MOST_COOKIES = 20
#: Characters of the longest token that is read.
_LONGEST = 4_096


class Holder(BaseModel):
    """The holder of a link or a session: *caller*, signed in by *provider*, until *expires* (seconds since 1970).

    *number* is a random one, by which it differs from others.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    caller: Caller
    provider: str
    expires: int
    number: str


class ConsoleHolders(Protocol):
    """Who signs in: API keys, and later an identity provider. Asked with each request of a session."""

    @property
    def name(self) -> str:
        """The word by which sessions name it."""

    def find_now(self, caller: Caller) -> tuple[Caller, str] | None:
        """Return *caller* as they are now, and the secret part of their sessions; None ends these."""


class KeyHolders:
    """The holders of *keys*; None where none are required, and everybody is the same caller."""

    name = "key"

    def __init__(self, keys: KeyRing | None) -> None:
        self._keys = keys

    def find_now(self, caller: Caller) -> tuple[Caller, str] | None:
        """Return the caller of the key called as *caller* is, by what its line says now, and its hash."""
        if self._keys is None:
            return ANYBODY, ""
        entry = self._keys.named(caller.name)
        return None if entry is None else (entry.caller, entry.sha256)


class ConsoleSessions:
    """Makes and reads links that sign in, sessions, and tokens of forms, with the *secret* of all supervisors.

    *address* is where links lead to, None where it is not known: to where one was asked for.
    """

    def __init__(
        self,
        secret: str,
        holders: ConsoleHolders,
        address: str | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        self.address = address
        self._secret = secret.encode()
        self._holders = holders
        self._now = now

    @classmethod
    def of(
        cls, secret: str | None, keys: KeyRing | None, address: str | None = None
    ) -> "ConsoleSessions | None":
        """Return those of the holders of *keys*; None where there are keys, and no *secret* that all share."""
        if secret is None and keys is not None:
            return None
        return cls(secret or _LOCAL_SECRET, KeyHolders(keys), address)

    def make_link(self, caller: Caller) -> tuple[str, int]:
        """Return a token that signs *caller* in once, and when it expires.

        Raises:
            LookupError: there is no such caller any more.
        """
        return self._make(_LINK, caller, LINK_S)

    def read_link(self, token: str) -> Holder | None:
        """Return the holder of *token*; None where it is altered, over, or its key was removed."""
        return self._read(_LINK, token)

    def make_session(self, caller: Caller) -> str:
        """Return the cookie of a new session of *caller*.

        Raises:
            LookupError: there is no such caller any more.
        """
        return self._make(_SESSION, caller, LIFE_S)[0]

    def read_session(self, cookie: str) -> Holder | None:
        """Return whose session *cookie* is, as they are now; None where there is none."""
        return self._read(_SESSION, cookie)

    def find_session(self, header: str) -> tuple[str, Holder] | None:
        """Return the first session in a `Cookie` header, with its cookie; None where it has none.

        Hosts that share a part of our name can set cookies with our name; such cookies must shut no person out.
        """
        for cookie in islice(_cookies_in(header), _MOST_COOKIES):
            holder = self.read_session(cookie)
            if holder is not None:
                return cookie, holder
        return None

    def form_token(self, cookie: str) -> str:
        """Return the token of each form of the session in *cookie*."""
        return _encode(
            hmac.digest(self._secret, _FORM + cookie.encode(), hashlib.sha256)
        )

    def _make(self, purpose: bytes, caller: Caller, life_s: int) -> tuple[str, int]:
        found = self._holders.find_now(caller)
        if found is None:
            raise LookupError(caller.name)
        holder = Holder(
            caller=caller,
            provider=self._holders.name,
            expires=int(self._now()) + life_s,
            number=secrets.token_urlsafe(12),
        )
        body = _encode(holder.model_dump_json().encode())
        return f"{body}.{self._sign(purpose, body, found[1])}", holder.expires

    def _read(self, purpose: bytes, token: str) -> Holder | None:
        if len(token) > _LONGEST:
            return None
        body, _, signature = token.partition(".")
        try:
            holder = Holder.model_validate_json(
                base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
            )
        except (ValueError, ValidationError):
            return None
        if holder.provider != self._holders.name or holder.expires < self._now():
            return None
        found = self._holders.find_now(holder.caller)
        if found is None:
            return None
        caller, proof = found
        ours = self._sign(purpose, body, proof).encode()
        if not hmac.compare_digest(signature.encode(), ours):
            return None
        return holder.model_copy(update={"caller": caller})

    def _sign(self, purpose: bytes, body: str, proof: str) -> str:
        signed = purpose + f"{body}\n{proof}".encode()
        return _encode(hmac.digest(self._secret, signed, hashlib.sha256))


def _cookies_in(header: str) -> Iterator[str]:
    """Yield the value of each cookie in a `Cookie` header that is called as ours."""
    for piece in header.split(";"):
        name, _, value = piece.strip().partition("=")
        if name == COOKIE:
            yield value


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
