"""An agent for chaos: short steady work of every kind, and a census of what its process keeps alive."""

import asyncio
import gc
import os
import time
from pathlib import Path

from pydantic import BaseModel

from tasklore import Agent, Context, Field, Parameters
from tasklore.contracts.errors import GiveUp, RetryLater

agent = Agent("SteadyAgent", keywords=("shift",))

#: Where each run leaves a line, so that runs are counted and not what was reported of them.
RUNS = Path(os.environ["PROBE_RUNS"])


class Shift(Parameters):
    """Which shift to work, and for how long; `number` only tells one from another."""

    number: int = Field(ge=0, cues=("shift",), description="Which one.")
    ms: int = Field(0, ge=0, description="Milliseconds of work.")


class Stumble(Parameters):
    """How often to fail before it works."""

    number: int
    times: int = 1
    after_s: float = Field(
        0.0,
        description="Seconds that a failed run asks to wait; 0 leaves the pause to the worker.",
    )


class Roll(Parameters):
    """Nothing to say: who counts its own process needs no parameter."""


class Done(BaseModel):
    """Which shift was worked, and by which process."""

    number: int
    pid: int


class Census(BaseModel):
    """What a process keeps alive."""

    pid: int
    asyncio_tasks: int
    objects: int


def note_run(name: str, number: int) -> None:
    """Leave a line "when process number" under *name*."""
    with (RUNS / name).open("a") as runs:
        runs.write(f"{time.time():.4f} {os.getpid()} {number}\n")


@agent.task(remember=False)
async def work(shift: Shift) -> Done:
    """Work for a while."""
    await asyncio.sleep(shift.ms / 1000)
    return Done(number=shift.number, pid=os.getpid())


@agent.task(remember=False)
async def noted(shift: Shift) -> Done:
    """Leave a line that the run began, then work for a while."""
    note_run("noted", shift.number)
    await asyncio.sleep(shift.ms / 1000)
    return Done(number=shift.number, pid=os.getpid())


@agent.task(remember="shared")
async def known(shift: Shift) -> Done:
    """Leave a line, work for a while, and be remembered."""
    note_run("known", shift.number)
    await asyncio.sleep(shift.ms / 1000)
    return Done(number=shift.number, pid=os.getpid())


@agent.task(remember="shared")
async def let_go(shift: Shift) -> Done:
    """Leave a line, be remembered, and end once there is a file of this name and number beside the lines."""
    note_run("let_go", shift.number)
    while not (RUNS / f"let_go-{shift.number}").exists():  # noqa: ASYNC110 - a file makes no event
        await asyncio.sleep(0.05)
    return Done(number=shift.number, pid=os.getpid())


@agent.task(remember=False)
async def stumble(stumble: Stumble, context: Context) -> Done:
    """Fail some times, then work."""
    if context.attempt > stumble.times:
        return Done(number=stumble.number, pid=os.getpid())
    if stumble.after_s:
        raise RetryLater("later", after_s=stumble.after_s)
    raise ConnectionRefusedError("the neighbour does not answer")


@agent.task(remember=False)
async def refuse(shift: Shift) -> Done:
    """Give up at once."""
    raise GiveUp(f"shift {shift.number} is not worked")


@agent.task(remember=False)
async def seize(shift: Shift) -> Done:
    """Leave a line, then block the event loop, as careless code does."""
    note_run("seize", shift.number)
    time.sleep(shift.ms / 1000)  # noqa: ASYNC251 - this is the carelessness
    return Done(number=shift.number, pid=os.getpid())


@agent.task(remember=False)
async def census(_roll: Roll) -> Census:
    """Count what this process keeps alive, after a full collection."""
    gc.collect()
    # What was imported is frozen away at the start, so that the list is short.
    return Census(
        pid=os.getpid(),
        asyncio_tasks=len(asyncio.all_tasks()),
        objects=len(gc.get_objects()),
    )
