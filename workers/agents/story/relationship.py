"""Find what characters show each other, and count it by what each of them likes; a model is never asked for points."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import cast

from contracts.analysis_background import Relationships
from contracts.stories import Entity, StorySettings
from memory.stories.settling import StandingStory, settled
from workers import Agent, Context
from workers.agents.story.asking import RULES, Block, asked
from workers.agents.story.reading.casting import Cast, cast_of, named
from workers.agents.story.reading.deeds import deeds_in
from workers.agents.story.reading.grounding import quote_from, tags_from
from workers.agents.story.rules.feelings import Feelings, Show, cues_of, folded
from workers.agents.story.turn import Turn
from workers.answers import Answer

#: What a model may say was shown in one response: more is no reading of it.
_MOST_SHOWN = 12

agent = Agent("StoryRelationshipAgent", description="Finds what characters show each other in a response of a story.")


class ProposedShow(Answer):
    """What a model says one character showed another."""

    giver: str
    receiver: str
    trait: str
    shown: str
    quote: str


class ProposedShows(Answer):
    """All that a model saw."""

    reasoning: str
    shows: tuple[ProposedShow, ...]


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(turn: Turn, context: Context) -> Relationships:  # noqa: ARG001 - the story is all there is
    """Find what changed between two characters, one interaction for each pair."""
    response, entities = await context.story.response(), await context.story.entities()
    relations, settings = await context.story.relations(), await context.story.settings()
    scene, feelings = await asyncio.to_thread(cast_of, response.text, entities), Feelings(relations, entities)
    reply, lines = None, list(_taste_lines(scene, feelings))
    if len(scene.in_scene) > 1 and lines:
        blocks = [Block("in_scene", scene.in_scene), Block("tastes", lines), Block.response(response.text)]
        reply = await asked(context, "relationship", ProposedShows, blocks=blocks)
    proposed = () if reply is None else reply.value.shows[:_MOST_SHOWN]
    held = list(_grounded(proposed, response.text, entities, scene, feelings))
    if reply is not None and (held or not proposed):
        by, shows = reply.model, held
    else:
        by, shows = RULES, await asyncio.to_thread(_by_rules, response.text, settings, entities, scene, feelings)
    draft = Relationships(by=by, interactions=tuple(feelings.interactions(shows, scene.in_scene)))
    story = StandingStory(settings, relations, scores=await context.story.scores(before=True))
    return cast("Relationships", settled("relationship", response.number, response.chapter, draft, story)[0])


def _taste_lines(scene: Cast, feelings: Feelings) -> Iterator[str]:
    for name in scene.in_scene:
        tastes = feelings.tastes_of(name)
        likes, dislikes = ", ".join(tastes.likes), ", ".join(tastes.dislikes)
        if likes or dislikes:
            yield f"{name} likes: {likes or 'nothing'}; dislikes: {dislikes or 'nothing'}"


def _grounded(
    proposed: Sequence[ProposedShow], text: str, entities: Sequence[Entity], scene: Cast, feelings: Feelings
) -> Iterator[Show]:
    """Yield what of *proposed* the response shows: between two who are there, and to the taste of who receives it."""
    for one in proposed:
        giver, receiver = named(one.giver, entities), named(one.receiver, entities)
        if giver is None or receiver is None or len({giver, receiver} & {*scene.in_scene}) < 2:
            continue
        trait = feelings.trait_for(receiver, one.trait)
        if trait is not None and quote_from(one.quote, text) is not None:
            shown = next(iter(tags_from((one.shown,))), folded(trait))
            yield Show(giver, receiver, trait, shown.replace("_", " "))


def _by_rules(
    text: str, settings: StorySettings, entities: Sequence[Entity], scene: Cast, feelings: Feelings
) -> list[Show]:
    """Return the traits whose words stand in what a character says or does before others who have a taste for them."""
    cues, found = cues_of(settings.traits.items()), list[Show]()
    for deed in deeds_in(text, entities, scene):
        for receiver in scene.in_scene:
            tastes = feelings.tastes_of(receiver)
            for trait in (*tastes.likes, *tastes.dislikes):
                said = deed.shows(cues.get(folded(trait), (folded(trait),)))
                if said is not None:
                    found.append(Show(deed.who, receiver, trait, folded(said[0])))
    return found
