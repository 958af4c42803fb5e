"""Requests about runs: run, resume, rerun, invalidate and cancel, accepted or refused."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import MemoryUnavailable, OwnerFull
from tasklore.contracts.messages import PipelineRequest
from tasklore.contracts.pipelines import Input
from tasklore.memory.sessions.pipeline_records import PhaseState
from tests.unit.supervisor.pipelines.fake_system import (
    TOOK_MS,
    FakeSystem,
    FullBounds,
    a_chain,
    a_phase,
    a_pipeline,
    echo,
)


class Flaky:
    """A task that fails while it is told to."""

    def __init__(self) -> None:
        self.is_broken = True

    def __call__(self, parameters: dict[str, Any]) -> dict[str, Any]:
        if self.is_broken:
            raise OSError("disk full")
        return parameters


async def a_failed_run(folder: Path, **told: Any) -> tuple[FakeSystem, Flaky]:
    """Return a run of four phases whose third failed; it works from now on."""
    flaky = Flaky()
    system = FakeSystem(folder, echo=echo, flaky=flaky)
    phases = [
        a_phase("look", parameters={"x": 1}, **told),
        a_phase("side", parameters={"x": 2}),
        a_phase("build", "flaky", parameters={"x": "${look:results.x}"}),
        a_phase(
            "report", parameters={"a": "${build:results.x}", "b": "${side:results.x}"}
        ),
    ]
    await system.begin(a_pipeline(*phases, root=str(folder)), keep=True)
    await system.drive()
    assert (await system.record()).state == "failed"
    system.events.clear()
    system.workers.runs.clear()
    flaky.is_broken = False
    return system, flaky


async def test_a_run_without_an_id_gets_one_and_wakes_the_desk(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    reply = await system.begin(a_chain("one"), session_id=None)
    assert reply.session_id is not None
    assert system.woken == [reply.session_id]
    assert system.kinds() == [("accepted", None)]


async def test_a_store_that_does_not_answer_is_no_fault_of_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Over HTTP and for ticks it is asked again later; over NATS the reply says so."""
    system = FakeSystem(tmp_path, echo=echo)

    async def fail(*_given: Any, **_named: Any) -> None:
        raise MemoryUnavailable("full")

    monkeypatch.setattr(system.runs, "create", fail)
    request = PipelineRequest(
        action="run",
        session_id="s1",
        pipeline=a_chain("one").model_dump(mode="json", exclude_unset=True),
        inputs={},
    )
    with pytest.raises(MemoryUnavailable):
        await system.requests.take_up(request)
    reply = await system.requests.answer_bytes(request.model_dump_json().encode())
    assert (reply.kind, "ask again" in reply.text) == ("refused", True)


async def test_a_caller_whose_key_nobody_showed_is_none(tmp_path: Path) -> None:
    """At NATS a message may name any; a supervisor's own routes hand on whose key was shown."""
    boss = Caller(name="boss", roles=frozenset({"admin"}))
    chain = a_chain("one").model_dump(mode="json", exclude_unset=True)
    system = FakeSystem(tmp_path, echo=echo)
    for session_id, send in (
        ("said", lambda asked: system.requests.answer_bytes(as_bytes(asked))),
        ("shown", system.requests.take_up),
    ):
        request = PipelineRequest(
            action="run", session_id=session_id, pipeline=chain, inputs={}, caller=boss
        )
        assert (await send(request)).kind == "accepted"
    said = await system.runs.read("said")
    shown = await system.runs.read("shown")
    assert said is not None
    assert shown is not None
    assert (said.caller, shown.caller) == (None, boss)


def as_bytes(request: PipelineRequest) -> bytes:
    """Return *request* as it comes off the wire."""
    return request.model_dump_json().encode()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"action": 3}',
        b'{"action": "run", "session_id": "a b"}',
        b"\xff",
    ],
)
async def test_an_invalid_request_is_refused_in_words(
    tmp_path: Path, body: bytes
) -> None:
    reply = await FakeSystem(tmp_path).requests.answer_bytes(body)
    assert reply.kind == "refused"
    assert reply.problems


async def test_a_resume_runs_failed_phases_and_counts_reused_ones_once(
    tmp_path: Path,
) -> None:
    system, _ = await a_failed_run(tmp_path)
    before = (await system.sessions.stats("s1")).total_saved_time_ms
    reply = await system.ask("resume")
    assert reply.kind == "accepted", reply
    assert {one.phase: one.saved_ms for one in reply.reused} == {
        "look": TOOK_MS,
        "side": TOOK_MS,
    }
    assert {one.phase: one.why for one in reply.stale}.keys() == {"build", "report"}
    assert system.kinds() == [
        ("phase_stale", "build"), ("phase_reused", "look"), ("phase_reused", "side"), ("accepted", None),
    ]  # fmt: skip
    # What never began has nothing to lose: it is not stale.
    assert (await system.record()).phases["report"] == PhaseState()
    await system.drive()
    assert system.workers.runs == {"build": 1, "report": 1}
    record = await system.record()
    assert (record.state, record.run) == ("completed", 2)
    # However often it was read since.
    assert (before, (await system.sessions.stats("s1")).total_saved_time_ms) == (
        0,
        2 * TOOK_MS,
    )


async def test_an_interrupted_resume_counts_no_use_twice(tmp_path: Path) -> None:
    system, _ = await a_failed_run(tmp_path)

    def die() -> None:
        raise RuntimeError("killed")

    system.runs.before["reset_phases"] = die
    with capture_logs():
        assert (await system.ask("resume")).kind == "refused"
    hits = (await system.sessions.stats("s1")).total_hits
    assert (await system.ask("resume")).kind == "accepted"
    assert (await system.sessions.stats("s1")).total_hits == hits


async def test_a_failed_phase_is_computed_anew_by_another_task(tmp_path: Path) -> None:
    system, _ = await a_failed_run(tmp_path)
    await system.ask("resume")
    await system.drive()
    builds = [one for one in system.workers.assigned if one.phase == "build"]
    assert [one.memory for one in builds] == ["use", "refresh"]
    assert len({one.task_id for one in builds}) == 2
    assert [one.memory for one in system.workers.assigned if one.phase == "report"] == [
        "use"
    ]


async def test_stale_phases_run_with_the_next_resume(tmp_path: Path) -> None:
    system, _ = await a_failed_run(tmp_path)
    await system.ask("resume")
    await system.drive()
    system.workers.runs.clear()
    reply = await system.ask("invalidate", keys=("look:results",))
    assert [one.phase for one in reply.stale] == ["look", "build", "report"]
    assert {entry.key for entry in await system.sessions.entries("s1")} == {
        "side:results"
    }
    assert (await system.record()).state == "completed"
    assert (await system.ask("resume")).kind == "accepted"
    await system.drive()
    assert system.workers.runs == {"look": 1, "build": 1, "report": 1}
    assert (await system.ask("invalidate")).text == "nothing is stale"


async def test_a_resume_finds_changed_files_and_standards_itself(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.py").write_text("one")
    system, _ = await a_failed_run(
        tmp_path, reads_files=("*.py",), standards=("style",)
    )
    (tmp_path / "b.py").write_text("two")
    await system.projects.append("p", "standard", "spaces", tags=["style"])
    reply = await system.ask("resume")
    why = {one.phase: one.why for one in reply.stale}
    assert why["look"] == "file 'b.py' is new, standard 'style' changed"
    assert set(why) == {"look", "build", "report"}


@pytest.mark.parametrize("named", ["path", "file", "design", "standard", "phase"])
async def test_a_change_may_be_named_by_file_tag_or_phase(
    tmp_path: Path, named: str
) -> None:
    (tmp_path / "a.py").write_text("one")
    system, _ = await a_failed_run(
        tmp_path, reads_files=("*.py",), design=("colours",), standards=("style",)
    )
    told: dict[str, Any] = {
        "path": {"changed": (str(tmp_path / "a.py"),)},
        "file": {"changed": ("a.py",)},
        "design": {"design": ("colours",)},
        "standard": {"standards": ("style",)},
        "phase": {"phase": "look"},
    }[named]
    strange = await system.ask(
        "invalidate", changed=("b.txt",), design=("style",), standards=("colours",)
    )
    assert strange.text == "nothing is stale"
    reply = await system.ask("invalidate", **told)
    assert [one.phase for one in reply.stale] == ["look", "build"]
    assert (await system.statuses())["side"] == "done"


async def test_a_running_run_can_be_cancelled_alone(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    await system.begin(a_chain("one"))
    for action in ("resume", "rerun", "invalidate"):
        reply = await system.ask(action, phase="one")
        assert reply.kind == "refused"
        assert "cancel" in reply.text
    assert (await system.ask("cancel")).kind == "accepted"
    await system.drive()
    assert (await system.record()).state == "cancelled"
    assert (await system.ask("cancel")).kind == "refused"
    assert (await system.ask("resume")).kind == "accepted"
    await system.drive()
    assert await system.runs.read("s1") is None


async def test_an_unknown_run_is_refused(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    assert "there is none" in (await system.ask("resume")).text
    await system.begin(a_chain("one"))
    await system.drive()
    assert "it ended as completed" in (await system.ask("resume")).text
    assert (await system.ask("resume", session_id=None)).kind == "refused"


async def test_a_resume_takes_secret_inputs_alone(tmp_path: Path) -> None:
    flaky = Flaky()
    system = FakeSystem(tmp_path, flaky=flaky)
    inputs = {"key": Input(type="text", secret=True), "x": Input(default=1)}
    await system.begin(
        a_pipeline(
            a_phase("one", "flaky", parameters={"x": "${input.key}"}), inputs=inputs
        ),
        inputs={"key": "old"},
    )
    await system.drive()
    flaky.is_broken = False
    assert "start a new run" in (await system.ask("resume", inputs={"x": 2})).text
    assert (await system.ask("resume", inputs={"y": 2})).kind == "refused"
    assert (await system.ask("resume", inputs={"key": "new"})).kind == "accepted"
    await system.drive()
    assert [one.task.parameters["x"] for one in system.workers.assigned] == [
        "old",
        "new",
    ]


async def test_the_second_of_two_resumes_is_refused(tmp_path: Path) -> None:
    system, _ = await a_failed_run(tmp_path)

    def be_quicker() -> None:
        kept = system.runs._runs["s1"]
        kept.record = replace(kept.record, run=kept.record.run + 1)

    for action in ("resume", "invalidate"):
        system.runs.before["reset_phases"] = be_quicker
        reply = await system.ask(action, phase="look")
        assert (reply.kind, "somebody else" in reply.text) == ("refused", True)
        assert (await system.statuses())["look"] == "done"


async def test_an_internal_error_is_answered(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path)

    async def fall(_session_id: str) -> Any:
        raise KeyError("ours")

    system.runs.read = fall  # type: ignore[method-assign]
    with capture_logs():
        reply = await system.ask("resume")
    assert (reply.kind, "log" in reply.text) == ("refused", True)


async def test_a_run_beyond_the_bounds_of_its_owner_is_refused_at_doors_alone(
    tmp_path: Path,
) -> None:
    """One at a door is not made; one of a schedule or a task, which was accepted before, is counted and runs."""
    system = FakeSystem(tmp_path, echo=echo)
    system.workers.bounds = full = FullBounds()
    declared = a_chain("one").model_dump(mode="json", exclude_defaults=True)
    request = PipelineRequest(action="run", session_id="s1", pipeline=declared)
    reply = await system.requests.answer_bytes(request.model_dump_json().encode())
    assert (reply.kind, reply.text) == ("refused", "you keep too much")
    with pytest.raises(OwnerFull):
        await system.requests.take_up(request, from_door=True)
    assert await system.runs.read("s1") is None
    assert (await system.requests.take_up(request)).kind == "accepted"
    assert full.counted == ["runs"]
