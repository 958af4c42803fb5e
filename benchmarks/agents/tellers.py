"""The ten agents of a story, which find the same in every response, after as many milliseconds as it begins with."""

import asyncio
from typing import Any

from pydantic import JsonValue

from tasklore import Agent, Context, Parameters
from tasklore.contracts.analysis.section_agents import SECTION_AGENTS


class Look(Parameters):
    """Nothing: the assignment says which response it is."""


_FILLER = "Marcus has never told anyone about the winter in which his parents divorced"
_REDUCTION: dict[str, JsonValue] = {"before": 8_000, "after": 500, "pct": 94}

#: What each finds: about as much as ten agents find in a page of prose.
FOUND: dict[str, dict[str, JsonValue]] = {
    "resp_analyzer": {
        "scene": {
            "type": "dialogue",
            "pace": "medium",
            "tension": 6,
            "words": 450,
            "dlg": 0.4,
        },
        "chars": {
            "in_scene": ["Marcus Thompson", "Lily Chen"],
            "mentioned": ["David Park", "Sarah Mitchell"],
        },
        "loc": "Coffee Corner Cafe",
        "time": {"elapsed": 30, "timestamp": "Tuesday 3:00 PM"},
        "alerts": {"variety": "Last 4/5 dialogue-heavy"},
    },
    "memory_create": {
        "memories": [
            {
                "id": name,
                "char": "Marcus Thompson",
                "sig": 8,
                "sum": f"{_FILLER}, {name}",
                "quote": _FILLER,
                "tags": [name],
            }
            for name in ("winter", "letter")
        ]
    },
    "relationship": {
        "interactions": [
            {
                "chars": ["Marcus Thompson", "Lily Chen"],
                "change": 1,
                "trigger": "Lily listens (+1)",
            }
        ]
    },
    "plot_threads": {"new": [], "mentioned": [], "resolved": []},
    "knowledge": {
        "facts": [
            {"cat": "setting", "subj": f"Place {n}", "fact": _FILLER, "conf": "high"}
            for n in range(3)
        ]
    },
    "contradiction": {"enabled": True, "found": []},
    "entity_analysis": {
        "tier1": [
            {"name": "Marcus Thompson", "file": "entities/Marcus.md", "tokens": 3200}
        ],
        "tier2": [{"name": "David Park", "file": "entities/David.md", "tokens": 2200}],
        "tier3": ["Amy Rodriguez", "[12 others]"],
        "locs": ["Coffee Corner Cafe"],
    },
    "fact_extract": {
        "facts": {"David Park": [_FILLER] * 5, "Sarah Mitchell": [_FILLER] * 5},
        "reduction": _REDUCTION,
    },
    "memory_extract": {
        "memories": {
            who: [
                {
                    "id": f"MEM-{n}",
                    "title": "Winter",
                    "when": f"Ch1-R{n}",
                    "sig": 7,
                    "why": "told",
                    "sum": _FILLER,
                }
            ]
            for n, who in enumerate(("Marcus Thompson", "Lily Chen"))
        },
        "reduction": _REDUCTION,
    },
    "thread_extract": {
        "loaded": [
            {
                "id": f"THREAD-00{n}",
                "title": "Interview",
                "status": "critical",
                "countdown": n,
            }
            for n in (1, 2, 3)
        ],
        "monitored": 22,
        "reduction": _REDUCTION,
    },
}


def _teller(section: str, agent_id: str, task: str) -> Agent:
    agent = Agent(agent_id, keywords=(section,))

    @agent.task(remember=False, name=task)
    async def analyse(_look: Look, context: Context) -> dict[str, Any]:
        """Find the same as ever."""
        text = (await context.story.response()).text
        await asyncio.sleep(int(text.partition(" ")[0]) / 1000)
        return {"by": "rules", **FOUND[section]}

    return agent


globals().update(
    {
        f"{seat.section}_agent": _teller(seat.section, seat.agent_id, seat.task)
        for seat in SECTION_AGENTS
    }
)
