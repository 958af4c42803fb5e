"""Find what characters show each other, and count it by what each of them likes; a model is never asked for points."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Literal, cast

from contracts.analysis_background import Relationships
from contracts.stories import Entity
from memory.stories.settling import StandingStory, settled
from workers import Agent, Context
from workers.agents.story.asking import RULES, Block, asked
from workers.agents.story.feelings import Feelings, Show, folded
from workers.agents.story.grounding import MOST_CHECKED, faults_of, name_in, quotation_in, tags_from
from workers.agents.story.names import counts_of
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "relationship"

agent = Agent("StoryRelationshipAgent", description="Finds what characters show each other in a response of a story.")


class ProposedShow(Answer):
    """What a model says one character showed another, and how the receiver takes it."""

    giver: str
    receiver: str
    trait: str
    shown: str
    taken: Literal["well", "badly"]
    weight: Literal["slight", "clear", "strong"]
    quotation: str


class ProposedShows(Answer):
    """All that a model saw."""

    reasoning: str
    shows: tuple[ProposedShow, ...]


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> Relationships:
    """Find what changed between two characters, one interaction for each pair."""
    story = context.story
    response, entities = await story.response(), await story.entities()
    relations, settings = await story.relations(), await story.settings()
    feelings = Feelings(relations, entities)
    named = await asyncio.to_thread(counts_of, response.text, entities)
    characters = [entity.name for entity in entities if entity.kind == "character" and entity.name in named]
    blocks = (
        Block("characters", characters),
        Block("tastes", list(_taste_lines(characters, feelings)), rank=1),
        Block("traits", [f"{trait}: {', '.join(words)}" for trait, words in settings.traits.items()], rank=2),
        Block.response(response.text),
    )
    reply = await asked(
        context, SECTION, ProposedShows, blocks=blocks, faults=lambda said: _faults(said, response.text)
    )
    draft = Relationships(by=RULES)
    if reply is not None:
        shows = await asyncio.to_thread(lambda: list(_grounded(reply.value.shows, response.text, entities, feelings)))
        draft = Relationships(by=reply.model, interactions=tuple(feelings.interactions(shows)))
    standing = StandingStory(settings, relations, scores=await story.scores(before=True))
    return cast("Relationships", settled(SECTION, response.number, response.chapter, draft, standing)[0])


def _faults(said: ProposedShows, text: str) -> Iterator[str]:
    for number, one in enumerate(said.shows, start=1):
        yield from faults_of(f"show {number}", one.quotation, text)


def _taste_lines(characters: Sequence[str], feelings: Feelings) -> Iterator[str]:
    for name in characters:
        tastes = feelings.tastes_of(name)
        likes, dislikes = ", ".join(tastes.likes), ", ".join(tastes.dislikes)
        if likes or dislikes:
            yield f"{name} likes: {likes or 'nothing'}; dislikes: {dislikes or 'nothing'}"


def _grounded(
    proposed: Sequence[ProposedShow], text: str, entities: Sequence[Entity], feelings: Feelings
) -> Iterator[Show]:
    """Yield what of *proposed* the response shows: to the receiver's taste where the story declares one."""
    for one in proposed[:MOST_CHECKED]:
        giver, receiver = name_in(one.giver, text, entities), name_in(one.receiver, text, entities)
        if giver is None or receiver is None or giver == receiver or quotation_in(one.quotation, text) is None:
            continue
        trait = feelings.trait_for(receiver, one.trait)
        if trait is None and feelings.has_tastes(receiver):
            continue
        shown = next(iter(tags_from((one.shown,))), folded(trait or one.trait)).replace("_", " ")
        yield Show(giver, receiver, trait or folded(one.trait), shown, one.taken == "well", one.weight)
