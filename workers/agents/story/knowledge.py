"""Find what a response tells about the story's world; what is known already is left out."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from contracts.analysis_background import Knowledge, KnownFact
from contracts.stories import Entity, StoryResponse
from workers import Agent, Context
from workers.agents.story.asking import RULES, Asked, Block, asked
from workers.agents.story.reading.casting import Cast, cast_of
from workers.agents.story.reading.claims import Reader
from workers.agents.story.reading.grounding import MOST_CHECKED, line_from
from workers.agents.story.reading.prose import stands_in
from workers.agents.story.rules.standing import reader_of
from workers.agents.story.rules.tellings import LONGEST_FACT, MOST_FACTS, Known, by_rules
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "knowledge"
#: Known facts that a model is shown, those first that speak of who is in the response.
_SHOWN = 20

agent = Agent("StoryKnowledgeAgent", description="Finds what a response of a story tells about its world.")


class ProposedFact(Answer):
    """One fact as a model words it."""

    category: Literal["character", "location", "object", "setting", "event", "other"]
    subject: str
    fact: str
    confidence: Literal["high", "medium", "low"]


class ProposedFacts(Answer):
    """What a model has learned from a response."""

    reasoning: str
    facts: tuple[ProposedFact, ...]


@dataclass(frozen=True)
class _Reading:
    """A response and what was told before it."""

    response: StoryResponse
    entities: Sequence[Entity]
    knowledge: Sequence[KnownFact]
    scene: Cast

    def reader(self) -> Reader:
        return reader_of(self.entities, self.knowledge)

    def shown(self) -> list[str]:
        """Return what is known of those whom the response names, as lines."""
        named = {*self.scene.counts}
        facts = sorted(self.knowledge, key=lambda fact: fact.subject not in named)
        return [f"{fact.subject}: {fact.fact}" for fact in facts[:_SHOWN]]


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> Knowledge:
    """Return at most eight facts.

    A model that names nothing which stands in the response is not believed that there is nothing: then the rules look.
    """
    story = context.story
    response, entities = await story.response(), await story.entities()
    knowledge = await story.knowledge(before=True)
    scene = await asyncio.to_thread(cast_of, response.text, entities)
    reading = _Reading(response, entities, knowledge, scene)
    blocks = (
        Block("names", tuple(scene.counts), rank=1),
        Block("known", reading.shown(), rank=2),
        Block.response(response.text),
    )
    reply = await asked(context, SECTION, ProposedFacts, blocks=blocks, most=MOST_FACTS, longest=LONGEST_FACT)
    return await asyncio.to_thread(_section, reading, reply)


def _section(reading: _Reading, reply: Asked[ProposedFacts] | None) -> Knowledge:
    reader = reading.reader()
    known = Known(reading.knowledge, reading.entities, reader)
    if reply is not None:
        facts = tuple(_grounded(reply.value.facts, reading, reader, known))[:MOST_FACTS]
        if facts or not reply.value.facts:
            return Knowledge(by=reply.model, facts=facts)
    found = by_rules(reading.response.text, reading.response.source, reading.entities, reader, known)
    return Knowledge(by=RULES, facts=tuple(found))


def _grounded(proposed: Sequence[ProposedFact], reading: _Reading, reader: Reader, known: Known) -> Iterator[KnownFact]:
    """Yield what of *proposed* rests on the response and is new."""
    names = [entity.name for entity in reading.entities]
    for one in proposed[:MOST_CHECKED]:
        owner = reader.handles.owner(one.subject)
        subject = " ".join(one.subject.split()) if owner is None else owner
        if owner is None and not stands_in(subject, reading.response.text):
            continue
        fact = line_from(one.fact, (reading.response.text,), (*names, subject), LONGEST_FACT)
        if fact is None or known.has(subject, fact):
            continue
        found = KnownFact(
            category=one.category,
            subject=subject,
            fact=fact,
            confidence=one.confidence,
            source=reading.response.source,
        )
        known.add(found)
        yield found
