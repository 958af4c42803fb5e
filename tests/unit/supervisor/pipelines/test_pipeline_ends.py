"""What is recorded of a run that ended: in the history of its project and in its evidence."""

import json
from pathlib import Path
from typing import Any

from tasklore.memory.sessions.pipeline_records import PhaseState, phase_in
from tasklore.supervisor.pipelines.evidence import read_bundle, restore
from tests.unit.supervisor.pipelines.fake_system import (
    FakeSystem,
    a_phase,
    a_pipeline,
    echo,
    fail,
)


def a_failing_chain() -> Any:
    """Return three phases in a row of which the second fails."""
    two = a_phase("two", "fail", parameters={"x": "${one:results.x}"})
    three = a_phase("three", parameters={"x": "${two:results.x}"})
    return a_pipeline(a_phase("one", parameters={"x": 1}), two, three)


async def test_the_timeline_has_the_ends_of_earlier_runs(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo, fail=fail)
    await system.begin(a_failing_chain())
    await system.drive()
    await system.begin(a_failing_chain(), session_id="s2")
    await system.drive("s2")
    for _ in range(2):
        assert (await system.ask("resume")).kind == "accepted"
        await system.drive()
    timeline = read_bundle(system.evidence / "s1-failed.json")["timeline"]
    ends = [one["what"] for one in timeline if one["what"].startswith("run ")]
    assert [what[: len("run 1 ended: p: failed, 1 of 3")] for what in ends] == [
        "run 1 ended: p: failed, 1 of 3",
        "run 2 ended: p: failed, 1 of 3",
    ]
    assert "phase 'two' failed: OSError: disk full" in ends[0]
    assert [one["at"] for one in timeline] == sorted(one["at"] for one in timeline)


async def test_a_phase_that_never_began_is_not_stale_after_a_restore(
    tmp_path: Path,
) -> None:
    system = FakeSystem(tmp_path, echo=echo, fail=fail)
    await system.begin(a_failing_chain())
    await system.drive()
    await system.ask("resume")
    await system.drive()
    bundle = json.loads((system.evidence / "s1-failed.json").read_text())
    other = FakeSystem(tmp_path, echo=echo, fail=fail)
    await restore(bundle, other.runs, other.sessions, {}, supervisor_id="S")  # type: ignore[arg-type]
    record = await other.runs.read("s1")
    assert record is not None
    assert record.phases["three"] == PhaseState()
    await other.ask("resume")
    assert other.kinds("phase_stale") == [("phase_stale", "two")]


def test_unknown_fields_of_a_phase_are_ignored_and_missing_ones_have_defaults() -> None:
    assert phase_in(b'{"status":"done","run":2,"novelty":[1]}') == PhaseState("done", 2)
