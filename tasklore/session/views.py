"""`tasklore session list|show|stats|get`: looking at what the phases of a run left for each other."""

import dataclasses
import time
from typing import Any, get_args

from contracts.errors import InvalidInput, UnknownSession
from contracts.identifiers import checked_name
from contracts.session_keys import read_key
from memory.sessions.entries import State
from memory.sessions.session import EntryInfo, SessionRoot
from memory.times import spell_time
from tasklore.pipeline.stores import Stores, open_stores
from tasklore.render.board import STATUSES
from tasklore.render.durations import read_aloud
from tasklore.render.screen import patience, print_json, print_table, printable, say, styled
from tasklore.render.words import duration, one_line

#: Sessions read at a time while one is looked for.
_PAGE = 200
#: Keys that an error names when the one that was asked for is not there.
_NAMED = 8


async def print_sessions(state: str | None, limit: int, *, before: str | None, as_json: bool) -> None:
    """Print a line for each of at most *limit* sessions, the last updated first.

    Raises:
        InvalidInput: *state* is none, or *before* no session.
        Unreachable: Redis does not answer.
    """
    async with open_stores("tasklore-session") as stores, patience("reading sessions"):
        start = None if before is None else await _place_of(stores, before)
        found = await stores.cache.sessions(state=_state(state), limit=limit + 1, before=start)
    shown, has_more = found[:limit], len(found) > limit
    if as_json:
        print_json([root_document(root) for root in shown])
        return
    if not shown:
        print("There are no sessions." if state is None and before is None else "No session fits.")
        return
    now_ms = _now_ms()
    print_table(
        ("SESSION", "STATE", "DOMAIN", "ENTRIES", "UPDATED", "LEFT"),
        [_as_line(root, now_ms) for root in shown],
        right=("ENTRIES", "UPDATED", "LEFT"),
        whole=("SESSION",),
    )
    if has_more:
        say(f"these are {len(shown):,}; --before {shown[-1].session_id} shows the next")


async def print_session(session_id: str, *, as_json: bool) -> None:
    """Print a session and a line for each of its entries, by key.

    Raises:
        UnknownSession: there is none.
        Unreachable: Redis does not answer.
    """
    async with open_stores("tasklore-session") as stores, patience("reading the session"):
        root = await root_of(stores, session_id)
        entries = await stores.cache.entries(session_id)
    if as_json:
        print_json(root_document(root) | {"cache": {entry.key: entry_document(entry) for entry in entries}})
        return
    _print_root(root)
    if not entries:
        print("\nIt has no entries.")
        return
    print()
    now_ms = _now_ms()
    print_table(
        ("KEY", "AGE", "LEFT", "USES", "COMPUTED IN", "SIZE", "BY", "HIDDEN BY"),
        [_entry_line(entry, root, now_ms) for entry in entries],
        right=("AGE", "LEFT", "USES", "COMPUTED IN", "SIZE"),
        whole=("KEY",),
    )


async def print_stats(session_id: str, *, as_json: bool) -> None:
    """Print how much the session saved, under the names that its files have, and hints.

    Raises:
        UnknownSession: there is none.
        Unreachable: Redis does not answer.
    """
    async with open_stores("tasklore-session") as stores, patience("reading the session"):
        await root_of(stores, session_id)
        stats = await stores.cache.stats(session_id)
    if as_json:
        print_json(dataclasses.asdict(stats))
        return
    for name, value in (
        ("total_entries", f"{stats.total_entries:,}"),
        ("total_hits", f"{stats.total_hits:,}"),
        ("total_saved_time_ms", f"{stats.total_saved_time_ms:,}  ({duration(stats.total_saved_time_ms)})"),
        ("avg_entry_age_ms", f"{stats.avg_entry_age_ms:,}  ({duration(stats.avg_entry_age_ms)})"),
    ):
        print(f"{styled(name.ljust(20), 'dim')} {value}")
    for title, names in (
        ("not worth caching, as computing it took under a second", stats.not_worth_caching),
        ("took over 10 s and kept nothing", stats.uncached_phases),
    ):
        if names:
            print(f"\n{title}:")
            print("\n".join(f"  {printable(name)}" for name in names))


async def print_value(session_id: str, key: str) -> None:
    """Print the value of an entry as JSON; no use is counted.

    Raises:
        UnknownSession: there is no such session.
        InvalidInput: it has no such entry, or *key* breaks the naming rule.
        Unreachable: Redis does not answer.
    """
    read_key(key)
    async with open_stores("tasklore-session") as stores:
        await root_of(stores, session_id)
        [found] = await stores.cache.peek(session_id, [key])
        if found is None:
            known = [entry.key for entry in await stores.cache.entries(session_id)]
            raise InvalidInput(f"session {session_id!r} has no entry {key!r}; {_there_are(known)}")
    print_json(found.value)


async def _place_of(stores: Stores, session_id: str) -> SessionRoot:
    """Return the session of that id as it stands in the list, which alone knows its place.

    Raises:
        UnknownSession: there is none, or its time to live is over.
    """
    root = await root_of(stores, session_id)
    page: list[SessionRoot] = []
    while page := await stores.cache.sessions(limit=_PAGE, before=page[-1] if page else None):
        for one in page:
            if one.session_id == session_id:
                return one
    return root


async def root_of(stores: Stores, session_id: str) -> SessionRoot:
    """Return the session of that id.

    Raises:
        UnknownSession: there is none, or its time to live is over.
        InvalidInput: *session_id* is none.
    """
    root = await stores.cache.root(checked_name(session_id, "SESSION"))
    if root is None:
        raise UnknownSession(
            f"there is no session {session_id!r}, or its time is over; `tasklore session list` shows those there are"
        )
    return root


def root_document(root: SessionRoot) -> dict[str, Any]:
    """Return a session for programs, under the names that its files have; times in RFC 3339."""
    return {
        "session_id": root.session_id,
        "version": root.version,
        "domain": root.domain,
        "state": root.state,
        "created_at": spell_time(root.created_ms),
        "updated_at": spell_time(root.updated_ms),
        "ttl_ms": root.ttl_ms,
        "expires_in_ms": root.expires_in_ms,
        "entries": root.entries,
        "project": root.project,
        "user_id": root.user_id,
        "run": root.run,
        "keep": root.keep,
    }


def entry_document(entry: EntryInfo) -> dict[str, Any]:
    """Return an entry without its value for programs, under the names that files have."""
    return {
        "created_at": spell_time(entry.created_ms),
        "created_by_phase": entry.phase,
        "ttl_ms": entry.ttl_ms,
        "expires_at": None if entry.expires_ms is None else spell_time(entry.expires_ms),
        "bytes": entry.bytes,
        "hidden_by": entry.hidden_by,
        "metadata": {
            "computation_time_ms": entry.computation_ms,
            "source_agent": entry.agent,
            "cache_hit_count": entry.hits,
        },
    }


def size_text(size: int) -> str:
    """Return a number of bytes for people: "812 B", "3.4 KiB", "1.2 MiB"."""
    if size < 1024:
        return f"{size} B"
    return f"{size / 1024:.1f} KiB" if size < 1024**2 else f"{size / 1024**2:.1f} MiB"


def _state(word: str | None) -> State | None:
    known: tuple[State, ...] = get_args(State)
    found = [one for one in known if one == word]
    if word is not None and not found:
        raise InvalidInput(f"--state {word!r} is none; say one of {', '.join(known)}")
    return found[0] if found else None


def _as_line(root: SessionRoot, now_ms: int) -> tuple[str, ...]:
    return (
        root.session_id,
        root.state,
        printable(root.domain),
        f"{root.entries:,}",
        read_aloud(max(0, now_ms - root.updated_ms)),
        _left(root),
    )


def _left(root: SessionRoot) -> str:
    return "while it runs" if root.expires_in_ms is None else read_aloud(root.expires_in_ms)


def _entry_line(entry: EntryInfo, root: SessionRoot, now_ms: int) -> tuple[str, ...]:
    left = _left(root) if entry.expires_ms is None else read_aloud(max(0, entry.expires_ms - now_ms))
    return (
        one_line(entry.key),
        read_aloud(max(0, now_ms - entry.created_ms)),
        left,
        f"{entry.hits:,}",
        duration(entry.computation_ms) if entry.is_timed else "",
        size_text(entry.bytes),
        printable(entry.agent or ""),
        printable(entry.hidden_by or ""),
    )


def _print_root(root: SessionRoot) -> None:
    word, style = STATUSES[root.state]
    facts = (
        ("session", styled(root.session_id, "bold")),
        ("state", styled(word, style) + (f", run {root.run}" if root.run > 1 else "")),
        ("domain", printable(root.domain)),
        ("created", f"{spell_time(root.created_ms)}, {read_aloud(max(0, _now_ms() - root.created_ms))} ago"),
        ("updated", f"{spell_time(root.updated_ms)}, {read_aloud(max(0, _now_ms() - root.updated_ms))} ago"),
        ("left", f"{_left(root)} of {read_aloud(root.ttl_ms)} after the last update"),
        ("project", printable(root.project or "")),
        ("user", printable(root.user_id or "")),
    )
    for name, value in facts:
        if value:
            print(f"{styled(name.ljust(10), 'dim')}{value}")


def _there_are(known: list[str]) -> str:
    if not known:
        return "it has none"
    more = f" and {len(known) - _NAMED} more (`tasklore session show`)" if len(known) > _NAMED else ""
    return f"it has {', '.join(known[:_NAMED])}{more}"


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
