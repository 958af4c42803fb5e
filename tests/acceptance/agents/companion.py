"""An agent for tests: tells what it is shown of a conversation, and what is remembered of whoever asks."""

from typing import Any

from tasklore import Agent, Context, Parameters

agent = Agent("CompanionAgent", keywords=("listen", "companion"))


class Nothing(Parameters):
    """Needs only what was said."""


@agent.task(remember=False)
async def listen(parameters: Nothing, context: Context) -> dict[str, Any]:
    """Listen to me, companion."""
    history = (await context.history.take()).history
    await context.history.settle()
    return {
        "past": [f"{one.speaker}: {one.message}" for one in history.past],
        "new": [f"{one.speaker}: {one.message}" for one in history.current],
    }


@agent.task(remember=False, in_words=False)
async def tell_memory(parameters: Nothing, context: Context) -> str:
    """Tell what is remembered."""
    return await context.documents.rendered(budget_tokens=300)
