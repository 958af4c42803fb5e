"""What is typed at `tasklore pipeline`, before anything is asked of a server."""

import dataclasses
from pathlib import Path

import pytest
from pydantic import JsonValue

from contracts.errors import InvalidInput
from contracts.pipelines import Input, Phase, Pipeline
from memory.sessions.pipeline_records import PhaseState, RunRecord
from tasklore.pipeline.board import PlainBoard, lines_of, visible
from tasklore.pipeline.inputs import MAX_FILE, masked, read_inputs
from tasklore.pipeline.lines import PhaseLine, counted, phase_lines, took_text
from tasklore.pipeline.run import new_session_id
from tasklore.pipeline.stores import Look
from tasklore.pipeline.summary import tell_end

PIPELINE = Pipeline(
    name="report",
    inputs={
        "folder": Input(type="text"),
        "depth": Input(type="number", default=3),
        "deep": Input(type="flag", default=False),
        "tags": Input(type="list", default=[]),
        "rules": Input(type="object", default={}),
        "thing": Input(default=None),
        "token": Input(type="number", secret=True, default=0),
    },
    phases=(Phase(name="look", agent="A", task="t"),),
)


@pytest.mark.parametrize(
    ("typed", "value"),
    [
        ("folder=src", "src"),
        ("folder=3", "3"),
        ("folder=", ""),
        ("folder=a=b", "a=b"),
        ("folder=@@home", "@home"),
        ("depth=4", 4),
        ("depth=0.5", 0.5),
        ("deep=true", True),
        ('tags=["a"]', ["a"]),
        ('rules={"a": null}', {"a": None}),
        ("thing=4", 4),
        ("thing=null", None),
        ("thing=some words", "some words"),
    ],
)
def test_an_input_is_read_by_its_type(typed: str, value: JsonValue) -> None:
    """Text as it is, anything else as JSON."""
    name = typed.partition("=")[0]
    assert read_inputs(PIPELINE, [typed]) == {name: value}
    assert type(read_inputs(PIPELINE, [typed])[name]) is type(value)


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        (["folder"], r"'folder' has no '='; write NAME=VALUE, such as folder="),
        (["foldr=x"], r"--input foldr: .*no input 'foldr'.*folder"),
        (["zzz=x"], r"no input 'zzz'.*folder"),
        (["folder=a", "folder=b"], "folder is given twice"),
        (["depth=three"], r"--input depth: .*number written as JSON, not 'three'"),
        (["depth=true"], "must be a number"),
        (["depth=NaN"], "must be a number"),
        (["depth=" + "[" * 100_000], "must be a number"),
        (["deep=perhaps"], "true or false"),
        (["tags=a"], "must be a list"),
        (["rules=[]"], "must be an object"),
        (["folder=@nowhere.txt"], r"folder: 'nowhere.txt' cannot be read .*@@"),
        (["folder=@."], "folder: '.' cannot be read"),
        (["folder=\udc80"], "folder is no valid Unicode"),
        (['thing="\\ud800"'], "thing is no valid Unicode"),
    ],
)
def test_an_input_that_cannot_be_is_refused_by_its_name(typed: list[str], said: str) -> None:
    """With what to write instead."""
    with pytest.raises(InvalidInput, match=said):
        read_inputs(PIPELINE, typed)


def test_an_input_may_be_what_a_file_holds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Read by the same rules, without the mark that some editors put before it."""
    monkeypatch.chdir(tmp_path)
    Path("rules.json").write_bytes(b'\xef\xbb\xbf{"a": 1}\n')
    Path("big.txt").write_bytes(b"x" * (MAX_FILE + 1))
    Path("bytes.bin").write_bytes(b"\xff\xfe\xff")
    assert read_inputs(PIPELINE, ["rules=@rules.json"]) == {"rules": {"a": 1}}
    with pytest.raises(InvalidInput, match="larger than 512 KiB; give its path"):
        read_inputs(PIPELINE, ["folder=@big.txt"])
    with pytest.raises(InvalidInput, match="no text in UTF-8"):
        read_inputs(PIPELINE, ["folder=@bytes.bin"])


def test_a_secret_is_neither_shown_nor_repeated_in_an_error() -> None:
    """Wherever a run is shown."""
    assert masked(PIPELINE, {"token": 7, "folder": "src"}) == {"token": "***", "folder": "src"}
    with pytest.raises(InvalidInput, match="token") as refusal:
        read_inputs(PIPELINE, ["token=hunter2"])
    assert "hunter2" not in str(refusal.value)


def _look(state: str = "running", **phases: PhaseState) -> Look:
    """Return a run whose phases are so far."""
    record = RunRecord(
        "report-1", state, PIPELINE, {}, "S", None, "report", False, 1, phases, {}, {}, 1_000, 2_000  # type: ignore[arg-type] # a state
    )  # fmt: skip
    return Look("report-1", record, None)


@pytest.mark.parametrize(
    ("milliseconds", "said"),
    [
        (0, "0 ms"),
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (5_249, "5.2 s"),
        (59_999, "59.9 s"),
        (60_000, "1 min 00 s"),
        (3_599_999, "59 min 59 s"),
        (11_040_000, "3 h 04 min"),
    ],
)
def test_a_time_is_precise_enough_to_compare_phases(milliseconds: int, said: str) -> None:
    """And never says 60 of a unit."""
    assert took_text(milliseconds) == said


@pytest.mark.parametrize(("count", "said"), [(1, "1 entry"), (0, "0 entries"), (1_200, "1,200 entries")])
def test_what_is_counted_is_named_in_its_number(count: int, said: str) -> None:
    """As people write it."""
    assert counted(count, "entry") == said


def test_a_phase_tells_why_it_is_as_it_is() -> None:
    """Progress while it runs, the error when it failed, the reason when it was left out; nothing steers a terminal."""
    look = _look(
        one=PhaseState("running", 1, "p-1", since_ms=5_000),
        two=PhaseState("failed", 1, "p-2", took_ms=7, error_type="GiveUp", error="no\x1b[2J\nway"),
        three=PhaseState("skipped", why="its condition does not hold"),
        four=PhaseState("done", 1, "p-4", took_ms=1_500, attempts=2, memory="hit"),
        five=PhaseState(),
    )
    assert look.record is not None
    lines = phase_lines(look.record, {"one": "40%", "four": "gone"}, now_ms=8_000)
    assert [(line.status, line.took_ms, line.said) for line in lines] == [
        ("running", 3_000, "40%"),
        ("failed", 7, "GiveUp: no[2J way"),
        ("skipped", None, "its condition does not hold"),
        ("done", 1_500, "remembered, 2 runs"),
        ("pending", None, ""),
    ]


def test_each_change_is_one_line_where_nobody_looks(capsys: pytest.CaptureFixture[str]) -> None:
    """What waits, what is reused and what has not changed is not told."""
    shown = PlainBoard({("old", 1): 900})
    old = PhaseState("done", 1, "p-1", took_ms=900)
    begun = PhaseState("running", 1, "p-2", since_ms=1)
    for look, told in (
        (_look(old=old, new=PhaseState()), {}),
        (_look(old=old, new=begun), {}),
        (_look(old=old, new=begun), {}),
        (_look(old=old, new=begun), {"new": "50% half"}),
        (_look(old=old, new=PhaseState("done", 1, "p-2", took_ms=20)), {}),
    ):
        shown.show(look, told)
    assert [line.split() for line in capsys.readouterr().err.splitlines()] == [
        ["new", "running"],
        ["new", "running", "50%", "half"],
        ["new", "done", "20", "ms"],
    ]


def test_a_phase_without_a_worker_waits_for_one() -> None:
    """Rather than saying that it runs; once the run is over it does neither."""
    begun = PhaseState("running", 1, "p-1", since_ms=1)
    away = dataclasses.replace(_look(look=begun, done=PhaseState("done", 1, "p-2")), away=frozenset({"A"}))
    lines = lines_of(away, {"look": "50%"})
    assert [(line.status, line.said) for line in lines] == [("away", "waits for a worker of A"), ("done", "")]
    assert lines[0].plain(4).split()[:2] == ["look", "waiting"]
    over = dataclasses.replace(_look("cancelled", look=begun), away=frozenset({"A"}))
    assert [line.status for line in lines_of(over, {})] == ["cancelled"]


def test_what_waits_for_a_worker_is_counted_with_what_waits() -> None:
    """By one word."""
    lines = [PhaseLine("p", status) for status in ("failed", "away", "pending", "pending")]
    assert visible(lines, 2)[1] == "3 more phases: 3 waiting"


def test_what_is_reused_counts_as_such_until_it_runs_again() -> None:
    """An entry may turn out to be gone while the others run."""
    reused = {("old", 1): 900}
    first, again = PhaseState("done", 1, "p-1", took_ms=900), PhaseState("done", 2, "p-2", took_ms=950)
    assert [line.status for line in lines_of(_look(old=first), {}, reused)] == ["reused"]
    assert [line.status for line in lines_of(_look(old=again), {}, reused)] == ["done"]


def test_more_phases_than_lines_show_those_in_which_something_happens() -> None:
    """The others are counted."""
    statuses = ["done"] * 20 + ["failed", "running"] + ["pending"] * 30
    lines = [PhaseLine(f"p{number}", status) for number, status in enumerate(statuses)]
    shown, said = visible(lines, 10)
    assert [line.status for line in shown] == ["failed", "running", *["pending"] * 7]
    assert said == "43 more phases: 23 waiting, 20 done"
    assert visible(lines, 100) == (lines, "")


def test_an_end_of_which_nothing_is_known_any_more_is_an_end(capsys: pytest.CaptureFixture[str]) -> None:
    """The session outlives what is told of its end."""
    assert tell_end(_look("failed", one=PhaseState("failed", 1, error="x")), as_json=False) == 1
    told = capsys.readouterr().err
    assert "go on with: tasklore pipeline resume report-1\n" in told
    assert told.endswith("correct the file? `tasklore pipeline resume report-1 --file FILE`\n")


def test_a_session_is_called_after_its_pipeline() -> None:
    """Short enough for an id, however long that name is, and never twice the same."""
    ids = {new_session_id("p" * 64) for _ in range(100)}
    assert len(ids) == 100
    assert {len(one) for one in ids} == {59}
    assert new_session_id("report").startswith("report-")
