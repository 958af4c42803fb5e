"""Everything that was told of a story before a response, as claims with their sources."""

import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence

from contracts.analysis_background import KnownFact
from contracts.stories import Entity, StoryMemory
from workers.agents.story.reading.casting import Handles
from workers.agents.story.reading.claims import Claim, Reader
from workers.agents.story.reading.conflicts import World

#: A name of somebody without a file: two words or more that begin with a capital, in the middle of a sentence.
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]+(?: [A-Z][a-z]+)+")


def reader_of(entities: Sequence[Entity], knowledge: Sequence[KnownFact]) -> Reader:
    """Return who reads texts that speak of *entities*, and of those of whom something is known."""
    strangers = _NAME.findall("\n".join(entity.text for entity in entities))
    often = [name for name, count in Counter(strangers).items() if count > 1]
    return Reader(entities, [*(fact.subject for fact in knowledge), *often])


def world_of(
    reader: Reader,
    entities: Sequence[Entity],
    knowledge: Sequence[KnownFact],
    memories: Sequence[StoryMemory],
    about: Collection[str],
) -> World:
    """Return what was told: files first, then what is known, then what is remembered.

    Only what may tell of those *about* whom something is asked is read for claims: reading all files of a large story
    takes seconds.
    """
    known = {entity.name: entity for entity in entities}
    asked = Handles([known.get(name) or Entity(name=name, kind="object") for name in about if name])

    def may_tell(owner: str, *texts: str) -> bool:
        return (reader.handles.owner(owner) or owner) in about or any(map(asked.find, texts))

    claims = [
        *(
            claim
            for entity in entities
            if may_tell(entity.name, entity.text)
            for claim in reader.claims(entity.text, entity.file or entity.name, entity.name)
        ),
        *(claim for fact in knowledge if may_tell(fact.subject, fact.fact) for claim in claims_of_fact(reader, fact)),
        *(
            claim
            for one in memories
            if may_tell(one.character, one.summary, one.text)
            for claim in _claims_of_memory(reader, one)
        ),
    ]
    lines = (line for text in _texts(entities, knowledge, memories) for line in text.casefold().splitlines())
    characters = frozenset(entity.name for entity in entities if entity.kind == "character")
    return World(claims, tuple(lines), characters)


def claims_of_fact(reader: Reader, fact: KnownFact, source: str | None = None) -> list[Claim]:
    """Return what *fact* claims, of its subject where it names none itself."""
    owner = reader.handles.owner(fact.subject) or fact.subject
    return list(reader.claims(fact.fact, source or fact.source or "knowledge", owner))


def _claims_of_memory(reader: Reader, memory: StoryMemory) -> list[Claim]:
    owner = reader.handles.owner(memory.character) or memory.character
    claims = list(reader.claims(memory.summary, memory.id, owner)) if memory.summary else []
    # The whole is prose, in which "she" may be anybody.
    return claims + list(reader.claims(memory.text, memory.id, teller=owner)) if memory.text else claims


def _texts(
    entities: Sequence[Entity], knowledge: Sequence[KnownFact], memories: Sequence[StoryMemory]
) -> Iterator[str]:
    yield from (entity.text for entity in entities)
    yield from (f"{fact.subject}: {fact.fact}" for fact in knowledge)
    yield from (text for one in memories for text in (one.summary, one.text))
