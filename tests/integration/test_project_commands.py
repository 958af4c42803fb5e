"""`tasklore project` on a real server: output, changes and refusals of each command."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.commands.exits import OK, USAGE
from tasklore.commands.project.files import add_record, export_records, import_records
from tasklore.commands.project.stores import PROJECT_VARIABLE
from tasklore.commands.project.views import (
    RecordFilter,
    print_found,
    print_projects,
    print_record,
)
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.projects.project import Kind, ProjectMemory

Printed = Callable[[], str]


pytestmark = pytest.mark.usefixtures("command_servers")


@pytest.fixture(autouse=True)
def _no_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PROJECT_VARIABLE, raising=False)


@pytest.fixture
def memory(redis: Redis) -> ProjectMemory:
    return ProjectMemory(redis, deadline_s=30.0)


def names_in(folder: Path) -> list[str]:
    """Return what lies in *folder*."""
    return sorted(file.name for file in folder.iterdir())


async def note(
    text: str, project: str | None = "shop", kind: Kind = "decision", **more: Any
) -> None:
    """Note *text* as a command does."""
    given = {"tags": (), "by": None, "supersedes": None, "as_json": False, **more}
    await add_record(project, kind, text, **given)


async def test_a_noted_record_is_printed_with_its_project(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """A new project is said to be new, once: it may be a mistyped one."""
    await note("tabs")
    first = capsys.readouterr()
    await note("spaces", supersedes="d1")
    second = capsys.readouterr()
    assert (first.out, second.out) == (
        "d1 in project shop\n",
        "d2 in project shop, in place of d1\n",
    )
    assert "project shop is new" in first.err
    assert second.err == ""
    await note(
        "Functions are short", kind="standard", tags=("size",), by="ana", as_json=True
    )
    document = json.loads(capsys.readouterr().out)
    words = [
        document[name] for name in ("project_id", "record_id", "kind", "tags", "by")
    ]
    assert words == ["shop", "s1", "standard", ["size"], "ana"]


async def test_the_only_project_or_that_of_the_environment_need_not_be_named(
    printed: Printed, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(
        InvalidInput, match=r"say which project, .* no project remembers anything yet"
    ):
        await note("x", project=None)
    await note("one")
    await note("two", project=None)
    await note("three", project="other")
    printed()
    with pytest.raises(
        InvalidInput, match=f"--project ID or {PROJECT_VARIABLE}; there are other, shop"
    ):
        await note("four", project=None)
    monkeypatch.setenv(PROJECT_VARIABLE, "shop")
    await print_found(None, RecordFilter(), 20, as_json=True)
    assert [one["text"] for one in json.loads(printed())] == ["two", "one"]


async def test_an_unknown_project_is_refused_with_the_known_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    await note("x")
    with pytest.raises(
        InvalidInput, match="--project 'shpo' remembers nothing; there is shop"
    ):
        await print_found("shpo", RecordFilter(), 20, as_json=False)
    monkeypatch.setenv(PROJECT_VARIABLE, "a b")
    with pytest.raises(InvalidInput, match=f"{PROJECT_VARIABLE} 'a b' must be"):
        await print_found(None, RecordFilter(), 20, as_json=False)


async def test_a_search_prints_a_line_for_each_record(
    capsys: pytest.CaptureFixture[str],
) -> None:
    await note("Prices in \x1b[2J cents\nalways", tags=("Money",), by="ana")
    await note("Prices in tenths", supersedes="d1")
    await note("something else", kind="history")
    capsys.readouterr()
    await print_found(None, RecordFilter(words="price"), 20, as_json=False)
    shown = capsys.readouterr()
    head, newer, older = shown.out.splitlines()
    assert head.split() == ["ID", "AGE", "BY", "TAGS", "TEXT"]
    assert newer.startswith("d2 ")
    assert newer.endswith("Prices in tenths")
    assert older.startswith("d1 ")
    assert older.endswith("ana  Money  (superseded by d2) Prices in [2J cents always")
    assert shown.err == ""


async def test_a_search_says_how_to_see_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for number in range(4):
        await note(f"number {number}")
    capsys.readouterr()
    await print_found(None, RecordFilter(words="number"), 3, as_json=False)
    assert "--before d2 shows the next" in capsys.readouterr().err
    await print_found(None, RecordFilter(words="number", before="d2"), 3, as_json=True)
    shown = capsys.readouterr()
    assert [one["record_id"] for one in json.loads(shown.out)] == ["d1"]
    assert shown.err == ""


async def test_a_search_heeds_every_option(printed: Printed) -> None:
    await note("cents", tags=("money",))
    await note("tenths", supersedes="d1")
    await note("short", kind="standard")
    printed()
    for options, ids in (
        (RecordFilter(), ["s1", "d2", "d1"]),
        (RecordFilter(in_force=True), ["s1", "d2"]),
        (RecordFilter(kind="standard"), ["s1"]),
        (RecordFilter(tags=("MONEY",)), ["d1"]),
        (RecordFilter(since="1h"), ["s1", "d2", "d1"]),
        (RecordFilter(since="2020-01-01", until="2020-01-02T00:00:00Z"), []),
    ):
        await print_found("shop", options, 20, as_json=True)
        assert [one["record_id"] for one in json.loads(printed())] == ids


async def test_a_wrong_option_or_record_is_refused_with_the_cure() -> None:
    await note("x")
    for options, message in (
        (RecordFilter(words="?!"), "has no word to look for"),
        (RecordFilter(kind="rumour"), "kind 'rumour'"),
        (RecordFilter(since="yesterday"), "--since 'yesterday' is no span"),
        (RecordFilter(until="soon"), "--until 'soon' is no span"),
        (RecordFilter(before="d9"), "before 'd9' is no record"),
    ):
        with pytest.raises(InvalidInput, match=message):
            await print_found("shop", options, 20, as_json=False)
    with pytest.raises(InvalidInput, match="project 'shop' has no record 'd7'"):
        await print_record("d7", None, as_json=False)
    with pytest.raises(
        InvalidInput, match="record id '7' must be a letter and a number"
    ):
        await print_record("7", None, as_json=False)


async def test_a_record_is_shown_with_its_chain(
    printed: Printed, memory: ProjectMemory
) -> None:
    await note("tabs", by="ana", tags=("style",))
    await memory.append(
        "shop",
        "decision",
        "spaces",
        supersedes="d1",
        data={"why": "diffs", "half": "\ud800"},
        session_id="run-1",
    )
    await memory.append("shop", "decision", "none", supersedes="d2")
    printed()
    await print_record("d2", None, as_json=False)
    shown = printed()
    assert shown.startswith("d2, a decision of project shop, superseded by d3\n")
    assert '"why": "diffs"' in shown
    assert "run-1" in shown
    chain = shown.partition("oldest first:\n")[2].splitlines()[1:]
    assert [line.split()[0] for line in chain] == ["d1", "d2", "d3"]
    await print_record("d2", "shop", as_json=True)
    assert [one["record_id"] for one in json.loads(printed())["chain"]] == [
        "d1",
        "d2",
        "d3",
    ]


async def test_projects_are_listed(printed: Printed) -> None:
    await print_projects(as_json=False)
    assert printed() == "No project remembers anything yet.\n"
    await note("x")
    await note("y", kind="standard", project="other")
    printed()
    await print_projects(as_json=False)
    rows = [line.split()[:4] for line in printed().splitlines()[1:]]
    assert rows == [["other", "0", "1", "0"], ["shop", "1", "0", "0"]]
    await print_projects(as_json=True)
    assert [one["project_id"] for one in json.loads(printed())] == ["other", "shop"]


async def test_an_exported_project_is_imported_whole_and_again_without_harm(
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    memory: ProjectMemory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    file = tmp_path / "shop.jsonl"
    await note("tabs ✓", by="ana", tags=("a b",))
    await memory.append(
        "shop", "decision", "spaces", supersedes="d1", data={"half": "\ud800"}
    )
    await export_records("shop", str(file), is_forced=False)
    assert len(file.read_bytes().splitlines()) == 2
    assert names_in(tmp_path) == [file.name]
    capfd.readouterr()
    assert await import_records("copy", str(file), as_json=False) == OK
    assert capfd.readouterr().out == "2 records added to project copy\n"
    assert await import_records("copy", str(file), as_json=True) == OK
    assert json.loads(capfd.readouterr().out) == {
        "project_id": "copy",
        "added": 0,
        "known": 2,
        "refused": [],
    }
    await export_records("shop", "-", is_forced=False)
    sys.stdout.flush()
    written = capfd.readouterr().out.encode()
    assert written == file.read_bytes()
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(written)))
    assert await import_records("third", "-", as_json=False) == OK
    projects = [
        [record async for record in memory.export(name)]
        for name in ("shop", "copy", "third")
    ]
    assert projects[0] == projects[1] == projects[2]


async def test_an_existing_file_is_only_written_over_by_force(tmp_path: Path) -> None:
    file = tmp_path / "shop.jsonl"
    file.write_text("mine")
    await note("x")
    with pytest.raises(InvalidInput, match="is there already; say --force"):
        await export_records("shop", str(file), is_forced=False)
    assert file.read_text() == "mine"
    await export_records("shop", str(file), is_forced=True)
    assert file.read_text() != "mine"
    with pytest.raises(InvalidInput, match="cannot be written"):
        await export_records(
            "shop", str(tmp_path / "none" / "shop.jsonl"), is_forced=False
        )
    assert names_in(tmp_path) == [file.name]


async def test_an_import_names_wrong_lines_and_adds_the_rest(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good = '{"record_id": "d1", "kind": "decision", "text": "x", "at": "2026-01-01T00:00:00Z"}'
    other = good.replace('"x"', '"y"')
    file = tmp_path / "odd.jsonl"
    file.write_text(
        "\n".join([good, "", "{", '{"record_id": "d2"}', other, *["[]"] * 12])
    )
    assert await import_records("copy", str(file), as_json=False) == USAGE
    shown = capsys.readouterr()
    assert shown.out == "1 record added to project copy\n"
    assert "line 3: is no JSON" in shown.err
    assert "line 4: " in shown.err
    assert "and 5 more were refused" in shown.err
    assert await import_records("copy", str(file), as_json=True) == USAGE
    report = json.loads(capsys.readouterr().out)
    assert (report["added"], report["known"], len(report["refused"])) == (0, 1, 15)
    assert (
        report["refused"][-1]["why"]
        == "another record is stored as 'd1'; load it into another project"
    )
    with pytest.raises(InvalidInput, match="cannot be read"):
        await import_records("copy", str(tmp_path / "missing"), as_json=False)
