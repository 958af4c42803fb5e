"""Find what characters will remember of a response; ids are made of its number and a word for what happened."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Literal, cast

from contracts.analysis_background import MemoryCreation, NewMemory
from contracts.stories import Entity, StoryResponse
from memory.stories.settling import StandingStory, settled
from workers import Agent, Context
from workers.agents.story.asking import RULES, Asked, Block, asked
from workers.agents.story.grounding import (
    MOST_CHECKED,
    faults_of,
    line_of,
    name_in,
    number_faults,
    quotation_in,
    tags_from,
)
from workers.agents.story.names import Names, counts_of
from workers.agents.story.text import one_line
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "memory_create"
#: Memories of one response, and characters of a summary.
MOST_MEMORIES, LONGEST_SUMMARY = 6, 200
#: Characters of a tone, three words, and the significance of what changes a life.
_LONGEST_TONE, HIGHEST = 40, 10

agent = Agent("StoryMemoryCreationAgent", description="Finds what characters will remember of a response of a story.")


class ProposedMemory(Answer):
    """One memory as a model words it."""

    character: str
    type: Literal[
        "revelation", "promise", "conflict", "loss", "first_time", "discovery", "decision", "character_moment"
    ]
    significance: int
    tone: str
    summary: str
    quotation: str
    location: str
    tags: tuple[str, ...]
    slug: str


class ProposedMemories(Answer):
    """What a model would remember."""

    reasoning: str
    memories: tuple[ProposedMemory, ...]


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> MemoryCreation:
    """Find at most six memories, the most significant first."""
    story = context.story
    response, entities = await story.response(), await story.entities()
    named = await asyncio.to_thread(counts_of, response.text, entities)
    blocks = (Block("named", tuple(named), rank=1), Block.response(response.text))
    reply = await asked(
        context,
        SECTION,
        ProposedMemories,
        blocks=blocks,
        faults=lambda said: _faults(said, response.text),
        most=MOST_MEMORIES,
        longest=LONGEST_SUMMARY,
    )
    draft = await asyncio.to_thread(_draft, reply, response, entities)
    standing = StandingStory(
        settings=await story.settings(),
        memory_ids=frozenset(memory.id for memory in await story.memories(before=True)),
    )
    return cast("MemoryCreation", settled(SECTION, response.number, response.chapter, draft, standing)[0])


def _faults(said: ProposedMemories, text: str) -> Iterator[str]:
    for number, one in enumerate(said.memories, start=1):
        yield from faults_of(f"memory {number}", one.quotation, text)
        yield from number_faults(f"memory {number}", one.summary, (text,))


def _draft(
    reply: Asked[ProposedMemories] | None, response: StoryResponse, entities: Sequence[Entity]
) -> MemoryCreation:
    if reply is None:
        return MemoryCreation(by=RULES)
    found = sorted(_grounded(reply.value.memories, response, entities), key=lambda memory: -memory.significance)
    return MemoryCreation(by=reply.model, memories=tuple(found[:MOST_MEMORIES]))


def _grounded(
    proposed: Sequence[ProposedMemory], response: StoryResponse, entities: Sequence[Entity]
) -> Iterator[NewMemory]:
    """Yield what of *proposed* the response shows, of characters whom it has."""
    places = Names([entity for entity in entities if entity.kind == "location"])
    for one in proposed[:MOST_CHECKED]:
        character = name_in(one.character, response.text, entities)
        summary = line_of(one.summary, (response.text,), LONGEST_SUMMARY)
        quotation = quotation_in(one.quotation, response.text)
        if character is None or summary is None or quotation is None:
            continue
        tone = one_line(", ".join(tags_from(one.tone.split(","))).replace("_", " "), _LONGEST_TONE)
        told = {
            "id": f"MEM-{response.number}-{' '.join(tags_from((one.slug,)) or (one.type,))}",
            "character": character,
            "location": places.owner(one.location),
            "type": one.type,
            "significance": min(max(one.significance, 1), HIGHEST),
            "tone": tone or None,
            "summary": summary,
            "quote": quotation,
            "tags": tags_from(one.tags),
        }
        yield NewMemory.model_validate({name: value for name, value in told.items() if value is not None})
