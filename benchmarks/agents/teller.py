"""Tell words at a steady pace, as the stream of a model does: each is its number, or the time at which it was sent."""

import asyncio
import time

from tasklore import Agent, Context, Parameters

agent = Agent("TellerAgent", keywords=("tell",))


class Tale(Parameters):
    """How many words, how many milliseconds apart, from when on (seconds since 1970), and whether they are times."""

    words: int
    pause_ms: float
    begin_at: float = 0.0
    times: bool = False


@agent.task(remember=False)
async def tell(tale: Tale, context: Context) -> int:
    """Tell them; return how many."""
    loop = asyncio.get_running_loop()
    began_at = loop.time() + max(0.0, tale.begin_at - time.time())
    for number in range(tale.words):
        await asyncio.sleep(
            max(0.0, began_at + number * tale.pause_ms / 1000 - loop.time())
        )
        await context.emit(f"{time.time_ns()} " if tale.times else f"{number} ")
    return tale.words
