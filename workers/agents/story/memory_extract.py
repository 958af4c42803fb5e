"""Choose the older memories that the next response may rest on, by character and the most relevant first."""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest

from contracts.analysis_immediate import MemoryExtraction, RecalledMemory
from contracts.stories import Entity, StoryMemory, StoryResponse, source_of
from memory.stories.arithmetic import reduction
from workers import Agent, Context
from workers.agents.story.asking import RULES, Block, asked, tokens_of
from workers.agents.story.reading.casting import Handles, cast_of
from workers.agents.story.reading.grounding import MOST_CHECKED, line_from
from workers.agents.story.rules.recalling import LONGEST_WHY, Recall, number_of, summary_of, title_of, weighed
from workers.agents.story.turn import Turn
from workers.answers import Answer

#: Characters that memories are chosen for, memories of each, and how many of each a model may choose from.
MOST_CHARACTERS, MOST_MEMORIES, _OFFERED = 3, 3, 8

agent = Agent("StoryMemoryRecallAgent", description="Chooses older memories that the next response of a story needs.")


class ProposedRecall(Answer):
    """A memory, by its number, that a model would recall."""

    number: int
    why: str


class ProposedRecalls(Answer):
    """What a model would recall."""

    reasoning: str
    memories: tuple[ProposedRecall, ...]


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(turn: Turn, context: Context) -> MemoryExtraction:  # noqa: ARG001 - the story is all there is
    """Choose at most three memories for each of at most three characters in the scene."""
    response, entities = await context.story.response(), await context.story.entities()
    memories = await context.story.memories()
    owned, recalls = await asyncio.to_thread(_weighed, response, memories, entities)
    by, chosen = RULES, {name: [one for one in found if one.weight] for name, found in recalls.items()}
    offered = _interleaved(recalls)
    if offered:
        lines = [f"{name}: {title_of(one.memory)}. {summary_of(one.memory)}" for name, one in offered]
        blocks = [Block("memories", lines, numbered=True), Block.response(response.text)]
        values = {"most": MOST_MEMORIES, "longest": LONGEST_WHY}
        reply = await asked(context, "memory_extract", ProposedRecalls, blocks=blocks, **values)
        if reply is not None:
            shown = offered[: reply.shown["memories"]]
            picks = await asyncio.to_thread(_grounded, reply.value.memories, shown, response, entities)
            if picks or not reply.value.memories:
                by, chosen = reply.model, picks
    return await asyncio.to_thread(_section, by, owned, chosen)


def _weighed(
    response: StoryResponse, memories: Sequence[StoryMemory], entities: Sequence[Entity]
) -> tuple[dict[str, list[StoryMemory]], dict[str, list[Recall]]]:
    owned = _owned(memories, cast_of(response.text, entities).in_scene, Handles(entities))
    return owned, weighed(response, owned, entities)


def _section(
    by: str, owned: Mapping[str, Sequence[StoryMemory]], chosen: Mapping[str, Sequence[Recall]]
) -> MemoryExtraction:
    """Return the section: three memories of each at most, and what is saved over the whole texts of all of theirs."""
    kept = {name: found[:MOST_MEMORIES] for name, found in chosen.items() if found}
    before = sum(tokens_of(f"{title_of(one)}: {one.text or one.summary}") for found in owned.values() for one in found)
    after = sum(
        tokens_of(f"{title_of(one.memory)}: {summary_of(one.memory)}") for found in kept.values() for one in found
    )
    memories = {name: tuple(map(_recalled, found)) for name, found in kept.items()}
    return MemoryExtraction(by=by, memories=memories, reduction=reduction(before, after))


def _owned(memories: Sequence[StoryMemory], in_scene: Sequence[str], handles: Handles) -> dict[str, list[StoryMemory]]:
    """Return the memories of those in the scene who have any, the first three of them."""
    owned: dict[str, list[StoryMemory]] = {name: [] for name in in_scene}
    for memory in memories:
        owned.get(handles.owner(memory.character) or memory.character, []).append(memory)
    return dict([(name, found) for name, found in owned.items() if found][:MOST_CHARACTERS])


def _interleaved(recalls: Mapping[str, Sequence[Recall]]) -> list[tuple[str, Recall]]:
    """Return what a model may choose from, the best of each character before the second of any."""
    rows = zip_longest(*([(name, one) for one in found[:_OFFERED]] for name, found in recalls.items()))
    return [pair for pair in chain.from_iterable(rows) if pair is not None]


def _grounded(
    proposed: Sequence[ProposedRecall],
    shown: Sequence[tuple[str, Recall]],
    response: StoryResponse,
    entities: Sequence[Entity],
) -> dict[str, list[Recall]]:
    """Return the memories that a model chose out of those it saw, by character and in its order, each once.

    A reason that says what it was not given is replaced by that of the rules.
    """
    chosen: dict[str, dict[str, Recall]] = {}
    names = [entity.name for entity in entities]
    for one in proposed[:MOST_CHECKED]:
        if 1 <= one.number <= len(shown):
            name, recall = shown[one.number - 1]
            given = (response.text, title_of(recall.memory), summary_of(recall.memory))
            why = line_from(one.why, given, names, LONGEST_WHY) or recall.why
            chosen.setdefault(name, {}).setdefault(recall.memory.id, Recall(recall.memory, recall.weight, why))
    return {name: list(found.values()) for name, found in chosen.items()}


def _recalled(recall: Recall) -> RecalledMemory:
    memory = recall.memory
    told = {
        "id": memory.id,
        "title": title_of(memory),
        "when": None if (number := number_of(memory)) is None else source_of(memory.chapter, number),
        "significance": memory.significance,
        "why": recall.why,
        "summary": summary_of(memory),
    }
    return RecalledMemory.model_validate({name: value for name, value in told.items() if value is not None})
