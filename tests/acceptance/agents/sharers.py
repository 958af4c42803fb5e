"""Agents that share a session in tests: one that computes, and three that use what it computed, each where it likes."""

import asyncio
import os
import time
from pathlib import Path

from tasklore import Agent, Context, Parameters
from tasklore.contracts.errors import GiveUp

#: Where each computation leaves a line, so that tests count them and not what was reported of them.
RUNS = Path(os.environ["PROBE_RUNS"])

planner = Agent("PlannerAgent")
first = Agent("FirstAgent")
second = Agent("SecondAgent")
third = Agent("ThirdAgent")


class Label(Parameters):
    """What to call it in the count."""

    label: str


def note_run(label: str) -> None:
    """Count a computation of *label*."""
    with (RUNS / label).open("a") as runs:
        runs.write(f"{time.time():.3f}\n")


@planner.task(remember="shared")
async def plan(label: Label) -> dict[str, str]:
    """Compute something that takes its time, once for all sessions."""
    note_run(label.label)
    await asyncio.sleep(0.05)
    return {"plan": f"the plan of {label.label}"}


@planner.task(remember=False)
async def write(label: Label, context: Context) -> dict[str, str]:
    """Write under one name in whatever session it is."""
    await context.session.set(
        f"{context.session.phase}:part:{label.label}", label.label
    )
    await asyncio.sleep(0)
    return {"label": label.label}


async def use(label: Label, context: Context) -> dict[str, object]:
    """Use what was planned, and what all of them need."""
    planned = await context.session.get("plan:results")
    if planned is None:
        raise GiveUp("there is no plan")

    async def index() -> str:
        note_run(f"index-{label.label}")
        await asyncio.sleep(0.05)
        return f"the index of {label.label}"

    return {
        "planned": planned,
        "index": await context.session.get_or_compute("shared:index", index),
        "process": os.getpid(),
    }


async def look(label: Label, context: Context) -> dict[str, object]:
    """Tell all that can be read."""
    session = context.session
    return {
        "label": label.label,
        "seen": {key: await session.get(key) for key in await session.keys()},
    }


for reader in (first, second, third):
    reader.task(name="use", remember=False)(use)
    reader.task(name="look", remember=False)(look)
