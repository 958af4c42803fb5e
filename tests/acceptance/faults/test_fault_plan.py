"""The harness of faults on a stage that only notes: what falls how often, and when it is over."""

import asyncio
from random import Random

import pytest

from tests.acceptance.faults.plan import (
    At,
    Every,
    Fault,
    FaultPlan,
    Promise,
    play,
)


class Notes:
    """A stage whose load works in *parts* steps, without an end when None."""

    def __init__(self, parts: int | None) -> None:
        self.parts = parts
        self.worked = 0
        self.drained_after = ""
        self.struck: list[tuple[str, int]] = []

    async def work(self) -> None:
        while self.parts is None or self.worked < self.parts:
            await asyncio.sleep(0)
            self.worked += 1

    async def strike(self, fault: Fault, dice: Random) -> None:
        await asyncio.sleep(0)
        if fault.kind == "freeze":
            raise LookupError("nobody is there to be frozen")
        self.struck.append((fault.kind, dice.randrange(10**9)))

    async def drain(self) -> None:
        self.drained_after = f"{self.worked} parts"

    async def look(self) -> list[str]:
        # Nothing falls any more, however long it takes to look.
        before = len(self.struck)
        for _ in range(20):
            await asyncio.sleep(0)
        return [kind for kind, _ in self.struck] if len(self.struck) == before else []


KILLS = Fault(kind="kill", role="worker", when=Every(0.0, 0.0), times=3)
OUTAGE = Fault(kind="kill nats", when=At(0.0))


async def test_every_fault_falls_as_often_as_the_plan_says() -> None:
    """The load is at its end by then; two faults that are alike are two."""
    stage = Notes(parts=50)
    found = await play(FaultPlan(seed=1, faults=(KILLS, OUTAGE, OUTAGE)), stage)
    assert sorted(found) == ["kill"] * 3 + ["kill nats"] * 2
    assert stage.drained_after == "50 parts"


async def test_a_fault_without_a_number_falls_as_long_as_there_is_work() -> None:
    endless = Fault(kind="kill", role="worker", when=Every(0.0, 0.0), times=None)
    found = await play(FaultPlan(seed=1, faults=(endless,)), Notes(parts=50))
    assert 40 <= len(found) <= 60


async def test_a_load_without_an_end_lasts_until_the_last_fault() -> None:
    stage = Notes(parts=None)
    plan = FaultPlan(seed=1, faults=(KILLS,), load="until the last fault")
    assert await play(plan, stage) == ["kill"] * 3
    assert stage.worked > 0


async def test_the_same_seed_chooses_the_same() -> None:
    """And each fault has dice of its own, so that what falls beside it changes nothing."""
    first, again, other = Notes(5), Notes(5), Notes(5)
    await play(FaultPlan(seed=1, faults=(KILLS,)), first)
    await play(FaultPlan(seed=1, faults=(KILLS, OUTAGE)), again)
    await play(FaultPlan(seed=2, faults=(KILLS,)), other)
    kills = [one for one in again.struck if one[0] == "kill"]
    assert first.struck == kills
    assert first.struck != other.struck


async def test_a_fault_that_cannot_fall_ends_all_of_it() -> None:
    freeze = Fault(kind="freeze", role="worker", when=At(0.0))
    plan = FaultPlan(seed=1, faults=(freeze,), load="until the last fault")
    with pytest.raises(ExceptionGroup) as raised:
        await play(plan, Notes(parts=None))
    assert raised.group_contains(LookupError)


def test_a_promise_that_is_broken_once_is_broken() -> None:
    promise = Promise[list[str]]("tasks lost", lambda found: found)
    assert promise.row("storm", [[], []], "7").passed
    row = promise.row("storm", [[], ["t1", "t2"]], "7")
    assert (row.passed, row.asked, row.measured) == (
        False,
        "storm: tasks lost: 0",
        "2 of 7",
    )
