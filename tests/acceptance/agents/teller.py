"""An agent for tests that tells a long text as a model does, a word at a time."""

import asyncio
from collections.abc import AsyncIterator

from tasklore import Agent, Context, Parameters

agent = Agent("TellerAgent", keywords=("tell",))


class Tale(Parameters):
    """How long to tell, and how fast; with `break_off` the first run raises at the end."""

    words: int = 20
    pause_ms: float = 20
    break_off: bool = False


class Count(Parameters):
    """How many values to emit."""

    values: int = 1


async def _words(tale: Tale, attempt: int) -> AsyncIterator[str]:
    for number in range(tale.words):
        yield f"{attempt}:{number}é "
        await asyncio.sleep(tale.pause_ms / 1000)


@agent.task(remember=False, examples=("tell me a tale",))
async def tell(tale: Tale, context: Context) -> str:
    """Tell a tale."""
    await context.emit({"name": "remember_tales"}, kind="tool_call")
    text = await context.emit_all(_words(tale, context.attempt))
    if tale.break_off and context.attempt == 1:
        raise ConnectionError("the thread is lost")
    return text


@agent.task(remember=False)
async def count(count: Count, context: Context) -> int:
    """Emit numbers, as fast as they are taken."""
    for number in range(count.values):
        await context.emit(number, kind="number")
        if number % 100 == 0:
            # The worker does other things too, as in a task that waits for what it emits.
            await asyncio.sleep(0)
    return count.values
