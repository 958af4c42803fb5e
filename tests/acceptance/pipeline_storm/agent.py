"""The agent of the storm: nine tasks that write down each run, and stay in it for as long as a file says so."""

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path

from tasklore import Agent, Context, Parameters
from tests.acceptance.chaos.history import History
from tests.acceptance.pipeline_storm import work

#: The folder of the journal and of the files that hold a phase, told to each worker by whoever forks it.
FOLDER_VARIABLE = "PIPELINE_STORM"
#: Seconds that a phase takes by itself: a blow at a random moment hits one most of the time.
TAKES_S = 0.03
#: Seconds between looks at the file that holds a phase.
LOOK_S = 0.005

agent = Agent("StormPhases", keywords=("storm",))


class Number(Parameters):
    """Which run it is."""

    number: int


class Files(Parameters):
    """What was found."""

    files: list[int]


class Steps(Parameters):
    """What is to be done."""

    steps: list[int]
    needs: dict[str, list[int]]
    number: int


class Parts(Parameters):
    """What was made."""

    parts: list[int]
    number: int


class Wrong(Parameters):
    """What was made, and what of it is wrong."""

    parts: list[int]
    violations: list[int]


class Made(Parameters):
    """What was made."""

    parts: list[int]


class Whole(Parameters):
    """What was made, in which pass, and how good it is."""

    parts: list[int]
    made_in: int
    design: int
    security: int
    violations: list[int]


@agent.task(remember=False)
async def look_around(number: Number, context: Context) -> work.Seen:
    """Look around."""
    async with _noted(context):
        return work.look_around(number.number)


@agent.task(remember=False)
async def plan(files: Files, context: Context) -> work.Planned:
    """Plan."""
    async with _noted(context):
        return work.plan(files.files)


@agent.task(remember=False)
async def map_imports(files: Files, context: Context) -> work.Mapped:
    """Map who needs whom; the plan is read out of the session by the task itself."""
    async with _noted(context):
        planned = work.Planned.model_validate(
            await context.session.get("planning:results")
        )
        return work.map_imports(files.files, planned.steps)


@agent.task(remember=False)
async def implement(steps: Steps, context: Context) -> work.Made:
    """Make something."""
    async with _noted(context):
        return work.implement(steps.steps, steps.needs, steps.number)


@agent.task(remember=False)
async def enforce(parts: Parts, context: Context) -> work.Enforced:
    """Hold it against the standards."""
    async with _noted(context):
        return work.enforce(parts.parts, parts.number)


@agent.task(remember=False)
async def correct(wrong: Wrong, context: Context) -> work.Made:
    """Make it anew."""
    async with _noted(context):
        return work.correct(wrong.parts, wrong.violations)


@agent.task(remember=False)
async def check_design(made: Made, context: Context) -> work.Checked:
    """Judge the design."""
    async with _noted(context):
        return work.check(made.parts, 3)


@agent.task(remember=False)
async def check_security(made: Made, context: Context) -> work.Checked:
    """Judge the security."""
    async with _noted(context):
        return work.check(made.parts, 5)


@agent.task(remember=False)
async def report(whole: Whole, context: Context) -> work.Reported:
    """Put it into a few numbers."""
    async with _noted(context):
        return work.Reported(
            total=sum(whole.parts),
            made_in=whole.made_in,
            design=whole.design,
            security=whole.security,
            corrected=len(whole.violations),
        )


def hold_of(folder: Path, session_id: str, phase: str) -> Path:
    """Return the file that keeps *phase* of a run from ending, for as long as it is there."""
    return folder / f"{session_id}.{phase}.hold"


@asynccontextmanager
async def _noted(context: Context) -> AsyncIterator[None]:
    """Write down that the phase starts, and that it has ended; what is killed in between writes nothing more."""
    assignment = context.assignment
    journal = _journal()
    assert assignment.session_id is not None
    assert assignment.phase is not None
    told = {
        "task": assignment.task_id,
        "about": f"{assignment.session_id}/{assignment.phase}",
    }
    journal.note("run-start", **told)
    held = hold_of(_folder(), assignment.session_id, assignment.phase)
    await asyncio.sleep(TAKES_S)
    while held.exists():  # noqa: ASYNC110 - whoever removes it is another process
        await asyncio.sleep(LOOK_S)
    yield
    journal.note("run-end", **told)


def _folder() -> Path:
    return Path(os.environ[FOLDER_VARIABLE])


@cache
def _journal() -> History:
    """Open this process's journal with its first run: the process that imports this module forks afterwards."""
    return History(_folder() / "journal")
