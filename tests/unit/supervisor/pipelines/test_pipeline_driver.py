"""Driving a run: order, side by side, references, conditions, corrections, failure, loss of the lease, cancelling."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import MemoryUnavailable
from contracts.messages import TaskAssignment
from contracts.pipelines import Input
from memory.sessions.pipeline_records import RunRecord
from runtime.lease_loop import LeaseLost
from supervisor.pipelines.driver import Drive
from tests.unit.supervisor.pipelines.house import House, a_chain, a_phase, a_pipeline, echo, until


def fail(_parameters: dict[str, Any]) -> Any:
    """Raise."""
    raise OSError("disk full")


async def outcome(house: House, session_id: str = "s1") -> dict[str, Any]:
    """Return how the run ended."""
    told = await house.runs.outcome(session_id)
    assert told is not None
    return json.loads(told)


def evidence_in(ended: dict[str, Any]) -> str:
    """Return what was kept as evidence."""
    return Path(ended["evidence"]).read_text()


async def the(house: House, session_id: str = "s1") -> RunRecord:
    """Return the run as it is kept."""
    record = await house.runs.read(session_id)
    assert record is not None
    return record


async def test_a_chain_runs_in_order_and_hands_values_on(tmp_path: Path) -> None:
    """Each phase is told what the one before said; the session is gone after a success, its outcome is told."""
    house = House(tmp_path, add=lambda told: {"x": told["x"] + 1})
    await house.begin(a_chain("one", "two", "three", task="add"))
    await house.drive()
    assert house.kinds("phase_started", "phase_done", "completed") == [
        ("phase_started", "one"), ("phase_done", "one"), ("phase_started", "two"), ("phase_done", "two"),
        ("phase_started", "three"), ("phase_done", "three"), ("completed", None),
    ]  # fmt: skip
    ended = await outcome(house)
    assert ended["result"] == {"three:results": {"x": 4}}
    # What a phase reads of another one of the same run was computed in it, and saved nothing.
    assert (ended["stats"]["total_hits"], ended["stats"]["total_saved_time_ms"]) == (2, 0)
    assert [one["saved_ms"] for one in ended["phases"]] == [0, 0, 0]
    assert await house.runs.read("s1") is None
    assert await house.sessions.root("s1") is None
    assert [one.through for one in house.told if one.kind == "phase_done"] == [1, 2, 3]


async def test_phases_that_do_not_wait_for_each_other_run_side_by_side(tmp_path: Path) -> None:
    """Both are under way before either may end; what reads both comes after both."""
    both = asyncio.Barrier(2)

    async def meet(parameters: dict[str, Any]) -> dict[str, Any]:
        await both.wait()
        return parameters

    house = House(tmp_path, meet=meet, echo=echo)
    join = a_phase("join", parameters={"a": "${left:results.x}", "b": "${right:results.x}"})
    left, right = (a_phase(name, "meet", parameters={"x": name}) for name in ("left", "right"))
    await house.begin(a_pipeline(left, right, join))
    await house.drive()
    assert (await outcome(house))["result"] == {"join:results": {"a": "left", "b": "right"}}


async def test_a_kept_session_stays_and_names_its_entries(tmp_path: Path) -> None:
    """Each under its phase, by its writes."""
    house = House(tmp_path, map=lambda _told: {"map": [1], "size": 2, "rest": 3})
    await house.begin(a_pipeline(a_phase("look", "map", writes=("map", "size"))), keep=True)
    await house.drive()
    assert (await the(house)).state == "completed"
    assert {entry.key for entry in await house.sessions.entries("s1")} == {"look:map", "look:size"}


async def test_a_condition_that_does_not_hold_leaves_its_phase_out(tmp_path: Path) -> None:
    """And says why; who may do without reads null."""
    house = House(tmp_path, echo=echo)
    review = a_phase("review", when="${look:results.x} > 5")
    report = a_phase("report", parameters={"a": "${review:results?}", "b": "${look:results.x}"})
    await house.begin(a_pipeline(a_phase("look", parameters={"x": 3}), review, report))
    await house.drive()
    ended = await outcome(house)
    assert ended["result"] == {"report:results": {"a": None, "b": 3}}
    assert [(one["status"], "${look:results.x} > 5" in one["why"]) for one in ended["phases"]][1] == ("skipped", True)
    assert house.office.runs == {"look": 1, "report": 1}
    assert ("phase_skipped", "review") in house.kinds()


async def test_a_correction_replaces_what_the_first_pass_wrote(tmp_path: Path) -> None:
    """Whoever reads the first pass is told what the second one wrote."""
    house = House(tmp_path, echo=echo)
    first = a_phase("pass_1", parameters={"x": "draft"})
    check = a_phase("check", parameters={"x": "${pass_1:results.x}"})
    second = a_phase("pass_2", parameters={"x": "mended"}, corrects="pass_1", after=("check",))
    report = a_phase("report", parameters={"x": "${pass_1:results.x}"})
    await house.begin(a_pipeline(first, check, second, report, result="pass_1:results"), keep=True)
    await house.drive()
    said = {one.phase: one.task.parameters["x"] for one in house.office.assigned}
    assert said == {"pass_1": "draft", "check": "draft", "pass_2": "mended", "report": "mended"}
    assert (await outcome(house))["result"] == {"x": "mended"}


async def test_a_failure_stops_what_depends_on_it_and_nothing_else(tmp_path: Path) -> None:
    """The rest is finished; the run fails with evidence, and its session stays."""
    house = House(tmp_path, fail=fail, echo=echo)
    bad, good = a_phase("bad", "fail"), a_phase("good", parameters={"x": 1})
    after_bad = a_phase("after_bad", parameters={"x": "${bad:results}"})
    after_good = a_phase("after_good", parameters={"x": "${good:results.x}"})
    await house.begin(a_pipeline(bad, good, after_bad, after_good))
    await house.drive()
    wanted = {"bad": "failed", "good": "done", "after_bad": "pending", "after_good": "done"}
    assert await house.statuses() == wanted
    ended = await outcome(house)
    assert (ended["state"], ended["result"]) == ("failed", None)
    assert "phase 'bad' failed: OSError: disk full" in ended["error"]
    assert (await the(house)).state == "failed"
    bundle = json.loads(evidence_in(ended))
    assert bundle["phases"]["bad"]["error"] == "disk full"
    assert set(bundle["session"]["cache"]) == {"good:results", "after_good:results"}


async def test_evidence_that_cannot_be_written_does_not_keep_the_run_from_ending(tmp_path: Path) -> None:
    """The event says so."""
    house = House(tmp_path, fail=fail)
    house.evidence.write_text("a file where the folder should be")
    await house.begin(a_pipeline(a_phase("bad", "fail")))
    await house.drive()
    assert (await outcome(house))["evidence"] is None
    assert "evidence could not be written" in house.told[-1].text


async def test_whatever_goes_wrong_with_evidence_does_not_keep_the_run_from_ending(tmp_path: Path) -> None:
    """Only the store's being away does, as then nothing can be ended."""
    house = House(tmp_path, fail=fail)
    await house.begin(a_pipeline(a_phase("bad", "fail")))

    async def broken(_session_id: str) -> dict[str, Any]:
        raise RecursionError("an entry is nested too deeply")

    house.sessions.export = broken  # type: ignore[method-assign]
    await house.drive()
    ended = await outcome(house)
    assert (ended["state"], ended["evidence"]) == ("failed", None)
    assert (await the(house)).state == "failed"


async def forget(house: House, session_id: str = "s1") -> None:
    """Remove the session with all that it has, as when its user is forgotten."""
    house.runs._runs.pop(session_id)
    await house.sessions.drop(session_id, force=True)


async def steal(house: House) -> None:
    """Let another one drive the run."""
    await house.steal()


@pytest.mark.parametrize("happen", [forget, steal])
@pytest.mark.parametrize("when", ["settle_phase", "seen", "end"])
async def test_a_run_that_is_gone_or_anothers_leaves_nothing_behind(
    tmp_path: Path, happen: Callable[[House], Awaitable[None]], when: str
) -> None:
    """Neither evidence nor history, whenever it is noticed: they name a user, who may be forgotten by now."""
    house = House(tmp_path, fail=fail)
    await house.begin(a_pipeline(a_phase("bad", "fail"), project="shop"), user_id="ann")
    real = getattr(house.runs, when)

    async def meanwhile(*told: Any, **more: Any) -> Any:
        if when == "end":
            await happen(house)
            return await real(*told, **more)
        done = await real(*told, **more)
        await happen(house)
        return done

    setattr(house.runs, when, meanwhile)
    with pytest.raises(LeaseLost):
        await house.drive()
    assert list(house.evidence.glob("*")) == []
    # What was noted before the end itself was refused can no longer be taken back.
    assert len(await house.projects.search("shop", kind="history")) == (when == "end")
    assert await house.runs.outcome("s1") is None
    assert house.kinds("failed") == []


async def test_evidence_that_another_driver_wrote_is_not_taken_back(tmp_path: Path) -> None:
    """It lies under the same name."""
    house = House(tmp_path, fail=fail)
    await house.begin(a_pipeline(a_phase("bad", "fail")))
    place, real = house.evidence / "s1-failed.json", house.runs.end

    async def end(*told: Any, **more: Any) -> bool:
        others = place.with_name("others")
        others.write_text("of another driver")
        others.replace(place)
        await house.steal()
        return await real(*told, **more)

    house.runs.end = end  # type: ignore[method-assign]
    with pytest.raises(LeaseLost):
        await house.drive()
    assert place.read_text() == "of another driver"


async def test_every_run_is_noted_once_in_the_history_of_its_project(tmp_path: Path) -> None:
    """Also when the last steps are done again, as after a crash between them."""
    house = House(tmp_path, echo=echo)
    await house.begin(a_chain("one", project="shop"), user_id="ann")

    async def crash(*_told: Any, **_more: Any) -> bool:
        raise MemoryUnavailable("away")

    end = house.runs.end
    house.runs.end = crash  # type: ignore[method-assign]
    with pytest.raises(MemoryUnavailable):
        await house.drive()
    house.runs.end = end  # type: ignore[method-assign]
    fence = await house.steal()
    await Drive(house.parts, "s1", fence).run()
    [record] = await house.projects.search("shop", kind="history")
    assert (record.by, record.session_id, record.data["state"]) == ("ann", "s1", "completed")
    # That the result was read for the outcome, and read again, is no use of it.
    assert (await outcome(house))["stats"]["total_hits"] == 0
    assert house.office.runs == {"one": 1}


async def test_a_phase_is_told_its_deadline_attempts_user_and_memory(tmp_path: Path) -> None:
    """As its declaration says."""
    house = House(tmp_path, echo=echo)
    one = a_phase("one", timeout="90s", retries=4, memory="bypass", keep_for="2m")
    await house.begin(a_pipeline(one), user_id="ann")
    await house.drive()
    [assignment] = house.office.assigned
    assert assignment.deadline is not None
    assert (assignment.deadline - assignment.created_at).total_seconds() == 90
    assert (assignment.max_attempts, assignment.user_id, assignment.memory) == (5, "ann", "bypass")
    assert assignment.keep_ms == 120_000
    assert (assignment.session_id, assignment.phase, assignment.writes) == ("s1", "one", ("results",))


async def test_standards_are_given_to_the_phase_that_asks(tmp_path: Path) -> None:
    """Those in force with one of its tags, newest first."""
    house = House(tmp_path, echo=echo)
    old = await house.projects.append("p", "standard", "tabs", tags=["style"])
    await house.projects.append("p", "standard", "spaces", tags=["style"], supersedes=old.record_id)
    await house.projects.append("p", "standard", "other", tags=["law"])
    await house.begin(a_pipeline(a_phase("check", parameters={"x": "${standards}"}, standards=("style",))))
    await house.drive()
    assert [one["text"] for one in house.office.assigned[0].task.parameters["x"]] == ["spaces"]


async def test_a_reference_that_leads_nowhere_fails_its_phase_with_a_reason(tmp_path: Path) -> None:
    """Nothing is sent, and nothing crashes."""
    house = House(tmp_path, echo=echo)
    lost = a_phase("lost", parameters={"x": "${look:results.y.z}"})
    await house.begin(a_pipeline(a_phase("look", parameters={"x": 1}), lost))
    await house.drive()
    state = (await the(house)).phases["lost"]
    assert (state.status, state.error_type) == ("failed", "InvalidInput")
    assert "look:results.y" in (state.error or "")
    assert house.office.runs == {"look": 1}


async def test_parameters_too_large_for_a_message_say_how_to_read_them_instead(tmp_path: Path) -> None:
    """By the session, inside the agent."""
    house = House(tmp_path, big=lambda _told: {"x": "y" * 1_000_000}, echo=echo)
    await house.begin(a_pipeline(a_phase("big", "big"), a_phase("next", parameters={"x": "${big:results.x}"})))
    await house.drive()
    state = (await the(house)).phases["next"]
    assert (state.status, state.error_type) == ("failed", "MessageTooLarge")
    assert "context.session" in (state.error or "")


async def test_a_full_queue_is_waited_for(tmp_path: Path) -> None:
    """The task is sent again until it is stored."""
    house = House(tmp_path, echo=echo)
    house.office.refuses = 3
    await house.begin(a_chain("one"))
    await house.drive()
    assert (await outcome(house))["state"] == "completed"


async def test_a_phase_that_nobody_takes_fails_at_its_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And is cancelled for good, so that no worker begins it later."""
    monkeypatch.setattr("supervisor.pipelines.phase_task._OVERDUE_S", 0.0)
    monkeypatch.setattr("supervisor.pipelines.phase_task._LAST_LOOK_S", 0.0)
    house = House(tmp_path, echo=echo)
    house.office.is_away = True
    await house.begin(a_pipeline(a_phase("one", timeout=0.05)))
    await house.drive()
    state = (await the(house)).phases["one"]
    assert (state.status, state.error_type) == ("failed", "TaskExpired")
    assert list(house.office.cancelled) == [state.task_id]


async def test_a_driver_that_lost_its_lease_stops_and_says_nothing_more(tmp_path: Path) -> None:
    """Between any two steps: neither the store nor anybody who listens hears of it again."""
    for call in ("begin_phase", "settle_phase", "end"):
        house = House(tmp_path, echo=echo)
        await house.begin(a_chain("one"))
        fence = await house.claim()
        said = -1

        def steal(house: House = house) -> None:
            nonlocal said
            said = len(house.told)
            house.runs._runs["s1"].leased_until_ms = 0

        house.runs.before[call] = steal
        with pytest.raises(LeaseLost):
            await Drive(house.parts, "s1", fence).run()
        assert len(house.told) == said, call
        assert (await the(house)).state == "running"


async def test_another_driver_goes_on_with_the_task_that_the_first_began(tmp_path: Path) -> None:
    """Under the same id: it runs once, and its parameters count as one use."""
    release = asyncio.Event()

    async def wait(parameters: dict[str, Any]) -> dict[str, Any]:
        await release.wait()
        return parameters

    house = House(tmp_path, echo=echo, wait=wait)
    await house.begin(a_pipeline(a_phase("one", parameters={"x": 1}), a_phase("two", "wait", parameters={
        "x": "${one:results.x}"})), keep=True)  # fmt: skip
    first = asyncio.create_task(Drive(house.parts, "s1", await house.claim()).run())
    await until(lambda: house.office.runs["two"])
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    fence = await house.steal()
    began = (await the(house)).phases["two"]
    house.runs._update(house.runs._runs["s1"], "two", replace(began, since_ms=(began.since_ms or 0) - 60_000))
    looks, report_of = list[bool](), house.office.report_of

    async def note_looks(assignment: TaskAssignment, within_s: float, *, is_new: bool = False) -> Any:
        looks.append(not is_new)
        return await report_of(assignment, within_s, is_new=is_new)

    house.office.report_of = note_looks  # type: ignore[method-assign]
    second = asyncio.create_task(Drive(house.parts, "s1", fence).run())
    await until(lambda: len(house.office.assigned) >= 3)
    # Its record was looked at once; its report is awaited since.
    assert looks == [True, False]
    release.set()
    await second
    _, two, again = house.office.assigned
    assert two.task_id == again.task_id
    # Its time counts from when it first began, not from when it was taken over.
    assert 30 < (two.created_at - again.created_at).total_seconds() < 90
    assert house.office.runs == {"one": 1, "two": 1}
    assert (await outcome(house))["stats"]["total_hits"] == 1


async def test_a_task_that_ended_while_nobody_drove_is_settled_by_its_report(tmp_path: Path) -> None:
    """Without reading anything again, and without sending it again."""
    house = House(tmp_path, echo=echo)
    await house.begin(a_chain("one"))
    lost = asyncio.create_task(Drive(house.parts, "s1", await house.claim()).run())
    await until(lambda: house.office.runs["one"])
    lost.cancel()
    await asyncio.gather(lost, return_exceptions=True)
    fence = await house.steal()
    await Drive(house.parts, "s1", fence).run()
    assert len(house.office.assigned) == 1
    assert (await outcome(house))["state"] == "completed"


async def test_a_wish_that_comes_when_all_is_through_cancels_nothing(tmp_path: Path) -> None:
    """The result is there: it is given."""
    house = House(tmp_path, echo=echo)
    await house.begin(a_pipeline(a_phase("only", parameters={"x": 1})))
    drive = Drive(house.parts, "s1", await house.claim())
    settle = house.runs.settle_phase

    async def wish_then_settle(*given: Any, **told: Any) -> bool:
        drive.cancel("too late")
        return await settle(*given, **told)

    house.runs.settle_phase = wish_then_settle  # type: ignore[method-assign]
    await drive.run()
    assert ((await outcome(house))["state"], (await outcome(house))["result"]) == (
        "completed",
        {"only:results": {"x": 1}},
    )


async def test_a_wish_cancels_what_runs_for_good_and_ends_the_run(tmp_path: Path) -> None:
    """What was done stays, for a later resume."""
    never = asyncio.Event()

    async def wait(_parameters: dict[str, Any]) -> dict[str, Any]:
        await never.wait()
        return {}

    house = House(tmp_path, echo=echo, wait=wait)
    await house.begin(a_pipeline(a_phase("one", parameters={"x": 1}), a_phase("two", "wait", after=("one",))))
    drive = Drive(house.parts, "s1", await house.claim())
    running = asyncio.create_task(drive.run())
    await until(lambda: house.office.runs["two"])
    drive.cancel("no longer wanted")
    await running
    record = await the(house)
    assert record.state == "cancelled"
    assert house.office.cancelled == {record.phases["two"].task_id: "no longer wanted"}
    ended = await outcome(house)
    assert (ended["state"], [one["status"] for one in ended["phases"]]) == ("cancelled", ["done", "cancelled"])
    assert house.kinds()[-1] == ("cancelled", None)


async def test_a_wish_that_only_the_store_knows_is_heard_with_a_cancelled_report(tmp_path: Path) -> None:
    """Another supervisor noted it and cancelled the task."""
    never = asyncio.Event()

    async def wait(_parameters: dict[str, Any]) -> dict[str, Any]:
        await never.wait()
        return {}

    house = House(tmp_path, wait=wait)
    await house.begin(a_pipeline(a_phase("one", "wait")))
    running = asyncio.create_task(Drive(house.parts, "s1", await house.claim()).run())
    await until(lambda: house.office.runs["one"])
    reply = await house.ask("cancel", reason="enough")
    assert reply.kind == "accepted"
    await running
    assert (await the(house)).state == "cancelled"


async def test_a_task_that_somebody_cancels_by_itself_fails_its_phase(tmp_path: Path) -> None:
    """Nobody wished the whole run cancelled."""
    never = asyncio.Event()

    async def wait(_parameters: dict[str, Any]) -> dict[str, Any]:
        await never.wait()
        return {}

    house = House(tmp_path, wait=wait)
    await house.begin(a_pipeline(a_phase("one", "wait")))
    running = asyncio.create_task(house.drive())
    await until(lambda: house.office.runs["one"])
    await house.office.cancel(house.office.assigned[0].task_id, "by hand")
    await running
    assert (await the(house)).phases["one"].error_type == "TaskCancelled"
    assert (await the(house)).state == "failed"


async def test_what_is_restarted_gets_another_task_and_computes_anew(tmp_path: Path) -> None:
    """A session id that is used again too: what the ledger knows belongs to the run before."""
    house = House(tmp_path, echo=echo)
    chain = a_chain("one")
    await house.begin(chain)
    await house.drive()
    house.runs._outcomes.clear()
    await asyncio.sleep(0.002)
    await house.begin(chain)
    await house.drive()
    first, second = house.office.assigned
    assert first.task_id != second.task_id


async def test_secret_inputs_reach_the_task_and_not_the_evidence(tmp_path: Path) -> None:
    """Wherever the value came out again."""
    house = House(tmp_path, echo=echo, fail=fail)
    inputs = {"key": Input(type="text", secret=True)}
    use = a_phase("use", parameters={"x": "${input.key}"})
    await house.begin(
        a_pipeline(use, a_phase("bad", "fail", after=("use",)), inputs=inputs), inputs={"key": "hunter2!"}
    )
    await house.drive()
    assert house.office.assigned[0].task.parameters == {"x": "hunter2!"}
    written = evidence_in(await outcome(house))
    assert "hunter2!" not in written
    assert json.loads(written)["masked"] == {"inputs": ["key"], "entries": ["use:results"], "pipeline": []}


async def test_an_error_that_quotes_a_secret_is_kept_without_it(tmp_path: Path) -> None:
    """In the session, in the outcome, in what is told, and in the history, which nobody can delete."""

    def quote(parameters: dict[str, Any]) -> Any:
        raise OSError(f"refused {parameters['x']}")

    house = House(tmp_path, quote=quote)
    inputs = {"key": Input(type="text", secret=True)}
    use = a_phase("use", "quote", parameters={"x": "${input.key}"})
    await house.begin(a_pipeline(use, inputs=inputs), inputs={"key": "hunter2!"})
    await house.drive()
    [history] = await house.projects.search("p", kind="history")
    told = [event.model_dump_json() for event in house.told]
    kept = [str((await the(house)).phases), (await the(house)).error, json.dumps(await outcome(house)), history.text]
    assert "refused ***" in history.text
    assert [text for text in [*kept, *told] if "hunter2!" in text] == []


async def test_a_result_too_large_to_be_told_keeps_its_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its keys are named instead."""
    monkeypatch.setattr("supervisor.pipelines.outcome.MOST_RESULT_BYTES", 1_000)
    house = House(tmp_path, big=lambda _told: {"x": "y" * 1_000})
    await house.begin(a_pipeline(a_phase("one", "big")))
    await house.drive()
    ended = await outcome(house)
    assert (ended["result"], ended["withheld"]) == (None, ["one:results"])
    assert (await the(house)).state == "completed"
