"""What is wished of pipelines: runs, resumes, reruns, invalidations and cancellations, taken up or refused."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.messages import PipelineRequest
from contracts.pipelines import Input
from memory.sessions.pipeline_records import PhaseState, RunRecord
from supervisor.pipelines.driver import Drive
from tests.unit.supervisor.pipelines.house import TOOK_MS, House, a_chain, a_phase, a_pipeline, echo


class Flaky:
    """A task that fails while it is told to."""

    def __init__(self) -> None:
        self.is_broken = True

    def __call__(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Fail, or return what it is told."""
        if self.is_broken:
            raise OSError("disk full")
        return parameters


async def the(house: House, session_id: str = "s1") -> RunRecord:
    """Return the run as it is kept."""
    record = await house.runs.read(session_id)
    assert record is not None
    return record


async def a_failed_run(folder: Path, **told: Any) -> tuple[House, Flaky]:
    """Return a run of four phases whose third failed; it works from now on."""
    flaky = Flaky()
    house = House(folder, echo=echo, flaky=flaky)
    phases = [
        a_phase("look", parameters={"x": 1}, **told),
        a_phase("side", parameters={"x": 2}),
        a_phase("build", "flaky", parameters={"x": "${look:results.x}"}),
        a_phase("report", parameters={"a": "${build:results.x}", "b": "${side:results.x}"}),
    ]
    await house.begin(a_pipeline(*phases, root=str(folder)), keep=True)
    await house.drive()
    assert (await the(house)).state == "failed"
    house.told.clear()
    house.office.runs.clear()
    flaky.is_broken = False
    return house, flaky


async def test_the_same_run_under_the_same_id_starts_nothing_twice(tmp_path: Path) -> None:
    """While it runs, once it has ended and its session is gone; another one under that id is refused."""
    house = House(tmp_path, echo=echo)
    chain = a_chain("one")
    await house.begin(chain)
    assert (await house.begin(chain)).text == "it was taken up before, and is running"
    assert (await house.ask("run", pipeline=chain, inputs={"x": 2})).kind == "refused"
    await house.drive()
    assert (await house.begin(chain)).text == "it was taken up before, and is completed"
    assert (await house.ask("run", pipeline=a_chain("two"))).kind == "refused"
    assert house.office.runs == {"one": 1}


async def test_a_run_without_an_id_gets_one(tmp_path: Path) -> None:
    """And the desk is told to look."""
    house = House(tmp_path, echo=echo)
    reply = await house.begin(a_chain("one"), session_id=None)
    assert reply.session_id is not None
    assert house.woken == [reply.session_id]
    assert house.kinds() == [("accepted", None)]


@pytest.mark.parametrize(
    ("told", "problem"),
    [
        ({"pipeline": a_pipeline(a_phase("one", "fly"))}, "fly"),
        ({"pipeline": a_pipeline(a_phase("one", parameters={"x": "${two:results}"}))}, "two"),
        ({"pipeline": a_pipeline(a_phase("a", after=("b",)), a_phase("b", after=("a",)))}, "wait for each other"),
        ({"pipeline": a_pipeline(a_phase("one"), inputs={"k": Input(type="text")})}, "k"),
        ({"pipeline": None}, "pipeline"),
    ],
)
async def test_what_cannot_run_is_refused_before_anything_runs(
    tmp_path: Path, told: dict[str, Any], problem: str
) -> None:
    """With every problem in words."""
    house = House(tmp_path, echo=echo)
    reply = await house.ask("run", **told)
    assert reply.kind == "refused"
    assert any(problem in one for one in reply.problems), reply
    assert await house.runs.read("s1") is None


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b'{"action": 3}', b'{"action": "run", "session_id": "a b"}', b"\xff"]
)
async def test_what_is_no_request_is_refused_in_words(tmp_path: Path, body: bytes) -> None:
    """Nobody is left without an answer."""
    reply = await House(tmp_path).requests.answer_bytes(body)
    assert reply.kind == "refused"
    assert reply.problems


async def test_an_action_from_the_future_is_refused_in_words(tmp_path: Path) -> None:
    """It names those that are known."""
    reply = await House(tmp_path).requests.answer_bytes(b'{"action": "clone", "session_id": "s1"}')
    assert reply.kind == "refused"
    assert "rerun" in reply.text


async def test_a_resume_runs_what_failed_and_what_depends_on_it(tmp_path: Path) -> None:
    """The rest is reused, and what that spares is told and counted once."""
    house, _ = await a_failed_run(tmp_path)
    before = (await house.sessions.stats("s1")).total_saved_time_ms
    reply = await house.ask("resume")
    assert reply.kind == "accepted", reply
    assert {one.phase: one.saved_ms for one in reply.reused} == {"look": TOOK_MS, "side": TOOK_MS}
    assert {one.phase: one.why for one in reply.stale}.keys() == {"build", "report"}
    assert house.kinds() == [
        ("phase_stale", "build"), ("phase_reused", "look"), ("phase_reused", "side"), ("accepted", None),
    ]  # fmt: skip
    # What never began has nothing to lose: it is not stale.
    assert (await the(house)).phases["report"] == PhaseState()
    await house.drive()
    assert house.office.runs == {"build": 1, "report": 1}
    record = await the(house)
    assert (record.state, record.run) == ("completed", 2)
    # However often it was read since.
    assert (before, (await house.sessions.stats("s1")).total_saved_time_ms) == (0, 2 * TOOK_MS)


async def test_a_resume_that_was_interrupted_counts_no_use_twice(tmp_path: Path) -> None:
    """Whoever asked died after the reading and before the run went on."""
    house, _ = await a_failed_run(tmp_path)

    def die() -> None:
        raise RuntimeError("killed")

    house.runs.before["reset_phases"] = die
    assert (await house.ask("resume")).kind == "refused"
    hits = (await house.sessions.stats("s1")).total_hits
    assert (await house.ask("resume")).kind == "accepted"
    assert (await house.sessions.stats("s1")).total_hits == hits


async def test_what_failed_is_computed_anew_by_another_task(tmp_path: Path) -> None:
    """A remembered answer of a run before does not serve for a phase that runs again."""
    house, _ = await a_failed_run(tmp_path)
    await house.ask("resume")
    await house.drive()
    builds = [one for one in house.office.assigned if one.phase == "build"]
    assert [one.memory for one in builds] == ["use", "refresh"]
    assert len({one.task_id for one in builds}) == 2
    assert [one.memory for one in house.office.assigned if one.phase == "report"] == ["use"]


async def test_an_entry_that_is_gone_is_named_and_made_again(tmp_path: Path) -> None:
    """Only by its phase, as far as anything still needs it."""
    house, _ = await a_failed_run(tmp_path)
    await house.sessions.delete("s1", "side:results")
    reply = await house.ask("resume")
    assert "cache incomplete, missing: side:results" in reply.text
    assert {one.phase for one in reply.stale} == {"side", "build", "report"}
    await house.drive()
    assert house.office.runs == {"side": 1, "build": 1, "report": 1}


async def test_a_rerun_begins_at_its_phase(tmp_path: Path) -> None:
    """That phase and its dependents run, also in a run that was completed and kept."""
    house, _ = await a_failed_run(tmp_path)
    await house.ask("resume")
    await house.drive()
    house.office.runs.clear()
    reply = await house.ask("rerun", phase="side")
    assert {one.phase for one in reply.reused} == {"look", "build"}
    await house.drive()
    assert house.office.runs == {"side": 1, "report": 1}
    assert "'side'" in (await house.ask("rerun", phase="sid")).text
    assert (await house.ask("resume")).kind == "refused"


async def test_what_is_marked_stale_runs_with_the_next_resume(tmp_path: Path) -> None:
    """Named by a phase or by the key of an entry; its entries are gone at once, and so are its dependents'."""
    house, _ = await a_failed_run(tmp_path)
    await house.ask("resume")
    await house.drive()
    house.office.runs.clear()
    reply = await house.ask("invalidate", keys=("look:results",))
    assert [one.phase for one in reply.stale] == ["look", "build", "report"]
    assert {entry.key for entry in await house.sessions.entries("s1")} == {"side:results"}
    assert (await the(house)).state == "completed"
    assert (await house.ask("resume")).kind == "accepted"
    await house.drive()
    assert house.office.runs == {"look": 1, "build": 1, "report": 1}
    assert (await house.ask("invalidate")).text == "nothing is stale"


async def test_a_touched_file_makes_only_its_readers_stale(tmp_path: Path) -> None:
    """And what depends on them, also when its content is as it was; the reason tells which of the two it is."""
    (tmp_path / "src").mkdir()
    source = tmp_path / "src" / "a.py"
    source.write_text("one")
    house, _ = await a_failed_run(tmp_path, reads_files=("src/**/*.py",))
    assert (await house.ask("invalidate")).text == "nothing is stale"
    os.utime(source, ns=(1, 1))
    reply = await house.ask("invalidate")
    assert {one.phase: one.why for one in reply.stale}["look"] == "file 'src/a.py' was touched"
    assert "side" not in {one.phase for one in reply.stale}
    house, _ = await a_failed_run(tmp_path, reads_files=("src/**/*.py",))
    source.write_text("two")
    reply = await house.ask("invalidate")
    assert {one.phase: one.why for one in reply.stale}["look"] == "file 'src/a.py' changed"


async def test_a_resume_looks_at_what_changed_by_itself(tmp_path: Path) -> None:
    """A new file that a glob matches, a standard that was superseded."""
    (tmp_path / "a.py").write_text("one")
    house, _ = await a_failed_run(tmp_path, reads_files=("*.py",), standards=("style",))
    (tmp_path / "b.py").write_text("two")
    await house.projects.append("p", "standard", "spaces", tags=["style"])
    reply = await house.ask("resume")
    why = {one.phase: one.why for one in reply.stale}
    assert why["look"] == "file 'b.py' is new, standard 'style' changed"
    assert set(why) == {"look", "build", "report"}


@pytest.mark.parametrize("named", ["path", "file", "design", "standard", "phase"])
async def test_what_changed_may_be_named_by_whoever_knows_better(tmp_path: Path, named: str) -> None:
    """A file by its whole path too; what nobody reads makes nothing stale."""
    (tmp_path / "a.py").write_text("one")
    house, _ = await a_failed_run(tmp_path, reads_files=("*.py",), design=("colours",), standards=("style",))
    told: dict[str, Any] = {
        "path": {"changed": (str(tmp_path / "a.py"),)},
        "file": {"changed": ("a.py",)},
        "design": {"design": ("colours",)},
        "standard": {"standards": ("style",)},
        "phase": {"phase": "look"},
    }[named]
    strange = await house.ask("invalidate", changed=("b.txt",), design=("style",), standards=("colours",))
    assert strange.text == "nothing is stale"
    reply = await house.ask("invalidate", **told)
    assert [one.phase for one in reply.stale] == ["look", "build"]
    assert (await house.statuses())["side"] == "done"


async def test_a_running_run_is_left_alone_but_for_its_cancellation(tmp_path: Path) -> None:
    """Each refusal says what to do first."""
    house = House(tmp_path, echo=echo)
    await house.begin(a_chain("one"))
    for action in ("resume", "rerun", "invalidate"):
        reply = await house.ask(action, phase="one")
        assert reply.kind == "refused"
        assert "cancel" in reply.text
    assert (await house.ask("cancel")).kind == "accepted"
    await house.drive()
    assert (await the(house)).state == "cancelled"
    assert (await house.ask("cancel")).kind == "refused"
    assert (await house.ask("resume")).kind == "accepted"
    await house.drive()
    assert await house.runs.read("s1") is None


async def test_an_unknown_run_is_refused_with_where_to_look(tmp_path: Path) -> None:
    """One that ended and is gone, and one that never was."""
    house = House(tmp_path, echo=echo)
    assert "there is none" in (await house.ask("resume")).text
    await house.begin(a_chain("one"))
    await house.drive()
    assert "it ended as completed" in (await house.ask("resume")).text
    assert (await house.ask("resume", session_id=None)).kind == "refused"


async def test_only_secrets_are_renewed_when_a_run_goes_on(tmp_path: Path) -> None:
    """Another input would leave results that rest on the old one."""
    flaky = Flaky()
    house = House(tmp_path, flaky=flaky)
    inputs = {"key": Input(type="text", secret=True), "x": Input(default=1)}
    await house.begin(
        a_pipeline(a_phase("one", "flaky", parameters={"x": "${input.key}"}), inputs=inputs), inputs={"key": "old"}
    )
    await house.drive()
    flaky.is_broken = False
    assert "start a new run" in (await house.ask("resume", inputs={"x": 2})).text
    assert (await house.ask("resume", inputs={"y": 2})).kind == "refused"
    assert (await house.ask("resume", inputs={"key": "new"})).kind == "accepted"
    await house.drive()
    assert [one.task.parameters["x"] for one in house.office.assigned] == ["old", "new"]


async def test_who_comes_second_to_a_run_that_goes_on_is_told_so(tmp_path: Path) -> None:
    """Somebody else's resume, to its end even, came between the look and the deed: it is not done over."""
    house, _ = await a_failed_run(tmp_path)

    def be_quicker() -> None:
        kept = house.runs._runs["s1"]
        kept.record = replace(kept.record, run=kept.record.run + 1)

    for action in ("resume", "invalidate"):
        house.runs.before["reset_phases"] = be_quicker
        reply = await house.ask(action, phase="look")
        assert (reply.kind, "somebody else" in reply.text) == ("refused", True)
        assert (await house.statuses())["look"] == "done"


async def test_a_mistake_of_ours_is_no_silence(tmp_path: Path) -> None:
    """Whoever asked is told to look into the log."""
    house = House(tmp_path)

    async def fall(_session_id: str) -> Any:
        raise KeyError("ours")

    house.runs.read = fall  # type: ignore[method-assign]
    reply = await house.ask("resume")
    assert (reply.kind, "log" in reply.text) == ("refused", True)


async def test_a_pipeline_from_another_program_is_read_as_json(tmp_path: Path) -> None:
    """The request is what its documented JSON says."""
    house = House(tmp_path, echo=echo)
    declared = a_chain("one").model_dump(mode="json")
    body = json.dumps({"action": "run", "session_id": "s1", "pipeline": declared}).encode()
    assert PipelineRequest.model_validate_json(body).pipeline == declared
    assert (await house.requests.answer_bytes(body)).kind == "accepted"
    await Drive(house.parts, "s1", await house.claim()).run()
    assert house.office.runs == {"one": 1}
