"""A small story for tests of its agents: a keeper, her apprentice, a smuggler, and a bell that must not ring.

Response 3 is the one that is analysed. Nobody in it but Mara and Tobias is there; Ines and Corwin are spoken of.
"""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel

from tasklore import Agent
from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.stories import (
    Bond,
    Entity,
    Relations,
    StoryBase,
    StoryChange,
    StoryMemory,
    StoryResponse,
    StorySettings,
    StoryThread,
    Tastes,
)
from tasklore.contracts.errors import LlmError
from tasklore.contracts.messages import CompletionReport
from tasklore.memory.rendering.tokens import counter
from tasklore.workers.testing import AgentKit, KitStory

MARA = "Mara Voss"
TOBIAS = "Tobias Reed"
INES = "Ines Calder"
CORWIN = "Corwin Ashdown"
HANNE = "Hanne Brook"
LANTERN = "Lantern House"
TAVERN = "Salt Quay Tavern"

_FILES: Mapping[str, str] = {
    MARA: """# Mara Voss

- Kind: character
- Also called: the keeper

## Who she is

- Keeper of Lantern House since her father drowned
- 41 years old, born on the island
- Afraid of open water, though she tells nobody
- Taught Tobias Reed everything he knows of lamps

## What she wants

She wants the bell of the drowned chapel to stay silent. She owes Ines Calder forty crowns.
""",
    TOBIAS: """# Tobias Reed

- Kind: character

- Apprentice at Lantern House for two years
- 19 years old, from the mainland
- Plays the fiddle badly and often
- Writes to his sister Hanne Brook every week
""",
    INES: """# Ines Calder

- Kind: character
- Also called: the captain

## Trade

- Smuggles lamp oil past the customs boat
- Her ship is the **Grey Heron**
- Lost two fingers of her left hand in a winch

## Temper

- Never breaks a promise she made at sea
- Distrusts Corwin Ashdown since the fire
- Pays her debts in silver, never in paper
- Sleeps on board even in winter
""",
    CORWIN: """# Corwin Ashdown

- Kind: character

- Owner of the Salt Quay Tavern
- Testified against the old keeper
- Limps since the fire
""",
    HANNE: """# Hanne Brook

- Kind: character

- Married sister of Tobias Reed, lives on the mainland
""",
    LANTERN: """# Lantern House

- Kind: location

- A lighthouse of grey stone on the north rock
- The lamp burns whale oil
""",
    TAVERN: """# Salt Quay Tavern

- Kind: location

- Belongs to Corwin Ashdown
""",
}


def entity(name: str, text: str | None = None, **fields: Any) -> Entity:
    """Return an entity of the stage, or one with a file of *text*."""
    written = _FILES.get(name, "") if text is None else text
    kind = "location" if name in (LANTERN, TAVERN) else "character"
    aliases = {MARA: ("the keeper",), INES: ("the captain",)}.get(name, ())
    told = {
        "kind": kind,
        "aliases": aliases,
        "file": f"entities/{name.split()[0]}.md",
        "tokens": counter()(written),
    }
    return Entity(name=name, text=written, **{**told, **fields})


ENTITIES = tuple(entity(name) for name in _FILES)

BASE = StoryBase(
    settings=StorySettings(
        story_id="lantern",
        title="The Lantern House",
        traits={
            "honesty": ("admitted", "confessed", "told the truth"),
            "recklessness": ("dared", "leapt", "gambled"),
        },
    ),
    entities=ENTITIES,
    memories=(
        StoryMemory(
            id="MEM-000-drowning",
            character=MARA,
            title="The night her father drowned",
            summary="Mara watched from the gallery as her father's boat went under",
            text="Mara watched from the gallery as her father's boat went under. The bell rang by itself.",
            significance=9,
            tags=("father", "bell", "sea"),
        ),
        StoryMemory(
            id="MEM-001-first-lamp",
            character=TOBIAS,
            title="The first lamp he lit",
            summary="Tobias lit the great lamp alone while Mara lay sick",
            significance=6,
            chapter=1,
            response=1,
            tags=("lamp", "mara"),
        ),
        StoryMemory(
            id="MEM-001-debt",
            character=MARA,
            title="Forty crowns",
            summary="Mara borrowed forty crowns of Ines for oil",
            significance=5,
            chapter=1,
            response=1,
            tags=("debt", "ines"),
        ),
    ),
    relations=Relations(
        tastes={
            MARA: Tastes(likes={"honesty": 10}, dislikes={"recklessness": 6}),
            TOBIAS: Tastes(likes={"recklessness": 4}),
        },
        bonds=(
            Bond(characters=(MARA, TOBIAS), score=18),
            Bond(characters=(MARA, INES), score=-4),
        ),
    ),
    threads=(
        StoryThread(
            id="THREAD-001",
            title="The debt to Ines",
            text="Mara owes Ines Calder forty crowns. If they are not paid, no more oil will come.",
            priority="high",
            time_sensitive=True,
            characters=(MARA, INES),
            keywords=("debt", "crowns"),
            resolved_by=("debt is paid",),
            opened=1,
            consequence_at=8,
        ),
        StoryThread(
            id="THREAD-002",
            title="The bell of the drowned chapel",
            text="The bell under the water rings before somebody dies.",
            characters=(MARA,),
            keywords=("bell",),
        ),
        StoryThread(
            id="THREAD-003",
            title="Hanne's visit",
            text="Tobias' sister means to come over for the feast of lights.",
            priority="low",
            characters=(TOBIAS, HANNE),
            keywords=("visit", "feast"),
            due_at=18,
        ),
    ),
    knowledge=(
        KnownFact(
            category="location",
            subject=LANTERN,
            fact="The lamp burns whale oil",
            confidence="high",
        ),
        KnownFact(
            category="character",
            subject=TOBIAS,
            fact="Tobias is 19 years old",
            confidence="high",
        ),
    ),
)

EARLIER = (
    StoryResponse(
        number=1,
        text='Monday, 6:00 PM. Mara climbed the stairs of Lantern House. "The lamp is yours tonight," she told Tobias.',
    ),
    StoryResponse(
        number=2,
        text='Monday, 8:30 PM. Tobias trimmed the wick. "Is it true about the bell?" he asked. Mara did not answer.',
    ),
)

RESPONSE = StoryResponse(
    number=3,
    text="""Monday, 9:15 PM. Rain beat against the windows of Lantern House, and the lamp turned above them.

"You have been down to the quay again," said Mara. She did not look up from the ledger.

"Ines asked after the forty crowns," Tobias admitted. "She says the debt is due before the ice comes."

Mara closed the book. "And what did you tell her?"

"The truth. That we have eleven." He swallowed. "Corwin Ashdown heard it all. He laughed, Mara."

For a while there was only the rain. Then, far below, the bell rang once, and Mara went white to the lips.

"I was in the boat that night," she said. "I let go of the rope. I have never told anyone."

Tobias put his hand on hers, and did not take it away.""",
)

#: What the responses before it changed, as their analyses found it.
CHANGES: Mapping[int, Mapping[str, StoryChange]] = {
    1: {
        "resp_analyzer": StoryChange(
            scene="dialogue", tension=3, timestamp="Monday, 6:00 PM"
        )
    },
    2: {
        "resp_analyzer": StoryChange(
            scene="dialogue", tension=3, timestamp="Monday, 8:30 PM"
        ),
        "plot_threads": StoryChange(mentioned=("THREAD-002",)),
    },
}


def story(
    text: str | None = None,
    base: StoryBase = BASE,
    *,
    number: int = RESPONSE.number,
    **fields: Any,
) -> KitStory:
    """Return the story at response *number*, with *text* in place of its own; further fields are KitStory's."""
    response = RESPONSE.model_copy(
        update={"number": number, "text": RESPONSE.text if text is None else text}
    )
    earlier = tuple(one for one in EARLIER if one.number < number)
    return KitStory(
        base, response, **{"earlier": earlier, "changes": CHANGES, **fields}
    )


async def analysed(
    agent: Agent, *llm: BaseModel | LlmError, told: KitStory | None = None
) -> tuple[dict[str, Any], AgentKit]:
    """Return the section that *agent* leaves, and the kit it ran in; *llm* is what a model answers, in order."""
    kit = AgentKit(agent, llm=llm, story=story() if told is None else told)
    report = await kit.run("analyse", {})
    return section_of(report), kit


def section_of(report: CompletionReport) -> dict[str, Any]:
    """Return the result of a completed task."""
    assert report.status == "completed", report.error
    assert isinstance(report.result, dict)
    return report.result
