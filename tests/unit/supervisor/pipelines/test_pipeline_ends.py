"""What is told of a run that ended, for good: in the history of its project and in its evidence."""

import json
from pathlib import Path
from typing import Any

import pytest

from memory.sessions.pipeline_records import PhaseState
from supervisor.pipelines.evidence import read_bundle, restore
from tests.unit.supervisor.pipelines.house import House, a_phase, a_pipeline, echo


def fail(_parameters: dict[str, Any]) -> Any:
    """Fail, whatever is asked."""
    raise OSError("disk full")


@pytest.mark.parametrize(("took_ms", "words"), [(1, "1 ms saved"), (999, "999 ms saved"), (1_999, "1.9 s saved")])
async def test_what_little_was_saved_is_not_told_as_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, took_ms: int, words: str
) -> None:
    """The history is permanent, and has to say the same as whoever shows the run."""
    monkeypatch.setattr("tests.unit.supervisor.pipelines.house.TOOK_MS", took_ms)
    house = House(tmp_path, echo=echo, fail=fail)
    await house.begin(a_failing_chain())
    await house.drive()
    assert (await house.ask("resume")).kind == "accepted"
    await house.drive()
    told = [record.text for record in await house.projects.search("p", kind="history")]
    assert [words in text for text in told].count(True) == 1, told


def a_failing_chain() -> Any:
    """Return three phases in a row of which the second fails."""
    two = a_phase("two", "fail", parameters={"x": "${one:results.x}"})
    three = a_phase("three", parameters={"x": "${two:results.x}"})
    return a_pipeline(a_phase("one", parameters={"x": 1}), two, three)


async def test_the_timeline_keeps_the_ends_of_the_runs_before(tmp_path: Path) -> None:
    """Each once, in order, and nothing of other sessions, though they share the project."""
    house = House(tmp_path, echo=echo, fail=fail)
    await house.begin(a_failing_chain())
    await house.drive()
    await house.begin(a_failing_chain(), session_id="s2")
    await house.drive("s2")
    for _ in range(2):
        assert (await house.ask("resume")).kind == "accepted"
        await house.drive()
    timeline = read_bundle(house.evidence / "s1-failed.json")["timeline"]
    ends = [one["what"] for one in timeline if one["what"].startswith("run ")]
    assert [what[: len("run 1 ended: p: failed, 1 of 3")] for what in ends] == [
        "run 1 ended: p: failed, 1 of 3",
        "run 2 ended: p: failed, 1 of 3",
    ]
    assert "phase 'two' failed: OSError: disk full" in ends[0]
    assert [one["at"] for one in timeline] == sorted(one["at"] for one in timeline)


async def test_what_never_began_is_no_staler_after_a_restore(tmp_path: Path) -> None:
    """Also when the run had gone on once, and failed again before it came to that."""
    house = House(tmp_path, echo=echo, fail=fail)
    await house.begin(a_failing_chain())
    await house.drive()
    await house.ask("resume")
    await house.drive()
    bundle = json.loads((house.evidence / "s1-failed.json").read_text())
    other = House(tmp_path, echo=echo, fail=fail)
    await restore(bundle, other.runs, other.sessions, {}, supervisor_id="S")  # type: ignore[arg-type]
    record = await other.runs.read("s1")
    assert record is not None
    assert record.phases["three"] == PhaseState()
    await other.ask("resume")
    assert other.kinds("phase_stale") == [("phase_stale", "two")]
