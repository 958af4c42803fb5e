"""The timeout of a phase: at once for what nobody runs, with a grace for what is under way."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from contracts.errors import MemoryUnavailable
from memory.ledger.ledger import LedgerEntry
from memory.sessions.pipeline_records import PhaseState
from supervisor.reports.reports import ReportDesk
from tests.fakes.ledger import FakeLedger
from tests.unit.supervisor.pipelines.house import House, a_phase, a_pipeline

#: Longer than any test is waited for.
FOR_EVER_S = 10_000.0


async def ended(house: House) -> PhaseState:
    """Drive the run of the phase "one" to its end and return how that ended."""
    await house.begin(a_pipeline(a_phase("one", "wait", timeout=0.05)), keep=True)
    await house.drive()
    record = await house.runs.read("s1")
    assert record is not None
    return record.phases["one"]


async def test_what_nobody_runs_ends_with_its_timeout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is nobody who could report it a little later."""
    monkeypatch.setattr("supervisor.pipelines.phase_task._OVERDUE_S", FOR_EVER_S)
    monkeypatch.setattr("supervisor.pipelines.phase_task._LAST_LOOK_S", 0.0)
    house = House(tmp_path, wait=lambda told: told)
    house.office.is_away = True
    state = await ended(house)
    assert (state.status, state.error_type) == ("failed", "TaskExpired")
    assert state.error == "no worker began it within its timeout of 0.05 s; is one of A up?"
    assert list(house.office.cancelled) == [state.task_id]


async def test_what_is_under_way_may_still_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever runs it knows of the timeout and says itself what came of it."""
    monkeypatch.setattr("supervisor.pipelines.phase_task._OVERDUE_S", FOR_EVER_S)
    is_over = asyncio.Event()

    async def wait(_told: dict[str, Any]) -> dict[str, Any]:
        await is_over.wait()
        # As long as a look that does not wait.
        for _ in range(100):
            await asyncio.sleep(0)
        return {}

    house = House(tmp_path, wait=wait)
    ask = house.office.is_under_way

    async def is_under_way(task_id: str) -> bool:
        is_over.set()
        return await ask(task_id)

    house.office.is_under_way = is_under_way  # type: ignore[method-assign]
    assert (await ended(house)).status == "done"
    assert house.office.cancelled == {}


async def test_what_stays_silent_ends_after_a_grace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the reason does not doubt that there is a worker."""
    monkeypatch.setattr("supervisor.pipelines.phase_task._OVERDUE_S", 0.01)
    monkeypatch.setattr("supervisor.pipelines.phase_task._LAST_LOOK_S", 0.0)
    never = asyncio.Event()

    async def wait(_told: dict[str, Any]) -> dict[str, Any]:
        await never.wait()
        return {}

    state = await ended(House(tmp_path, wait=wait))
    assert (state.error_type, state.error) == (
        "TaskExpired",
        "the worker that began it did not finish it within its timeout of 0.05 s",
    )


class AwayLedger(FakeLedger):
    """A ledger that does not answer."""

    async def read(self, task_id: str) -> LedgerEntry | None:
        """Answer nothing."""
        raise MemoryUnavailable(f"away: {task_id}")


async def test_the_desk_knows_what_somebody_runs() -> None:
    """Neither what nobody took yet nor what has a report; in doubt somebody does."""
    ledger = FakeLedger()
    desk = ReportDesk(Client(), ledger)  # type: ignore[arg-type]  # a fake
    assert not await desk.is_under_way("t1")
    await ledger.accept("t1", 1, b"{}")
    assert not await desk.is_under_way("t1")
    await ledger.begin("t1", 1, "w1", 1_000, 60_000)
    assert await desk.is_under_way("t1")
    await ledger.finish("t1", 1, "completed", b"{}")
    assert not await desk.is_under_way("t1")
    assert await ReportDesk(Client(), AwayLedger()).is_under_way("t1")  # type: ignore[arg-type]
