"""An agent for tests in which tasks get into trouble: one has a bug, one takes its time, one is asked for nonsense."""

import asyncio

from tasklore import Agent, Field, Parameters

agent = Agent("TroubledAgent", keywords=("trouble",))


class AwayError(ConnectionError):
    """A service that is away for longer than a person reads."""

    after_s = 600.0


class Nap(Parameters):
    """How long to sleep, in milliseconds; *label* is a person's word for it."""

    ms: int = Field(0, ge=0)
    label: str = ""


@agent.task(remember=False)
async def nap(nap: Nap) -> int:
    """Sleep."""
    await asyncio.sleep(nap.ms / 1000)
    return nap.ms


@agent.task(remember=False)
async def add(nap: Nap) -> int:
    """Add a number to a text, which is a bug."""
    return nap.ms + nap.label  # type: ignore[operator]


@agent.task(remember=False, max_attempts=9)
async def call(nap: Nap) -> int:
    """Call a service that does not answer."""
    raise AwayError("the warehouse does not answer")


@agent.task(remember=False, at_most=1)
async def alone(nap: Nap) -> int:
    """Sleep, and let nobody else do so."""
    await asyncio.sleep(nap.ms / 1000)
    return nap.ms
