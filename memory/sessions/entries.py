"""What lies in a session: its root, its entries as they are listed, found and written; pure functions.

The hash of entries holds two fields an entry: under its key the body, the JSON of its value, and under a colon and its
key the head, so that listing a session reads no value. The script that writes puts three numbers before the head:

    {expires_ms, 0 for never}:{created_ms}:{number}:{"size":23,"stored":23,"ms":7000,"agent":"Analyzer","ttl":60000}

`size` is bytes of JSON, `stored` bytes of the body, `ms` how long computing took, `ttl` its own time to live in ms;
unknown ones are left out. The number is that of this write among all of the session. A body that does not
start with `x` is the JSON itself; `x` is the first byte of a zlib stream of it.
"""

import json
import re
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal, cast

from pydantic import JsonValue

from tasklore.contracts.errors import EntryTooLarge, InvalidInput
from tasklore.contracts.session_keys import EntryKey, read_key

#: The version of a session's form, in Redis and in files.
VERSION = "2.0.0"
#: How long a session lives after its last update when nobody says otherwise.
TIME_TO_LIVE = timedelta(hours=1)
#: Bytes of JSON that one entry takes: an analysis of a large repository fits many times, a dump of it does not.
MAX_VALUE_BYTES = 16 * 1024 * 1024

#: Levels of lists and objects that a value may have: readers of JSON, ours too, give up at some 500 to 1,000.
MAX_LEVELS = 200

#: Bytes of JSON from which compressing pays: below, a round trip costs more than what it would save.
COMPRESS_FROM = 4 * 1024
#: Share of its size above which a compressed body is not worth unpacking at each use: that of random base64.
_PAYS = 0.75
#: Milliseconds that a time to live may have: a number that Lua and JSON still keep exactly.
_MAX_MS = 2**52

SURROGATE = re.compile(r"[\ud800-\udfff]")

#: The fields of a root's hash that a `SessionRoot` is made of.
ROOT_FIELDS = (
    *(
        "version",
        "session_id",
        "domain",
        "created_at",
        "updated_at",
        "ttl_ms",
        "state",
        "dependencies",
        "project",
    ),
    *("user_id", "supervisor_id", "keep", "run", "pipeline", "inputs"),
)

State = Literal["open", "running", "failed", "completed", "cancelled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionRoot:
    """A session without its entries; times in ms since 1970 by the server's clock.

    `dependencies` maps a phase to those it directly depends on. `expires_in_ms` is None while its pipeline runs.
    `entries` counts those stored, expired ones included. `pipeline` and `inputs` are the JSON of a run, "" when there
    is none, and in listings. `listed_ms` is its place in the list of sessions, 0 outside of it.
    """

    session_id: str
    version: str
    domain: str
    created_ms: int
    updated_ms: int
    ttl_ms: int
    state: State
    dependencies: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    project: str | None = None
    user_id: str | None = None
    supervisor_id: str | None = None
    keep: bool = False
    run: int = 0
    pipeline: str = ""
    inputs: str = ""
    entries: int = 0
    expires_in_ms: int | None = None
    listed_ms: int = 0


@dataclass(frozen=True, slots=True)
class EntryInfo:
    """An entry without its value; times in ms since 1970 by the server's clock.

    `expires_ms` and `ttl_ms` are None when it lives as long as its session. `computation_ms` is 0 when not measured,
    and then `is_timed` is False; `agent` is "" when unknown. `bytes` is the size of its JSON, `stored_bytes`
    that of its stored form. `hidden_by` names the phase that replaced the entry's own, None when it is shown.
    `number` grows with each write of the session. One that `is_shared` was computed once for all who asked for it.
    """

    key: str
    phase: str
    data_type: str
    identifier: str | None
    created_ms: int
    expires_ms: int | None
    ttl_ms: int | None
    computation_ms: int
    agent: str
    hits: int
    bytes: int
    stored_bytes: int
    hidden_by: str | None = None
    number: int = 0
    is_timed: bool = True
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """The value of an entry, which may be falsy, and its description; `entry.hits` counts this use too."""

    value: JsonValue
    entry: EntryInfo


@dataclass(frozen=True, slots=True, kw_only=True)
class NewEntry:
    """An entry to be written.

    Args:
        key: `{phase}:{data_type}` or `{phase}:{data_type}:{identifier}`.
        phase: When given it has to be the key's.
        agent: Who computed it.
        computation_ms: How long that took; None when not measured.
        ttl: Its own time to live; None is that of the session.
        if_absent: Leave a living entry as it is: it is computed once for all who ask for it.
    """

    key: str
    value: JsonValue
    phase: str | None = None
    agent: str | None = None
    computation_ms: int | None = 0
    ttl: timedelta | None = None
    if_absent: bool = False


@dataclass(frozen=True, slots=True)
class SessionLoadReport:
    """The outcome of loading a file: how many entries were `loaded`, keys `expired`, and why others were `refused`."""

    session_id: str
    loaded: int
    expired: tuple[str, ...]
    refused: Mapping[str, str]


def check_key(key: str, phase: str | None = None) -> EntryKey:
    """Return the parts of *key*.

    Raises:
        InvalidInput: it breaks the naming rule, or its phase is not *phase*.
    """
    parts = read_key(key)
    if phase is not None and phase != parts.phase:
        cure = str(parts._replace(phase=phase)) if phase else "a phase"
        raise InvalidInput(
            f"session key {key!r} belongs to phase {parts.phase!r}, not to {phase!r}; write it as {cure!r}"
        )
    return parts


def milliseconds(ttl: timedelta, what: str) -> int:
    """Return *ttl* in ms.

    Raises:
        InvalidInput: it is not above zero, or longer than can be counted; *what* names it.
    """
    ms = ttl // timedelta(milliseconds=1)
    if not 0 < ms <= _MAX_MS:
        raise InvalidInput(
            f"{what} must be a span of time of at least 1 ms and at most {_MAX_MS} ms, not {ttl}"
        )
    return ms


def root_words(
    session_id: str,
    *,
    domain: str,
    ttl: timedelta,
    state: State = "open",
    dependencies: Mapping[str, Sequence[str]] | None = None,
    user_id: str | None = None,
    project: str | None = None,
) -> list[str | bytes | int]:
    """Return the fields and values of a new root, as HSET takes them, without its times, which a script writes.

    Raises:
        InvalidInput: the domain is empty or no text, or the time to live cannot be counted.
    """
    if not domain.strip() or not domain.isprintable():
        raise InvalidInput(
            f"domain {domain!r} must be a printable name, such as 'data' or 'webdev'"
        )
    words: list[str | bytes | int] = [
        "version",
        VERSION,
        "session_id",
        session_id,
        "domain",
        domain,
    ]
    words += [
        "ttl_ms",
        milliseconds(ttl, "the time to live of a session"),
        "state",
        state,
    ]
    if dependencies:
        direct = {phase: list(of) for phase, of in dependencies.items()}
        words += ["dependencies", json.dumps(direct, separators=(",", ":"))]
    for name, value in (("user_id", user_id), ("project", project)):
        if value is not None:
            words += [name, value]
    return words


def encode(key: str, value: JsonValue, limit: int) -> bytes:
    """Return *value* as compact JSON in UTF-8.

    Raises:
        InvalidInput: it is no JSON, or is nested deeper than `MAX_LEVELS`.
        EntryTooLarge: its JSON has more than *limit* bytes.
    """
    if _is_deep(value):
        raise InvalidInput(
            f"the value of session key {key!r} is nested deeper than {MAX_LEVELS} levels; "
            "make it flatter, such as a list of nodes that name each other, or store it as text"
        )
    try:
        text = json.dumps(
            value, ensure_ascii=False, allow_nan=False, separators=(",", ":")
        )
        # Half of a surrogate pair is no UTF-8, but JSON can escape it.
        body = (
            json.dumps(value, separators=(",", ":")) if SURROGATE.search(text) else text
        ).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            f"the value of session key {key!r} is not valid JSON: {error}; use null, "
            "true, numbers, text, lists and objects"
        ) from error
    if len(body) > limit:
        raise EntryTooLarge(
            f"the value of session key {key!r} has {len(body)} bytes of JSON, a session takes at most {limit}; "
            "store it elsewhere and keep a reference, or split it by identifiers, "
            f"such as {str(check_key(key)._replace(identifier='part-1'))!r}"
        )
    return body


def _is_deep(value: JsonValue) -> bool:
    """Return whether *value* has more than `MAX_LEVELS` levels; one that holds itself has."""
    # A level at a time; what is held in several places of it, which may be so on every level, is looked into once.
    level = 0
    ahead = [value]
    while ahead and level <= MAX_LEVELS:
        inside = {
            id(part): part for part in ahead if isinstance(part, list | dict | tuple)
        }
        ahead = [
            one
            for part in inside.values()
            for one in (part.values() if isinstance(part, dict) else part)
        ]
        level += bool(inside)
    return level > MAX_LEVELS


def pack(body: bytes) -> bytes:
    """Return *body* compressed when that pays, else as it is; 16 MiB take some 200 ms."""
    if len(body) < COMPRESS_FROM:
        return body
    packed = zlib.compress(body, 1)
    return packed if len(packed) < len(body) * _PAYS else body


def unpack(stored: bytes) -> JsonValue:
    """Return the value that was stored as *stored*.

    Raises:
        ValueError: another program stored that.
    """
    try:
        body = zlib.decompress(stored) if stored[:1] == b"x" else stored
        value: JsonValue = json.loads(body)
    except (zlib.error, RecursionError) as error:
        raise ValueError(
            "the body of an entry can be read neither as JSON nor as zlib of it"
        ) from error
    return value


def head_of(entry: NewEntry, size: int, stored: int) -> bytes:
    """Return the head of *entry* without its numbers; *size* are bytes of JSON, *stored* of its body."""
    head: dict[str, str | int] = {"size": size, "stored": stored}
    if entry.computation_ms is not None:
        head["ms"] = entry.computation_ms
    if entry.if_absent:
        head["shared"] = 1
    if entry.agent:
        head["agent"] = entry.agent
    if entry.ttl is not None:
        head["ttl"] = milliseconds(entry.ttl, f"the time to live of {entry.key!r}")
    return json.dumps(head, separators=(",", ":")).encode()


def read_head(
    key: str, head: bytes, hits: int, hidden_by: str | None = None
) -> EntryInfo | None:
    """Return the entry *key* with this *head*, None when another program wrote it."""
    try:
        parts = read_key(key)
        expires, created, number, rest = head.split(b":", 3)
        told = json.loads(rest)
        return EntryInfo(
            key,
            *parts,
            created_ms=int(created),
            expires_ms=int(expires) or None,
            ttl_ms=told.get("ttl"),
            computation_ms=told.get("ms", 0),
            agent=told.get("agent", ""),
            hits=hits,
            bytes=told["size"],
            stored_bytes=told["stored"],
            hidden_by=hidden_by,
            number=int(number),
            is_timed="ms" in told,
            is_shared="shared" in told,
        )
    except (ValueError, KeyError, AttributeError, InvalidInput):
        return None


def read_root(
    told: Mapping[str, bytes | None], left_ms: int, stored: int, listed_ms: int = 0
) -> SessionRoot | None:
    """Return the session of the root *told*, None when another program wrote it.

    Args:
        told: Fields of `ROOT_FIELDS`; one that is missing has its default.
        left_ms: When it expires, from now; -1 is never.
        stored: How many entries lie there.
        listed_ms: Its place in the list of sessions.
    """
    text = {name: value.decode() for name, value in told.items() if value is not None}
    try:
        return SessionRoot(
            session_id=text["session_id"],
            version=text["version"],
            domain=text["domain"],
            created_ms=int(text["created_at"]),
            updated_ms=int(text["updated_at"]),
            ttl_ms=int(text["ttl_ms"]),
            state=cast("State", text["state"]),
            dependencies={
                phase: tuple(of)
                for phase, of in json.loads(text.get("dependencies", "{}")).items()
            },
            project=text.get("project"),
            user_id=text.get("user_id"),
            supervisor_id=text.get("supervisor_id"),
            keep=text.get("keep") == "1",
            run=int(text.get("run", 0)),
            pipeline=text.get("pipeline", ""),
            inputs=text.get("inputs", ""),
            entries=stored,
            expires_in_ms=left_ms if left_ms >= 0 else None,
            listed_ms=listed_ms,
        )
    except (KeyError, ValueError, AttributeError):
        return None


def downstream(
    phase: str, dependencies: Mapping[str, Sequence[str]], entries: Sequence[EntryInfo]
) -> set[str]:
    """Return the phases that depend on *phase*, over others too, without itself.

    Without *dependencies* those are the phases whose first of *entries* is younger than its first; none when it has no
    entry.
    """
    if not dependencies:
        first: dict[str, int] = {}
        for entry in sorted(entries, key=lambda entry: entry.number):
            first.setdefault(entry.phase, entry.number)
        return {
            other
            for other, number in first.items()
            if number > first.get(phase, number)
        }
    found: set[str] = set()
    ahead = {phase}
    while ahead:
        ahead = {
            other
            for other, direct in dependencies.items()
            if not ahead.isdisjoint(direct)
        } - found
        found |= ahead
    return found - {phase}
