"""Entries that are gone while a run goes on: they are made again, with what has read of them, a few times."""

import asyncio
import json
from pathlib import Path
from typing import Any

from memory.sessions.pipeline_records import RunRecord
from supervisor.pipelines.driver import MOST_RESTARTS
from tests.unit.supervisor.pipelines.house import House, a_phase, a_pipeline, echo


async def outcome(house: House, session_id: str = "s1") -> dict[str, Any]:
    """Return how the run ended."""
    told = await house.runs.outcome(session_id)
    assert told is not None
    return json.loads(told)


async def the(house: House, session_id: str = "s1") -> RunRecord:
    """Return the run as it is kept."""
    record = await house.runs.read(session_id)
    assert record is not None
    return record


async def test_an_entry_that_vanished_is_made_again_by_its_phase_alone(tmp_path: Path) -> None:
    """What else was done stays; the reader runs once."""
    house = House(tmp_path, echo=echo)

    async def drop(parameters: dict[str, Any]) -> dict[str, Any]:
        if house.office.runs["look"] == 1:
            await house.sessions.delete("s1", "look:results")
        return parameters

    house.office.works["drop"] = drop
    report = a_phase("report", parameters={"x": "${look:results.x}"}, after=("noise",))
    await house.begin(
        a_pipeline(a_phase("look", parameters={"x": 7}), a_phase("noise", "drop", after=("look",)), report)
    )
    await house.drive()
    assert (await outcome(house))["result"] == {"report:results": {"x": 7}}
    assert house.office.runs == {"look": 2, "noise": 1, "report": 1}
    assert ("phase_stale", "look") in house.kinds()
    assert [one.memory for one in house.office.assigned if one.phase == "look"] == ["use", "refresh"]


async def test_what_two_phases_miss_at_once_is_made_once(tmp_path: Path) -> None:
    """The one that asks later waits for what the other one set going."""
    house = House(tmp_path, echo=echo)
    get_many, lost, both = house.sessions.get_many, asyncio.Event(), asyncio.Barrier(2)

    async def vanish(session_id: str, keys: list[str], **told: Any) -> Any:
        if not lost.is_set():
            await house.sessions.delete(session_id, "look:results")
        found = await get_many(session_id, keys, **told)
        if not lost.is_set():
            await both.wait()
            lost.set()
        return found

    house.sessions.get_many = vanish  # type: ignore[method-assign,assignment]
    readers = [a_phase(name, parameters={"x": "${look:results.x}"}) for name in ("left", "right")]
    await house.begin(a_pipeline(a_phase("look", parameters={"x": 1}), *readers))
    await house.drive()
    assert house.office.runs == {"look": 2, "left": 1, "right": 1}
    assert house.kinds("phase_stale")[0] == ("phase_stale", "look")


async def test_two_generations_of_an_entry_do_not_mix(tmp_path: Path) -> None:
    """Whoever has read of a phase that runs again does so too; whoever only came after it does not."""
    house = House(tmp_path, echo=echo)
    generation = iter("12345")

    async def look(_parameters: dict[str, Any]) -> dict[str, Any]:
        return {"x": next(generation)}

    async def drop(parameters: dict[str, Any]) -> dict[str, Any]:
        if house.office.runs["look"] == 1:
            await house.sessions.delete("s1", "look:results")
        return parameters

    house.office.works |= {"look": look, "drop": drop}
    early = a_phase("early", parameters={"x": "${look:results.x}"})
    noise = a_phase("noise", "drop", after=("early",))
    both = {"now": "${look:results.x}", "then": "${early:results.x}"}
    late = a_phase("late", parameters=both, after=("noise",))
    await house.begin(a_pipeline(a_phase("look", "look"), early, noise, late))
    await house.drive()
    assert (await outcome(house))["result"] == {"late:results": {"now": "2", "then": "2"}}
    assert house.office.runs == {"look": 2, "early": 2, "noise": 1, "late": 1}


async def test_a_run_does_not_end_without_its_result(tmp_path: Path) -> None:
    """An entry that is gone by the end is made again, as one that a phase misses."""
    house = House(tmp_path, echo=echo)

    async def drop(parameters: dict[str, Any]) -> dict[str, Any]:
        if house.office.runs["early"] == 1:
            await house.sessions.delete("s1", "early:results")
        return parameters

    house.office.works["drop"] = drop
    early = a_phase("early", parameters={"x": 1})
    await house.begin(a_pipeline(early, a_phase("late", "drop", after=("early",)), result="early:results"))
    await house.drive()
    ended = await outcome(house)
    assert (ended["state"], ended["result"], ended["missing"]) == ("completed", {"x": 1}, [])
    assert house.office.runs == {"early": 2, "late": 1}


async def test_a_result_that_is_always_gone_fails_the_run(tmp_path: Path) -> None:
    """After a few times, with the cure; its session stays for a resume."""
    house = House(tmp_path, echo=echo)
    entries = house.sessions.entries

    async def vanish(session_id: str) -> Any:
        await house.sessions.delete(session_id, "only:results")
        return await entries(session_id)

    house.sessions.entries = vanish  # type: ignore[method-assign]
    await house.begin(a_pipeline(a_phase("only", parameters={"x": 1})))
    await house.drive()
    ended = await outcome(house)
    assert ended["state"] == "failed"
    assert "'only:results'" in ended["error"]
    assert "keep_for" in ended["error"]
    assert house.office.runs == {"only": MOST_RESTARTS + 1}
    assert (await the(house)).state == "failed"


async def test_what_a_correction_wrote_is_made_again_by_the_correction(tmp_path: Path) -> None:
    """Not by the phase whose name the reader uses."""
    house = House(tmp_path, echo=echo)

    async def drop(parameters: dict[str, Any]) -> dict[str, Any]:
        if house.office.runs["pass_2"] == 1:
            await house.sessions.delete("s1", "pass_2:results")
        return parameters

    house.office.works["drop"] = drop
    first, second = a_phase("pass_1", parameters={"x": 1}), a_phase("pass_2", parameters={"x": 2}, corrects="pass_1")
    noise = a_phase("noise", "drop", after=("pass_2",))
    report = a_phase("report", parameters={"x": "${pass_1:results.x}"}, after=("noise",))
    await house.begin(a_pipeline(first, second, noise, report))
    await house.drive()
    assert (await outcome(house))["result"] == {"report:results": {"x": 2}}
    assert house.office.runs == {"pass_1": 1, "pass_2": 2, "noise": 1, "report": 1}


async def test_an_entry_that_always_vanishes_fails_its_reader(tmp_path: Path) -> None:
    """After a few times: the message names the phase, the entry and the cure."""
    house = House(tmp_path, echo=echo)
    get_many = house.sessions.get_many

    async def vanish(session_id: str, keys: list[str], **told: Any) -> Any:
        await house.sessions.delete(session_id, "look:results")
        return await get_many(session_id, keys, **told)

    house.sessions.get_many = vanish  # type: ignore[method-assign,assignment]
    await house.begin(a_pipeline(a_phase("look"), a_phase("report", parameters={"x": "${look:results}"})))
    await house.drive()
    state = (await the(house)).phases["report"]
    assert (state.status, state.error_type) == ("failed", "CacheIncomplete")
    assert "'look:results'" in (state.error or "")
    assert "keep_for" in (state.error or "")
    assert house.office.runs == {"look": MOST_RESTARTS + 1}


async def test_an_entry_that_is_only_declared_to_be_read_is_missed_too(tmp_path: Path) -> None:
    """The agent would ask for it in vain."""
    house = House(tmp_path, echo=echo)

    async def drop(parameters: dict[str, Any]) -> dict[str, Any]:
        if house.office.runs["look"] == 1:
            await house.sessions.delete("s1", "look:results")
        return parameters

    house.office.works["drop"] = drop
    report = a_phase("report", reads=("look:results",), after=("noise",))
    await house.begin(a_pipeline(a_phase("look"), a_phase("noise", "drop", after=("look",)), report))
    await house.drive()
    assert house.office.runs == {"look": 2, "noise": 1, "report": 1}
