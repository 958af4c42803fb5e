"""An agent of pydantic-ai for tests of kills: it looks and writes, and ends its own process where a test plans that."""

import asyncio
import json
import os
import signal
from pathlib import Path
from typing import Any

import pydantic_ai
from pydantic_ai import RunContext

from workers import Agent, Context, Parameters
from workers.pydantic_agents import RoleModel, run

RUNS = Path(os.environ["PROBE_RUNS"])

agent = Agent("ClerkAgent")
clerk = pydantic_ai.Agent(RoleModel(), name="clerk", deps_type=str, instructions="Look and write.")


class Errand(Parameters):
    """The label of a task, and whether its effects can be looked up."""

    label: str
    found: bool = True


def note(label: str, event: str) -> None:
    """Add *event* to the file of *label*, in one write."""
    with (RUNS / label).open("a") as events:
        events.write(event + "\n")


def die_at(label: str, point: str) -> None:
    """Kill this process where the plan of *label* says so, once."""
    try:
        (RUNS / f"{label}.{point}").unlink()
    except FileNotFoundError:
        return
    os.kill(os.getpid(), signal.SIGKILL)


@clerk.tool
async def look(ctx: RunContext[str], number: int) -> str:
    """Look at something, which may be done again."""
    die_at(ctx.deps, f"tool-{number}-before")
    await asyncio.sleep(0.002)
    note(ctx.deps, f"look {number}")
    die_at(ctx.deps, f"tool-{number}-after")
    return f"saw {number}"


@clerk.tool
async def send(ctx: RunContext[str], number: int) -> str:
    """Have an effect, which must not be had twice."""
    die_at(ctx.deps, f"tool-{number}-before")
    await asyncio.sleep(0.002)
    note(ctx.deps, f"send {number}")
    die_at(ctx.deps, f"tool-{number}-after")
    return f"sent {number}"


@agent.task(uses=("llm",))
async def work(errand: Errand, context: Context) -> str:
    """Run the clerk; the process id is left for who kills it."""
    (RUNS / f"{errand.label}.pid").write_text(json.dumps(os.getpid()))

    async def find(number: int) -> Any:
        events = (RUNS / errand.label).read_text().splitlines() if (RUNS / errand.label).exists() else []
        return f"sent {number}" if f"send {number}" in events else None

    writes: Any = {"send": find} if errand.found else ("send",)
    result = await run(clerk, errand.label, context, deps=errand.label, writes=writes)
    return result.output
