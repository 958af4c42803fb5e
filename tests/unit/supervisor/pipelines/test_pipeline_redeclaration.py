"""Runs resumed by a corrected declaration: what still holds, what runs again, what is refused."""

from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.pipelines import Input, Phase, Pipeline
from tasklore.memory.sessions.pipeline_records import PhaseState, RunRecord
from tasklore.supervisor.pipelines.resumption import redeclare
from tests.unit.supervisor.pipelines.fake_system import (
    FakeSystem,
    a_phase,
    a_pipeline,
    echo,
    fail,
)


def a_declaration(**changes: dict[str, Any]) -> Pipeline:
    """Return four phases in a row but for "side"; *changes* are fields of phases by their names."""
    told: dict[str, dict[str, Any]] = {
        "look": {"parameters": {"x": "${input.x}"}},
        "side": {"parameters": {"x": 2}},
        "build": {"task": "fail", "parameters": {"x": "${look:results.x}"}},
        "report": {
            "parameters": {"a": "${build:results.x}", "b": "${side:results.x?}"}
        },
    }
    phases = [
        a_phase(name, **(fields | changes.get(name, {})))
        for name, fields in told.items()
    ]
    return a_pipeline(*phases, inputs={"x": Input(default=1)})


MENDED: dict[str, Any] = {"task": "echo"}


async def a_failed_run(
    folder: Path, pipeline: Pipeline | None = None, **told: Any
) -> FakeSystem:
    """Return a run whose phase "build" failed."""
    system = FakeSystem(folder, echo=echo, fail=fail)
    await system.begin(pipeline or a_declaration(), keep=True, **told)
    await system.drive()
    assert (await system.record()).state == "failed"
    system.events.clear()
    system.workers.runs.clear()
    return system


async def test_a_corrected_phase_runs_again_and_the_rest_is_reused(
    tmp_path: Path,
) -> None:
    system = await a_failed_run(tmp_path)
    mended = a_declaration(build=MENDED)
    reply = await system.ask("resume", pipeline=mended)
    assert {one.phase: one.why for one in reply.stale} == {
        "build": "its declaration changed",
        "report": "it had not begun",
    }
    assert [one.phase for one in reply.reused] == ["look", "side"]
    assert (await system.record()).pipeline == mended
    await system.drive()
    assert system.workers.runs == {"build": 1, "report": 1}
    record = await system.record()
    assert (record.state, record.pipeline) == ("completed", mended)


@pytest.mark.parametrize(
    "change",
    [
        {"task": "fail"}, {"parameters": {"x": 3}}, {"reads": ("look:results",)}, {"writes": ("results", "x")},
        {"when": "${input.x} == 1"}, {"after": ("look",)}, {"standards": ("style",)}, {"design": ("colours",)},
    ],
)  # fmt: skip
async def test_a_change_of_any_field_a_result_rests_on_makes_it_stale(
    tmp_path: Path, change: dict[str, Any]
) -> None:
    system = await a_failed_run(tmp_path)
    reply = await system.ask(
        "resume", pipeline=a_declaration(side=change, build=MENDED)
    )
    assert {one.phase: one.why for one in reply.stale}.get(
        "side"
    ) == "its declaration changed"


async def test_timeouts_retries_and_the_like_make_nothing_stale(tmp_path: Path) -> None:
    system = await a_failed_run(tmp_path)
    how = {
        "timeout": "90s",
        "retries": 7,
        "keep_for": "2m",
        "description": "slow",
        "memory": "bypass",
    }
    reply = await system.ask(
        "resume", pipeline=a_declaration(side=how, build=MENDED | how)
    )
    assert [one.phase for one in reply.reused] == ["look", "side"]
    await system.drive()
    [assigned] = [one for one in system.workers.assigned if one.phase == "build"][1:]
    assert (assigned.max_attempts, assigned.keep_ms, assigned.memory) == (
        8,
        120_000,
        "bypass",
    )
    assert assigned.deadline is not None


async def test_phases_come_and_go_with_the_declaration(tmp_path: Path) -> None:
    system = await a_failed_run(tmp_path)
    look, _, build, _ = a_declaration(build=MENDED).phases
    other = a_phase("other", parameters={"x": "${look:results.x}"})
    changed = Pipeline(
        name="p", inputs={"x": Input(default=1)}, phases=(look, other, build)
    )
    reply = await system.ask("resume", pipeline=changed)
    assert {one.phase: one.why for one in reply.stale} == {
        "other": "it is new",
        "build": "its declaration changed",
    }
    assert "no longer declared: side, report" in reply.text
    assert system.kinds("phase_stale") == [("phase_stale", "build")]
    assert [entry.key for entry in await system.sessions.entries("s1")] == [
        "look:results"
    ]
    assert (await system.record()).phases["other"] == PhaseState()
    await system.drive()
    assert system.workers.runs == {"other": 1, "build": 1}
    assert await system.statuses() == {"look": "done", "other": "done", "build": "done"}


async def test_a_reader_of_a_removed_correction_is_stale(tmp_path: Path) -> None:
    first = a_phase("one", parameters={"x": 1})
    second = a_phase("two", parameters={"x": 2}, corrects="one")
    reader = a_phase("reader", parameters={"x": "${one:results.x}"})
    system = await a_failed_run(
        tmp_path, a_pipeline(first, second, reader, a_phase("bad", "fail"))
    )
    reply = await system.ask(
        "resume", pipeline=a_pipeline(first, reader, a_phase("bad"))
    )
    why = {one.phase: one.why for one in reply.stale}
    assert why["reader"] == "it rests on a phase whose declaration changed"
    await system.drive()
    assert (await system.sessions.peek("s1", ["reader:results"]))[0].value == {"x": 1}  # type: ignore[union-attr]


@pytest.mark.parametrize("action", ["invalidate", "cancel"])
async def test_a_declaration_beside_an_action_that_takes_none_is_refused(
    tmp_path: Path, action: str
) -> None:
    system = await a_failed_run(tmp_path)
    reply = await system.ask(action, pipeline=a_declaration(build=MENDED))
    assert (reply.kind, "leave it out" in reply.text) == ("refused", True)


async def test_inputs_follow_the_declaration(tmp_path: Path) -> None:
    system = await a_failed_run(tmp_path)
    mended = a_declaration(build={"task": "echo", "parameters": {"x": "${input.y}"}})
    inputs = {"x": Input(default=5), "y": Input(), "z": Input(default=3)}
    mended = mended.model_copy(update={"inputs": inputs})
    reply = await system.ask("resume", pipeline=mended, inputs={"y": "new"})
    assert reply.kind == "accepted", reply
    assert {one.phase: one.why for one in reply.stale}[
        "look"
    ] == "the default of input 'x' changed"
    assert (await system.record()).inputs == {"x": 5, "y": "new", "z": 3}


async def test_a_given_input_stays(tmp_path: Path) -> None:
    system = await a_failed_run(tmp_path, inputs={"x": 4})
    mended = a_declaration(build=MENDED).model_copy(
        update={"inputs": {"x": Input(default=5)}}
    )
    assert (
        "start a new run"
        in (await system.ask("resume", pipeline=mended, inputs={"x": 6})).text
    )
    reply = await system.ask("resume", pipeline=mended)
    assert [one.phase for one in reply.reused] == ["look", "side"]
    assert (await system.record()).inputs == {"x": 4}


def a_record(pipeline: Pipeline, status: Any = "done") -> RunRecord:
    """Return a run of *pipeline* whose phases are all over."""
    return RunRecord(
        session_id="s1", state="failed", pipeline=pipeline, inputs={}, supervisor_id="S", user_id=None, project="p",
        keep=True, run=1, phases={one.name: PhaseState(status) for one in pipeline.phases}, dependencies={},
        corrected={}, created_ms=1, updated_ms=2,
    )  # fmt: skip


def test_another_root_makes_readers_of_files_stale() -> None:
    phases: tuple[Phase, ...] = (
        a_phase("files", reads_files=("*.py",)),
        a_phase("none"),
    )
    before = a_pipeline(*phases, root="/a")
    after = a_pipeline(*phases, root="/b")
    assert redeclare(a_record(before), after, {}).stale == {
        "files": "the root of its files changed"
    }
    assert redeclare(a_record(before, "pending"), after, {}).stale == {}


def test_the_project_changes_only_when_the_declaration_names_another() -> None:
    before = a_pipeline(a_phase("one"))
    record = a_record(before)
    other = a_pipeline(a_phase("one"), project="shop")
    assert redeclare(record, other, {}).record.project == "shop"
    assert redeclare(a_record(other), other, {}).record.project == "p"
