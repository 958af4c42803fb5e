"""`tasklore project` against a real server: what each command prints, notes and refuses, and who is forgotten."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from redis.asyncio import Redis

from contracts.errors import InvalidInput
from memory.projects.project import Kind, ProjectMemory
from runtime.servers.embedded import EmbeddedServers
from tasklore.exits import OK, USAGE
from tasklore.project.files import add_record, export_records, import_records
from tasklore.project.stores import PROJECT_VARIABLE
from tasklore.project.views import RecordFilter, print_found, print_projects, print_record

Printed = Callable[[], str]


@pytest.fixture(autouse=True)
def _place(servers: EmbeddedServers, redis: Redis, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the commands find the servers of the tests, with an empty store, and no project named."""
    monkeypatch.setenv("TASKLORE_NATS_URL", servers.nats_url)
    monkeypatch.setenv("TASKLORE_REDIS_URL", servers.redis_url)
    monkeypatch.delenv(PROJECT_VARIABLE, raising=False)


@pytest.fixture
def memory(redis: Redis) -> ProjectMemory:
    """Return the store that the commands look into."""
    return ProjectMemory(redis, deadline_s=30.0)


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    """Return what returns what was printed since it was last called."""
    return lambda: capsys.readouterr().out


def names_in(folder: Path) -> list[str]:
    """Return what lies in *folder*."""
    return sorted(file.name for file in folder.iterdir())


async def noted(text: str, project: str | None = "shop", kind: Kind = "decision", **more: Any) -> None:
    """Note *text* as a command does."""
    given = {"tags": (), "by": None, "supersedes": None, "as_json": False, **more}
    await add_record(project, kind, text, **given)


async def test_what_is_noted_is_told_with_its_project(capsys: pytest.CaptureFixture[str]) -> None:
    """A new project is said to be one, once: it may be a mistyped one."""
    await noted("tabs")
    first = capsys.readouterr()
    await noted("spaces", supersedes="d1")
    second = capsys.readouterr()
    assert (first.out, second.out) == ("d1 in project shop\n", "d2 in project shop, in place of d1\n")
    assert "project shop is new" in first.err
    assert second.err == ""


async def test_what_is_noted_is_printed_for_programs(printed: Printed) -> None:
    """With everything that is known of it."""
    await noted("Functions are short", kind="standard", tags=("size",), by="ana", as_json=True)
    document = json.loads(printed())
    assert {name: document[name] for name in ("project_id", "record_id", "kind", "tags", "by")} == {
        "project_id": "shop",
        "record_id": "s1",
        "kind": "standard",
        "tags": ["size"],
        "by": "ana",
    }


async def test_the_only_project_need_not_be_named(printed: Printed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor the one in the environment; of several one has to be."""
    with pytest.raises(InvalidInput, match=r"say which project, .* no project remembers anything yet"):
        await noted("x", project=None)
    await noted("one")
    await noted("two", project=None)
    await noted("three", project="other")
    printed()
    with pytest.raises(InvalidInput, match=f"--project ID or {PROJECT_VARIABLE}; there are other, shop"):
        await noted("four", project=None)
    monkeypatch.setenv(PROJECT_VARIABLE, "shop")
    await print_found(None, RecordFilter(), 20, as_json=True)
    assert [one["text"] for one in json.loads(printed())] == ["two", "one"]


async def test_a_project_that_is_not_there_is_not_looked_into(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names those there are, and what was mistyped."""
    await noted("x")
    with pytest.raises(InvalidInput, match="--project 'shpo' remembers nothing; there is shop"):
        await print_found("shpo", RecordFilter(), 20, as_json=False)
    monkeypatch.setenv(PROJECT_VARIABLE, "a b")
    with pytest.raises(InvalidInput, match=f"{PROJECT_VARIABLE} 'a b' must be"):
        await print_found(None, RecordFilter(), 20, as_json=False)


async def test_a_search_prints_a_line_for_each_record(capsys: pytest.CaptureFixture[str]) -> None:
    """The newest first; what was superseded is marked, and what would steer a terminal is left out."""
    await noted("Prices in \x1b[2J cents\nalways", tags=("Money",), by="ana")
    await noted("Prices in tenths", supersedes="d1")
    await noted("something else", kind="history")
    capsys.readouterr()
    await print_found(None, RecordFilter("price"), 20, as_json=False)
    told = capsys.readouterr()
    head, newer, older = told.out.splitlines()
    assert head.split() == ["ID", "AGE", "BY", "TAGS", "TEXT"]
    assert newer.startswith("d2 ")
    assert newer.endswith("Prices in tenths")
    assert older.startswith("d1 ")
    assert older.endswith("ana  Money  (superseded by d2) Prices in [2J cents always")
    assert told.err == ""


async def test_a_search_says_that_there_is_more(capsys: pytest.CaptureFixture[str]) -> None:
    """And how to see it."""
    for number in range(4):
        await noted(f"number {number}")
    capsys.readouterr()
    await print_found(None, RecordFilter("number"), 3, as_json=False)
    assert "--before d2 shows the next" in capsys.readouterr().err
    await print_found(None, RecordFilter("number", before="d2"), 3, as_json=True)
    told = capsys.readouterr()
    assert [one["record_id"] for one in json.loads(told.out)] == ["d1"]
    assert told.err == ""


@pytest.mark.parametrize(
    ("wish", "ids"),
    [
        (RecordFilter(), ["s1", "d2", "d1"]),
        (RecordFilter(in_force=True), ["s1", "d2"]),
        (RecordFilter(kind="standard"), ["s1"]),
        (RecordFilter(tags=("MONEY",)), ["d1"]),
        (RecordFilter(since="1h"), ["s1", "d2", "d1"]),
        (RecordFilter(until="1h"), []),
        (RecordFilter(since="2020-01-01", until="2020-01-02T00:00:00Z"), []),
    ],
)
async def test_a_search_heeds_every_option(printed: Printed, wish: RecordFilter, ids: list[str]) -> None:
    """Each narrows it."""
    await noted("cents", tags=("money",))
    await noted("tenths", supersedes="d1")
    await noted("short", kind="standard")
    printed()
    await print_found("shop", wish, 20, as_json=True)
    assert [one["record_id"] for one in json.loads(printed())] == ids


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        (RecordFilter("?!"), "has no word to look for"),
        (RecordFilter(kind="rumour"), "kind 'rumour'"),
        (RecordFilter(since="yesterday"), "--since 'yesterday' is no span"),
        (RecordFilter(until="soon"), "--until 'soon' is no span"),
        (RecordFilter(before="d9"), "before 'd9' is no record"),
    ],
)
async def test_a_search_that_makes_no_sense_is_refused(wish: RecordFilter, message: str) -> None:
    """With what would make some."""
    await noted("x")
    with pytest.raises(InvalidInput, match=message):
        await print_found("shop", wish, 20, as_json=False)


async def test_a_record_is_shown_with_its_chain(printed: Printed, memory: ProjectMemory) -> None:
    """All that is known of it, its data as JSON."""
    await noted("tabs", by="ana", tags=("style",))
    await memory.append("shop", "decision", "spaces", supersedes="d1", data={"why": "diffs"}, session_id="run-1")
    await memory.append("shop", "decision", "none", supersedes="d2")
    printed()
    await print_record("d2", None, as_json=False)
    told = printed()
    assert told.startswith("d2, a decision of project shop, superseded by d3\n")
    assert '"why": "diffs"' in told
    assert "run-1" in told
    chain = told.partition("oldest first:\n")[2].splitlines()[1:]
    assert [line.split()[0] for line in chain] == ["d1", "d2", "d3"]
    await print_record("d2", "shop", as_json=True)
    assert [one["record_id"] for one in json.loads(printed())["chain"]] == ["d1", "d2", "d3"]


async def test_half_a_letter_in_the_data_of_an_agent_is_escaped(printed: Printed, memory: ProjectMemory) -> None:
    """It is no reason not to show the rest."""
    await memory.append("shop", "history", "a run", data={"half": "\ud800"})
    for as_json in (True, False):
        await print_found("shop", RecordFilter(), 20, as_json=as_json)
        await print_record("h1", "shop", as_json=as_json)
        assert "a run" in printed()
    await export_records("shop", "-", is_forced=False)


async def test_a_record_that_is_not_there_is_said_to_be_none() -> None:
    """And so is what can be no id."""
    await noted("x")
    with pytest.raises(InvalidInput, match="project 'shop' has no record 'd7'"):
        await print_record("d7", None, as_json=False)
    with pytest.raises(InvalidInput, match="record id '7' must be a letter and a number"):
        await print_record("7", None, as_json=False)


async def test_projects_are_listed(printed: Printed) -> None:
    """With how much each remembers."""
    await print_projects(as_json=False)
    assert printed() == "No project remembers anything yet.\n"
    await noted("x")
    await noted("y", kind="standard", project="other")
    printed()
    await print_projects(as_json=False)
    assert [line.split()[:4] for line in printed().splitlines()[1:]] == [
        ["other", "0", "1", "0"],
        ["shop", "1", "0", "0"],
    ]
    await print_projects(as_json=True)
    assert [one["project_id"] for one in json.loads(printed())] == ["other", "shop"]


async def test_a_file_takes_a_project_somewhere_else(tmp_path: Path, printed: Printed, memory: ProjectMemory) -> None:
    """Whole, and again without harm."""
    file = tmp_path / "shop.jsonl"
    await noted("tabs ✓", by="ana", tags=("a b",))
    await noted("spaces", supersedes="d1")
    await export_records("shop", str(file), is_forced=False)
    assert len(file.read_bytes().splitlines()) == 2
    assert names_in(tmp_path) == [file.name]
    printed()
    assert await import_records("copy", str(file), as_json=False) == OK
    assert printed() == "2 records added to project copy\n"
    assert await import_records("copy", str(file), as_json=True) == OK
    assert json.loads(printed()) == {"project_id": "copy", "added": 0, "known": 2, "refused": []}
    both = [[record async for record in memory.export(name)] for name in ("shop", "copy")]
    assert both[0] == both[1]


async def test_a_file_that_is_there_is_not_written_over(tmp_path: Path) -> None:
    """Unless that is said; nor is one begun that cannot be finished."""
    file = tmp_path / "shop.jsonl"
    file.write_text("mine")
    await noted("x")
    with pytest.raises(InvalidInput, match="is there already; say --force"):
        await export_records("shop", str(file), is_forced=False)
    assert file.read_text() == "mine"
    await export_records("shop", str(file), is_forced=True)
    assert file.read_text() != "mine"
    with pytest.raises(InvalidInput, match="cannot be written"):
        await export_records("shop", str(tmp_path / "none" / "shop.jsonl"), is_forced=False)
    assert names_in(tmp_path) == [file.name]


async def test_stdout_and_stdin_are_files_too(
    capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under the name of a dash."""
    await noted("x")
    capfdbinary.readouterr()
    await export_records("shop", "-", is_forced=False)
    sys.stdout.flush()
    written = capfdbinary.readouterr().out
    assert json.loads(written)["text"] == "x"
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(written)))
    assert await import_records("copy", "-", as_json=False) == OK


async def test_lines_that_are_no_records_are_named_and_the_rest_is_added(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The code says that something was refused."""
    good = '{"record_id": "d1", "kind": "decision", "text": "x", "at": "2026-01-01T00:00:00Z"}'
    other = good.replace('"x"', '"y"')
    file = tmp_path / "odd.jsonl"
    file.write_text("\n".join([good, "", "{", '{"record_id": "d2"}', other, *["[]"] * 12]))
    assert await import_records("copy", str(file), as_json=False) == USAGE
    told = capsys.readouterr()
    assert told.out == "1 record added to project copy\n"
    assert "line 3: is no JSON" in told.err
    assert "line 4: " in told.err
    assert "and 5 more were refused" in told.err
    assert await import_records("copy", str(file), as_json=True) == USAGE
    report = json.loads(capsys.readouterr().out)
    assert (report["added"], report["known"], len(report["refused"])) == (0, 1, 15)
    assert report["refused"][-1] == {
        "record_id": "d1",
        "why": "another record is stored as 'd1'; load it into another project",
    }
    with pytest.raises(InvalidInput, match="cannot be read"):
        await import_records("copy", str(tmp_path / "missing"), as_json=False)
