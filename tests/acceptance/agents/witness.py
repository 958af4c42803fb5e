"""An agent of pydantic-ai whose model sees all there is: a prompt, memory, tools, steps, a person, a hostile result."""

import asyncio
import os
import time
from pathlib import Path
from typing import Any

import pydantic_ai
from pydantic_ai import RunContext

from tasklore import Agent, Context, Parameters
from tasklore.workers.pydantic_agents import RoleModel, run

RUNS = Path(os.environ["PROBE_RUNS"])
#: What a page of the web may answer: it steers a terminal, and is markup.
HOSTILE = "\x1b]0;owned\x07\x1b[2J<script>alert(1)</script>"

agent = Agent("WitnessAgent")
witness = pydantic_ai.Agent(
    RoleModel(), name="witness", deps_type=Context, instructions="Look, then answer."
)


class Case(Parameters):
    """What the witness is told, and how it goes."""

    label: str
    asks: bool = False
    large: bool = False
    waits: bool = False


@witness.tool
async def look(_ctx: RunContext[Context], place: str) -> str:
    """Look at a place."""
    return f"saw {place} {HOSTILE}"


def wait_for_go() -> None:
    """Say that the run waits, and return once a test lets it go on."""
    (RUNS / "waits").touch()
    while not (RUNS / "go").exists():
        time.sleep(0.05)


@agent.task(remember=False, uses=("llm",))
async def testify(case: Case, context: Context) -> str:
    """Run the witness."""

    async def measure(what: dict[str, Any]) -> dict[str, Any]:
        return {"length": len(what["of"]), "unit": "km"}

    async def read_all() -> str:
        return "x" * 20_000_000

    if case.large:
        await context.step("read all", read_all)
    await context.step("measure", measure, {"of": case.label})
    block = await context.memory.block("the sea") if context.user_id else ""
    prompt = f"{case.label}\n{block}"
    if case.asks:
        said = await context.ask_person("Go on with {label}?", label=case.label)
        prompt = f"{prompt}\n{said.note}"
    found = await run(witness, prompt, context, deps=context)
    if case.waits:
        await asyncio.to_thread(wait_for_go)
        found = await run(witness, f"again, {case.label}", context, deps=context)
    return found.output
