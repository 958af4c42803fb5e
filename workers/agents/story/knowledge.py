"""Find what a response tells about the story's world, and who knows it; what is known already is left out."""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Literal

from contracts.analysis_background import Knowledge, KnownFact
from contracts.stories import Entity, StoryResponse
from memory.episodes.ranking import rank
from workers import Agent, Context
from workers.agents.story.asking import RULES, Block, asked
from workers.agents.story.grounding import MOST_CHECKED, faults_of, line_of, name_in, number_faults, quotation_in
from workers.agents.story.names import counts_of
from workers.agents.story.text import folded
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "knowledge"
#: Facts of one response, and characters of one.
MOST_FACTS, LONGEST_FACT = 12, 200
#: Known facts that a model is shown, those first that have most to do with the response.
_SHOWN = 40

agent = Agent("StoryKnowledgeAgent", description="Finds what a response of a story tells about its world.")


class ProposedFact(Answer):
    """One fact as a model words it."""

    category: Literal["character", "location", "object", "setting", "event", "other"]
    subject: str
    fact: str
    known_by: tuple[str, ...]
    confidence: Literal["high", "medium", "low"]
    quotation: str


class ProposedFacts(Answer):
    """What a model has learned from a response."""

    reasoning: str
    facts: tuple[ProposedFact, ...]


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> Knowledge:
    """Return at most twelve facts, the weightiest first."""
    story = context.story
    response, entities = await story.response(), await story.entities()
    known = await story.knowledge(before=True)
    text = response.text
    shown = await asyncio.to_thread(_shown, text, known)
    blocks = (
        Block("names", tuple(counts_of(text, entities)), rank=1),
        Block("known", shown, rank=2),
        Block.response(text),
    )
    reply = await asked(
        context,
        SECTION,
        ProposedFacts,
        blocks=blocks,
        faults=lambda said: _faults(said, text),
        most=MOST_FACTS,
        longest=LONGEST_FACT,
    )
    if reply is None:
        return Knowledge(by=RULES)
    facts = await asyncio.to_thread(lambda: tuple(_grounded(reply.value.facts, response, entities, known)))
    return Knowledge(by=reply.model, facts=facts[:MOST_FACTS])


def _shown(text: str, known: Sequence[KnownFact]) -> list[str]:
    lines = [f"{fact.subject}: {fact.fact}" for fact in known]
    scores = rank(text, lines)
    order = sorted(range(len(lines)), key=lambda at: -scores[at])[:_SHOWN]
    return [lines[at] for at in order]


def _faults(said: ProposedFacts, text: str) -> Iterator[str]:
    for number, one in enumerate(said.facts, start=1):
        yield from faults_of(f"fact {number}", one.quotation, text)
        yield from number_faults(f"fact {number}", one.fact, (text,))


def _grounded(
    proposed: Sequence[ProposedFact], response: StoryResponse, entities: Sequence[Entity], known: Sequence[KnownFact]
) -> Iterator[KnownFact]:
    """Yield what of *proposed* rests on the response and is new."""
    text = response.text
    told = {(folded(one.subject), folded(one.fact)) for one in known}
    for one in proposed[:MOST_CHECKED]:
        subject, fact = name_in(one.subject, text, entities), line_of(one.fact, (text,), LONGEST_FACT)
        if subject is None or fact is None or quotation_in(one.quotation, text) is None:
            continue
        if (folded(subject), folded(fact)) in told:
            continue
        told.add((folded(subject), folded(fact)))
        knowing = dict.fromkeys(name_in(name, text, entities) for name in one.known_by)
        known_by = tuple(name for name in knowing if name is not None)
        found = {
            "category": one.category,
            "subject": subject,
            "fact": fact,
            "confidence": one.confidence,
            "source": response.source,
        }
        yield KnownFact.model_validate({**found, **({"known_by": known_by} if known_by else {})})
