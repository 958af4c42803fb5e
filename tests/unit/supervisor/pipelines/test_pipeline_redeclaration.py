"""Runs that go on by a corrected declaration: what of them still holds, what runs again, and what is refused."""

from pathlib import Path
from typing import Any

import pytest

from contracts.pipelines import Input, Phase, Pipeline
from memory.sessions.pipeline_records import PhaseState, RunRecord
from supervisor.pipelines.resumption import redeclare
from tests.unit.supervisor.pipelines.house import House, a_phase, a_pipeline, echo


def fail(_parameters: dict[str, Any]) -> Any:
    """Fail, whatever is asked."""
    raise OSError("disk full")


def a_declaration(**changes: dict[str, Any]) -> Pipeline:
    """Return four phases in a row but for "side"; *changes* are fields of phases by their names."""
    told: dict[str, dict[str, Any]] = {
        "look": {"parameters": {"x": "${input.x}"}},
        "side": {"parameters": {"x": 2}},
        "build": {"task": "fail", "parameters": {"x": "${look:results.x}"}},
        "report": {"parameters": {"a": "${build:results.x}", "b": "${side:results.x?}"}},
    }
    phases = [a_phase(name, **(fields | changes.get(name, {}))) for name, fields in told.items()]
    return a_pipeline(*phases, inputs={"x": Input(default=1)})


MENDED: dict[str, Any] = {"task": "echo"}


async def a_failed_run(folder: Path, pipeline: Pipeline | None = None, **told: Any) -> House:
    """Return a run whose phase "build" failed."""
    house = House(folder, echo=echo, fail=fail)
    await house.begin(pipeline or a_declaration(), keep=True, **told)
    await house.drive()
    assert (await the(house)).state == "failed"
    house.told.clear()
    house.office.runs.clear()
    return house


async def the(house: House) -> RunRecord:
    """Return the run as it is kept."""
    record = await house.runs.read("s1")
    assert record is not None
    return record


async def test_a_corrected_phase_runs_and_the_rest_is_reused(tmp_path: Path) -> None:
    """It is what failed that was mended; the reason says so, and the new declaration is what is kept."""
    house = await a_failed_run(tmp_path)
    mended = a_declaration(build=MENDED)
    reply = await house.ask("resume", pipeline=mended)
    assert {one.phase: one.why for one in reply.stale} == {
        "build": "its declaration changed",
        "report": "it had not begun",
    }
    assert [one.phase for one in reply.reused] == ["look", "side"]
    assert (await the(house)).pipeline == mended
    await house.drive()
    assert house.office.runs == {"build": 1, "report": 1}
    record = await the(house)
    assert (record.state, record.pipeline) == ("completed", mended)


async def test_what_was_done_by_another_declaration_is_done_again(tmp_path: Path) -> None:
    """With all that depends on it; what does not is reused."""
    house = await a_failed_run(tmp_path)
    reply = await house.ask("resume", pipeline=a_declaration(look={"parameters": {"x": 7}}, build=MENDED))
    assert {one.phase: one.why for one in reply.stale}["look"] == "its declaration changed"
    await house.drive()
    assert house.office.runs == {"look": 1, "build": 1, "report": 1}
    assert house.office.assigned[-1].task.parameters == {"a": 7, "b": 2}


@pytest.mark.parametrize(
    "change",
    [
        {"task": "fail"}, {"parameters": {"x": 3}}, {"reads": ("look:results",)}, {"writes": ("results", "x")},
        {"when": "${input.x} == 1"}, {"after": ("look",)}, {"standards": ("style",)}, {"design": ("colours",)},
    ],
)  # fmt: skip
async def test_whatever_a_result_may_rest_on_makes_it_stale(tmp_path: Path, change: dict[str, Any]) -> None:
    """One field is enough."""
    house = await a_failed_run(tmp_path)
    reply = await house.ask("resume", pipeline=a_declaration(side=change, build=MENDED))
    assert {one.phase: one.why for one in reply.stale}.get("side") == "its declaration changed"


async def test_how_a_task_is_run_counts_from_now_on_and_makes_nothing_stale(tmp_path: Path) -> None:
    """Neither its time, nor its attempts, nor what is said of it is in its result."""
    house = await a_failed_run(tmp_path)
    how = {"timeout": "90s", "retries": 7, "keep_for": "2m", "description": "slow", "memory": "bypass"}
    reply = await house.ask("resume", pipeline=a_declaration(side=how, build=MENDED | how))
    assert [one.phase for one in reply.reused] == ["look", "side"]
    await house.drive()
    [assigned] = [one for one in house.office.assigned if one.phase == "build"][1:]
    assert (assigned.max_attempts, assigned.keep_ms, assigned.memory) == (8, 120_000, "bypass")
    assert assigned.deadline is not None


async def test_phases_come_and_go_with_the_declaration(tmp_path: Path) -> None:
    """What is new runs, and what is gone is gone with its entries."""
    house = await a_failed_run(tmp_path)
    look, _, build, _ = a_declaration(build=MENDED).phases
    other = a_phase("other", parameters={"x": "${look:results.x}"})
    changed = Pipeline(name="p", inputs={"x": Input(default=1)}, phases=(look, other, build))
    reply = await house.ask("resume", pipeline=changed)
    assert {one.phase: one.why for one in reply.stale} == {
        "other": "it is new",
        "build": "its declaration changed",
    }
    assert "no longer declared: side, report" in reply.text
    assert house.kinds("phase_stale") == [("phase_stale", "build")]
    assert [entry.key for entry in await house.sessions.entries("s1")] == ["look:results"]
    assert (await the(house)).phases["other"] == PhaseState()
    await house.drive()
    assert house.office.runs == {"other": 1, "build": 1}
    assert await house.statuses() == {"look": "done", "other": "done", "build": "done"}


async def test_what_read_a_correction_that_is_gone_is_stale(tmp_path: Path) -> None:
    """Its own words are as they were, but they mean the first pass again."""
    first, second = a_phase("one", parameters={"x": 1}), a_phase("two", parameters={"x": 2}, corrects="one")
    reader = a_phase("reader", parameters={"x": "${one:results.x}"})
    house = await a_failed_run(tmp_path, a_pipeline(first, second, reader, a_phase("bad", "fail")))
    reply = await house.ask("resume", pipeline=a_pipeline(first, reader, a_phase("bad")))
    why = {one.phase: one.why for one in reply.stale}
    assert why["reader"] == "it rests on a phase whose declaration changed"
    await house.drive()
    assert (await house.sessions.peek("s1", ["reader:results"]))[0].value == {"x": 1}  # type: ignore[union-attr]


async def test_a_rerun_takes_a_corrected_declaration_too(tmp_path: Path) -> None:
    """Beginning at its phase as well."""
    house = await a_failed_run(tmp_path)
    reply = await house.ask("rerun", phase="side", pipeline=a_declaration(build=MENDED))
    assert {one.phase: one.why for one in reply.stale}["side"] == "it was asked to run again"
    await house.drive()
    assert house.office.runs == {"side": 1, "build": 1, "report": 1}


@pytest.mark.parametrize(
    ("pipeline", "problem"),
    [
        (a_declaration().model_copy(update={"name": "other"}), "is one of 'p', not of 'other'"),
        (a_declaration(build={"task": "fly"}), "fly"),
        (a_declaration(build={"parameters": {"x": "${nobody:results}"}}), "nobody"),
        (
            a_declaration().model_copy(update={"inputs": {"x": Input(type="text"), "y": Input()}}),
            "input 'y' is missing",
        ),
    ],
)
async def test_a_declaration_that_cannot_run_changes_nothing(tmp_path: Path, pipeline: Pipeline, problem: str) -> None:
    """It is checked as that of a run is."""
    house = await a_failed_run(tmp_path)
    before = await the(house)
    reply = await house.ask("resume", pipeline=pipeline)
    assert reply.kind == "refused"
    assert any(problem in one for one in reply.problems), reply
    assert await the(house) == before


@pytest.mark.parametrize("action", ["invalidate", "cancel"])
async def test_a_declaration_that_would_be_passed_over_is_refused(tmp_path: Path, action: str) -> None:
    """Whoever sends it thinks that it does something."""
    house = await a_failed_run(tmp_path)
    reply = await house.ask(action, pipeline=a_declaration(build=MENDED))
    assert (reply.kind, "leave it out" in reply.text) == ("refused", True)


async def test_inputs_follow_the_declaration(tmp_path: Path) -> None:
    """New ones are given or have their default; a corrected default makes stale what read it; what was given stays."""
    house = await a_failed_run(tmp_path)
    mended = a_declaration(build={"task": "echo", "parameters": {"x": "${input.y}"}})
    inputs = {"x": Input(default=5), "y": Input(), "z": Input(default=3)}
    mended = mended.model_copy(update={"inputs": inputs})
    reply = await house.ask("resume", pipeline=mended, inputs={"y": "new"})
    assert reply.kind == "accepted", reply
    assert {one.phase: one.why for one in reply.stale}["look"] == "the default of input 'x' changed"
    assert (await the(house)).inputs == {"x": 5, "y": "new", "z": 3}


async def test_an_input_that_was_given_stays(tmp_path: Path) -> None:
    """What is done rests on it."""
    house = await a_failed_run(tmp_path, inputs={"x": 4})
    mended = a_declaration(build=MENDED).model_copy(update={"inputs": {"x": Input(default=5)}})
    assert "start a new run" in (await house.ask("resume", pipeline=mended, inputs={"x": 6})).text
    reply = await house.ask("resume", pipeline=mended)
    assert [one.phase for one in reply.reused] == ["look", "side"]
    assert (await the(house)).inputs == {"x": 4}


def a_record(pipeline: Pipeline, status: Any = "done") -> RunRecord:
    """Return a run of *pipeline* whose phases are all over."""
    return RunRecord(
        session_id="s1", state="failed", pipeline=pipeline, inputs={}, supervisor_id="S", user_id=None, project="p",
        keep=True, run=1, phases={one.name: PhaseState(status) for one in pipeline.phases}, dependencies={},
        corrected={}, created_ms=1, updated_ms=2,
    )  # fmt: skip


def test_another_root_makes_stale_what_reads_files() -> None:
    """And nothing else."""
    phases: tuple[Phase, ...] = (a_phase("files", reads_files=("*.py",)), a_phase("none"))
    before, after = a_pipeline(*phases, root="/a"), a_pipeline(*phases, root="/b")
    assert redeclare(a_record(before), after, {}).stale == {"files": "the root of its files changed"}
    assert redeclare(a_record(before, "pending"), after, {}).stale == {}


def test_the_project_follows_only_when_the_declaration_names_another() -> None:
    """The run may have been made for another one than its pipeline's own."""
    before = a_pipeline(a_phase("one"))
    record = a_record(before)
    other = a_pipeline(a_phase("one"), project="shop")
    assert redeclare(record, other, {}).record.project == "shop"
    assert redeclare(a_record(other), other, {}).record.project == "p"
