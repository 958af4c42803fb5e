"""Find what characters will remember of a response; ids are made of its number and a word for what happened."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Literal, cast

from contracts.analysis_background import MemoryCreation, NewMemory
from contracts.stories import Entity, StoryResponse
from memory.stories.settling import StandingStory, settled
from workers import Agent, Context
from workers.agents.story.asking import RULES, Asked, Block, asked
from workers.agents.story.reading.casting import Cast, cast_of, named
from workers.agents.story.reading.grounding import MOST_CHECKED, line_from, quote_from, tags_from
from workers.agents.story.reading.phrases import one_line
from workers.agents.story.rules.remembering import HIGHEST, LONGEST_SUMMARY, by_rules, memory, place
from workers.agents.story.turn import Turn
from workers.answers import Answer

#: Memories of one response: more were no choice.
MOST_MEMORIES = 4
#: Characters of a tone: three words.
_LONGEST_TONE = 40

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
    quote: str
    tags: tuple[str, ...]
    slug: str


class ProposedMemories(Answer):
    """What a model would remember."""

    reasoning: str
    memories: tuple[ProposedMemory, ...]


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(turn: Turn, context: Context) -> MemoryCreation:  # noqa: ARG001 - the story is all there is
    """Find at most four memories, the most significant first.

    A model that names nothing which holds is not believed that there is nothing: then the rules look.
    """
    response, entities = await context.story.response(), await context.story.entities()
    scene = await asyncio.to_thread(cast_of, response.text, entities)
    reply = None
    if scene.in_scene:
        blocks = [Block("in_scene", scene.in_scene, rank=1), Block.response(response.text)]
        values = {"most": MOST_MEMORIES, "longest": LONGEST_SUMMARY}
        reply = await asked(context, "memory_create", ProposedMemories, blocks=blocks, **values)
    draft = await asyncio.to_thread(_draft, reply, response, entities, scene)
    story = StandingStory(
        settings=await context.story.settings(),
        memory_ids=frozenset(memory.id for memory in await context.story.memories(before=True)),
    )
    return cast("MemoryCreation", settled("memory_create", response.number, response.chapter, draft, story)[0])


def _draft(
    reply: Asked[ProposedMemories] | None, response: StoryResponse, entities: Sequence[Entity], scene: Cast
) -> MemoryCreation:
    held = [] if reply is None else list(_grounded(reply.value.memories, response, entities, scene))
    if reply is not None and (held or not reply.value.memories):
        return MemoryCreation(by=reply.model, memories=_top(held))
    return MemoryCreation(by=RULES, memories=_top(by_rules(response, entities, scene)))


def _top(found: Sequence[NewMemory]) -> tuple[NewMemory, ...]:
    return tuple(sorted(found, key=lambda memory: -memory.significance)[:MOST_MEMORIES])


def _grounded(
    proposed: Sequence[ProposedMemory], response: StoryResponse, entities: Sequence[Entity], scene: Cast
) -> Iterator[NewMemory]:
    """Yield what of *proposed* stands in the response, of characters who are there."""
    names = [entity.name for entity in entities]
    possible = (one for one in proposed if 1 <= one.significance <= HIGHEST)
    for one in sorted(possible, key=lambda one: -one.significance)[:MOST_CHECKED]:
        character = named(one.character, entities)
        summary = line_from(one.summary, (response.text,), names, LONGEST_SUMMARY)
        if character not in scene.in_scene or summary is None:
            continue
        tone = ", ".join(tags_from(one.tone.split(","))).replace("_", " ")
        yield memory(
            id=f"MEM-{response.number}-{' '.join(tags_from((one.slug,)) or (one.type,))}",
            character=character,
            location=place(scene),
            type=one.type,
            significance=one.significance,
            tone=one_line(tone, _LONGEST_TONE) or None,
            summary=summary,
            quote=quote_from(one.quote, response.text),
            tags=tags_from(one.tags),
        )
