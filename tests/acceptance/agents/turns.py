"""An agent that notes when each of its tasks began."""

import asyncio
import os
import time
from datetime import timedelta
from pathlib import Path

from tasklore import Agent, Context, Parameters

STARTS = Path(os.environ["PROBE_RUNS"]) / "starts"

agent = Agent("TurnAgent")


class Turn(Parameters):
    """What a task is noted as, and how long it takes."""

    label: str
    ms: int


def note(turn: Turn) -> None:
    """Note the label and the time."""
    with STARTS.open("a") as starts:
        starts.write(f"{turn.label} {time.time()}\n")


@agent.task(remember=False)
async def work(turn: Turn) -> str:
    """Note the label, and work."""
    note(turn)
    await asyncio.sleep(turn.ms / 1000)
    return turn.label


@agent.task(remember=False)
async def pause(turn: Turn, context: Context) -> str:
    """Wait for ten seconds without a slot, and note the label."""
    await context.sleep(timedelta(seconds=10))
    note(turn)
    return turn.label
