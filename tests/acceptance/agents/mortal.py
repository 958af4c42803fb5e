"""An agent for tests whose tasks give up until they are healed: the cause lies outside of them, as it often does."""

import os
from pathlib import Path

from pydantic import BaseModel

from tasklore import Agent, Field, Parameters
from tasklore.contracts.errors import GiveUp

agent = Agent("MortalAgent")

#: Where each run leaves its number, and where a cure is put.
RUNS = Path(os.environ["PROBE_RUNS"])


class Life(Parameters):
    """What is cured together by `{label}.cured`, and which of them this is."""

    label: str
    number: int = Field(0, ge=0)


class Lived(BaseModel):
    """Which one it was."""

    number: int


@agent.task(remember=False)
async def live(life: Life) -> Lived:
    """Live, once there is a cure."""
    with (RUNS / life.label).open("a") as runs:
        runs.write(f"{life.number}\n")
    if not (RUNS / f"{life.label}.cured").exists():
        raise GiveUp(f"there is no cure for {life.label} yet")
    return Lived(number=life.number)
