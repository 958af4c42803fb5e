"""An agent for tests: tells what it is shown of a conversation, and what is remembered of whoever asks."""

from typing import Any

from workers import Agent, Context, Parameters
from workers.summary import summarising

agent = Agent("CompanionAgent", keywords=("listen", "companion"))


class Nothing(Parameters):
    """Needs only what was said."""


@agent.task(remember=False, uses=("llm",))
async def listen(parameters: Nothing, context: Context) -> dict[str, Any]:
    """Listen to me, companion."""
    taken = await context.history.take()
    async with summarising(context, taken, wait_s=30):
        shown = {
            "past": [f"{one.speaker}: {one.message}" for one in taken.history.past],
            "new": [f"{one.speaker}: {one.message}" for one in taken.history.current],
            "summary": taken.history.earlier.summary,
            "summarised": taken.history.earlier.summarised,
        }
    await context.history.settle()
    return shown


@agent.task(remember=False, in_words=False)
async def tell_memory(parameters: Nothing, context: Context) -> str:
    """Tell what is remembered."""
    return await context.documents.rendered(budget_tokens=300)
