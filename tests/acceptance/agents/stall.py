"""An agent for tests whose tasks wait for anything that a task may wait for; each run is noted with its time."""

import asyncio
import os
import time
from datetime import timedelta
from pathlib import Path

from pydantic import BaseModel

from tasklore import Agent, Context, Parameters
from tasklore.contracts.errors import GiveUp, RetryLater

agent = Agent("StallAgent")

RUNS = Path(os.environ["PROBE_RUNS"])
#: For how long whoever is not woken waits.
LONG = timedelta(minutes=10)


class Stall(Parameters):
    """How a task is noted, how long it works, and under which key it is bounded."""

    label: str
    ms: int = 0
    account: str = "a"


class Colour(BaseModel):
    """What the model says."""

    reasoning: str
    colour: str


async def work(stall: Stall) -> str:
    """Note the run, and work; give up while there is no cure for a label that is ill."""
    with (RUNS / stall.label).open("a") as runs:
        runs.write(f"{time.time()}\n")
    await asyncio.sleep(stall.ms / 1000)
    if (RUNS / f"{stall.label}.ill").exists():
        raise GiveUp("it is ill")
    return stall.label


@agent.task(remember=False)
async def free(stall: Stall) -> str:
    """Wait for nothing."""
    return await work(stall)


@agent.task(remember=False, at_most=1, per="account")
async def bounded(stall: Stall) -> str:
    """Wait for a place."""
    return await work(stall)


@agent.task(remember="shared", remember_for=timedelta(days=1))
async def known(stall: Stall) -> str:
    """Wait for whoever computes the same."""
    return await work(stall)


@agent.task(remember=False)
async def retried(stall: Stall) -> str:
    """Wait for another run."""
    await work(stall)
    raise RetryLater("later", after_s=LONG.total_seconds())


@agent.task(remember=False)
async def asked(stall: Stall, context: Context) -> str:
    """Wait for a person."""
    await work(stall)
    await context.ask_person("Go on?", within=LONG)
    return stall.label


@agent.task(remember=False)
async def signalled(stall: Stall, context: Context) -> str:
    """Wait for a signal."""
    await work(stall)
    await context.signal("go", within=LONG)
    return stall.label


@agent.task(remember=False)
async def asleep(stall: Stall, context: Context) -> str:
    """Wait for a time."""
    await work(stall)
    await context.sleep(LONG)
    return stall.label


@agent.task(remember=False, uses=("llm",))
async def modelled(stall: Stall, context: Context) -> str:
    """Wait for room under a limit on models; its number is what the provider counts it by."""
    number = stall.account.rpartition("-")[2]
    await context.llm.ask("default", Colour, system="Name it.", user=f"thing {number}")
    return await work(stall)


@agent.task(remember=False)
async def calling(stall: Stall, context: Context) -> str:
    """Wait for a task that it calls."""
    await work(stall)
    return await context.call(bounded, stall)
