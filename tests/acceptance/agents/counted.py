"""An agent for tests of lists: each run of an item leaves a line, so that runs are counted and not reports."""

import asyncio
import os
from pathlib import Path

from tasklore import Agent, Parameters

agent = Agent("CountedAgent", keywords=("counted",))

RUNS = Path(os.environ["PROBE_RUNS"])


class Range(Parameters):
    """How many numbers there are."""

    count: int


class Number(Parameters):
    """One of them, and how long squaring it takes, in milliseconds."""

    label: str
    number: int
    ms: int = 5


@agent.task(remember=False)
async def count(numbers: Range) -> dict[str, list[int]]:
    """Return the numbers from 0."""
    return {"numbers": list(range(numbers.count))}


@agent.task(remember=False)
async def square(number: Number) -> int:
    """Square a number, and note that it was done."""
    await asyncio.sleep(number.ms / 1000)
    with (RUNS / number.label).open("a") as told:
        told.write(f"{number.number}\n")
    return number.number**2
