"""A driver of one run: order, references, conditions, failures, loss of its lease, cancellation."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.messages import TaskAssignment
from tasklore.contracts.pipelines import Input
from tasklore.runtime.claim_loop import LeaseLost
from tasklore.supervisor.pipelines.drive import Drive
from tests.unit.supervisor.pipelines.fake_system import (
    FakeSystem,
    Waiting,
    a_chain,
    a_phase,
    a_pipeline,
    echo,
    fail,
    until,
)


def evidence_in(ended: dict[str, Any]) -> str:
    return Path(ended["evidence"]).read_text()


async def test_a_chain_runs_in_order_and_passes_values_on(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, add=lambda told: {"x": told["x"] + 1})
    await system.begin(a_chain("one", "two", "three", task="add"))
    await system.drive()
    assert system.kinds("phase_started", "phase_done", "completed") == [
        ("phase_started", "one"), ("phase_done", "one"), ("phase_started", "two"), ("phase_done", "two"),
        ("phase_started", "three"), ("phase_done", "three"), ("completed", None),
    ]  # fmt: skip
    ended = await system.outcome()
    assert ended["result"] == {"three:results": {"x": 4}}
    # What a phase reads of another one of the same run was computed in it, and saved nothing.
    assert (ended["stats"]["total_hits"], ended["stats"]["total_saved_time_ms"]) == (
        2,
        0,
    )
    assert [one["saved_ms"] for one in ended["phases"]] == [0, 0, 0]
    assert await system.runs.read("s1") is None
    assert await system.sessions.root("s1") is None
    assert [one.through for one in system.events if one.kind == "phase_done"] == [
        1,
        2,
        3,
    ]


async def test_independent_phases_run_side_by_side(tmp_path: Path) -> None:
    both = asyncio.Barrier(2)

    async def meet(parameters: dict[str, Any]) -> dict[str, Any]:
        await both.wait()
        return parameters

    system = FakeSystem(tmp_path, meet=meet, echo=echo)
    join = a_phase(
        "join", parameters={"a": "${left:results.x}", "b": "${right:results.x}"}
    )
    left, right = (
        a_phase(name, "meet", parameters={"x": name}) for name in ("left", "right")
    )
    await system.begin(a_pipeline(left, right, join))
    await system.drive()
    assert (await system.outcome())["result"] == {
        "join:results": {"a": "left", "b": "right"}
    }


async def test_a_phase_whose_condition_does_not_hold_is_skipped(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    review = a_phase("review", when="${look:results.x} > 5")
    report = a_phase(
        "report", parameters={"a": "${review:results?}", "b": "${look:results.x}"}
    )
    await system.begin(a_pipeline(a_phase("look", parameters={"x": 3}), review, report))
    await system.drive()
    ended = await system.outcome()
    assert ended["result"] == {"report:results": {"a": None, "b": 3}}
    assert [
        (one["status"], "${look:results.x} > 5" in one["why"])
        for one in ended["phases"]
    ][1] == ("skipped", True)
    assert system.workers.runs == {"look": 1, "report": 1}
    assert ("phase_skipped", "review") in system.kinds()


async def test_a_failure_stops_its_dependents_alone(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, fail=fail, echo=echo)
    bad = a_phase("bad", "fail")
    good = a_phase("good", parameters={"x": 1})
    after_bad = a_phase("after_bad", parameters={"x": "${bad:results}"})
    after_good = a_phase("after_good", parameters={"x": "${good:results.x}"})
    await system.begin(a_pipeline(bad, good, after_bad, after_good))
    await system.drive()
    wanted = {
        "bad": "failed",
        "good": "done",
        "after_bad": "pending",
        "after_good": "done",
    }
    assert await system.statuses() == wanted
    ended = await system.outcome()
    assert (ended["state"], ended["result"]) == ("failed", None)
    assert "phase 'bad' failed: OSError: disk full" in ended["error"]
    assert (await system.record()).state == "failed"
    bundle = json.loads(evidence_in(ended))
    assert bundle["phases"]["bad"]["error"] == "disk full"
    assert set(bundle["session"]["cache"]) == {"good:results", "after_good:results"}


async def test_a_run_ends_although_its_evidence_cannot_be_written(
    tmp_path: Path,
) -> None:
    system = FakeSystem(tmp_path, fail=fail)
    await system.begin(a_pipeline(a_phase("bad", "fail")))

    async def broken(_session_id: str) -> dict[str, Any]:
        raise RecursionError("an entry is nested too deeply")

    system.sessions.export = broken  # type: ignore[method-assign]
    await system.drive()
    ended = await system.outcome()
    assert (ended["state"], ended["evidence"]) == ("failed", None)
    assert (await system.record()).state == "failed"


async def forget(system: FakeSystem, session_id: str = "s1") -> None:
    """Remove the session with all that it has, as when its user is forgotten."""
    system.runs._runs.pop(session_id)
    await system.sessions.drop(session_id, force=True)


async def steal(system: FakeSystem) -> None:
    await system.steal()


@pytest.mark.parametrize("happen", [forget, steal])
@pytest.mark.parametrize("when", ["settle_phase", "seen", "end"])
async def test_a_lost_or_forgotten_run_leaves_nothing_behind(
    tmp_path: Path, happen: Callable[[FakeSystem], Awaitable[None]], when: str
) -> None:
    system = FakeSystem(tmp_path, fail=fail)
    await system.begin(
        a_pipeline(a_phase("bad", "fail"), project="shop"), user_id="ann"
    )
    real = getattr(system.runs, when)

    async def meanwhile(*told: Any, **more: Any) -> Any:
        if when == "end":
            await happen(system)
            return await real(*told, **more)
        done = await real(*told, **more)
        await happen(system)
        return done

    setattr(system.runs, when, meanwhile)
    with pytest.raises(LeaseLost):
        await system.drive()
    assert list(system.evidence.glob("*")) == []
    # What was noted before the end itself was refused can no longer be taken back.
    assert len(await system.projects.search("shop", kind="history")) == (when == "end")
    assert await system.runs.outcome("s1") is None
    assert system.kinds("failed") == []


async def test_evidence_of_another_driver_is_not_removed(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, fail=fail)
    await system.begin(a_pipeline(a_phase("bad", "fail")))
    place = system.evidence / "s1-failed.json"
    real = system.runs.end

    async def end(*told: Any, **more: Any) -> bool:
        others = place.with_name("others")
        others.write_text("of another driver")
        others.replace(place)
        await system.steal()
        return await real(*told, **more)

    system.runs.end = end  # type: ignore[method-assign]
    with pytest.raises(LeaseLost):
        await system.drive()
    assert place.read_text() == "of another driver"


async def test_each_run_is_recorded_once_in_its_projects_history(
    tmp_path: Path,
) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    await system.begin(a_chain("one", project="shop"), user_id="ann")

    async def crash(*_told: Any, **_more: Any) -> bool:
        raise MemoryUnavailable("away")

    end = system.runs.end
    system.runs.end = crash  # type: ignore[method-assign]
    with pytest.raises(MemoryUnavailable):
        await system.drive()
    system.runs.end = end  # type: ignore[method-assign]
    fence = await system.steal()
    await Drive(system.parts, "s1", fence).run()
    [record] = await system.projects.search("shop", kind="history")
    assert (record.by, record.session_id, record.data["state"]) == (
        "ann",
        "s1",
        "completed",
    )
    # That the result was read for the outcome, and read again, is no use of it.
    assert (await system.outcome())["stats"]["total_hits"] == 0
    assert system.workers.runs == {"one": 1}


async def test_an_assignment_has_deadline_attempts_user_and_memory_of_its_phase(
    tmp_path: Path,
) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    one = a_phase("one", timeout="90s", retries=4, memory="bypass", keep_for="2m")
    await system.begin(a_pipeline(one), user_id="ann")
    await system.drive()
    [assignment] = system.workers.assigned
    assert assignment.deadline is not None
    assert (assignment.deadline - assignment.created_at).total_seconds() == 90
    assert (assignment.max_attempts, assignment.user_id, assignment.memory) == (
        5,
        "ann",
        "bypass",
    )
    assert assignment.keep_ms == 120_000
    assert (assignment.session_id, assignment.phase, assignment.writes) == (
        "s1",
        "one",
        ("results",),
    )


async def test_a_reference_to_nothing_fails_its_phase(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    lost = a_phase("lost", parameters={"x": "${look:results.y.z}"})
    await system.begin(a_pipeline(a_phase("look", parameters={"x": 1}), lost))
    await system.drive()
    state = (await system.record()).phases["lost"]
    assert (state.status, state.error_type) == ("failed", "InvalidInput")
    assert "look:results.y" in (state.error or "")
    assert system.workers.runs == {"look": 1}


async def test_parameters_too_large_for_a_message_fail_with_the_cure(
    tmp_path: Path,
) -> None:
    system = FakeSystem(tmp_path, big=lambda _told: {"x": "y" * 1_000_000}, echo=echo)
    await system.begin(
        a_pipeline(
            a_phase("big", "big"), a_phase("next", parameters={"x": "${big:results.x}"})
        )
    )
    await system.drive()
    state = (await system.record()).phases["next"]
    assert (state.status, state.error_type) == ("failed", "MessageTooLarge")
    assert "context.session" in (state.error or "")


async def test_a_full_queue_is_retried(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    system.workers.refuses = 3
    await system.begin(a_chain("one"))
    await system.drive()
    assert (await system.outcome())["state"] == "completed"


async def test_a_driver_that_lost_its_lease_stops_silently(tmp_path: Path) -> None:
    for call in ("begin_phase", "settle_phase", "end"):
        system = FakeSystem(tmp_path, echo=echo)
        await system.begin(a_chain("one"))
        fence = await system.claim()
        said = -1

        def steal(system: FakeSystem = system) -> None:
            nonlocal said
            said = len(system.events)
            system.runs._runs["s1"].leased_until_ms = 0

        system.runs.before[call] = steal
        with pytest.raises(LeaseLost):
            await Drive(system.parts, "s1", fence).run()
        assert len(system.events) == said, call
        assert (await system.record()).state == "running"


async def test_another_driver_goes_on_with_the_task_of_the_first(
    tmp_path: Path,
) -> None:
    wait = Waiting()
    system = FakeSystem(tmp_path, echo=echo, wait=wait)
    await system.begin(a_pipeline(a_phase("one", parameters={"x": 1}), a_phase("two", "wait", parameters={
        "x": "${one:results.x}"})), keep=True)  # fmt: skip
    first = asyncio.create_task(Drive(system.parts, "s1", await system.claim()).run())
    await until(lambda: system.workers.runs["two"])
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    fence = await system.steal()
    began = (await system.record()).phases["two"]
    system.runs._update(
        system.runs._runs["s1"],
        "two",
        replace(began, since_ms=(began.since_ms or 0) - 60_000),
    )
    looks = list[bool]()
    report_of = system.workers.report_of

    async def note_looks(
        assignment: TaskAssignment, within_s: float, *, is_new: bool = False
    ) -> Any:
        looks.append(not is_new)
        return await report_of(assignment, within_s, is_new=is_new)

    system.workers.report_of = note_looks  # type: ignore[method-assign]
    second = asyncio.create_task(Drive(system.parts, "s1", fence).run())
    await until(lambda: len(system.workers.assigned) >= 3)
    # Its record was looked at once; its report is awaited since.
    assert looks == [True, False]
    wait.release.set()
    await second
    _, two, again = system.workers.assigned
    assert two.task_id == again.task_id
    # Its time counts from when it first began, not from when it was taken over.
    assert 30 < (two.created_at - again.created_at).total_seconds() < 90
    assert system.workers.runs == {"one": 1, "two": 1}
    assert (await system.outcome())["stats"]["total_hits"] == 1


async def test_a_task_that_ended_without_a_driver_is_settled_by_its_report(
    tmp_path: Path,
) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    await system.begin(a_chain("one"))
    lost = asyncio.create_task(Drive(system.parts, "s1", await system.claim()).run())
    await until(lambda: system.workers.runs["one"])
    lost.cancel()
    await asyncio.gather(lost, return_exceptions=True)
    fence = await system.steal()
    await Drive(system.parts, "s1", fence).run()
    assert len(system.workers.assigned) == 1
    assert (await system.outcome())["state"] == "completed"


async def test_a_cancellation_after_the_last_phase_changes_nothing(
    tmp_path: Path,
) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    await system.begin(a_pipeline(a_phase("only", parameters={"x": 1})))
    drive = Drive(system.parts, "s1", await system.claim())
    settle = system.runs.settle_phase

    async def wish_then_settle(*given: Any, **told: Any) -> bool:
        drive.cancel("too late")
        return await settle(*given, **told)

    system.runs.settle_phase = wish_then_settle  # type: ignore[method-assign]
    await drive.run()
    assert ((await system.outcome())["state"], (await system.outcome())["result"]) == (
        "completed",
        {"only:results": {"x": 1}},
    )


async def test_a_cancellation_cancels_running_tasks_and_the_run(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo, wait=Waiting())
    await system.begin(
        a_pipeline(
            a_phase("one", parameters={"x": 1}), a_phase("two", "wait", after=("one",))
        )
    )
    drive = Drive(system.parts, "s1", await system.claim())
    running = asyncio.create_task(drive.run())
    await until(lambda: system.workers.runs["two"])
    drive.cancel("no longer wanted")
    await running
    record = await system.record()
    assert record.state == "cancelled"
    assert system.workers.cancelled == {
        record.phases["two"].task_id: "no longer wanted"
    }
    ended = await system.outcome()
    assert (ended["state"], [one["status"] for one in ended["phases"]]) == (
        "cancelled",
        ["done", "cancelled"],
    )
    assert system.kinds()[-1] == ("cancelled", None)


async def test_a_task_cancelled_by_itself_fails_its_phase(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, wait=Waiting())
    await system.begin(a_pipeline(a_phase("one", "wait")))
    running = asyncio.create_task(system.drive())
    await until(lambda: system.workers.runs["one"])
    await system.workers.cancel(system.workers.assigned[0].task_id, "by hand")
    await running
    assert (await system.record()).phases["one"].error_type == "TaskCancelled"
    assert (await system.record()).state == "failed"


async def test_a_restarted_run_gets_new_tasks(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    chain = a_chain("one")
    await system.begin(chain)
    await system.drive()
    system.runs._outcomes.clear()
    await asyncio.sleep(0.002)
    await system.begin(chain)
    await system.drive()
    first, second = system.workers.assigned
    assert first.task_id != second.task_id


async def test_secret_inputs_reach_tasks_and_no_evidence(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo, fail=fail)
    inputs = {"key": Input(type="text", secret=True)}
    use = a_phase("use", parameters={"x": "${input.key}"})
    await system.begin(
        a_pipeline(use, a_phase("bad", "fail", after=("use",)), inputs=inputs),
        inputs={"key": "hunter2!"},
    )
    await system.drive()
    assert system.workers.assigned[0].task.parameters == {"x": "hunter2!"}
    written = evidence_in(await system.outcome())
    assert "hunter2!" not in written
    assert json.loads(written)["masked"] == {
        "inputs": ["key"],
        "entries": ["use:results"],
        "pipeline": [],
    }


async def test_an_error_that_quotes_a_secret_is_stored_masked(tmp_path: Path) -> None:
    def quote(parameters: dict[str, Any]) -> Any:
        raise OSError(f"refused {parameters['x']}")

    system = FakeSystem(tmp_path, quote=quote)
    inputs = {"key": Input(type="text", secret=True)}
    use = a_phase("use", "quote", parameters={"x": "${input.key}"})
    await system.begin(a_pipeline(use, inputs=inputs), inputs={"key": "hunter2!"})
    await system.drive()
    [history] = await system.projects.search("p", kind="history")
    told = [event.model_dump_json() for event in system.events]
    kept = [
        str((await system.record()).phases),
        (await system.record()).error,
        json.dumps(await system.outcome()),
        history.text,
    ]
    assert "refused ***" in history.text
    assert [text for text in [*kept, *told] if "hunter2!" in text] == []


async def test_a_result_too_large_for_the_outcome_keeps_its_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tasklore.supervisor.pipelines.outcome.MOST_RESULT_BYTES", 1_000
    )
    system = FakeSystem(tmp_path, big=lambda _told: {"x": "y" * 1_000})
    await system.begin(a_pipeline(a_phase("one", "big")))
    await system.drive()
    ended = await system.outcome()
    assert (ended["result"], ended["withheld"]) == (None, ["one:results"])
    assert (await system.record()).state == "completed"
