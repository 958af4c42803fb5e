"""The slot of a run that waits for tasks it called: lent, had again, and lent again after a wait that was given up."""

import asyncio
from typing import Any, cast

import pytest

from tasklore.workers.execution.crash_isolation import CrashIsolation
from tasklore.workers.execution.run_slot import RunSlot
from tasklore.workers.execution.running_jobs import RunningJobs

PATIENCE_S = 60.0


class Engine:
    """An engine whose slot is free when `is_free` is set; `lent` counts how often one was lent."""

    def __init__(self) -> None:
        self.is_free = asyncio.Event()
        self.lent = 0

    def lend(self) -> bool:
        self.lent += 1
        return True

    async def reclaim(self, _delivery: object) -> None:
        await self.is_free.wait()

    def reclaim_now(self, _delivery: object) -> None:
        """Count it again."""


class Running:
    """A run that lends, and is not cut short."""

    is_lending = is_cut_short = False
    places = None

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.job = type("Job", (), {"delivery": object()})

    def lend(self, _engine: object) -> bool:
        self.is_lending = True
        return self._engine.lend()


def slot_of(engine: Engine) -> tuple[RunSlot, CrashIsolation]:
    exclusive = CrashIsolation()
    assert exclusive.enter_at_once()
    running = cast("Any", Running(engine))
    return RunSlot(
        running,
        RunningJobs(),
        cast("Any", engine),
        exclusive,
        alone=False,
        grouped=False,
    ), exclusive


async def test_a_slot_is_lent_again_after_a_wait_for_it_was_given_up() -> None:
    engine = Engine()
    slot, _ = slot_of(engine)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05), slot.lent():
            pass
    assert engine.lent == 1
    engine.is_free.set()
    async with slot.lent():
        assert engine.lent == 2


async def test_blocks_that_overlap_lend_it_once() -> None:
    engine = Engine()
    engine.is_free.set()
    slot, _ = slot_of(engine)
    async with slot.lent(), slot.lent():
        assert engine.lent == 1
    async with slot.lent():
        assert engine.lent == 2


async def test_others_may_be_alone_while_it_is_lent() -> None:
    engine = Engine()
    engine.is_free.set()
    slot, exclusive = slot_of(engine)
    async with slot.lent():
        async with asyncio.timeout(PATIENCE_S):
            await exclusive.enter(alone=True)
        exclusive.leave(alone=True)
    slot.leave()
    async with asyncio.timeout(PATIENCE_S):
        await exclusive.enter(alone=True)


async def test_the_places_of_a_run_are_lent_with_its_slot_and_had_again_before_it() -> (
    None
):
    """Who holds a place may wait for a slot, and never the other way round."""
    calls: list[str] = []

    class Places:
        async def lend(self) -> None:
            calls.append("lend")

        async def reclaim(self) -> None:
            calls.append("reclaim")

    class Counting(Engine):
        async def reclaim(self, _delivery: object) -> None:
            calls.append("slot")

    engine = Counting()
    running = cast("Any", Running(engine))
    running.places = Places()
    exclusive = CrashIsolation()
    assert exclusive.enter_at_once()
    slot = RunSlot(
        running,
        RunningJobs(),
        cast("Any", engine),
        exclusive,
        alone=False,
        grouped=False,
    )
    async with slot.lent():
        assert calls == ["lend"]
    assert calls == ["lend", "reclaim", "slot"]
