"""An agent that notes when each of its tasks began."""

import asyncio
import os
import time
from pathlib import Path

from workers import Agent, Parameters

STARTS = Path(os.environ["PROBE_RUNS"]) / "starts"

agent = Agent("TurnAgent")


class Turn(Parameters):
    """What a task is noted as, and how long it takes."""

    label: str
    ms: int


@agent.task(remember=False)
async def work(turn: Turn) -> str:
    """Note the label and the time, and work."""
    with STARTS.open("a") as starts:
        starts.write(f"{turn.label} {time.time()}\n")
    await asyncio.sleep(turn.ms / 1000)
    return turn.label
