"""Find what in a response speaks against what was told before: in files, in what is known, in what is remembered."""

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue, ValidationError

from contracts.analysis_background import Conflict, Contradictions, Knowledge, KnownFact
from contracts.stories import Entity, StoryMemory, StoryResponse
from workers import Agent, Context
from workers.agents.story.asking import RULES, Asked, Block, asked
from workers.agents.story.reading.claims import Claim, Reader
from workers.agents.story.reading.conflicts import OF_KIN, SEVERITIES, World, clashes_of
from workers.agents.story.reading.grounding import MOST_CHECKED, quote_from
from workers.agents.story.reading.phrases import one_line
from workers.agents.story.reading.prose import sentences, stands_in
from workers.agents.story.reading.relevance import content_of
from workers.agents.story.rules.standing import claims_of_fact, reader_of, world_of
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "contradiction"
#: Contradictions of one response, and characters of one statement in them.
MOST_FOUND, LONGEST = 8, 300
#: Statements that a model is shown, before the budget of its question cuts them.
_SHOWN = 40

agent = Agent("StoryContradictionAgent", description="Finds what a response of a story says against what was told.")


class ProposedConflict(Answer):
    """A contradiction that a model sees: the number of an older statement, and what speaks against it."""

    number: int
    quote: str
    severity: Literal["minor", "major", "critical"]
    reason: str


class ProposedConflicts(Answer):
    """Everything that a model finds to be contradictory."""

    reasoning: str
    contradictions: tuple[ProposedConflict, ...]


@dataclass(frozen=True)
class _Reading:
    """What a response claims, and the world that it is held to; `told` are the claims that a model is shown."""

    response: StoryResponse
    new: Sequence[Claim]
    world: World
    told: Sequence[Claim]


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> Contradictions:
    """Return what cannot hold together, the gravest first; what may have changed since is none."""
    story = context.story
    response, entities = await story.response(), await story.entities()
    facts = _facts(await story.section("knowledge"))
    reading = await asyncio.to_thread(
        _read, response, entities, await story.knowledge(before=True), await story.memories(before=True), facts
    )
    blocks = (
        Block("told_before", [_line(claim) for claim in reading.told], rank=1, numbered=True),
        Block.response(response.text),
    )
    reply = await asked(context, SECTION, ProposedConflicts, blocks=blocks, most=MOST_FOUND) if reading.told else None
    return await asyncio.to_thread(_section, reading, reply)


def _facts(found: JsonValue) -> tuple[KnownFact, ...]:
    """Return the facts of the section *found*, none when its agent has left none."""
    try:
        section = Knowledge.model_validate(found)
    except ValidationError:
        return ()
    return section.facts if section.status is None else ()


def _read(
    response: StoryResponse,
    entities: Sequence[Entity],
    knowledge: Sequence[KnownFact],
    memories: Sequence[StoryMemory],
    facts: Sequence[KnownFact],
) -> _Reading:
    reader = reader_of(entities, [*knowledge, *facts])
    new = [*reader.claims(response.text, response.source), *_claims(facts, response, reader)]
    named = {one.name for one in reader.handles.find(response.text)}
    world = world_of(reader, entities, knowledge, memories, named | set(_names(new)))
    return _Reading(response, new, world, _told(response, new, world, named))


def _names(claims: Sequence[Claim]) -> Iterator[str]:
    """Yield of whom *claims* say something, and whose kin they say somebody is."""
    for claim in claims:
        yield claim.subject
        for slot in claim.slots:
            if slot.kind in OF_KIN:
                yield from (*slot.key.split("|"), *slot.values)


def _claims(facts: Sequence[KnownFact], response: StoryResponse, reader: Reader) -> Iterator[Claim]:
    """Yield what new facts claim that the response does not say in those words: it speaks for itself."""
    for fact in facts:
        if not stands_in(fact.fact, response.text):
            yield from claims_of_fact(reader, fact, response.source)


def _told(response: StoryResponse, new: Sequence[Claim], world: World, named: Collection[str]) -> list[Claim]:
    """Return older claims that a model may hold the response to: what rules object to, then what shares most words.

    They are of those *named* in it.
    """
    first = [clash.old for clash in clashes_of(new, world)]
    about = content_of(response.text, without=named)
    weighed = [
        (len(content_of(claim.text, without=(claim.subject,)).keys() & about.keys()), claim)
        for claim in {claim.text: claim for claim in world.claims if claim.subject in named}.values()
    ]
    near = sorted((one for one in weighed if one[0]), key=lambda one: -one[0])
    unique = {claim.text: claim for claim in (*first, *(claim for _, claim in near))}
    return list(unique.values())[:_SHOWN]


def _line(claim: Claim) -> str:
    return claim.text if claim.subject.casefold() in claim.text.casefold() else f"{claim.subject}: {claim.text}"


def _section(reading: _Reading, reply: Asked[ProposedConflicts] | None) -> Contradictions:
    if reply is not None:
        found = list(_grounded(reply, reading))
        if found or not reply.value.contradictions:
            return Contradictions(enabled=True, by=reply.model, found=_gravest(found))
    clashes = clashes_of(reading.new, reading.world)
    found = [_conflict(clash.old, clash.new.text, clash.severity, reading.response) for clash in clashes]
    return Contradictions(enabled=True, by=RULES, found=_gravest(found))


def _gravest(found: Sequence[Conflict]) -> tuple[Conflict, ...]:
    return tuple(sorted(found, key=lambda one: -SEVERITIES.index(one.severity or SEVERITIES[0]))[:MOST_FOUND])


def _grounded(reply: Asked[ProposedConflicts], reading: _Reading) -> Iterator[Conflict]:
    """Yield what of an answer holds: statements that were shown, against words that stand in the response."""
    shown = reading.told[: reply.shown["told_before"]]
    seen: set[int] = set()
    for one in reply.value.contradictions[:MOST_CHECKED]:
        quote = quote_from(one.quote, reading.response.text)
        if quote is None or not 1 <= one.number <= len(shown) or one.number in seen:
            continue
        seen.add(one.number)
        yield _conflict(
            shown[one.number - 1], _sentence_of(quote, reading.response.text), one.severity, reading.response
        )


def _sentence_of(quote: str, text: str) -> str:
    """Return the sentence of *text* in which *quote* stands; the quote itself when it is more than one."""
    return next((one.text for one in sentences(text) if stands_in(quote, one.text)), quote)


def _conflict(old: Claim, new: str, severity: str, response: StoryResponse) -> Conflict:
    return Conflict(
        subject=old.subject,
        old=one_line(old.text, LONGEST),
        old_source=old.source,
        new=one_line(new, LONGEST),
        new_source=response.source,
        severity=severity,
    )
