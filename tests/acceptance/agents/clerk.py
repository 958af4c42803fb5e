"""An agent of pydantic-ai for tests of kills: it looks, writes and has others read; it dies where a test plans that."""

import asyncio
import os
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pydantic_ai
from pydantic_ai import RunContext

from tasklore import Agent, Context, Parameters
from tasklore.workers.pydantic_agents import RoleModel, run, task_tool

RUNS = Path(os.environ["PROBE_RUNS"])

agent = Agent("ClerkAgent")


class Errand(Parameters):
    """The label of a task, and whether its effects can be looked up."""

    label: str
    found: bool = True


class Page(Parameters):
    """What a child is to read."""

    label: str
    number: int


@dataclass
class Desk:
    """What the tools of one run work with."""

    label: str
    context: Context


def note(name: str, event: str) -> None:
    """Add *event* to the file *name*, in one write."""
    with (RUNS / name).open("a") as events:
        events.write(event + "\n")


def note_run(name: str) -> None:
    """Leave process id and time of a run, by which its deaths are known."""
    note(f"{name}.runs", f"{os.getpid()} {time.time()}")


def die_at(label: str, point: str) -> None:
    """Kill this process where the plan of *label* says so, once."""
    try:
        (RUNS / f"{label}.{point}").unlink()
    except FileNotFoundError:
        return
    note("killed", f"{os.getpid()} {time.time()}")
    os.kill(os.getpid(), signal.SIGKILL)


@agent.task(remember=False)
async def read(page: Page) -> str:
    """Read something for the clerk."""
    note_run(f"{page.label}.{page.number}")
    die_at(page.label, f"tool-{page.number}-before")
    await asyncio.sleep(0.002)
    note(page.label, f"read {page.number}")
    die_at(page.label, f"tool-{page.number}-after")
    return f"read {page.number}"


reading = task_tool(
    read, Page, context_of=lambda ctx: ctx.deps.context, description="Have a page read."
)
clerk = pydantic_ai.Agent(
    RoleModel(),
    name="clerk",
    deps_type=Desk,
    instructions="Look, write, read.",
    tools=[reading],
)


@clerk.tool
async def look(ctx: RunContext[Desk], number: int) -> str:
    """Look at something, which may be done again."""
    die_at(ctx.deps.label, f"tool-{number}-before")
    await asyncio.sleep(0.002)
    note(ctx.deps.label, f"look {number}")
    die_at(ctx.deps.label, f"tool-{number}-after")
    return f"saw {number}"


@clerk.tool
async def send(ctx: RunContext[Desk], number: int) -> str:
    """Have an effect, which must not be had twice."""
    die_at(ctx.deps.label, f"tool-{number}-before")
    await asyncio.sleep(0.002)
    note(ctx.deps.label, f"send {number}")
    die_at(ctx.deps.label, f"tool-{number}-after")
    return f"sent {number}"


@agent.task(uses=("llm",))
async def work(errand: Errand, context: Context) -> str:
    """Run the clerk."""
    note_run(errand.label)

    async def find(number: int) -> Any:
        events = (
            (RUNS / errand.label).read_text().splitlines()
            if (RUNS / errand.label).exists()
            else []
        )
        return f"sent {number}" if f"send {number}" in events else None

    writes: Any = {"send": find} if errand.found else ("send",)
    result = await run(
        clerk, errand.label, context, deps=Desk(errand.label, context), writes=writes
    )
    return result.output
