"""Short-lived tokens, each of which opens one stream of events: a browser's `EventSource` can send no key.

A token is signed by what all supervisors share, and by the hash of the key that it was made with, which ends it too.
"""

import base64
import hashlib
import hmac
import re
import time
from collections.abc import Callable
from typing import Annotated, ClassVar
from urllib.parse import parse_qsl, urlencode

from fastapi import Query
from pydantic import BaseModel, ConfigDict, ValidationError
from starlette.types import Scope

from tasklore.contracts.identifiers import Name
from tasklore.supervisor.http.admission.key_file import KeyEntry, KeyRing
from tasklore.supervisor.operations.stream_tokens import FIELD, STREAMS

#: Seconds in which a token opens its stream, also again after a cut.
LIFE_S = 60
#: What is signed begins with this, so that the secret signs nothing else by accident.
_PURPOSE = b"tasklore stream token 1\n"
_STREAM = re.compile(STREAMS)
#: Characters of the longest query that is read for a token.
_LONGEST_QUERY = 4_096

StreamTokenField = Annotated[
    str | None,
    Query(
        alias=FIELD,
        description="In place of a key, which a browser's EventSource cannot send: see POST /v1/stream-tokens.",
    ),
]


class StreamGrant(BaseModel):
    """What a token allows: the stream at *path*, after the event *after*, until *expires* (seconds since 1970).

    *key* is the name of the key that it was made with, whose holder opens it.
    """

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    path: str
    key: Name
    expires: int
    after: str | None = None


class StreamTokens:
    """Makes tokens for holders of *keys*, and reads them; both with the *secret* of all supervisors."""

    def __init__(
        self, secret: str, keys: KeyRing, now: Callable[[], float] = time.time
    ) -> None:
        self._secret = secret.encode()
        self._keys = keys
        self._now = now

    def make(self, path: str, key: str, after: str | None = None) -> tuple[str, int]:
        """Return a token for the stream at *path*, made with the key called *key*, and when it ends.

        Raises:
            LookupError: there is no such key any more.
        """
        entry = self._keys.named(key)
        if entry is None:
            raise LookupError(key)
        expires = int(self._now()) + LIFE_S
        grant = StreamGrant(path=path, key=key, expires=expires, after=after)
        body = _encode(grant.model_dump_json(exclude_none=True).encode())
        return f"{body}.{self._sign(body, entry)}", expires

    def read(self, token: str, path: str) -> tuple[StreamGrant, KeyEntry] | None:
        """Return what *token* allows at *path*, and the key that it was made with; None where it allows nothing."""
        body, _, signature = token.partition(".")
        try:
            grant = StreamGrant.model_validate_json(
                base64.urlsafe_b64decode(body + "=" * (-len(body) % 4))
            )
        except (ValueError, ValidationError):
            return None
        entry = self._keys.named(grant.key)
        if entry is None or not hmac.compare_digest(
            signature.encode(), self._sign(body, entry).encode()
        ):
            return None
        if grant.path != path or grant.expires < self._now():
            return None
        return grant, entry

    def _sign(self, body: str, entry: KeyEntry) -> str:
        signed = _PURPOSE + f"{body}\n{entry.sha256}".encode()
        return _encode(hmac.digest(self._secret, signed, hashlib.sha256))


def take_token(scope: Scope) -> str | None:
    """Return the token in the query of a GET for a stream, and take it out, so that nothing behind sees it.

    None where there is none, or more than one, or the request is for anything else.
    """
    query = scope.get("query_string", b"")
    if scope["method"] != "GET" or FIELD.encode() not in query:
        return None
    if _STREAM.fullmatch(scope["path"]) is None or len(query) > _LONGEST_QUERY:
        return None
    fields = parse_qsl(query.decode("latin-1"), keep_blank_values=True)
    tokens = [value for name, value in fields if name == FIELD]
    rest = [(name, value) for name, value in fields if name != FIELD]
    scope["query_string"] = urlencode(rest).encode("latin-1")
    return tokens[0] if len(tokens) == 1 else None


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
