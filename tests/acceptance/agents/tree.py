"""An agent for tests whose tasks call one another: down a line, side by side, in a circle, and into failures."""

import asyncio
import os
from pathlib import Path

from tasklore import Agent, Context, Parameters
from tasklore.contracts.errors import CallFailed, GiveUp

agent = Agent("TreeAgent", keywords=("tree",))

RUNS = Path(os.environ["PROBE_RUNS"])


class Leaf(Parameters):
    """A child without children: it takes `ms` milliseconds, and fails when `number` is in `bad`."""

    label: str
    number: int = 0
    ms: int = 0
    bad: tuple[int, ...] = ()


class Branch(Parameters):
    """A parent: `depth` more below it, `width` children each, leaves of `ms` milliseconds."""

    label: str
    depth: int = 1
    width: int = 1
    ms: int = 0
    at_once: int = 32
    bad: tuple[int, ...] = ()


def note_run(label: str) -> None:
    """Add the time to the runs of *label*."""
    with (RUNS / label).open("a") as runs:
        runs.write(f"{asyncio.get_running_loop().time()}\n")


@agent.task
async def leaf(what: Leaf) -> int:
    """Return twice the number."""
    note_run(what.label)
    await asyncio.sleep(what.ms / 1000)
    if what.number in what.bad:
        raise GiveUp(f"number {what.number} is bad")
    return 2 * what.number


@agent.task(remember="shared")
async def remembered(what: Leaf) -> int:
    """Return twice the number, once for all."""
    note_run(what.label)
    return 2 * what.number


@agent.task
async def descend(what: Branch, context: Context) -> int:
    """Return how many tasks are below this one, in a line."""
    note_run(what.label)
    if not what.depth:
        await asyncio.sleep(what.ms / 1000)
        return 0
    return 1 + await context.call(
        descend, what.model_copy(update={"depth": what.depth - 1})
    )


@agent.task
async def spread(what: Branch, context: Context) -> list[int]:
    """Return the results of as many leaves as it is wide."""
    note_run(f"{what.label}-parent")
    leaves = [
        Leaf(label=what.label, number=number, ms=what.ms, bad=what.bad)
        for number in range(what.width)
    ]
    return await context.map(leaf, leaves, at_once=what.at_once)


@agent.task
async def collect(what: Branch, context: Context) -> list[int | str]:
    """Return the results of as many leaves as it is wide, the statuses of those that failed in their place."""
    leaves = [
        {"label": what.label, "number": number, "bad": what.bad}
        for number in range(what.width)
    ]
    found = await context.map("TreeAgent.leaf", leaves, keep_failures=True)
    return [one.status if isinstance(one, CallFailed) else one for one in found]


@agent.task
async def grow(what: Branch, context: Context) -> int:
    """Return the size of a tree of such tasks, whose lowest ones take their time."""
    note_run(what.label)
    if not what.depth:
        await asyncio.sleep(what.ms / 1000)
        return 1
    below = [
        what.model_copy(update={"depth": what.depth - 1, "label": f"{what.label}-{n}"})
        for n in range(what.width)
    ]
    return 1 + sum(await context.map(grow, below))


@agent.task
async def twice(what: Leaf, context: Context) -> list[int]:
    """Return what two calls with the same parameters return, and one of a remembered task."""
    return [
        await context.call(leaf, what),
        await context.call("TreeAgent", "leaf", label=what.label, number=what.number),
        await context.call(remembered, what),
    ]


@agent.task
async def circle(what: Leaf, context: Context) -> int:
    """Call itself through another one, with the same parameters."""
    return int(await context.call("TreeAgent", "round", **what.model_dump()))


@agent.task(name="round")
async def back(what: Leaf, context: Context) -> int:
    """Call the other one of the circle."""
    return int(await context.call("TreeAgent", "circle", **what.model_dump()))


@agent.task
async def forget_one(what: Leaf, context: Context) -> int:
    """Return while a child still runs."""
    child = asyncio.ensure_future(context.call(leaf, what))
    await asyncio.sleep(0.5)
    child.cancel()
    return 1


@agent.task
async def step_and_wait(what: Leaf, context: Context) -> int:
    """Take a step, then wait for a child."""
    await context.step("prepare", prepare)
    return await context.call(leaf, what)


async def prepare() -> str:
    """Return a text of six bytes as JSON."""
    return "done"


@agent.task
async def call_unknown(what: Leaf, context: Context) -> int:
    """Call an agent that there is not."""
    return int(await context.call("NoSuchAgent", "find", label=what.label))
