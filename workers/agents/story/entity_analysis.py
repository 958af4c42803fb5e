"""Who matters for the next response: whole files for the scene's focus, condensed ones for who is mentioned.

A model picks by number from a list, so that it cannot invent anybody; names that stand in the response count whether it
picks them or not.
"""

import asyncio
from collections.abc import Sequence

from contracts.analysis_immediate import EntityAnalysis, EntityFile
from contracts.stories import Entity
from workers import Agent, Context
from workers.agents.story.asking import RULES, Asked, Block, asked, picked
from workers.agents.story.names import counts_of
from workers.agents.story.tiers import MOST_CONDENSED, MOST_WHOLE, file_tokens, tiers_of
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "entity_analysis"

agent = Agent("StoryEntityAgent", description="Tells whose files the next response needs, and how much of them.")


class EntityChoice(Answer):
    """What a model picks, by number: on whom the scene centres, and who else matters, the most relevant first."""

    reasoning: str
    focus: tuple[int, ...]
    relevant: tuple[int, ...]


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> EntityAnalysis:
    """Return the tiers of the response, and the places it names."""
    response, entities = await context.story.response(), await context.story.entities()
    listed = await asyncio.to_thread(_listed, response.text, entities)
    lines = [f"{one.kind}: {one.name}" for one in listed]
    shown = (Block("entities", lines, rank=1, numbered=True), Block.response(response.text))
    answer = await asked(context, SECTION, EntityChoice, blocks=shown, focus=MOST_WHOLE, relevant=MOST_CONDENSED)
    return await asyncio.to_thread(_section, response.text, entities, listed, answer)


def _section(
    text: str, entities: Sequence[Entity], listed: Sequence[Entity], answer: Asked[EntityChoice] | None
) -> EntityAnalysis:
    focus: list[Entity] = []
    relevant: list[Entity] = []
    if answer is not None:
        seen = listed[: answer.shown["entities"]]
        focus = [one for one in picked(answer.value.focus, seen, len(seen)) if one.kind == "character"]
        relevant = picked(answer.value.relevant, seen, MOST_CONDENSED)
    tiers = tiers_of(text, entities, focus, relevant)
    kinds = {one.name: one.kind for one in entities}
    return EntityAnalysis(
        by=RULES if answer is None else answer.model,
        tier1=tuple(map(_file, tiers.whole)),
        tier2=tuple(map(_file, tiers.condensed)),
        tier3=tiers.last_names,
        locations=tuple(name for name in counts_of(text, entities) if kinds[name] == "location"),
    )


def _listed(text: str, entities: Sequence[Entity]) -> tuple[Entity, ...]:
    """Return every entity, those first who are named most: the end of a long list is not shown."""
    tiers = tiers_of(text, entities)
    first = (*tiers.whole, *tiers.condensed, *tiers.named)
    return (*first, *(one for one in entities if one not in first))


def _file(entity: Entity) -> EntityFile:
    # An entity that was given as a document has no file to be named.
    file = {"file": entity.file} if entity.file else {}
    return EntityFile.model_validate({"name": entity.name, **file, "tokens": file_tokens(entity)})
