"""The desk of pipelines: who drives what, under which lease, and what becomes of it when something goes wrong."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from contracts.errors import InvalidPipeline, MemoryUnavailable
from tests.unit.supervisor.pipelines.house import House, a_chain, a_phase, a_pipeline, at_work, echo, the_end, until


class Waiting:
    """A task that runs until it is let go."""

    def __init__(self) -> None:
        self.release = asyncio.Event()
        self.begun = asyncio.Event()

    async def __call__(self, parameters: dict[str, Any]) -> dict[str, Any]:
        """Wait."""
        self.begun.set()
        await self.release.wait()
        return parameters


async def test_many_runs_are_driven_side_by_side(tmp_path: Path) -> None:
    """Each waits for the same thing; none waits for another."""
    wait = Waiting()
    house = House(tmp_path, wait=wait)
    for number in range(20):
        await house.begin(a_pipeline(a_phase("one", "wait")), session_id=f"s{number}")
    async with at_work(house.desk()) as desk:
        await until(lambda: house.office.runs["one"] >= 20)
        assert len(desk.driven) == 20
        wait.release.set()
        for number in range(20):
            await the_end(house, f"s{number}")


async def test_nobody_has_so_many_runs_that_others_wait(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One user's runs take half of the seats at most; the rest of theirs come later."""
    monkeypatch.setattr("supervisor.pipelines.desk.RUNS_AT_ONCE", 4)
    monkeypatch.setattr("supervisor.pipelines.desk.RUNS_OF_ONE", 2)
    monkeypatch.setattr("supervisor.pipelines.desk._CROWDED_S", 0.05)
    wait = Waiting()
    house = House(tmp_path, wait=wait, echo=echo)
    for number in range(6):
        await house.begin(a_pipeline(a_phase("one", "wait")), session_id=f"s{number}", user_id="mallory")
    await house.begin(a_chain("two"), session_id="other", user_id="ann")
    async with at_work(house.desk()) as desk:
        assert (await the_end(house, "other"))["state"] == "completed"
        assert len(desk.driven) <= 2
        wait.release.set()
        for number in range(6):
            await the_end(house, f"s{number}")


async def test_a_run_begins_as_soon_as_the_desk_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not at the next look, which is in an hour."""
    monkeypatch.setattr("runtime.lease_loop.LOOK_S", 3600.0)
    house = House(tmp_path, echo=echo)
    looks: list[str] = []
    due = house.runs.due

    async def note(supervisor_id: str, limit: int = 100) -> list[str]:
        looks.append(supervisor_id)
        return await due(supervisor_id, limit)

    house.runs.due = note  # type: ignore[method-assign]
    async with at_work(house.desk()) as desk:
        await until(lambda: looks)
        await house.begin(a_chain("one"))
        desk.look_soon("s1")
        await the_end(house)


async def test_leaving_gives_every_lease_back_at_once(tmp_path: Path) -> None:
    """Somebody else may claim the run while its task still runs."""
    wait = Waiting()
    house = House(tmp_path, wait=wait)
    await house.begin(a_pipeline(a_phase("one", "wait")))
    async with at_work(house.desk("first", lease_s=3600)):
        await wait.begun.wait()
    assert await house.runs.due("S") == ["s1"]
    async with at_work(house.desk("second")):
        wait.release.set()
        assert (await the_end(house))["state"] == "completed"
    assert house.office.runs == {"one": 1}


async def test_a_lease_is_renewed_while_a_phase_takes_its_time(tmp_path: Path) -> None:
    """Longer than the lease: nobody else may claim it."""
    wait = Waiting()
    house = House(tmp_path, wait=wait)
    await house.begin(a_pipeline(a_phase("one", "wait")))
    async with at_work(house.desk(lease_s=3)) as desk:
        await wait.begun.wait()
        first = house.runs._runs["s1"].leased_until_ms
        await until(lambda: house.runs._runs["s1"].leased_until_ms > first)
        assert desk.driven == ("s1",)
        wait.release.set()
        await the_end(house)


async def test_a_run_that_somebody_else_took_is_let_go(tmp_path: Path) -> None:
    """With the next renewal, though it waits for a report only; nothing is said of it any more."""
    wait = Waiting()
    house = House(tmp_path, wait=wait)
    await house.begin(a_pipeline(a_phase("one", "wait")))
    async with at_work(house.desk(lease_s=0.5)) as desk:
        await wait.begun.wait()
        await house.steal()
        said = len(house.told)
        await until(lambda: not desk.driven)
        wait.release.set()
        await asyncio.sleep(0.01)
        assert len(house.told) == said


async def test_a_session_that_cannot_be_read_ends_no_other_run(tmp_path: Path) -> None:
    """Workers write there: a wish that is no text ended whichever supervisor renewed the lease."""
    wait = Waiting()
    house = House(tmp_path, wait=wait)
    for name in ("s1", "s2"):
        await house.begin(a_pipeline(a_phase("one", "wait")), session_id=name)
    asked = asyncio.Event()

    async def unreadable(session_id: str) -> str | None:
        if session_id == "s2":
            return None
        asked.set()
        return b"\xff".decode()

    house.runs.cancel_reason = unreadable  # type: ignore[method-assign]
    async with at_work(house.desk(lease_s=0.3)):
        await asked.wait()
        await until(lambda: house.office.runs["one"] >= 2)
        wait.release.set()
        assert (await the_end(house, "s2"))["state"] == "completed"


async def test_a_wish_in_the_store_is_heard_with_a_renewal(tmp_path: Path) -> None:
    """Whoever noted it could not reach the task."""
    wait = Waiting()
    house = House(tmp_path, wait=wait)
    await house.begin(a_pipeline(a_phase("one", "wait")))
    async with at_work(house.desk(lease_s=0.3)):
        await wait.begun.wait()
        await house.runs.request_cancel("s1", "enough")
        assert (await the_end(house))["state"] == "cancelled"
        assert list(house.office.cancelled.values()) == ["enough"]


async def test_a_run_that_cannot_be_driven_ends_as_failed(tmp_path: Path) -> None:
    """After a few tries, with what was wrong, and without disturbing others."""
    house = House(tmp_path, echo=echo)

    async def fall(*_told: Any, **_more: Any) -> bool:
        raise KeyError("ours")

    begin = house.runs.begin_phase

    async def choose(session_id: str, *told: Any) -> bool:
        return await (fall if session_id == "s1" else begin)(session_id, *told)

    house.runs.begin_phase = choose  # type: ignore[method-assign,assignment]
    await house.begin(a_chain("one"))
    await house.begin(a_chain("one"), session_id="s2")
    # A traceback in colours takes a second.
    with capture_logs() as logged:
        async with at_work(house.desk()) as desk:
            while await house.runs.outcome("s1") is None:
                desk.look_soon("s1")
                await asyncio.sleep(0.001)
            assert "KeyError" in (await the_end(house))["error"]
            assert (await the_end(house, "s2"))["state"] == "completed"
    assert [one["event"] for one in logged].count("driving_failed") == 4


async def test_a_run_over_which_drivers_died_is_driven_by_nobody_until_it_is_resumed(tmp_path: Path) -> None:
    """Others go on meanwhile."""
    house = House(tmp_path, echo=echo)
    await house.begin(a_chain("one"))
    for holder in ("a", "b", "c"):
        await house.steal_as(holder)
    async with at_work(house.desk()):
        await house.begin(a_chain("one"), session_id="s2")
        await the_end(house, "s2")
        ended = await the_end(house)
        assert ended["state"] == "failed"
        assert "set aside" in ended["error"]
        assert house.office.runs["one"] == 1
        assert (await house.ask("resume")).kind == "accepted"
        await until(lambda: house.office.runs["one"] == 2)


async def test_a_lease_that_lapsed_while_the_store_was_away_is_held_against_nobody(tmp_path: Path) -> None:
    """Two died over the run; whoever had it then could not renew it, and is alive."""
    house = House(tmp_path, echo=echo)
    await house.begin(a_chain("one"))
    for holder in ("a", "b", "c"):
        await house.steal_as(holder)
    due, was_away = house.runs.due, False

    async def once_away(supervisor_id: str, limit: int = 100) -> list[str]:
        nonlocal was_away
        if not was_away:
            was_away = True
            raise MemoryUnavailable("away")
        return await due(supervisor_id, limit)

    house.runs.due = once_away  # type: ignore[method-assign]
    async with at_work(house.desk()):
        assert (await the_end(house))["state"] == "completed"


async def test_a_run_that_cannot_even_be_read_disturbs_no_other(tmp_path: Path) -> None:
    """It is left alone; the desk goes on."""
    house = House(tmp_path, echo=echo)
    await house.begin(a_chain("one"))
    await house.begin(a_chain("one"), session_id="s2")
    read = house.runs.read

    async def choose(session_id: str) -> Any:
        if session_id == "s1":
            raise InvalidPipeline(["a newer version made it"])
        return await read(session_id)

    house.runs.read = choose  # type: ignore[method-assign]
    with capture_logs() as logged:
        async with at_work(house.desk()) as desk:
            while "pipeline_left_alone" not in [one["event"] for one in logged]:
                desk.look_soon("s1")
                await asyncio.sleep(0.001)
            assert (await the_end(house, "s2"))["state"] == "completed"


async def test_a_store_that_is_away_keeps_no_desk_from_going_on_later(tmp_path: Path) -> None:
    """The look itself fails, and then does not."""
    house = House(tmp_path, echo=echo)
    due, failures = house.runs.due, 3

    async def sometimes(supervisor_id: str, limit: int = 100) -> list[str]:
        nonlocal failures
        if failures:
            failures -= 1
            raise MemoryUnavailable("away")
        return await due(supervisor_id, limit)

    house.runs.due = sometimes  # type: ignore[method-assign]
    await house.begin(a_chain("one"))
    async with at_work(house.desk()) as desk:
        assert (await the_end(house))["state"] == "completed"
        assert desk.vital_sign()[0]
