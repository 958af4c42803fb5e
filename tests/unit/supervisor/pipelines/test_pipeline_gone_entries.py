"""Entries that vanish during a run are computed again with what has read them, a limited number of times."""

import asyncio
from pathlib import Path
from typing import Any

from tasklore.supervisor.pipelines.drive import MOST_RESTARTS
from tests.unit.supervisor.pipelines.fake_system import (
    FakeSystem,
    a_phase,
    a_pipeline,
    echo,
)


async def test_a_vanished_entry_is_computed_again_by_its_phase_alone(
    tmp_path: Path,
) -> None:
    system = FakeSystem(tmp_path, echo=echo)

    async def drop(parameters: dict[str, Any]) -> dict[str, Any]:
        if system.workers.runs["look"] == 1:
            await system.sessions.delete("s1", "look:results")
        return parameters

    system.workers.works["drop"] = drop
    report = a_phase("report", parameters={"x": "${look:results.x}"}, after=("noise",))
    await system.begin(
        a_pipeline(
            a_phase("look", parameters={"x": 7}),
            a_phase("noise", "drop", after=("look",)),
            report,
        )
    )
    await system.drive()
    assert (await system.outcome())["result"] == {"report:results": {"x": 7}}
    assert system.workers.runs == {"look": 2, "noise": 1, "report": 1}
    assert ("phase_stale", "look") in system.kinds()
    assert [one.memory for one in system.workers.assigned if one.phase == "look"] == [
        "use",
        "refresh",
    ]


async def test_an_entry_missed_by_two_phases_is_computed_once(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    get_many = system.sessions.get_many
    lost = asyncio.Event()
    both = asyncio.Barrier(2)

    async def vanish(session_id: str, keys: list[str], **told: Any) -> Any:
        if not lost.is_set():
            await system.sessions.delete(session_id, "look:results")
        found = await get_many(session_id, keys, **told)
        if not lost.is_set():
            await both.wait()
            lost.set()
        return found

    system.sessions.get_many = vanish  # type: ignore[method-assign,assignment]
    readers = [
        a_phase(name, parameters={"x": "${look:results.x}"})
        for name in ("left", "right")
    ]
    await system.begin(a_pipeline(a_phase("look", parameters={"x": 1}), *readers))
    await system.drive()
    assert system.workers.runs == {"look": 2, "left": 1, "right": 1}
    assert system.kinds("phase_stale")[0] == ("phase_stale", "look")


async def test_readers_of_a_recomputed_entry_run_again(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    generation = iter("12345")

    async def look(_parameters: dict[str, Any]) -> dict[str, Any]:
        return {"x": next(generation)}

    async def drop(parameters: dict[str, Any]) -> dict[str, Any]:
        if system.workers.runs["look"] == 1:
            await system.sessions.delete("s1", "look:results")
        return parameters

    system.workers.works |= {"look": look, "drop": drop}
    early = a_phase("early", parameters={"x": "${look:results.x}"})
    noise = a_phase("noise", "drop", after=("early",))
    both = {"now": "${look:results.x}", "then": "${early:results.x}"}
    late = a_phase("late", parameters=both, after=("noise",))
    await system.begin(a_pipeline(a_phase("look", "look"), early, noise, late))
    await system.drive()
    assert (await system.outcome())["result"] == {
        "late:results": {"now": "2", "then": "2"}
    }
    assert system.workers.runs == {"look": 2, "early": 2, "noise": 1, "late": 1}


async def test_a_result_that_vanished_is_computed_again_before_the_end(
    tmp_path: Path,
) -> None:
    system = FakeSystem(tmp_path, echo=echo)

    async def drop(parameters: dict[str, Any]) -> dict[str, Any]:
        if system.workers.runs["early"] == 1:
            await system.sessions.delete("s1", "early:results")
        return parameters

    system.workers.works["drop"] = drop
    early = a_phase("early", parameters={"x": 1})
    await system.begin(
        a_pipeline(
            early, a_phase("late", "drop", after=("early",)), result="early:results"
        )
    )
    await system.drive()
    ended = await system.outcome()
    assert (ended["state"], ended["result"], ended["missing"]) == (
        "completed",
        {"x": 1},
        [],
    )
    assert system.workers.runs == {"early": 2, "late": 1}


async def test_a_vanished_corrected_entry_is_computed_again_by_the_correction(
    tmp_path: Path,
) -> None:
    system = FakeSystem(tmp_path, echo=echo)

    async def drop(parameters: dict[str, Any]) -> dict[str, Any]:
        if system.workers.runs["pass_2"] == 1:
            await system.sessions.delete("s1", "pass_2:results")
        return parameters

    system.workers.works["drop"] = drop
    first = a_phase("pass_1", parameters={"x": 1})
    second = a_phase("pass_2", parameters={"x": 2}, corrects="pass_1")
    noise = a_phase("noise", "drop", after=("pass_2",))
    report = a_phase(
        "report", parameters={"x": "${pass_1:results.x}"}, after=("noise",)
    )
    await system.begin(a_pipeline(first, second, noise, report))
    await system.drive()
    assert (await system.outcome())["result"] == {"report:results": {"x": 2}}
    assert system.workers.runs == {"pass_1": 1, "pass_2": 2, "noise": 1, "report": 1}


async def test_an_entry_that_always_vanishes_fails_its_reader(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    get_many = system.sessions.get_many

    async def vanish(session_id: str, keys: list[str], **told: Any) -> Any:
        await system.sessions.delete(session_id, "look:results")
        return await get_many(session_id, keys, **told)

    system.sessions.get_many = vanish  # type: ignore[method-assign,assignment]
    await system.begin(
        a_pipeline(
            a_phase("look"), a_phase("report", parameters={"x": "${look:results}"})
        )
    )
    await system.drive()
    state = (await system.record()).phases["report"]
    assert (state.status, state.error_type) == ("failed", "CacheIncomplete")
    assert "'look:results'" in (state.error or "")
    assert "keep_for" in (state.error or "")
    assert system.workers.runs == {"look": MOST_RESTARTS + 1}
