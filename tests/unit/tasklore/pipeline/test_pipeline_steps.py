"""Phases of a run as steps, and the printed end of a run."""

import dataclasses
import time

import pytest

from tasklore.commands.pipeline.run import print_end
from tasklore.commands.pipeline.steps import steps_of
from tasklore.commands.pipeline.stores import Look
from tasklore.commands.render.board import LineBoard
from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.memory.sessions.pipeline_records import PhaseState, RunRecord

PIPELINE = Pipeline(name="report", phases=(Phase(name="look", agent="A", task="t"),))


def _look(state: str = "running", **phases: PhaseState) -> Look:
    record = RunRecord(
        session_id="report-1",
        state=state,  # type: ignore[arg-type] # a state
        pipeline=PIPELINE,
        inputs={},
        supervisor_id="S",
        user_id=None,
        project="report",
        keep=False,
        run=1,
        phases=phases,
        dependencies={},
        corrected={},
        created_ms=1_000,
        updated_ms=2_000,
    )
    return Look("report-1", record, None)


def test_a_step_explains_the_status_of_its_phase() -> None:
    look = _look(
        one=PhaseState(
            "running", 1, "p-1", since_ms=time.time_ns() // 1_000_000 - 3_000
        ),
        two=PhaseState(
            "failed", 1, "p-2", took_ms=7, error_type="GiveUp", error="no\x1b[2J\nway"
        ),
        three=PhaseState("skipped", why="its condition does not hold"),
        four=PhaseState("done", 1, "p-4", took_ms=1_500, attempts=2, memory="hit"),
        five=PhaseState(),
    )
    steps = steps_of(look, {"one": "40%", "four": "gone"})
    assert [(one.status, one.note) for one in steps] == [
        ("running", "40%"),
        ("failed", "GiveUp: no[2J way"),
        ("skipped", "its condition does not hold"),
        ("done", "remembered, 2 runs"),
        ("pending", ""),
    ]
    assert [one.took_ms for one in steps[1:]] == [7, None, 1_500, None]
    assert 3_000 <= (steps[0].took_ms or 0) < 60_000


@pytest.mark.parametrize("has_session", [True, False])
def test_a_step_names_phases_that_began_without_it(has_session: bool) -> None:
    late = PhaseState("done", 1, "p-1", since_ms=1_000, late_ms=2_000, ended_ms=5_000)
    next_, last = (PhaseState("done", 1, "p", since_ms=at) for at in (2_010, 5_010))
    look = _look(look=late, next=next_, last=last)
    assert look.record is not None
    record = dataclasses.replace(
        look.record, dependencies={"next": ("look",), "last": ("look", "next")}
    )
    notes = [("look", "late: next began without it"), ("next", ""), ("last", "")]
    phases = [
        {"phase": name, "status": "done", "late": record.lateness(name)}
        for name in record.phases
    ]
    look = (
        Look("report-1", record, None)
        if has_session
        else Look("report-1", None, {"phases": phases})
    )
    assert [(one.name, one.note) for one in steps_of(look)] == notes


def test_steps_come_from_the_outcome_without_a_session() -> None:
    phase = {
        "phase": "look",
        "agent": "A",
        "status": "failed",
        "run": 2,
        "took_ms": 7,
        "saved_ms": 0,
        "attempts": 1,
    }
    outcome = {
        "state": "failed",
        "phases": [
            {**phase, "memory": "", "why": "", "error_type": "GiveUp", "error": "no"}
        ],
    }
    [step] = steps_of(Look("report-1", None, outcome))
    assert (step.name, step.status, step.took_ms, step.note, step.run) == (
        "look",
        "failed",
        7,
        "GiveUp: no",
        2,
    )


def test_a_running_phase_without_a_worker_waits_for_one() -> None:
    begun = PhaseState("running", 1, "p-1", since_ms=1)
    away = dataclasses.replace(
        _look(look=begun, done=PhaseState("done", 1, "p-2")), away=frozenset({"A"})
    )
    assert [(one.status, one.note) for one in steps_of(away, {"look": "50%"})] == [
        ("away", "waits for a worker of A"),
        ("done", ""),
    ]
    over = dataclasses.replace(_look("cancelled", look=begun), away=frozenset({"A"}))
    assert [one.status for one in steps_of(over)] == ["cancelled"]


def test_a_phase_is_reused_until_it_runs_again() -> None:
    reused = {("old", 1): 900}
    first = PhaseState("done", 1, "p-1", took_ms=900)
    again = PhaseState("done", 2, "p-2", took_ms=950)
    assert [one.status for one in steps_of(_look(old=first), {}, reused)] == ["reused"]
    assert [one.status for one in steps_of(_look(old=again), {}, reused)] == ["done"]


def test_each_change_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    shown = LineBoard()
    old = PhaseState("done", 1, "p-1", took_ms=900)
    begun = PhaseState("running", 1, "p-2", since_ms=1)
    for look, progress in (
        (_look(old=old, new=PhaseState()), {}),
        (_look(old=old, new=begun), {}),
        (_look(old=old, new=begun), {}),
        (_look(old=old, new=begun), {"new": "50% half"}),
        (_look(old=old, new=PhaseState("done", 1, "p-2", took_ms=20)), {}),
    ):
        shown.show(steps_of(look, progress, {("old", 1): 900}))
    assert [line.split() for line in capsys.readouterr().err.splitlines()] == [
        ["new", "running"],
        ["new", "running", "50%", "half"],
        ["new", "done", "20", "ms"],
    ]


def test_the_end_of_a_run_is_printed_without_its_outcome(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert (
        print_end(
            _look("failed", one=PhaseState("failed", 1, error="x")), as_json=False
        )
        == 1
    )
    printed = capsys.readouterr().err
    assert "go on with: tasklore pipeline resume report-1\n" in printed
    assert printed.endswith(
        "correct the file? `tasklore pipeline resume report-1 --file FILE`\n"
    )
