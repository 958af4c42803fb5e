"""Sessions, the caches of runs: list, show, export, import, invalidate and remove them."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Annotated, Any

from pydantic import Field, JsonValue

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput, UnknownSession
from tasklore.contracts.identifiers import NAME_PATTERN, Name, checked_name
from tasklore.contracts.session_keys import read_key
from tasklore.memory.sessions.entries import EntryInfo, SessionRoot, State
from tasklore.memory.sessions.index import ListPlace
from tasklore.memory.sessions.refusals import refuse_running, refuse_taken
from tasklore.memory.sessions.session import SessionCache
from tasklore.memory.times import EPOCH, MILLISECOND
from tasklore.supervisor.operations.dependencies import OperatorDependencies
from tasklore.supervisor.operations.forms import Form, Text, View
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.refusals import (
    Fault,
    Refused,
    not_found,
    unusable,
)
from tasklore.supervisor.operations.table import Shows, operation

#: Seconds for one read: a person waits, and an answer late is better than none.
_DEADLINE_S = 5.0
#: Keys that an error lists, and faults of a file.
_MOST_LISTED = 8
#: Bytes of JSON that an export may have: as much as the API takes back at most.
MOST_EXPORTED = 64 * 1024**2

SessionId = Annotated[
    str, Field(pattern=NAME_PATTERN, description="A session, by its id.")
]
DryRun = Annotated[bool, Field(description="Only show what would be done.")]
Bound = Annotated[
    str,
    Field(
        max_length=64,
        description="The `bound` of the dry run; nothing else is removed.",
    ),
]


@dataclass(frozen=True, kw_only=True)
class SessionServices:
    """What the operations of sessions work with."""

    cache: SessionCache


class SessionView(View):
    """A session without its entries, which `entries` counts; `expires_in_ms` is None while its pipeline runs."""

    session_id: str
    state: State
    domain: str
    entries: int
    created_at: datetime
    updated_at: datetime
    ttl_ms: int
    expires_in_ms: int | None
    project: str | None
    user: str | None
    run: int
    keep: bool
    version: str


class SessionEntry(View):
    """An entry without its value. `expires_at` is None where it goes with its session, `computed_ms` where unknown.

    `hidden_by` names the phase that replaced its own.
    """

    key: str
    phase: str
    created_at: datetime
    ttl_ms: int | None
    expires_at: datetime | None
    hits: int
    computed_ms: int | None
    bytes: int
    agent: str
    hidden_by: str | None


class SessionDetails(SessionView):
    """A session, and in `cache` its entries in the order in which they were written."""

    cache: tuple[SessionEntry, ...]


class SessionPage(View):
    """A page of sessions; `after` is what to ask for the next one with, None at the end."""

    sessions: tuple[SessionView, ...]
    after: str | None


class SessionSavings(View):
    """How often entries were used, and the computing time that this saved.

    `not_worth_caching` are keys that took under a second to compute, `uncached_phases` phases that took over ten
    seconds and kept nothing.
    """

    total_entries: int
    total_hits: int
    total_saved_time_ms: int
    avg_entry_age_ms: int
    not_worth_caching: tuple[str, ...]
    uncached_phases: tuple[str, ...]
    saved_by_phase: dict[str, int]


class SessionUpload(Form):
    """A file of a session, as an export returns it."""

    file: Annotated[
        dict[str, JsonValue] | str,
        Field(
            description="The output of `export`.",
            json_schema_extra={"x-cli": {"kind": "file"}},
        ),
    ]
    session_id: Annotated[
        Name | None,
        Field(description="Session id to use instead of the one in the file."),
    ] = None


class RefusedEntry(View):
    """An entry of a file that was not taken, and why."""

    key: str
    why: str


class SessionLoaded(View):
    """What became of a file: how many entries were loaded, which are over, and which cannot be taken."""

    session_id: str
    loaded: int
    expired: tuple[str, ...]
    refused: tuple[RefusedEntry, ...]


class EntriesToInvalidate(Form):
    """Entries that are stale: one, those of a phase, or those of all that depends on a phase."""

    key: Annotated[str | None, Field(max_length=1024, description="This entry.")] = None
    phase: Annotated[Name | None, Field(description="Every entry of this phase.")] = (
        None
    )
    downstream: Annotated[
        Name | None,
        Field(description="Every entry of phases that depend on this phase."),
    ] = None
    dry_run: DryRun = False
    bound: Bound = ""


class EntriesInvalidated(View):
    """Which entries were removed, or would be where it is a `dry_run`.

    `is_run` says that the session is of a pipeline, which knows of that only when it is resumed.
    """

    session_id: str
    dry_run: bool
    concerns: int
    removed: tuple[str, ...]
    is_run: bool
    bound: str


class SessionToDrop(Form):
    """How a session is removed."""

    force: Annotated[
        bool, Field(description="Also if it is running; this ends its pipeline.")
    ] = False
    dry_run: DryRun = False
    bound: Bound = ""


class SessionDropped(View):
    """A session that was removed, or would be where it is a `dry_run`; `concerns` counts it and its entries."""

    session_id: str
    dry_run: bool
    concerns: int
    bound: str


class Sweeping(Form):
    """Sessions past their time."""

    dry_run: DryRun = False
    bound: Annotated[
        str,
        Field(
            pattern=r"^[0-9]{0,9}$",
            description="The `bound` of the dry run; no further sessions are removed.",
        ),
    ] = ""


class SessionsSwept(View):
    """The sessions that were over, and were swept away unless it is a `dry_run`.

    `concerns` counts them, and the entries that were over in other sessions.
    """

    dry_run: bool
    concerns: int
    sessions: tuple[str, ...]
    bound: str


@operation(
    "sessions",
    "list",
    "GET /v1/sessions",
    roles=("operate",),
    mounted="operations",
    shows=Shows(
        rows="sessions",
        columns=(
            "session_id",
            "state",
            "domain",
            "entries",
            "updated_at",
            "expires_in_ms",
        ),
        example="sessions list --state failed",
    ),
)
async def list_sessions(
    services: SessionServices,
    caller: Caller,
    *,
    state: Annotated[State | None, Field(description="Only in this state.")] = None,
    after: Annotated[
        str,
        Field(
            pattern=r"^([0-9]{1,16}-[A-Za-z0-9_-]{1,64})?$",
            description="Pagination cursor: the `after` of the previous page.",
        ),
    ] = "",
    limit: Annotated[int, Field(ge=1, le=200, description="Maximum number.")] = 50,
) -> SessionPage:
    """List the sessions, the last updated first."""
    caller.demand_unbound()
    listed_ms, _, session_id = after.partition("-")
    place = ListPlace(int(listed_ms), session_id) if session_id else None
    found = await services.cache.sessions(state=state, limit=limit + 1, before=place)
    shown = found[:limit]
    has_more = len(found) > limit
    return SessionPage(
        sessions=tuple(SessionView(**_fields_of(root)) for root in shown),
        after=f"{shown[-1].listed_ms}-{shown[-1].session_id}" if has_more else None,
    )


@operation(
    "sessions",
    "show",
    "GET /v1/sessions/{session_id}",
    roles=("operate",),
    mounted="operations",
    problems=(404,),
    shows=Shows(
        rows="cache",
        columns=(
            "key",
            "created_at",
            "expires_at",
            "hits",
            "computed_ms",
            "bytes",
            "agent",
            "hidden_by",
        ),
        example="sessions show health-3f9a2c71d0",
    ),
)
async def show_session(
    services: SessionServices, caller: Caller, session_id: SessionId
) -> SessionDetails:
    """Show a session and its entries: age, time left, uses, what computing took, size."""
    root = await _demand_root(services, caller, session_id)
    entries = await services.cache.entries(session_id)
    return SessionDetails(**_fields_of(root), cache=tuple(map(_view_entry, entries)))


@operation(
    "sessions",
    "stats",
    "GET /v1/sessions/{session_id}/stats",
    roles=("operate",),
    mounted="operations",
    problems=(404,),
    shows=Shows(example="sessions stats health-3f9a2c71d0 --json"),
)
async def show_session_stats(
    services: SessionServices, caller: Caller, session_id: SessionId
) -> SessionSavings:
    """Show how often entries were reused, and how much time that saved."""
    await _demand_root(services, caller, session_id)
    return SessionSavings(**asdict(await services.cache.stats(session_id)))


@operation(
    "sessions",
    "get",
    "GET /v1/sessions/{session_id}/entries/{key:path}",
    roles=("operate",),
    mounted="operations",
    problems=(404,),
    shows=Shows(
        picture="document",
        example="sessions get health-3f9a2c71d0 analysis:dependencyMap",
    ),
)
async def get_session_entry(
    services: SessionServices,
    caller: Caller,
    session_id: SessionId,
    key: Annotated[
        str,
        Field(max_length=1024, description="An entry, such as analysis:dependencyMap."),
    ],
) -> Text:
    """Return the value of an entry as JSON; this is not counted as a use."""
    read_key(key)
    await _demand_root(services, caller, session_id)
    [found] = await services.cache.peek(session_id, [key])
    if found is None:
        known = [entry.key for entry in await services.cache.entries(session_id)]
        more = f" and {len(known) - _MOST_LISTED} more"
        listed = ", ".join(known[:_MOST_LISTED]) + (
            more if len(known) > _MOST_LISTED else ""
        )
        has = f"it has {listed}" if known else "it has none"
        raise not_found(f"session {session_id!r} has no entry {key!r}; {has}")
    return _as_text(found.value)


@operation(
    "sessions",
    "export",
    "GET /v1/sessions/{session_id}/export",
    roles=("operate",),
    mounted="operations",
    problems=(404, 413),
    shows=Shows(
        picture="document",
        example="sessions export health-3f9a2c71d0 --json > agentdb-health-3f9a2c71d0.json",
    ),
)
async def export_session(
    services: SessionServices, caller: Caller, session_id: SessionId
) -> Text:
    """Return a session as a file that `import` reads."""
    await _demand_root(services, caller, session_id)
    size = sum(entry.bytes for entry in await services.cache.entries(session_id))
    if size > MOST_EXPORTED:
        told = (
            f"session {session_id!r} has {size:,} bytes of JSON, a file at most {MOST_EXPORTED:,}; "
            "read its entries one by one"
        )
        raise Refused(413, "too-large", told)
    return _as_text(await services.cache.export(session_id))


@operation(
    "sessions",
    "import",
    "POST /v1/sessions/import",
    roles=("operate",),
    mounted="operations",
    status=201,
    problems=(409,),
    shows=Shows(
        arguments=("file",),
        picture="session_loaded",
        example="sessions import agentdb-health-3f9a2c71d0.json",
    ),
)
async def import_session(
    services: SessionServices, caller: Caller, upload: SessionUpload
) -> SessionLoaded:
    """Import a file as a new session; expired entries are omitted.

    Invalid entries are omitted too, and listed; if none is left, no session is created.
    """
    caller.demand_unbound()
    document = _read_document(upload.file)
    name = upload.session_id or document.get("session_id")
    if isinstance(name, str):
        checked_name(name, "session_id")
        if await services.cache.root(name) is not None:
            raise Refused(409, "taken", str(refuse_taken(name)))
    report = await services.cache.load(document, upload.session_id)
    if report.refused and not report.loaded:
        raise unusable(
            [
                Fault(where=f"file.cache.{key}"[:200], message=why)
                for key, why in list(report.refused.items())[:_MOST_LISTED]
            ]
        )
    return SessionLoaded(
        session_id=report.session_id,
        loaded=report.loaded,
        expired=report.expired,
        refused=tuple(
            RefusedEntry(key=key, why=why) for key, why in report.refused.items()
        ),
    )


@operation(
    "sessions",
    "invalidate",
    "POST /v1/sessions/{session_id}/invalidate",
    roles=("operate",),
    mounted="operations",
    problems=(404, 409),
    shows=Shows(
        confirm="Entries to remove: {concerns}. Continue?",
        example=(
            "sessions invalidate health-3f9a2c71d0 --key analysis:results\n"
            "sessions invalidate health-3f9a2c71d0 --downstream analysis"
        ),
    ),
)
async def invalidate_entries(
    services: SessionServices,
    caller: Caller,
    session_id: SessionId,
    wanted: EntriesToInvalidate,
) -> EntriesInvalidated:
    """Remove entries, and list them.

    Tasks that are still running for one of their phases can no longer write. For a
    pipeline run use `pipelines invalidate`, which also runs the phases again.
    """
    given = [wanted.key, wanted.phase, wanted.downstream]
    if sum(one is not None for one in given) != 1:
        told = "say what is stale: key, phase or downstream, one of the three"
        raise unusable([Fault(where="key", message=told)])
    root = await _demand_root(services, caller, session_id)
    stale = await _find_stale(services.cache, session_id, wanted)
    bound = _digest_of(stale)
    if not wanted.dry_run:
        _demand_same(wanted.bound, bound)
        stale = await _remove(services.cache, session_id, wanted)
    return EntriesInvalidated(
        session_id=session_id,
        dry_run=wanted.dry_run,
        concerns=len(stale),
        removed=tuple(stale),
        is_run=bool(root.pipeline),
        bound=bound,
    )


@operation(
    "sessions",
    "drop",
    "POST /v1/sessions/{session_id}/drop",
    roles=("operate",),
    mounted="operations",
    problems=(404, 409),
    shows=Shows(
        confirm="Session {session_id} and its entries to remove: {concerns}. Continue?",
        example="sessions drop health-3f9a2c71d0",
    ),
)
async def drop_session(
    services: SessionServices,
    caller: Caller,
    session_id: SessionId,
    wanted: SessionToDrop,
) -> SessionDropped:
    """Remove a session with its entries; its evidence and the records of its project stay."""
    root = await _demand_root(services, caller, session_id)
    if root.state == "running" and not wanted.force:
        raise Refused(409, "running", str(refuse_running(session_id)))
    bound = str(root.updated_ms)
    if not wanted.dry_run:
        _demand_same(wanted.bound, bound)
        await services.cache.drop(session_id, force=wanted.force)
    return SessionDropped(
        session_id=session_id,
        dry_run=wanted.dry_run,
        concerns=1 + root.entries,
        bound=bound,
    )


@operation(
    "sessions",
    "sweep",
    "POST /v1/sessions/sweep",
    roles=("operate",),
    mounted="operations",
    waits=True,
    shows=Shows(
        confirm="Expired sessions and entries to remove: {concerns}. Continue?",
        example="sessions sweep",
    ),
)
async def sweep_sessions(
    services: SessionServices, caller: Caller, wanted: Sweeping
) -> SessionsSwept:
    """Remove expired entries and sessions; never a running one."""
    caller.demand_unbound()
    expired = await services.cache.count_expired()
    if wanted.dry_run:
        gone = await services.cache.find_gone()
    else:
        limit = int(wanted.bound) if wanted.bound else None
        gone = await services.cache.sweep(limit=limit)
    return SessionsSwept(
        dry_run=wanted.dry_run,
        concerns=len(gone) + expired,
        sessions=tuple(gone),
        bound=str(len(gone)),
    )


OPERATIONS = (
    list_sessions,
    show_session,
    show_session_stats,
    get_session_entry,
    export_session,
    import_session,
    invalidate_entries,
    drop_session,
    sweep_sessions,
)


async def _demand_root(
    services: SessionServices, caller: Caller, session_id: str
) -> SessionRoot:
    """Return the session of that id.

    Raises:
        NotPermitted: the key is for one user or tenant.
        UnknownSession: there is no such session, or its time to live is over.
    """
    caller.demand_unbound()
    root = await services.cache.root(session_id)
    if root is None:
        raise UnknownSession(
            f"there is no session {session_id!r}, or it has expired; GET /v1/sessions "
            "lists them"
        )
    return root


async def _find_stale(
    cache: SessionCache, session_id: str, wanted: EntriesToInvalidate
) -> list[str]:
    """Return the keys of the entries that *wanted* means, sorted."""
    phases: frozenset[str] = frozenset()
    if wanted.key is not None:
        read_key(wanted.key)
    elif wanted.phase is not None:
        phases = frozenset({wanted.phase})
    else:
        phases = await cache.phases_downstream(session_id, wanted.downstream or "")
    return sorted(
        entry.key
        for entry in await cache.entries(session_id)
        if entry.key == wanted.key or read_key(entry.key).phase in phases
    )


async def _remove(
    cache: SessionCache, session_id: str, wanted: EntriesToInvalidate
) -> list[str]:
    """Remove the entries that *wanted* means, and return their keys."""
    if wanted.key is not None:
        is_gone = await cache.delete(session_id, wanted.key)
        return [wanted.key] if is_gone else []
    if wanted.phase is not None:
        return list(await cache.invalidate_phases(session_id, [wanted.phase]))
    return list(await cache.invalidate_downstream(session_id, wanted.downstream or ""))


def _demand_same(bound: str, now: str) -> None:
    """Return when nothing has changed since a dry run answered *bound*; "" is none.

    Raises:
        Refused: 409, something has.
    """
    if bound not in ("", now):
        raise Refused(
            409,
            "changed",
            "the session has changed since the dry run; look again what that would remove",
        )


def _digest_of(keys: list[str]) -> str:
    return blake2b("\n".join(keys).encode(), digest_size=8).hexdigest()


def _read_document(file: dict[str, JsonValue] | str) -> dict[str, Any]:
    """Return the document of a *file*, also of one that was sent as text.

    Raises:
        Refused: 422, it is no file of a session.
    """
    found: Any = file
    if isinstance(file, str):
        try:
            found = json.loads(file)
        except (ValueError, RecursionError) as error:
            raise unusable(
                [Fault(where="file", message=f"is not valid JSON ({error}); fix it")]
            ) from error
    if not isinstance(found, dict) or not isinstance(found.get("cache"), dict):
        told = "is not a session file; write one with `sessions export`"
        raise unusable([Fault(where="file", message=told)])
    return found


def _as_text(value: Any) -> Text:
    """Return *value* as a body of JSON; half a character, which a value may hold, stays escaped."""
    return Text(text=json.dumps(value), media_type="application/json")


def _fields_of(root: SessionRoot) -> dict[str, Any]:
    same = (
        *("session_id", "state", "domain", "entries", "ttl_ms", "expires_in_ms"),
        *("project", "run", "keep", "version"),
    )
    return {
        **{name: getattr(root, name) for name in same},
        "user": root.user_id,
        "created_at": _moment(root.created_ms),
        "updated_at": _moment(root.updated_ms),
    }


def _view_entry(entry: EntryInfo) -> SessionEntry:
    same = ("key", "phase", "ttl_ms", "hits", "bytes", "agent", "hidden_by")
    return SessionEntry(
        **{name: getattr(entry, name) for name in same},
        created_at=_moment(entry.created_ms),
        expires_at=None if entry.expires_ms is None else _moment(entry.expires_ms),
        computed_ms=entry.computation_ms if entry.is_timed else None,
    )


def _moment(milliseconds: int) -> datetime:
    try:
        return EPOCH + milliseconds * MILLISECOND
    except OverflowError as error:
        raise InvalidInput(
            f"{milliseconds} ms since 1970 is a time beyond the calendar"
        ) from error


def for_operator(parts: OperatorDependencies) -> SessionServices:
    """Return the services of operations of sessions."""
    most = parts.settings.session_value_max_bytes
    cache = SessionCache(parts.redis, deadline_s=_DEADLINE_S, max_value_bytes=most)
    return SessionServices(cache=cache)


NOUN = NounDeclaration(operations=OPERATIONS, operator=serve(for_operator, OPERATIONS))
