"""The timeout of a phase: at once for a task that nobody runs, with a grace for a running one."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from nats.aio.client import Client

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.memory.ledger.ledger import LedgerEntry
from tasklore.memory.sessions.pipeline_records import PhaseState
from tasklore.supervisor.reports.reports import ReportWaiter
from tests.fakes.ledger import FakeLedger
from tests.unit.supervisor.pipelines.fake_system import (
    FakeSystem,
    Waiting,
    a_phase,
    a_pipeline,
)

#: Longer than any test is waited for.
FOR_EVER_S = 10_000.0


async def ended(system: FakeSystem) -> PhaseState:
    """Drive the run of the phase "one" to its end and return how that ended."""
    await system.begin(a_pipeline(a_phase("one", "wait", timeout=0.05)), keep=True)
    await system.drive()
    record = await system.record()
    return record.phases["one"]


async def test_a_task_that_nobody_runs_ends_at_its_timeout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tasklore.supervisor.pipelines.phase_task._OVERDUE_S", FOR_EVER_S
    )
    monkeypatch.setattr("tasklore.supervisor.pipelines.phase_task._LAST_LOOK_S", 0.0)
    system = FakeSystem(tmp_path, wait=lambda told: told)
    system.workers.is_away = True
    state = await ended(system)
    assert (state.status, state.error_type) == ("failed", "TaskExpired")
    assert (
        state.error
        == "no worker began it within its timeout of 0.05 s; is one of A up?"
    )
    assert list(system.workers.cancelled) == [state.task_id]


async def test_a_running_task_may_still_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "tasklore.supervisor.pipelines.phase_task._OVERDUE_S", FOR_EVER_S
    )
    is_over = asyncio.Event()

    async def wait(_told: dict[str, Any]) -> dict[str, Any]:
        await is_over.wait()
        # As long as a look that does not wait.
        for _ in range(100):
            await asyncio.sleep(0)
        return {}

    system = FakeSystem(tmp_path, wait=wait)
    ask = system.workers.is_under_way

    async def is_under_way(task_id: str) -> bool:
        is_over.set()
        return await ask(task_id)

    system.workers.is_under_way = is_under_way  # type: ignore[method-assign]
    assert (await ended(system)).status == "done"
    assert system.workers.cancelled == {}


async def test_a_silent_task_ends_after_a_grace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasklore.supervisor.pipelines.phase_task._OVERDUE_S", 0.01)
    monkeypatch.setattr("tasklore.supervisor.pipelines.phase_task._LAST_LOOK_S", 0.0)
    state = await ended(FakeSystem(tmp_path, wait=Waiting()))
    assert (state.error_type, state.error) == (
        "TaskExpired",
        "the worker that began it did not finish it within its timeout of 0.05 s",
    )


class AwayLedger(FakeLedger):
    """A ledger that does not answer."""

    async def read(self, task_id: str) -> LedgerEntry | None:
        raise MemoryUnavailable(f"away: {task_id}")


async def test_a_task_is_under_way_between_its_run_and_its_report() -> None:
    ledger = FakeLedger()
    driver = ReportWaiter(Client(), ledger)  # type: ignore[arg-type]  # a fake
    assert not await driver.is_under_way("t1")
    await ledger.accept("t1", 1, b"{}")
    assert not await driver.is_under_way("t1")
    await ledger.begin("t1", 1, "w1", 1_000, 60_000)
    assert await driver.is_under_way("t1")
    await ledger.finish("t1", 1, "completed", b"{}")
    assert not await driver.is_under_way("t1")
    assert await ReportWaiter(Client(), AwayLedger()).is_under_way("t1")  # type: ignore[arg-type]
