"""An agent for tests that plain words reach: it naps for as many milliseconds as it is told, and fears one number."""

import asyncio

from pydantic import BaseModel

from tasklore import Agent, Field, Parameters
from tasklore.contracts.errors import GiveUp

agent = Agent("NapAgent", keywords=("nap",))


class Nap(Parameters):
    """How long to nap."""

    ms: int = Field(ge=0, cues=("nap of", "nap"), description="Milliseconds.")


class Rested(BaseModel):
    """How long it was."""

    ms: int


@agent.task(examples=("take a nap of 300",))
async def take_nap(nap: Nap) -> Rested:
    """Take a nap of some milliseconds."""
    if nap.ms == 13:
        raise GiveUp("thirteen is no good number for a nap")
    await asyncio.sleep(nap.ms / 1000)
    return Rested(ms=nap.ms)
