"""The ten agents of a story for tests: each does what a line of the response tells it, or finds something at once.

A line `@SECTION DEED WORD` is for the agent of that section; the deeds are in `_DEEDS`. Each run leaves a line.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from pydantic import JsonValue

from tasklore import Agent, Context, Parameters
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS

#: Where each run leaves a line, so that tests count runs and not what was reported of them.
RUNS = Path(os.environ["PROBE_RUNS"])


class Look(Parameters):
    """Nothing: the assignment says which response it is."""


async def _hang(_word: str) -> None:
    await asyncio.sleep(3600)


async def _raise(word: str) -> None:
    raise ValueError(f"no {word} here")


async def _wait(word: str) -> None:
    while not os.path.exists(word):  # noqa: ASYNC110, ASYNC240, PTH110 - one look at a local file
        await asyncio.sleep(0.01)


async def _die(_word: str) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


_DEEDS: dict[str, Callable[[str], Awaitable[None]]] = {
    "hang": _hang,
    "raise": _raise,
    "wait": _wait,
    "die": _die,
}


def _found(section: str, number: int) -> dict[str, JsonValue]:
    """Return what an agent finds in response *number*."""
    found: dict[str, dict[str, JsonValue]] = {
        "resp_analyzer": {"scene": {"type": "dialogue", "tension": number % 10}},
        "memory_create": {
            "memories": [
                {
                    "id": "lamp",
                    "char": "Mara",
                    "sum": f"Lit the lamp, {number}",
                    "sig": 5,
                }
            ]
        },
        "relationship": {
            "interactions": [
                {"chars": ["Mara", "Tom"], "change": 5, "trigger": "kindness"}
            ]
        },
        "plot_threads": {
            "new": [{"id": "?", "title": f"Who was at the door in {number}"}]
        },
        "knowledge": {
            "facts": [{"subj": "Harbour", "fact": f"It froze in year {number}"}]
        },
        "fact_extract": {
            "facts": {"Tom": ["Keeps the boat"]},
            "reduction": {"before": 100, "after": 10, "pct": 90},
        },
    }
    return {"by": "rules", **found.get(section, {})}


def _teller(section: str, agent_id: str, task: str) -> Agent:
    agent = Agent(agent_id, keywords=(section,))

    async def analyse(look: Look, context: Context) -> JsonValue:
        """Find what is to be found for one section."""
        response = await context.story.response()
        with (RUNS / section).open("a") as runs:
            runs.write(f"{response.number}:{context.assignment.task_id}\n")
        for line in response.text.splitlines():
            words = [*line.split(" ", 2), ""]
            if words[0] == f"@{section}":
                if words[1] == "nonsense":
                    return [1, 2, 3]
                await _DEEDS[words[1]](words[2])
        return _found(section, response.number)

    analyse.__name__ = task
    return _declared(agent, analyse)


def _declared(agent: Agent, work: Any) -> Agent:
    agent.task(remember=False)(work)
    return agent


globals().update(
    {
        f"{seat.section}_agent": _teller(seat.section, seat.agent_id, seat.task)
        for seat in SECTION_AGENTS
    }
)
#: An agent of a story's own.
tone_agent = _teller("tone", "ToneAgent", "hear_tone")
