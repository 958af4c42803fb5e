"""`tasklore session` on real servers: output, changes and refusals of each command."""

import asyncio
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.commands.exits import OK, USAGE
from tasklore.commands.session.edits import (
    drop_session,
    invalidate_entries,
    sweep_sessions,
)
from tasklore.commands.session.files import export_file, import_file
from tasklore.commands.session.views import (
    print_session,
    print_sessions,
    print_stats,
    print_value,
)
from tasklore.contracts.errors import (
    InvalidInput,
    TaskloreError,
    UnknownSession,
    Unreachable,
)
from tasklore.memory.sessions.session import NewEntry, SessionCache
from tests.integration.sessions import StoreStage

ID = "report-1"
#: What an agent may have written: it must not steer a terminal.
ODD = "x\x1b[2Jy"


pytestmark = pytest.mark.usefixtures("command_servers")


@pytest.fixture(autouse=True)
def _own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def stage(redis: Redis) -> StoreStage:
    return StoreStage(redis)


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
            key="review:file:src/a.py", value=ODD, agent=ODD, computation_ms=5_000
        ),
    ]
    await cache.set_many(ID, entries)
    for _ in range(2):
        await cache.get(ID, "analysis:map")


async def test_empty_lists_are_said_in_words_and_as_json(
    printed: Callable[[], str],
) -> None:
    await print_sessions(None, 10, before=None, as_json=False)
    assert printed() == "There are no sessions.\n"
    await print_sessions("failed", 10, before=None, as_json=False)
    assert printed() == "No session fits.\n"
    await print_sessions(None, 10, before=None, as_json=True)
    assert json.loads(printed()) == []
    await sweep_sessions(as_json=False)
    assert printed() == "Nothing was over.\n"


async def test_a_session_is_shown_with_its_entries_and_statistics(
    stage: StoreStage, printed: Callable[[], str]
) -> None:
    await fill(stage.cache)
    await stage.put_correction("plan", "review", ID)
    await print_session(ID, as_json=False)
    shown = printed()
    assert "\x1b" not in shown
    rows = {line.split()[0]: line for line in shown.split("\n\n")[1].splitlines()}
    assert rows["analysis:map"].split()[-8:] == [
        "2",
        "2",
        "min",
        "00",
        "s",
        "14",
        "B",
        "Analyzer",
    ]
    assert rows["plan:steps"].split()[-2:] == ["Planner", "review"]
    assert "project  shop" in shown
    await print_session(ID, as_json=True)
    document = json.loads(printed())
    assert document["cache"]["analysis:map"]["metadata"]["cache_hit_count"] == 2
    assert document["cache"]["plan:steps"]["ttl_ms"] == 120_000
    assert document["cache"]["plan:steps"]["hidden_by"] == "review"
    await stage.put_time("render", 12_000, ID)
    for _ in range(3):  # printing a value is no use of it
        await print_value(ID, "analysis:map")
    assert json.loads(printed().partition("\n}\n")[0] + "}") == {"a": [1, None]}
    await print_stats(ID, as_json=True)
    stats = json.loads(printed())
    assert (
        stats["total_entries"],
        stats["total_hits"],
        stats["total_saved_time_ms"],
    ) == (3, 2, 240_000)
    assert (stats["not_worth_caching"], stats["uncached_phases"]) == (
        ["plan:steps"],
        ["render"],
    )
    await print_stats(ID, as_json=False)
    shown = printed()
    assert "240,000  (4 min 00 s)" in shown
    assert "\n  plan:steps\n" in shown
    assert shown.endswith("\n  render\n")


async def test_entries_that_have_expired_are_not_counted(
    redis: Redis, printed: Callable[[], str]
) -> None:
    """Nobody can read them any more, whether they were swept or not."""
    cache = SessionCache(redis)
    await cache.create("trip")
    entries = [
        NewEntry(key="plan:kept", value=1),
        NewEntry(key="plan:brief", value=2, ttl=timedelta(milliseconds=1)),
    ]
    await cache.set_many("trip", entries)
    async with asyncio.timeout(60):
        while await cache.get("trip", "plan:brief") is not None:
            pass
    [root] = await cache.sessions()
    assert root.entries == 1
    await print_sessions(None, 10, before=None, as_json=True)
    assert json.loads(printed())[0]["entries"] == 1


async def test_a_long_list_of_sessions_comes_in_pages(
    stage: StoreStage, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(5):
        await stage.cache.create(f"s{number}")
    await stage.put_state("failed", "s3")
    await print_sessions(None, 3, before=None, as_json=False)
    out, err = capsys.readouterr()
    first = [line.split()[0] for line in out.splitlines()[1:]]
    assert f"--before {first[-1]} shows the next" in err
    await print_sessions(None, 3, before=first[-1], as_json=True)
    second = [one["session_id"] for one in json.loads(capsys.readouterr().out)]
    assert sorted(first + second) == [f"s{number}" for number in range(5)]
    await print_sessions("failed", 3, before=None, as_json=True)
    assert [one["session_id"] for one in json.loads(capsys.readouterr().out)] == ["s3"]


async def test_invalidating_names_the_removed_entries(
    stage: StoreStage, printed: Callable[[], str]
) -> None:
    await fill(stage.cache)
    left = 3
    for options, gone in (
        ({"key": "plan:other"}, []),
        ({"downstream": "review"}, []),
        ({"key": "plan:steps"}, ["plan:steps"]),
        ({"downstream": "analysis"}, ["review:file:src/a.py"]),
        ({"phase": "analysis"}, ["analysis:map"]),
    ):
        given = {"key": None, "phase": None, "downstream": None} | options
        await invalidate_entries(ID, **given, as_json=True)
        assert json.loads(printed())["removed"] == gone
        left -= len(gone)
        assert len(await stage.cache.entries(ID)) == left
        await invalidate_entries(ID, **given, as_json=False)
        assert printed() == "Nothing fits; nothing was removed.\n"


async def test_a_session_goes_through_a_file_unchanged(
    stage: StoreStage, redis: Redis, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await fill(stage.cache)
    await export_file(ID, None, is_forced=False)
    assert capsys.readouterr().err == "tasklore: 3 entries in agentdb-report-1.json\n"
    with pytest.raises(InvalidInput, match="--force"):
        await export_file(ID, None, is_forced=False)
    await export_file(ID, None, is_forced=True)
    await export_file(ID, "-", is_forced=False)
    written = json.loads((tmp_path / "agentdb-report-1.json").read_text("utf-8"))
    assert json.loads(capsys.readouterr().out) == written
    with pytest.raises(InvalidInput, match="exists already"):
        await import_file(Path("agentdb-report-1.json"), None, as_json=False)
    await redis.flushdb()
    assert await import_file(Path("agentdb-report-1.json"), None, as_json=False) == OK
    assert capsys.readouterr().out == "3 entries in session report-1.\n"
    assert (await stage.cache.export(ID))["cache"] == written["cache"]
    assert (
        await import_file(Path("agentdb-report-1.json"), "another", as_json=True) == OK
    )
    assert json.loads(capsys.readouterr().out)["session_id"] == "another"


async def test_an_import_names_the_entries_it_leaves_out(
    stage: StoreStage, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    await fill(stage.cache)
    document: dict[str, Any] = await stage.cache.export(ID)
    document["cache"]["bad key"] = {**document["cache"]["plan:steps"], "key": "bad key"}
    document["cache"]["plan:steps"]["created_at"] = "2025-11-19T10:00:00.000Z"
    (tmp_path / "some.json").write_text(json.dumps(document), "utf-8")
    assert await import_file(Path("some.json"), "copy", as_json=False) == USAGE
    out, err = capsys.readouterr()
    assert (
        out
        == "2 entries in session copy.\n1 entry left out, as their time is over:\n  plan:steps\n"
    )
    assert err.startswith("tasklore: bad key: ")


async def test_a_file_that_is_no_session_is_refused_and_creates_none(
    redis: Redis, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "some.json"
    with pytest.raises(InvalidInput, match="cannot be read"):
        await import_file(file, None, as_json=False)
    for content, words in (
        (b"{nope", "is no JSON"),
        (b"\xff\xfe\x00", "is no JSON"),
        (b"[" * 100_000, "is no JSON"),
        (b"{}", "no file of a session"),
        (
            b'{"cache": {}, "version": "1.0.0", "session_id": "s", "domain": "data"}',
            "version '1.0.0'",
        ),
        (
            b'{"cache": {}, "version": "2.0.0", "session_id": "../s", "domain": "data"}',
            "s",
        ),
    ):
        file.write_bytes(content)
        with pytest.raises(InvalidInput, match=words):
            await import_file(file, None, as_json=False)
    head = {"version": "2.0.0", "session_id": "s", "domain": "data", "ttl_ms": 1000}
    times = dict.fromkeys(("created_at", "updated_at"), "2025-11-19T10:00:00.000Z")
    file.write_text(
        json.dumps({**head, **times, "cache": {"a:b": {"value": 1}}}), "utf-8"
    )
    assert await import_file(Path("some.json"), None, as_json=False) == USAGE
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("tasklore: a:b: 'created_by_phase' is None")
    assert err.endswith(
        "no session was made; mend 'some.json' as said, and import it again\n"
    )
    assert await redis.dbsize() == 0


@pytest.mark.parametrize(
    ("command", "error", "words"),
    [
        (
            lambda: print_session("nobody", as_json=False),
            UnknownSession,
            "tasklore session list",
        ),
        (
            lambda: print_session("no body", as_json=False),
            InvalidInput,
            "SESSION 'no body' must be",
        ),
        (lambda: print_value(ID, "analysis"), InvalidInput, "breaks the naming rule"),
        (
            lambda: print_value(ID, "analysis:maps"),
            InvalidInput,
            "it has analysis:map, plan:steps",
        ),
        (
            lambda: print_sessions("broken", 9, before=None, as_json=False),
            InvalidInput,
            "one of open, running",
        ),
        (
            lambda: print_sessions(None, 9, before="nobody", as_json=False),
            UnknownSession,
            "nobody",
        ),
        (
            lambda: export_file(ID, "/proc/none/a.json", is_forced=False),
            InvalidInput,
            "/proc/none",
        ),
        (
            lambda: invalidate_entries(
                ID, key=None, phase=None, downstream=None, as_json=False
            ),
            InvalidInput,
            "--key, --phase or --downstream",
        ),
        (
            lambda: invalidate_entries(
                ID, key=None, phase="a b", downstream=None, as_json=False
            ),
            InvalidInput,
            "--phase 'a b'",
        ),
    ],
)
async def test_a_wrong_argument_is_refused_with_the_cure(
    command: Callable[[], Any],
    error: type[TaskloreError],
    words: str,
    stage: StoreStage,
) -> None:
    await fill(stage.cache)
    with pytest.raises(error, match=words):
        await command()
    assert len(await stage.cache.entries(ID)) == 3


async def test_a_running_session_is_neither_dropped_nor_swept(
    stage: StoreStage, printed: Callable[[], str]
) -> None:
    await fill(stage.cache)
    await stage.put_state("running", ID)
    await sweep_sessions(as_json=True)
    assert json.loads(printed())["swept"] == []
    with pytest.raises(InvalidInput, match="cancel it first"):
        await drop_session(ID, is_forced=False)
    await drop_session(ID, is_forced=True)
    assert printed() == f"Dropped {ID}.\n"
    assert await stage.cache.root(ID) is None
    await stage.cache.create(ID)
    await drop_session(ID, is_forced=False, as_json=True)
    assert json.loads(printed()) == {"session_id": ID, "dropped": True}


async def test_an_unreachable_store_is_named_with_the_cure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TASKLORE_REDIS_URL", "redis://127.0.0.1:1")
    with pytest.raises(Unreachable, match="tasklore up"):
        await print_sessions(None, 10, before=None, as_json=False)
