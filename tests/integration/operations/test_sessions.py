"""The operations of sessions on a real store: looked into, exported, mended, dropped and swept."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import (
    InvalidInput,
    NotPermitted,
    TaskloreError,
    UnknownSession,
)
from tasklore.memory.sessions.session import NewEntry, SessionCache
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.supervisor.operations import sessions as operations
from tasklore.supervisor.operations.refusals import Refused
from tasklore.supervisor.operations.sessions import (
    OPERATIONS,
    EntriesToInvalidate,
    SessionServices,
    SessionToDrop,
    SessionUpload,
    Sweeping,
    drop_session,
    export_session,
    get_session_entry,
    import_session,
    invalidate_entries,
    list_sessions,
    show_session,
    show_session_stats,
    sweep_sessions,
)
from tests.integration.operations.doors import door_of
from tests.integration.sessions import StoreStage

OPERATOR = Caller(name="ops", roles=frozenset({"operate"}))
ID = "report-1"
#: Half of a character, which JSON can escape, and what would steer a terminal.
ODD = "x\x1b[2Jy\ud800"


@pytest.fixture
def stage(redis: Redis) -> StoreStage:
    return StoreStage(redis)


@pytest.fixture
def services(stage: StoreStage) -> SessionServices:
    return SessionServices(cache=stage.cache)


async def fill(cache: SessionCache) -> None:
    """Make a session of three phases: one slow and used twice, one quick, one with a short time of its own."""
    await cache.create(
        ID,
        domain="webdev",
        dependencies={"plan": ["analysis"], "review": ["plan"]},
        project="shop",
    )
    entries = [
        NewEntry(
            key="analysis:map",
            value={"a": [1, None]},
            agent="Analyzer",
            computation_ms=120_000,
        ),
        NewEntry(
            key="plan:steps",
            value=0,
            agent="Planner",
            computation_ms=40,
            ttl=timedelta(minutes=2),
        ),
        NewEntry(
            key="review:file:src/a.py",
            value=ODD,
            agent="Reviewer",
            computation_ms=5_000,
        ),
    ]
    await cache.set_many(ID, entries)
    for _ in range(2):
        await cache.get(ID, "analysis:map")


async def test_a_session_is_shown_with_its_entries_and_statistics(
    stage: StoreStage, services: SessionServices
) -> None:
    await fill(stage.cache)
    await stage.put_correction("plan", "review", ID)
    shown = await show_session(services, OPERATOR, ID)
    assert (shown.project, shown.domain, shown.entries) == ("shop", "webdev", 3)
    entries = {one.key: one for one in shown.cache}
    assert (entries["analysis:map"].hits, entries["analysis:map"].bytes) == (2, 14)
    assert entries["analysis:map"].computed_ms == 120_000
    assert (entries["plan:steps"].ttl_ms, entries["plan:steps"].hidden_by) == (
        120_000,
        "review",
    )
    await stage.put_time("render", 12_000, ID)
    for _ in range(3):  # looking at a value is no use of it
        found = await get_session_entry(services, OPERATOR, ID, "analysis:map")
        assert json.loads(found.text) == {"a": [1, None]}
    stats = await show_session_stats(services, OPERATOR, ID)
    assert (
        stats.total_entries,
        stats.total_hits,
        stats.total_saved_time_ms,
    ) == (3, 2, 240_000)
    assert (stats.not_worth_caching, stats.uncached_phases) == (
        ("plan:steps",),
        ("render",),
    )


async def test_entries_that_have_expired_are_not_counted(
    services: SessionServices,
) -> None:
    """Nobody can read them any more, whether they were swept or not."""
    cache = services.cache
    await cache.create("trip")
    entries = [
        NewEntry(key="plan:kept", value=1),
        NewEntry(key="plan:brief", value=2, ttl=timedelta(milliseconds=1)),
    ]
    await cache.set_many("trip", entries)
    async with asyncio.timeout(60):
        while await cache.get("trip", "plan:brief") is not None:
            pass
    [root] = (await list_sessions(services, OPERATOR)).sessions
    assert root.entries == 1


async def test_a_long_list_of_sessions_comes_in_pages(
    stage: StoreStage, services: SessionServices
) -> None:
    for number in range(5):
        await stage.cache.create(f"s-{number}")
    await stage.put_state("failed", "s-3")
    first = await list_sessions(services, OPERATOR, limit=3)
    assert first.after is not None
    rest = await list_sessions(services, OPERATOR, limit=3, after=first.after)
    assert rest.after is None
    found = [one.session_id for one in (*first.sessions, *rest.sessions)]
    assert found == [f"s-{number}" for number in (4, 3, 2, 1, 0)]
    failed = await list_sessions(services, OPERATOR, state="failed")
    assert [one.session_id for one in failed.sessions] == ["s-3"]


async def test_invalidating_names_the_removed_entries(
    stage: StoreStage, services: SessionServices
) -> None:
    """As its dry run did, which removes none."""
    await fill(stage.cache)
    left = 3
    for options, gone in (
        ({"key": "plan:other"}, ()),
        ({"downstream": "review"}, ()),
        ({"key": "plan:steps"}, ("plan:steps",)),
        ({"downstream": "analysis"}, ("review:file:src/a.py",)),
        ({"phase": "analysis"}, ("analysis:map",)),
    ):
        wanted = EntriesToInvalidate(**options)  # type: ignore[arg-type]
        tried = wanted.model_copy(update={"dry_run": True})
        trial = await invalidate_entries(services, OPERATOR, ID, tried)
        assert (trial.removed, trial.concerns) == (gone, len(gone))
        assert len(await stage.cache.entries(ID)) == left
        bound = wanted.model_copy(update={"bound": trial.bound})
        done = await invalidate_entries(services, OPERATOR, ID, bound)
        assert (done.removed, done.is_run) == (gone, False)
        left -= len(gone)
        assert len(await stage.cache.entries(ID)) == left


async def test_nothing_is_removed_of_a_session_that_changed_since_the_dry_run(
    stage: StoreStage, services: SessionServices
) -> None:
    await fill(stage.cache)
    stale = EntriesToInvalidate(phase="analysis", dry_run=True)
    invalid = await invalidate_entries(services, OPERATOR, ID, stale)
    dropped = await drop_session(services, OPERATOR, ID, SessionToDrop(dry_run=True))
    assert dropped.concerns == 4
    async with asyncio.timeout(60):
        while str(
            (await show_session(services, OPERATOR, ID)).updated_at.timestamp()
        ) == (str(int(dropped.bound) / 1000)):
            await stage.cache.set(ID, "analysis:more", 1)
    for work in (
        invalidate_entries(
            services,
            OPERATOR,
            ID,
            EntriesToInvalidate(phase="analysis", bound=invalid.bound),
        ),
        drop_session(services, OPERATOR, ID, SessionToDrop(bound=dropped.bound)),
    ):
        with pytest.raises(Refused, match="changed since the dry run") as refused:
            await work
        assert refused.value.problem.status == 409
    assert len(await stage.cache.entries(ID)) == 4


async def test_a_session_goes_out_and_comes_in_whole(
    stage: StoreStage, services: SessionServices
) -> None:
    """Under its own id, another one, and from text; never over one that is there."""
    await fill(stage.cache)
    exported = await export_session(services, OPERATOR, ID)
    assert exported.media_type == "application/json"
    document = json.loads(exported.text)
    assert document["cache"]["review:file:src/a.py"]["value"] == ODD
    with pytest.raises(Refused, match="exists already") as taken:
        await import_session(services, OPERATOR, SessionUpload(file=document))
    assert taken.value.problem.status == 409
    for name, file in (("copy", document), ("text", exported.text)):
        upload = SessionUpload(file=file, session_id=name)
        loaded = await import_session(services, OPERATOR, upload)
        assert (loaded.session_id, loaded.loaded, loaded.refused) == (name, 3, ())
        again = json.loads((await export_session(services, OPERATOR, name)).text)
        assert again["cache"] == document["cache"]


async def test_entries_of_a_file_that_are_over_or_break_a_rule_are_told(
    stage: StoreStage, services: SessionServices
) -> None:
    await fill(stage.cache)
    document = json.loads((await export_session(services, OPERATOR, ID)).text)
    cache = document["cache"]
    cache["plan:steps"] |= {"created_at": "2025-11-19T10:00:00.000Z", "ttl_ms": 1}
    cache["bad key"] = cache["analysis:map"]
    upload = SessionUpload(file=document, session_id="copy")
    loaded = await import_session(services, OPERATOR, upload)
    assert (loaded.loaded, loaded.expired) == (2, ("plan:steps",))
    assert [one.key for one in loaded.refused] == ["bad key"]
    document["cache"] = {"bad key": cache["analysis:map"]}
    upload = SessionUpload(file=document, session_id="none")
    with pytest.raises(Refused, match="bad key"):
        await import_session(services, OPERATOR, upload)
    with pytest.raises(UnknownSession):
        await show_session(services, OPERATOR, "none")


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("{nope", "is not valid JSON"),
        ("[" * 100_000, "is not valid JSON"),
        ({}, "not a session file"),
        ("[]", "not a session file"),
        (
            {"cache": {}, "version": "1.0.0", "session_id": "s", "domain": "data"},
            "version '1.0.0'",
        ),
        (
            {"cache": {}, "version": "2.0.0", "session_id": "../s", "domain": "data"},
            "s",
        ),
    ],
)
async def test_a_file_that_is_no_session_is_refused_and_makes_none(
    file: Any, words: str, services: SessionServices, redis: Redis
) -> None:
    with pytest.raises((Refused, InvalidInput), match=words):
        await import_session(services, OPERATOR, SessionUpload(file=file))
    assert await redis.dbsize() == 0


@pytest.mark.parametrize(
    ("work", "error", "words"),
    [
        (
            lambda services: show_session(services, OPERATOR, "nobody"),
            UnknownSession,
            "GET /v1/sessions",
        ),
        (
            lambda services: get_session_entry(services, OPERATOR, ID, "analysis"),
            InvalidInput,
            "breaks the naming rule",
        ),
        (
            lambda services: get_session_entry(services, OPERATOR, ID, "analysis:maps"),
            Refused,
            "it has analysis:map, plan:steps",
        ),
        (
            lambda services: invalidate_entries(
                services, OPERATOR, ID, EntriesToInvalidate()
            ),
            Refused,
            "key, phase or downstream",
        ),
        (
            lambda services: invalidate_entries(
                services,
                OPERATOR,
                ID,
                EntriesToInvalidate(key="plan:steps", phase="plan"),
            ),
            Refused,
            "one of the three",
        ),
        (
            lambda services: invalidate_entries(
                services, OPERATOR, ID, EntriesToInvalidate(key="plan")
            ),
            InvalidInput,
            "breaks the naming rule",
        ),
    ],
)
async def test_a_wrong_value_is_refused_with_the_cure(
    work: Any,
    error: type[TaskloreError | Refused],
    words: str,
    stage: StoreStage,
    services: SessionServices,
) -> None:
    await fill(stage.cache)
    with pytest.raises(error, match=words):
        await work(services)
    assert len(await stage.cache.entries(ID)) == 3


async def test_a_running_session_is_neither_dropped_nor_swept(
    stage: StoreStage, services: SessionServices
) -> None:
    await fill(stage.cache)
    await stage.put_state("running", ID)
    assert (await sweep_sessions(services, OPERATOR, Sweeping())).sessions == ()
    for wanted in (SessionToDrop(), SessionToDrop(dry_run=True)):
        with pytest.raises(Refused, match="cancel it first") as refused:
            await drop_session(services, OPERATOR, ID, wanted)
        assert refused.value.problem.status == 409
    done = await drop_session(services, OPERATOR, ID, SessionToDrop(force=True))
    assert (done.concerns, done.dry_run) == (4, False)
    assert await stage.cache.root(ID) is None


async def test_a_session_without_entries_is_still_something_to_drop(
    services: SessionServices,
) -> None:
    """A trial that concerns nothing is the end of a command."""
    await services.cache.create(ID)
    trial = await drop_session(services, OPERATOR, ID, SessionToDrop(dry_run=True))
    assert trial.concerns == 1


async def test_entries_that_are_over_are_counted_and_swept_away(
    stage: StoreStage, services: SessionServices
) -> None:
    """Also where no session is over; those of a session that runs stay."""
    brief = NewEntry(key="plan:brief", value=1, ttl=timedelta(milliseconds=1))
    for name in (ID, "runs"):
        await services.cache.create(name)
        await services.cache.set_many(name, [brief, NewEntry(key="plan:kept", value=2)])
        async with asyncio.timeout(60):
            while await services.cache.get(name, "plan:brief") is not None:
                pass
    await stage.put_state("running", "runs")
    for _ in range(2):
        trial = await sweep_sessions(services, OPERATOR, Sweeping(dry_run=True))
        assert (trial.concerns, trial.sessions) == (1, ())
    done = await sweep_sessions(services, OPERATOR, Sweeping(bound=trial.bound))
    assert (done.concerns, done.sessions) == (1, ())
    rest = await sweep_sessions(services, OPERATOR, Sweeping(dry_run=True))
    assert rest.concerns == 0
    assert await services.cache.get(ID, "plan:kept") is not None


async def test_what_is_over_is_swept_away_as_it_was_counted(
    stage: StoreStage, services: SessionServices, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no more than that, although another one is over by then."""
    grace = timedelta(0)
    sweep, find = stage.cache.sweep, stage.cache.find_gone
    monkeypatch.setattr(
        stage.cache, "sweep", lambda limit: sweep(grace=grace, limit=limit)
    )
    monkeypatch.setattr(stage.cache, "find_gone", lambda: find(grace=grace))
    await fill(stage.cache)
    for number in range(3):
        await stage.cache.create(f"s-{number}", ttl=timedelta(milliseconds=1))
        if number == 1:
            async with asyncio.timeout(60):
                while await stage.cache.root("s-1") is not None:
                    pass
            trial = await sweep_sessions(services, OPERATOR, Sweeping(dry_run=True))
            assert (set(trial.sessions), trial.concerns) == ({"s-0", "s-1"}, 2)
    async with asyncio.timeout(60):
        while await stage.cache.root("s-2") is not None:
            pass
    done = await sweep_sessions(services, OPERATOR, Sweeping(bound=trial.bound))
    assert done.concerns == 2
    rest = await sweep_sessions(services, OPERATOR, Sweeping())
    assert rest.concerns == 1
    assert [one.session_id for one in await stage.cache.sessions()] == [ID]


async def test_a_key_of_one_user_or_tenant_sees_no_session(
    stage: StoreStage, services: SessionServices
) -> None:
    await fill(stage.cache)
    for change in ({"user": "ann"}, {"tenant": "acme"}):
        caller = OPERATOR.model_copy(update=change)
        for work in (
            list_sessions(services, caller),
            show_session(services, caller, ID),
            show_session_stats(services, caller, ID),
            get_session_entry(services, caller, ID, "plan:steps"),
            export_session(services, caller, ID),
            import_session(services, caller, SessionUpload(file={"cache": {}})),
            invalidate_entries(services, caller, ID, EntriesToInvalidate(phase="plan")),
            drop_session(services, caller, ID, SessionToDrop()),
            sweep_sessions(services, caller, Sweeping()),
        ):
            with pytest.raises(NotPermitted, match="one user or tenant"):
                await work
    assert len(await stage.cache.entries(ID)) == 3


async def test_sessions_are_served_over_http(
    servers: EmbeddedServers,
    redis: Redis,
    stage: StoreStage,
    services: SessionServices,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A key with slashes, a value with half a character, a file that is too large, and a guest refused."""
    await fill(stage.cache)
    async with door_of(
        servers,
        redis,
        tmp_path,
        services,
        OPERATIONS,
        ops=("operate",),
        guest=("ask", "read", "approve"),
    ) as desks:
        ops = desks["ops"]
        listed = await ops.ask("GET", "/v1/sessions?state=open")
        assert [one["session_id"] for one in listed.json()["sessions"]] == [ID]
        path = f"/v1/sessions/{ID}"
        value = await ops.ask("GET", f"{path}/entries/review:file:src%2Fa.py")
        assert json.loads(value.text) == ODD
        whole = await ops.ask("GET", f"{path}/export")
        assert whole.json()["session_id"] == ID
        monkeypatch.setattr(operations, "MOST_EXPORTED", 5)
        assert (await ops.ask("GET", f"{path}/export")).status_code == 413
        trial = await ops.ask("POST", f"{path}/drop", json={"dry_run": True})
        assert trial.json()["concerns"] == 4
        body = {"bound": trial.json()["bound"]}
        assert (await ops.ask("POST", f"{path}/drop", json=body)).status_code == 200
        assert (await ops.ask("GET", path)).status_code == 404
        assert (await desks["guest"].ask("GET", "/v1/sessions")).status_code == 403
        assert (await ops.ask("GET", "/v1/sessions?state=odd")).status_code == 422
