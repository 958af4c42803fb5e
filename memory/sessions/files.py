"""The file form of a session, `agentdb-{id}.json`: its root, and in `cache` its entries by key.

    {"version": "2.0.0", "session_id": "a1b2", "domain": "webdev", "created_at": "2025-11-19T10:00:00.000Z",
     "updated_at": "2025-11-19T10:02:00.000Z", "ttl_ms": 3600000,
     "cache": {"analysis:map": {"key": "analysis:map", "value": {}, "created_at": "2025-11-19T10:02:00.000Z",
       "created_by_phase": "analysis", "ttl_ms": 60000,
       "metadata": {"computation_time_ms": 120000, "source_agent": "Analyzer", "cache_hit_count": 2}}}}

Times are ISO 8601 in UTC. `ttl_ms`, `metadata` and each of its fields are left out where nothing is known, and a count
of uses where it is 0. What else a file holds is not read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from tasklore.contracts.errors import InvalidInput
from tasklore.memory.sessions.entries import (
    VERSION,
    FoundEntry,
    NewEntry,
    SessionRoot,
    check_key,
    encode,
    head_of,
    milliseconds,
    root_words,
)
from tasklore.memory.times import MILLISECOND, spell_time
from tasklore.memory.times import milliseconds as milliseconds_of

T = TypeVar("T")

#: The last time that can be written.
_LATEST_MS = milliseconds_of(datetime.max.replace(tzinfo=UTC))


@dataclass(frozen=True, slots=True, kw_only=True)
class FileEntry:
    """An entry out of a file: the entry to be written, its JSON, its times and its uses."""

    entry: NewEntry
    body: bytes
    created_ms: int
    expires_ms: int | None
    hits: int
    number: int

    def words(self, stored: bytes) -> tuple[str, bytes, bytes, int]:
        """Return key, body, head and uses, as they are stored; *stored* is the packed body."""
        numbers = f"{self.expires_ms or 0}:{self.created_ms}:{self.number}:".encode()
        return (
            self.entry.key,
            stored,
            numbers + head_of(self.entry, len(self.body), len(stored)),
            self.hits,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFile:
    """A file that was read: a session to be made, its entries, and why others are left out."""

    session_id: str
    domain: str
    created_ms: int
    updated_ms: int
    ttl: timedelta
    entries: tuple[FileEntry, ...]
    expired: tuple[str, ...]
    refused: Mapping[str, str]

    @property
    def root_words(self) -> list[str | bytes | int]:
        """The fields and values of its root, without its times."""
        words = root_words(self.session_id, domain=self.domain, ttl=self.ttl)
        return [*words, "writes", len(self.entries)]


def document_of(root: SessionRoot, found: Sequence[FoundEntry]) -> dict[str, Any]:
    """Return the file of a session and its entries, in their order."""
    return {
        "version": root.version,
        "session_id": root.session_id,
        "domain": root.domain,
        "created_at": spell_time(root.created_ms),
        "updated_at": spell_time(root.updated_ms),
        "ttl_ms": root.ttl_ms,
        "cache": {one.entry.key: _entry_document(one) for one in found},
    }


def _entry_document(found: FoundEntry) -> dict[str, Any]:
    entry = found.entry
    document: dict[str, Any] = {
        "key": entry.key,
        "value": found.value,
        "created_at": spell_time(entry.created_ms),
        "created_by_phase": entry.phase,
    }
    if entry.ttl_ms is not None:
        document["ttl_ms"] = entry.ttl_ms
    metadata: dict[str, Any] = (
        {"computation_time_ms": entry.computation_ms} if entry.is_timed else {}
    )
    if entry.agent:
        metadata["source_agent"] = entry.agent
    if entry.hits:
        metadata["cache_hit_count"] = entry.hits
    return {**document, "metadata": metadata} if metadata else document


def read(
    document: Mapping[str, Any], session_id: str | None, now_ms: int, limit: int
) -> SessionFile:
    """Return what the file *document* holds, for a session of its own id or of *session_id*.

    Args:
        document: The parsed JSON of the file.
        session_id: None is that of the file.
        now_ms: By which entries are expired, ms since 1970.
        limit: Bytes of JSON that one entry takes.

    Raises:
        InvalidInput: it has not the form of a session.
    """
    cache = _field(document, "cache", dict, "an object of entries by key")
    version = _field(document, "version", str, f"text, such as {VERSION!r}")
    if version.partition(".")[0] != VERSION.partition(".")[0]:
        raise InvalidInput(
            f"the file is of version {version!r}; only {VERSION!r} and its minor versions can be read"
        )
    kept: list[FileEntry] = []
    expired: list[str] = []
    refused: dict[str, str] = {}
    for key, entry in cache.items():
        try:
            one = _read_entry(key, entry, limit)
        except InvalidInput as error:
            refused[str(key)] = str(error)
            continue
        if one.expires_ms is not None and one.expires_ms <= now_ms:
            expired.append(one.entry.key)
        else:
            kept.append(one)
    return SessionFile(
        session_id=session_id
        if session_id is not None
        else _field(document, "session_id", str, "text"),
        domain=_field(document, "domain", str, "text"),
        created_ms=_time(document, "created_at"),
        updated_ms=_time(document, "updated_at"),
        ttl=_span(document, "ttl_ms"),
        entries=tuple(
            replace(one, number=number)
            for number, one in enumerate(
                sorted(kept, key=lambda one: one.created_ms), start=1
            )
        ),
        expired=tuple(expired),
        refused=refused,
    )


def _read_entry(key: Any, entry: Any, limit: int) -> FileEntry:
    if not isinstance(key, str) or not isinstance(entry, dict):
        raise InvalidInput("an entry must be an object by its key")
    if entry.get("key", key) != key:
        raise InvalidInput(
            f"the entry at {key!r} says that its key is {entry['key']!r}; the two must be equal"
        )
    if "value" not in entry:
        raise InvalidInput(f"the entry {key!r} has no value; null is written as null")
    phase = _field(entry, "created_by_phase", str, "text")
    check_key(key, phase)
    metadata = (
        _field(entry, "metadata", dict, "an object")
        if entry.get("metadata") is not None
        else {}
    )
    ttl = _span(entry, "ttl_ms") if entry.get("ttl_ms") is not None else None
    created_ms = _time(entry, "created_at")
    agent = metadata.get("source_agent")
    new = NewEntry(
        key=key,
        value=entry["value"],
        agent=None if agent is None else str(agent),
        computation_ms=_whole(metadata, "computation_time_ms"),
        ttl=ttl,
    )
    expires_ms = None if ttl is None else created_ms + ttl // MILLISECOND
    hits = _whole(metadata, "cache_hit_count") or 0
    return FileEntry(
        entry=new,
        body=encode(key, new.value, limit),
        created_ms=created_ms,
        expires_ms=expires_ms,
        hits=hits,
        number=0,
    )


def batches(
    items: Sequence[T], size_of: Callable[[T], int], most: int
) -> Iterator[list[T]]:
    """Yield *items* in order, in lists whose sizes sum to at most *most*, or that have one item."""
    batch: list[T] = []
    total = 0
    for item in items:
        size = size_of(item)
        if batch and total + size > most:
            yield batch
            batch = []
            total = 0
        batch.append(item)
        total += size
    if batch:
        yield batch


def _field(document: Mapping[str, Any], name: str, kind: type[T], what: str) -> T:
    value = document.get(name)
    if not isinstance(value, kind):
        raise InvalidInput(f"{name!r} is {value!r:.40}, but must be {what}")
    return value


def _time(document: Mapping[str, Any], name: str) -> int:
    text = _field(document, name, str, "a time such as '2025-11-19T10:00:00.000Z'")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidInput(
            f"{name!r} is {text!r}, but must be a time such as '2025-11-19T10:00:00.000Z'"
        ) from error
    # West of Greenwich the last hours of the last year are in one that has no name in UTC.
    return min(max(0, milliseconds_of(moment)), _LATEST_MS)


def _span(document: Mapping[str, Any], name: str) -> timedelta:
    ms = _whole(document, name)
    if not ms:
        raise InvalidInput(
            f"{name!r} is {document.get(name)!r:.40}, but must be a whole number of milliseconds above zero"
        )
    milliseconds(ms * MILLISECOND, repr(name))
    return ms * MILLISECOND


def _whole(document: Mapping[str, Any], name: str) -> int | None:
    """Return the number at *name*, rounded; None when there is none."""
    value = document.get(name)
    if value is None:
        return None
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value <= _MOST
    ):
        raise InvalidInput(
            f"{name!r} is {value!r:.40}, but must be a whole number from 0 to {_MOST}"
        )
    return round(value)


#: The largest number that readers of any language keep exactly.
_MOST = 2**53 - 1
