"""An agent for tests that needs a model, and one task that needs none."""

from datetime import timedelta

import pydantic_ai
from pydantic import BaseModel

from tasklore import Agent, Context, Parameters
from tasklore.workers.pydantic_agents import RoleModel, run

agent = Agent("AskerAgent", keywords=("asker",))
painter = pydantic_ai.Agent(RoleModel(), name="painter")


class Thing(Parameters):
    """What to ask about."""

    number: int


class Colour(BaseModel):
    """What the model says."""

    reasoning: str
    colour: str


@agent.task(uses=("llm",))
async def colour(thing: Thing, context: Context) -> str:
    """Ask for a colour."""
    answer = await context.llm.ask(
        "default", Colour, system="Name a colour.", user=f"thing {thing.number}"
    )
    return answer.colour


@agent.task(uses=("llm",), remember="shared", remember_for=timedelta(days=1))
async def tint(thing: Thing, context: Context) -> str:
    """Ask for a colour once."""
    return await colour(thing, context)


@agent.task(uses=("llm",))
async def paint(thing: Thing, context: Context) -> str:
    """Run an agent of pydantic-ai."""
    return (await run(painter, f"thing {thing.number}", context)).output


@agent.task
async def double(thing: Thing) -> int:
    """Need no model."""
    return 2 * thing.number
