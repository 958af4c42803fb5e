"""The agent whose work the dump of 0.2 holds; `tests/fixtures/0.2/agents.py` is it as 0.2 ran it."""

import asyncio
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tasklore import Agent, Context, GiveUp, Parameters, RetryLater

agent = Agent("KeeperAgent", keywords=("keeper",))

#: Where each run, step and effect leaves a line, and where a test puts what one waits for.
RUNS = Path(os.environ["PROBE_RUNS"])
#: Seconds between looks for a file.
LOOK_S = 0.02


class Work(Parameters):
    """What the runs are called, and a number."""

    label: str
    number: int = 0


class Phase(Parameters):
    """What the run of a pipeline is called, what came before, and the file without which the phase does not end."""

    label: str
    before: list[int]
    needs: str = ""
    patient: bool = False


class Done(BaseModel):
    """Every phase so far, this one last."""

    steps: list[int]


class Colour(BaseModel):
    """What the model says."""

    reasoning: str
    colour: str


async def note(label: str) -> int:
    """Add a line to the file of *label*, and return how many there are."""
    with (RUNS / label).open("a+") as runs:
        runs.write("run\n")
        runs.flush()
        runs.seek(0)
        return len(runs.readlines())


async def appearance(name: str) -> None:
    """Return once the file *name* is there."""
    while not (RUNS / name).exists():  # noqa: ASYNC110 - a file makes no event
        await asyncio.sleep(LOOK_S)


@agent.task(remember=False)
async def double(work: Work) -> int:
    """Double a number."""
    await note(work.label)
    return 2 * work.number


@agent.task(remember="shared", remember_for=timedelta(days=20))
async def square(work: Work) -> int:
    """Square a number, and remember it."""
    await note(work.label)
    return work.number**2


@agent.task(remember=False)
async def live(work: Work) -> int:
    """Give up for as long as there is no cure."""
    await note(work.label)
    if not (RUNS / f"{work.label}.cured").exists():
        raise GiveUp(f"there is no cure for {work.label} yet")
    return work.number


@agent.task(remember=False)
async def rest(work: Work, context: Context) -> int:
    """Go on after so many seconds."""
    await note(work.label)
    if context.attempt == 1:
        raise RetryLater("tired", after_s=work.number)
    return context.attempt


@agent.task(remember=False)
async def pay(work: Work, context: Context) -> dict[str, Any]:
    """Pay after a person agreed."""
    await note(work.label)
    await context.step("before", note, f"{work.label}-before")
    said = await context.ask_person(
        "Pay {amount}?",
        who="role:finance",
        within=timedelta(days=3),
        amount=work.number,
    )
    await context.step("after", note, f"{work.label}-after")
    return {"approved": said.approved, "by": said.by}


@agent.task(remember=False)
async def walk(work: Work, context: Context) -> list[int]:
    """Send a mail, and take so many steps; the fourth ends when there is a file."""
    await note(work.label)
    if await context.once("mail"):
        await note(f"{work.label}-mail")

    async def take(position: int) -> int:
        count = await note(f"{work.label}-{position}")
        if position == 3:
            await appearance(f"{work.label}.go")
        return 10 * position + count

    return [
        await context.step("take", take, position) for position in range(work.number)
    ]


@agent.task(uses=("llm",), remember=False)
async def colour(work: Work, context: Context) -> str:
    """Ask a model for a colour."""
    await note(work.label)
    said = await context.llm.ask(
        "default", Colour, system="Name a colour.", user=f"thing {work.number}"
    )
    return said.colour


@agent.task(remember=False)
async def phase(phase: Phase, context: Context) -> Done:
    """Add one to the longest of what came before; wait, or give up, for as long as a file is missing."""
    await note(f"{phase.label}-{context.assignment.phase}")
    if phase.needs and phase.patient:
        await appearance(phase.needs)
    if phase.needs and not (RUNS / phase.needs).exists():
        raise GiveUp(f"{phase.label} needs {phase.needs}")
    return Done(steps=[*phase.before, len(phase.before) + 1])
