"""`tasklore session list|show|stats|get`: the entries that the phases of a run left for each other."""

import dataclasses
import time
from typing import Any, get_args

from tasklore.commands.pipeline.stores import Stores, open_stores
from tasklore.commands.render.board import STATUSES
from tasklore.commands.render.columns import Column, print_facts, print_records
from tasklore.commands.render.durations import read_aloud
from tasklore.commands.render.screen import patience, print_json, printable, say, styled
from tasklore.commands.render.words import age, duration, one_line, size
from tasklore.contracts.errors import InvalidInput, UnknownSession
from tasklore.contracts.identifiers import checked_name
from tasklore.contracts.session_keys import read_key
from tasklore.memory.sessions.entries import State
from tasklore.memory.sessions.session import EntryInfo, SessionRoot
from tasklore.memory.times import spell_time

#: Sessions read at a time while one is looked for.
_PAGE = 200
#: Keys that an error lists.
_MOST_LISTED = 8


def time_left(root: SessionRoot) -> str:
    """Return how long a session will exist."""
    return (
        "while it runs"
        if root.expires_in_ms is None
        else read_aloud(root.expires_in_ms)
    )


SESSIONS = (
    Column[SessionRoot]("SESSION", lambda root: root.session_id, whole=True),
    Column[SessionRoot]("STATE", lambda root: root.state),
    Column[SessionRoot]("DOMAIN", lambda root: printable(root.domain)),
    Column[SessionRoot]("ENTRIES", lambda root: f"{root.entries:,}", right=True),
    Column[SessionRoot]("UPDATED", lambda root: age(root.updated_ms), right=True),
    Column[SessionRoot]("LEFT", time_left, right=True),
)


def entry_columns(root: SessionRoot) -> tuple[Column[EntryInfo], ...]:
    """Return the columns of the entries of *root*; an entry without its own time to live goes with its session."""

    def left(entry: EntryInfo) -> str:
        return (
            time_left(root)
            if entry.expires_ms is None
            else read_aloud(max(0, entry.expires_ms - now_ms))
        )

    now_ms = time.time_ns() // 1_000_000

    return (
        Column("KEY", lambda entry: one_line(entry.key), whole=True),
        Column("AGE", lambda entry: age(entry.created_ms), right=True),
        Column("LEFT", left, right=True),
        Column("USES", lambda entry: f"{entry.hits:,}", right=True),
        Column(
            "COMPUTED IN",
            lambda entry: duration(entry.computation_ms) if entry.is_timed else "",
            right=True,
        ),
        Column("SIZE", lambda entry: size(entry.bytes), right=True),
        Column("BY", lambda entry: printable(entry.agent or "")),
        Column("HIDDEN BY", lambda entry: printable(entry.hidden_by or "")),
    )


async def print_sessions(
    state: str | None, limit: int, *, before: str | None, as_json: bool
) -> None:
    """Print a line for each of at most *limit* sessions, the last updated first.

    Raises:
        InvalidInput: *state* is unknown, or *before* is no session.
        Unreachable: Redis does not answer.
    """
    known: dict[str, State] = {one: one for one in get_args(State)}
    if state is not None and state not in known:
        raise InvalidInput(f"--state must be one of {', '.join(known)}, not {state!r}")
    async with open_stores("tasklore-session") as stores, patience("reading sessions"):
        start = None if before is None else await _place_of(stores, before)
        only = None if state is None else known[state]
        found = await stores.cache.sessions(state=only, limit=limit + 1, before=start)
    shown = found[:limit]
    if as_json:
        print_json([root_document(root) for root in shown])
    elif shown:
        print_records(SESSIONS, shown)
    else:
        print(
            "There are no sessions."
            if state is None and before is None
            else "No session fits."
        )
    if len(found) > limit and not as_json:
        say(f"these are {len(shown):,}; --before {shown[-1].session_id} shows the next")


async def print_session(session_id: str, *, as_json: bool) -> None:
    """Print a session and a line for each of its entries, by key.

    Raises:
        UnknownSession: there is no such session.
        Unreachable: Redis does not answer.
    """
    async with (
        open_stores("tasklore-session") as stores,
        patience("reading the session"),
    ):
        root = await find_root(stores, session_id)
        entries = await stores.cache.entries(session_id)
    if as_json:
        print_json(
            root_document(root)
            | {"cache": {entry.key: entry_document(entry) for entry in entries}}
        )
        return
    word, style = STATUSES[root.state]
    print(
        f"{styled(root.session_id, 'bold')}  {styled(word, style)}"
        + (f", run {root.run}" if root.run > 1 else "")
    )
    print_facts(
        {
            "domain": root.domain,
            "created": f"{spell_time(root.created_ms)}, {age(root.created_ms)} ago",
            "updated": f"{spell_time(root.updated_ms)}, {age(root.updated_ms)} ago",
            "left": f"{time_left(root)} of {read_aloud(root.ttl_ms)} after the last update",
            "project": root.project or "",
            "user": root.user_id or "",
        }
    )
    print()
    if entries:
        print_records(entry_columns(root), entries)
    else:
        print("It has no entries.")


async def print_stats(session_id: str, *, as_json: bool) -> None:
    """Print the time that the session saved, under the names of its files, and hints.

    Raises:
        UnknownSession: there is no such session.
        Unreachable: Redis does not answer.
    """
    async with (
        open_stores("tasklore-session") as stores,
        patience("reading the session"),
    ):
        await find_root(stores, session_id)
        stats = await stores.cache.stats(session_id)
    if as_json:
        print_json(dataclasses.asdict(stats))
        return
    print_facts(
        {
            "total_entries": f"{stats.total_entries:,}",
            "total_hits": f"{stats.total_hits:,}",
            "total_saved_time_ms": f"{stats.total_saved_time_ms:,}  ({duration(stats.total_saved_time_ms)})",
            "avg_entry_age_ms": f"{stats.avg_entry_age_ms:,}  ({duration(stats.avg_entry_age_ms)})",
        }
    )
    for title, names in (
        (
            "not worth caching, as computing it took under a second",
            stats.not_worth_caching,
        ),
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
        await find_root(stores, session_id)
        [found] = await stores.cache.peek(session_id, [key])
        if found is None:
            known = [entry.key for entry in await stores.cache.entries(session_id)]
            more = f" and {len(known) - _MOST_LISTED} more (`tasklore session show`)"
            listed = ", ".join(known[:_MOST_LISTED]) + (
                more if len(known) > _MOST_LISTED else ""
            )
            has = f"it has {listed}" if known else "it has none"
            raise InvalidInput(f"session {session_id!r} has no entry {key!r}; {has}")
    print_json(found.value)


async def _place_of(stores: Stores, session_id: str) -> SessionRoot:
    """Return the session of that id from the list, which alone knows its place.

    Raises:
        UnknownSession: there is no such session.
    """
    root = await find_root(stores, session_id)
    page: list[SessionRoot] = []
    while page := await stores.cache.sessions(
        limit=_PAGE, before=page[-1] if page else None
    ):
        for one in page:
            if one.session_id == session_id:
                return one
    return root


async def find_root(stores: Stores, session_id: str) -> SessionRoot:
    """Return the session of that id.

    Raises:
        UnknownSession: there is no such session, or its time to live is over.
        InvalidInput: *session_id* is no name.
    """
    root = await stores.cache.root(checked_name(session_id, "SESSION"))
    if root is None:
        raise UnknownSession(
            f"there is no session {session_id!r}, or its time is over; `tasklore session list` shows those there are"
        )
    return root


def root_document(root: SessionRoot) -> dict[str, Any]:
    """Return a session for programs, under the names of its files; times in RFC 3339."""
    first = ("session_id", "version", "domain", "state")
    rest = ("project", "user_id", "run", "keep")
    return {
        **{name: getattr(root, name) for name in first},
        "created_at": spell_time(root.created_ms),
        "updated_at": spell_time(root.updated_ms),
        **{
            name: getattr(root, name)
            for name in ("ttl_ms", "expires_in_ms", "entries", *rest)
        },
    }


def entry_document(entry: EntryInfo) -> dict[str, Any]:
    """Return an entry without its value for programs, under the names of files."""
    return {
        "created_at": spell_time(entry.created_ms),
        "created_by_phase": entry.phase,
        "ttl_ms": entry.ttl_ms,
        "expires_at": None
        if entry.expires_ms is None
        else spell_time(entry.expires_ms),
        "bytes": entry.bytes,
        "hidden_by": entry.hidden_by,
        "metadata": {
            "computation_time_ms": entry.computation_ms,
            "source_agent": entry.agent,
            "cache_hit_count": entry.hits,
        },
    }
