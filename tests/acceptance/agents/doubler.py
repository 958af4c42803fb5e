"""An agent for a worker of today; `tests/fixtures/0.2/doubler.py` is it for a worker of 0.2."""

import os
from pathlib import Path

from tasklore import Agent, Parameters

agent = Agent("DoublerAgent", keywords=("double",))


class Number(Parameters):
    """A number to double."""

    number: int


@agent.task(remember=False)
async def double(asked: Number) -> int:
    """Double a number, and leave a line for each run of it."""
    with (Path(os.environ["PROBE_RUNS"]) / "doubled").open("a") as runs:
        runs.write(f"{asked.number}\n")
    return 2 * asked.number
