"""One harness for whatever breaks the system under load: a plan says which faults fall when, a stage does them.

A plan is data, the same for the same seed. `play` lets the load of a stage work while every fault of the plan falls at
its time, waits until what is left is done, and gives what the stage found; promises judge that.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Generic, Literal, Protocol, TypeVar

from tests.acceptance.chaos.table import Row

#: What is done to a process of a role, to its wire, or to a server.
FaultKind = Literal[
    "kill",
    "freeze",
    "cut nats",
    "cut valkey",
    "kill nats",
    "kill valkey",
    "delete consumer",
    "move ledger",
]
#: Whom a fault falls on; "anybody" is any process, "nobody" none: it falls on a server.
Role = Literal["worker", "supervisor", "anybody", "nobody"]


@dataclass(frozen=True, slots=True)
class At:
    """So many seconds after the load began."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Every:
    """Again and again: a pause of *shortest_s* to *longest_s*, and *reports* more of the load than at the last time.

    A *share* of the times it is waited, before the pause, until the victim is at work.
    """

    shortest_s: float
    longest_s: float
    reports: int = 0
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Moment:
    """When a run comes to a place: `inside` *step*, between its start and its end; `after` its report is stored.

    *step* None is before the first; at `any` time it is after *share* of what an undisturbed run takes.
    """

    place: Literal["inside", "after", "any"]
    step: str | None
    share: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One fault, or *times* of it one after another; None is as often as there is time while the load works."""

    kind: FaultKind
    role: Role = "nobody"
    when: At | Every | Moment
    times: int | None = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultPlan:
    """The faults of a load, each beside the others; a load without an end of its own lasts until the last of them."""

    seed: int
    faults: tuple[Fault, ...]
    load: Literal["to its end", "until the last fault"] = "to its end"


Found = TypeVar("Found")
Found_co = TypeVar("Found_co", covariant=True)


class FaultStage(Protocol[Found_co]):
    """Where a plan is played: what works there, how a fault is done to it, and what is found in the end."""

    async def work(self) -> None:
        """Give the load, to its end or until cancelled."""

    async def strike(self, fault: Fault, dice: Random) -> None:
        """Wait for the time of *fault*, do it once to whom *dice* choose, and return when it is over."""

    async def drain(self) -> None:
        """Return once all that the load asked for is done, or counts as lost."""

    async def look(self) -> Found_co:
        """Return what there is to be judged; no fault falls any more."""


async def play(plan: FaultPlan, stage: FaultStage[Found]) -> Found:
    """Let every fault of *plan* fall under the load of *stage*, and return what is found when all is over."""
    async with asyncio.TaskGroup() as group:
        falling = [
            group.create_task(_fall(stage, fault, Random(f"{plan.seed} {number}")))
            for number, fault in enumerate(plan.faults)
        ]
        work = group.create_task(stage.work())
        if plan.load == "to its end":
            await work
        for fault, task in zip(plan.faults, falling, strict=True):
            if fault.times is not None:
                await task
        work.cancel()
        await stage.drain()
        for task in falling:
            task.cancel()
    return await stage.look()


async def _fall(stage: FaultStage[Found], fault: Fault, dice: Random) -> None:
    fallen = 0
    while fault.times is None or fallen < fault.times:
        await stage.strike(fault, dice)
        fallen += 1


@dataclass(frozen=True)
class Promise(Generic[Found]):
    """A promise in words with its unit, and what breaks it in what was found."""

    asked: str
    broken: Callable[[Found], Sequence[object]]

    def row(self, name: str, found: Sequence[Found], of: str) -> Row:
        """Return its row in the table of the storms called *name*, which looked at so much (*of*)."""
        broken = sum(len(self.broken(one)) for one in found)
        return Row(f"{name}: {self.asked}: 0", f"{broken} of {of}", broken == 0)
