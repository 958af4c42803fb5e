"""The desk of pipelines: which runs it drives, under which lease, and what it does when that fails."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tasklore.contracts.errors import InvalidPipeline, MemoryUnavailable
from tests.unit.supervisor.pipelines.fake_system import (
    FakeSystem,
    Waiting,
    a_chain,
    a_phase,
    a_pipeline,
    at_work,
    echo,
    the_end,
    until,
)


async def test_a_user_has_half_of_the_places_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasklore.supervisor.pipelines.driver.RUNS_AT_ONCE", 4)
    monkeypatch.setattr("tasklore.supervisor.pipelines.driver.RUNS_OF_ONE", 2)
    monkeypatch.setattr("tasklore.supervisor.pipelines.driver._CROWDED_S", 0.05)
    wait = Waiting()
    system = FakeSystem(tmp_path, wait=wait, echo=echo)
    for number in range(6):
        await system.begin(
            a_pipeline(a_phase("one", "wait")),
            session_id=f"s{number}",
            user_id="mallory",
        )
    await system.begin(a_chain("two"), session_id="other", user_id="ann")
    async with at_work(system.driver()) as driver:
        assert (await the_end(system, "other"))["state"] == "completed"
        assert len(driver.driven) <= 2
        wait.release.set()
        for number in range(6):
            await the_end(system, f"s{number}")


async def test_a_run_begins_as_soon_as_the_desk_is_woken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasklore.runtime.claim_loop.LOOK_S", 3600.0)
    monkeypatch.setattr("tasklore.runtime.claim_loop.IDLE_LOOK_S", 3600.0)
    system = FakeSystem(tmp_path, echo=echo)
    looks: list[str] = []
    is_idle = system.runs.is_idle

    async def note(supervisor_id: str) -> bool:
        looks.append(supervisor_id)
        return await is_idle(supervisor_id)

    system.runs.is_idle = note  # type: ignore[method-assign]
    async with at_work(system.driver()) as driver:
        await until(lambda: looks)
        await system.begin(a_chain("one"))
        driver.look_soon("s1")
        await the_end(system)


async def test_a_lease_is_renewed_during_a_long_phase(tmp_path: Path) -> None:
    wait = Waiting()
    system = FakeSystem(tmp_path, wait=wait)
    await system.begin(a_pipeline(a_phase("one", "wait")))
    async with at_work(system.driver(lease_s=0.6)) as driver:
        await wait.begun.wait()
        first = system.runs._runs["s1"].leased_until_ms
        await until(lambda: system.runs._runs["s1"].leased_until_ms > first)
        assert driver.driven == ("s1",)
        wait.release.set()
        await the_end(system)


async def test_a_run_taken_by_another_is_let_go(tmp_path: Path) -> None:
    wait = Waiting()
    system = FakeSystem(tmp_path, wait=wait)
    await system.begin(a_pipeline(a_phase("one", "wait")))
    async with at_work(system.driver(lease_s=0.5)) as driver:
        await wait.begun.wait()
        await system.steal()
        said = len(system.events)
        await until(lambda: not driver.driven)
        wait.release.set()
        await asyncio.sleep(0.01)
        assert len(system.events) == said


async def test_an_unreadable_session_ends_no_other_run(tmp_path: Path) -> None:
    wait = Waiting()
    system = FakeSystem(tmp_path, wait=wait)
    for name in ("s1", "s2"):
        await system.begin(a_pipeline(a_phase("one", "wait")), session_id=name)
    asked = asyncio.Event()

    async def unreadable(session_id: str) -> str | None:
        if session_id == "s2":
            return None
        asked.set()
        return b"\xff".decode()

    system.runs.cancel_reason = unreadable  # type: ignore[method-assign]
    async with at_work(system.driver(lease_s=0.3)):
        await asked.wait()
        await until(lambda: system.workers.runs["one"] >= 2)
        wait.release.set()
        assert (await the_end(system, "s2"))["state"] == "completed"


async def test_a_stored_cancellation_is_noticed_with_a_renewal(tmp_path: Path) -> None:
    wait = Waiting()
    system = FakeSystem(tmp_path, wait=wait)
    await system.begin(a_pipeline(a_phase("one", "wait")))
    async with at_work(system.driver(lease_s=0.3)):
        await wait.begun.wait()
        await system.runs.request_cancel("s1", "enough")
        assert (await the_end(system))["state"] == "cancelled"
        assert list(system.workers.cancelled.values()) == ["enough"]


async def test_a_run_that_cannot_be_driven_fails(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo)

    async def fall(*_told: Any, **_more: Any) -> bool:
        raise KeyError("ours")

    begin = system.runs.begin_phase

    async def choose(session_id: str, **told: Any) -> bool:
        return await (fall if session_id == "s1" else begin)(session_id, **told)

    system.runs.begin_phase = choose  # type: ignore[method-assign,assignment]
    await system.begin(a_chain("one"))
    await system.begin(a_chain("one"), session_id="s2")
    # A traceback in colours takes a second.
    with capture_logs() as logged:
        async with at_work(system.driver()) as driver:
            while await system.runs.outcome("s1") is None:
                driver.look_soon("s1")
                await asyncio.sleep(0.001)
            assert "KeyError" in (await the_end(system))["error"]
            assert (await the_end(system, "s2"))["state"] == "completed"
    assert [one["event"] for one in logged].count("driving_failed") == 4


async def test_a_run_over_which_drivers_died_is_set_aside_until_resumed(
    tmp_path: Path,
) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    await system.begin(a_chain("one"))
    for holder in ("a", "b", "c"):
        await system.steal_as(holder)
    async with at_work(system.driver()):
        await system.begin(a_chain("one"), session_id="s2")
        await the_end(system, "s2")
        ended = await the_end(system)
        assert ended["state"] == "failed"
        assert "quarantined" in ended["error"]
        assert system.workers.runs["one"] == 1
        assert (await system.ask("resume")).kind == "accepted"
        await until(lambda: system.workers.runs["one"] == 2)


async def test_a_lease_that_lapsed_while_the_store_was_away_does_not_count(
    tmp_path: Path,
) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    await system.begin(a_chain("one"))
    for holder in ("a", "b", "c"):
        await system.steal_as(holder)
    due = system.runs.due
    was_away = False

    async def once_away(supervisor_id: str, limit: int = 100) -> list[str]:
        nonlocal was_away
        if not was_away:
            was_away = True
            raise MemoryUnavailable("away")
        return await due(supervisor_id, limit)

    system.runs.due = once_away  # type: ignore[method-assign]
    async with at_work(system.driver()):
        assert (await the_end(system))["state"] == "completed"


async def test_an_unreadable_run_is_left_alone(tmp_path: Path) -> None:
    system = FakeSystem(tmp_path, echo=echo)
    await system.begin(a_chain("one"))
    await system.begin(a_chain("one"), session_id="s2")
    read = system.runs.read

    async def choose(session_id: str) -> Any:
        if session_id == "s1":
            raise InvalidPipeline(["a newer version made it"])
        return await read(session_id)

    system.runs.read = choose  # type: ignore[method-assign]
    with capture_logs() as logged:
        async with at_work(system.driver()) as driver:
            while "pipeline_left_alone" not in [one["event"] for one in logged]:
                driver.look_soon("s1")
                await asyncio.sleep(0.001)
            assert (await the_end(system, "s2"))["state"] == "completed"
