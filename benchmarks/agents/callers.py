"""Call tasks of other agents, and return how long that took."""

import time

from tasklore import Agent, Context, Parameters

agent = Agent("CallerAgent", keywords=("caller",))


class Calls(Parameters):
    """How many calls, and how many at once."""

    count: int
    at_once: int = 1


@agent.task(remember=False)
async def call_in_turn(calls: Calls, context: Context) -> list[float]:
    """Return the milliseconds of each call of a task whose answer is remembered."""
    taken = []
    for _ in range(calls.count):
        began = time.perf_counter()
        await context.call("SlowAgent", "answer_slowly", number=1)
        taken.append((time.perf_counter() - began) * 1000)
    return taken


@agent.task(remember=False)
async def map_over(calls: Calls, context: Context) -> float:
    """Return the seconds of a map over items that do nothing."""
    began = time.perf_counter()
    await context.map(
        "NothingAgent.do_nothing",
        [{"number": n} for n in range(calls.count)],
        at_once=calls.at_once,
    )
    return time.perf_counter() - began
