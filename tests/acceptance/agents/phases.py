"""An agent for tests of pipelines: each run leaves a line, and fails for as long as a file is missing."""

import os
from pathlib import Path

from pydantic import BaseModel, JsonValue

from tasklore import Agent, Context, Parameters
from tasklore.contracts.errors import GiveUp

agent = Agent("PhasesAgent", keywords=("phases",))

#: Where each run leaves a line, so that tests count runs and not what was reported of them.
RUNS = Path(os.environ["PROBE_RUNS"])


class Step(Parameters):
    """What the run of the pipeline is called, what came before, and the file without which the step fails."""

    label: str
    before: list[int]
    needs: str = ""


class Ask(Parameters):
    """The key of an entry."""

    label: str
    entry: str


class Done(BaseModel):
    """Every step so far, this one last."""

    steps: list[int]


class Seen(BaseModel):
    """What lay under a key, null when nothing did, and every key that there was."""

    value: JsonValue
    keys: list[str]


@agent.task(remember=False)
async def step(step: Step, context: Context) -> Done:
    """Add one to the longest of what came before."""
    phase = _noted(step.label, context)
    if step.needs and not os.path.exists(step.needs):  # noqa: ASYNC240, PTH110 - one look at a local file
        raise GiveUp(f"{phase} needs {step.needs}")
    return Done(steps=[*step.before, len(step.before) + 1])


@agent.task(remember=False)
async def look(ask: Ask, context: Context) -> Seen:
    """Read an entry by its key, and say what else is there."""
    _noted(ask.label, context)
    return Seen(
        value=await context.session.get(ask.entry),
        keys=list(await context.session.keys()),
    )


def _noted(label: str, context: Context) -> str:
    phase = context.assignment.phase or ""
    with (RUNS / label).open("a") as runs:
        runs.write(f"{phase}\n")
    return phase
