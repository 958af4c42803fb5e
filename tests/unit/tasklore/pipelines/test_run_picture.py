"""Phases of a run as steps, and the printed end of a run."""

import dataclasses
import time
from typing import Any

import pytest

from tasklore.commands.exits import FAILED, OK
from tasklore.commands.pictures import run_cancelled, run_cost, stale
from tasklore.commands.pictures.run import rows_of
from tasklore.commands.pipelines.ends import print_end
from tasklore.commands.render.board import LineBoard
from tasklore.contracts.pipelines import Phase, Pipeline
from tasklore.memory.sessions.pipeline_records import PhaseState, RunRecord
from tasklore.supervisor.feed.runs import RunStanding
from tasklore.supervisor.operations.pipelines import view_run

PIPELINE = Pipeline(name="report", phases=(Phase(name="look", agent="A", task="t"),))


def _record(state: str = "running", **phases: PhaseState) -> RunRecord:
    return RunRecord(
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


def _view(
    record: RunRecord | None,
    outcome: dict[str, Any] | None = None,
    away: tuple[str, ...] = (),
) -> dict[str, Any]:
    """Return the run as the API sends it."""
    standing = RunStanding("report-1", record, outcome)
    view: dict[str, Any] = view_run(standing, away).model_dump(mode="json")
    return view


def _look(state: str = "running", **phases: PhaseState) -> dict[str, Any]:
    return _view(_record(state, **phases))


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
    steps = rows_of(look, {"one": "40%", "four": "gone"})
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
    record = dataclasses.replace(
        _record(look=late, next=next_, last=last),
        dependencies={"next": ("look",), "last": ("look", "next")},
    )
    notes = [("look", "late: next began without it"), ("next", ""), ("last", "")]
    phases = [
        {"phase": name, "status": "done", "late": record.lateness(name)}
        for name in record.phases
    ]
    outcome = {"state": "completed", "phases": phases}
    view = _view(record) if has_session else _view(None, outcome)
    assert [(one.name, one.note) for one in rows_of(view)] == notes


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
    [step] = rows_of(_view(None, outcome))
    assert (step.name, step.status, step.took_ms, step.note, step.run) == (
        "look",
        "failed",
        7,
        "GiveUp: no",
        2,
    )


def test_a_running_phase_without_a_worker_waits_for_one() -> None:
    begun = PhaseState("running", 1, "p-1", since_ms=1)
    done = PhaseState("done", 1, "p-2")
    away = _view(_record(look=begun, done=done), away=("A",))
    assert [(one.status, one.note) for one in rows_of(away, {"look": "50%"})] == [
        ("away", "waits for a worker of A"),
        ("done", ""),
    ]
    over = _view(_record("cancelled", look=begun), away=("A",))
    assert [one.status for one in rows_of(over)] == ["cancelled"]


def test_a_phase_is_reused_until_it_runs_again() -> None:
    reused = {("old", 1): 900}
    first = PhaseState("done", 1, "p-1", took_ms=900)
    again = PhaseState("done", 2, "p-2", took_ms=950)
    assert [one.status for one in rows_of(_look(old=first), {}, reused)] == ["reused"]
    assert [one.status for one in rows_of(_look(old=again), {}, reused)] == ["done"]


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
        shown.show(rows_of(look, progress, {("old", 1): 900}))
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
    assert "resume with: tasklore pipelines resume report-1\n" in printed
    assert printed.endswith(
        "correct the file? `tasklore pipelines resume report-1 --file FILE`\n"
    )


def test_an_estimate_has_a_line_for_each_phase_and_one_for_all() -> None:
    """A list of unknown length and a phase without a known cost are said below it."""
    phases = [
        {
            "phase": name,
            "task": f"{name}.do",
            "runs": runs,
            "mean_usd": usd,
            "largest_usd": usd,
            "fewest": fewest,
            "most": most,
        }
        for name, runs, usd, fewest, most in (
            ("plan", 1, 2.0, 1, 1),
            ("read", 2, 0.2, 1, None),
            ("polish", 2, 0.2, 1, 4),
            ("send", 0, None, 1, 1),
        )
    ]
    view = {"pipeline": "p", "mean_usd": 2.4, "largest_usd": 3.5, "phases": phases}
    lines = run_cost.draw(view).splitlines()
    assert [line.split() for line in lines[1:6]] == [
        ["plan", "plan.do", "1", "$2.00", "$2.00", "1"],
        ["read", "read.do", "for", "each", "item", "$0.20", "$0.20", "2"],
        ["polish", "polish.do", "1", "to", "4", "$0.20", "$0.20", "2"],
        ["send", "send.do", "1", "?", "?", "0"],
        ["in", "all", "$2.40", "$3.50"],
    ]
    assert lines[6].startswith("1 phase without a known cost: ")
    assert lines[7].startswith("A list whose length is not known ")
    known = dict(view, phases=phases[:1])
    assert len(run_cost.draw(known).splitlines()) == 3


def test_stale_phases_are_named_with_their_reasons() -> None:
    notes = [{"phase": "look", "why": "it was marked", "saved_ms": 0}]
    view = {"session_id": "report-1", "stale": notes}
    assert stale.draw(view).splitlines() == [
        "1 phase stale:",
        "  look  it was marked",
        "Run them again with: tasklore pipelines resume report-1",
    ]
    assert stale.draw(dict(view, stale=[])) == "That makes nothing more stale."


@pytest.mark.parametrize(
    ("state", "said", "code"),
    [
        ("cancelled", "report-1 is cancelled.", OK),
        ("running", "cancellation of report-1 requested", OK),
        ("completed", "report-1 had already ended: completed.", FAILED),
    ],
)
def test_a_cancellation_says_whether_it_came_in_time(
    state: str, said: str, code: int
) -> None:
    view = {"session_id": "report-1", "state": state}
    assert run_cancelled.draw(view).startswith(said)
    assert run_cancelled.code_of(view) == code


def test_a_cancellation_that_nobody_looked_at_is_on_its_way() -> None:
    """The view is then that of the request, which has no state."""
    view = {"session_id": "report-1", "text": ""}
    assert "cancellation of report-1 requested" in run_cancelled.draw(view)
    assert run_cancelled.code_of(view) == OK
