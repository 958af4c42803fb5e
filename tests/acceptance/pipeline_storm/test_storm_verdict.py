"""The judge of the storm is judged: moments cover everything, and each broken promise is found."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest

from tasklore.memory.sessions.pipeline_records import PhaseState, RunRecord
from tasklore.memory.sessions.session import EntryInfo, SessionStats
from tests.acceptance.pipeline_storm import work
from tests.acceptance.pipeline_storm.moments import plan
from tests.acceptance.pipeline_storm.nine_phases import CORRECTION, PHASES, PIPELINE
from tests.acceptance.pipeline_storm.oracle import hits_of
from tests.acceptance.pipeline_storm.stage import Execution
from tests.acceptance.pipeline_storm.strikes import Blow, Struck
from tests.acceptance.pipeline_storm.verdict import Found, judge

#: Of the worker that is killed, and of another one.
VICTIM = 11
OTHER = 12
NUMBER = 3
RESULT = work.expected(NUMBER)
#: What each phase took, in ms.
TOOK_MS = 40


def test_a_hundred_moments_are_every_boundary_and_every_phase() -> None:
    """For worker and supervisor, twice; nothing is corrected of an even number, so that phase gets an odd one."""
    runs = plan(100, seed=1)
    kinds = Counter(
        (run.victim, run.moment.place, run.moment.step)
        for run in runs
        if run.moment.place != "any"
    )
    assert set(kinds) == {
        (victim, place, phase)
        for victim in ("worker", "supervisor")
        for place, phases in (("inside", PHASES), ("after", (None, *PHASES)))
        for phase in phases
    }
    assert min(kinds.values()) >= 2
    assert all(run.number % 2 for run in runs if run.moment.step == CORRECTION)
    assert plan(100, seed=1) == runs != plan(100, seed=2)


def test_uses_after_a_correction_are_of_what_replaced_it() -> None:
    hits = hits_of(PIPELINE, set(), {"implementation_pass_1": CORRECTION})
    assert (hits["implementation_pass_1:results"], hits[f"{CORRECTION}:results"]) == (
        2,
        3,
    )
    without = hits_of(PIPELINE, {CORRECTION}, {})
    assert (
        without["implementation_pass_1:results"],
        without["standards_enforcement:violations"],
    ) == (4, 2)


def test_a_run_as_promised_has_no_problem() -> None:
    verdict = judge(struck(), found(), RESULT)
    assert verdict.problems == ()
    assert verdict.again == ()


def test_what_was_cut_short_runs_again() -> None:
    cut = Execution("analysis", "t-analysis", VICTIM, 2.0, None)
    again = Execution("analysis", "t-analysis", OTHER, 4.0, 4.1)
    hit = struck(replacing=[cut, again])
    assert judge(hit, found(reported={"t-analysis": 5.0}), RESULT).problems == ()
    assert judge(hit, found(reported={"t-analysis": 5.0}), RESULT).again == (
        "analysis",
    )
    assert judge(
        struck(replacing=[cut]), found(reported={"t-analysis": 5.0}), RESULT
    ).problems
    thrice = struck(replacing=[cut, again, replace(again, started_at=6.0)])
    assert judge(thrice, found(reported={"t-analysis": 5.0}), RESULT).problems


def test_what_ended_before_its_worker_was_killed_may_run_again_or_not() -> None:
    ended = Execution("analysis", "t-analysis", VICTIM, 2.0, 2.5)
    again = Execution("analysis", "t-analysis", OTHER, 4.0, 4.1)
    late = found(reported={"t-analysis": 5.0})
    assert judge(struck(replacing=[ended]), late, RESULT).problems == ()
    assert judge(struck(replacing=[ended, again]), late, RESULT).problems == ()


def test_a_phase_that_was_reported_and_ran_again_is_found() -> None:
    twice = [
        Execution("analysis", "t-analysis", pid, at, at + 0.1)
        for pid, at in ((VICTIM, 1.0), (OTHER, 4.0))
    ]
    problems = judge(struck(replacing=twice), found(), RESULT).problems
    assert problems == ("analysis started 2 times, right are 1 to 1",)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"stats": replace(SessionStats(), total_hits=13)}, "total_hits is 13"),
        ({"waiting_tasks": 1}, "1 tasks are left"),
        ({"drives_nothing": False}, "0 tasks are left"),
    ],
)
def test_whatever_is_left_or_counted_wrong_is_found(
    change: dict[str, object], words: str
) -> None:
    problems = judge(struck(), replace(found(), **change), RESULT).problems  # type: ignore[arg-type] # any field
    assert any(words in problem for problem in problems)


def test_an_entry_that_was_used_once_too_often_is_found() -> None:
    right = found()
    wrong = [
        replace(entry, hits=entry.hits + 1)
        if entry.key == "planning:results"
        else entry
        for entry in right.entries
    ]
    problems = judge(struck(), replace(right, entries=wrong), RESULT).problems
    assert problems == ("planning:results has 3 hits, not 2",)


def test_another_result_is_found() -> None:
    other = {**RESULT, "total": 0}
    problems = judge(
        replace(struck(), outcome={**struck().outcome, "result": other}),
        found(),
        RESULT,
    ).problems
    assert len(problems) == 2


def struck(replacing: Iterable[Execution] = ()) -> Struck:
    """Return a run whose first worker was killed at second 3; *replacing* are other executions of their phases."""
    given = list(replacing)
    usual = [
        Execution(phase, f"t-{phase}", VICTIM, 1.0, 1.1)
        for phase in PHASES
        if phase not in {execution.phase for execution in given}
    ]
    stats = found().stats
    told = {
        "total_hits": stats.total_hits,
        "total_saved_time_ms": stats.total_saved_time_ms,
    }
    outcome = {"state": "completed", "result": RESULT, "stats": told}
    return Struck("run", NUMBER, Blow(VICTIM, 3.0), outcome, [*usual, *given], 1.0)


def found(reported: dict[str, float] | None = None) -> Found:
    """Return what is left of a run as it should be; each report was stored at second 2 unless *reported* says other."""
    hits = hits_of(PIPELINE, set(), {"implementation_pass_1": CORRECTION})
    entries = [
        _entry(phase.name, name, hits[f"{phase.name}:{name}"], TOOK_MS)
        for phase in PIPELINE.phases
        for name in phase.writes
    ]
    record = RunRecord(
        session_id="run",
        state="completed",
        pipeline=PIPELINE,
        inputs={"number": NUMBER},
        supervisor_id="storm",
        user_id=None,
        project="nine_phases",
        keep=True,
        run=1,
        phases={
            phase: PhaseState("done", 1, f"t-{phase}", took_ms=TOOK_MS)
            for phase in PHASES
        },
        dependencies={},
        corrected={"implementation_pass_1": CORRECTION},
        created_ms=1,
        updated_ms=1,
    )
    stats = SessionStats(total_hits=sum(entry.hits for entry in entries))
    stored: dict[str, float | None] = {f"t-{phase}": 2.0 for phase in PHASES}
    return Found(
        record, entries, stats, {**stored, **(reported or {})}, 0, drives_nothing=True
    )


def _entry(phase: str, name: str, hits: int, took_ms: int) -> EntryInfo:
    return EntryInfo(
        key=f"{phase}:{name}",
        phase=phase,
        data_type=name,
        identifier=None,
        created_ms=1,
        expires_ms=None,
        ttl_ms=None,
        computation_ms=took_ms,
        agent="StormPhases",
        hits=hits,
        bytes=1,
        stored_bytes=1,
    )
