"""Find what in a response speaks against what was told before: in files, in what is known, in what is remembered."""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue, ValidationError

from contracts.analysis_background import Conflict, Contradictions, Knowledge, KnownFact
from contracts.stories import Entity, StoryMemory, StoryResponse
from memory.episodes.ranking import rank
from workers import Agent, Context
from workers.agents.story.asking import RULES, Asked, Block, asked
from workers.agents.story.file_lines import lines_of
from workers.agents.story.grounding import MOST_CHECKED, faults_of, quotation_in
from workers.agents.story.text import one_line
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "contradiction"
#: Contradictions of one response, and characters of one statement in them.
MOST_FOUND, LONGEST = 8, 300
#: Statements that a model is shown, before the budget of its question cuts them.
_SHOWN = 150
#: From the lightest to the gravest.
SEVERITIES = ("minor", "major", "critical")

agent = Agent("StoryContradictionAgent", description="Finds what a response of a story says against what was told.")


class ProposedConflict(Answer):
    """A contradiction that a model sees: the number of an older statement, and the words on both sides."""

    number: int
    told_quotation: str
    quotation: str
    reason: str
    may_have_changed: bool
    severity: Literal["minor", "major", "critical"]


class ProposedConflicts(Answer):
    """Everything that a model finds to be contradictory."""

    reasoning: str
    contradictions: tuple[ProposedConflict, ...]


@dataclass(frozen=True, slots=True)
class Told:
    """A statement that was told before, of whom, and where."""

    subject: str
    text: str
    source: str

    @property
    def line(self) -> str:
        """What a model is shown of it."""
        return self.text if self.subject.casefold() in self.text.casefold() else f"{self.subject}: {self.text}"


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> Contradictions:
    """Return what cannot hold together, the gravest first; what may have changed since is none."""
    story = context.story
    response, entities = await story.response(), await story.entities()
    known, memories = await story.knowledge(before=True), await story.memories(before=True)
    told = await asyncio.to_thread(_told, response, entities, known, memories)
    blocks = (
        Block("told_before", [one.line for one in told], rank=1, numbered=True),
        Block("told_now", _facts(await story.section("knowledge")), rank=2),
        Block.response(response.text),
    )
    reply = None
    if told:
        reply = await asked(
            context,
            SECTION,
            ProposedConflicts,
            blocks=blocks,
            faults=lambda said: _faults(said, told, response.text),
            most=MOST_FOUND,
        )
    if reply is None:
        return Contradictions(enabled=True, by=RULES)
    found = sorted(_grounded(reply, told, response), key=lambda one: -SEVERITIES.index(one.severity or "minor"))
    return Contradictions(enabled=True, by=reply.model, found=tuple(found[:MOST_FOUND]))


def _facts(found: JsonValue) -> list[str]:
    """Return the facts of the section *found*, none when its agent has left none."""
    try:
        section = Knowledge.model_validate(found)
    except ValidationError:
        return []
    return [f"{fact.subject}: {fact.fact}" for fact in section.facts] if section.status is None else []


def _told(
    response: StoryResponse,
    entities: Sequence[Entity],
    knowledge: Sequence[KnownFact],
    memories: Sequence[StoryMemory],
) -> list[Told]:
    """Return what was told before, as far as it is shown: what shares most words with the response first."""
    every = [
        *(Told(one.name, line.text, one.file or one.name) for one in entities for line in lines_of(one.text)),
        *(Told(fact.subject, fact.fact, fact.source or "knowledge") for fact in knowledge),
        *(Told(one.character, one.summary or one_line(one.text, LONGEST), one.id) for one in memories),
    ]
    unique = list({(one.subject, one.text): one for one in every if one.text}.values())
    scores = rank(response.text, [one.line for one in unique])
    order = sorted(range(len(unique)), key=lambda at: -scores[at])
    return [unique[at] for at in order if scores[at] > 0][:_SHOWN]


def _faults(said: ProposedConflicts, told: Sequence[Told], text: str) -> Iterator[str]:
    for number, one in enumerate(said.contradictions, start=1):
        yield from faults_of(f"contradiction {number}", one.quotation, text)
        if not 1 <= one.number <= len(told):
            yield f"contradiction {number}: number {one.number} is of no statement; there are 1 to {len(told)}"
        elif quotation_in(one.told_quotation, told[one.number - 1].line) is None:
            yield f"contradiction {number}: told_quotation does not stand in statement {one.number}; copy its words"


def _grounded(reply: Asked[ProposedConflicts], told: Sequence[Told], response: StoryResponse) -> Iterator[Conflict]:
    """Yield what of an answer holds: statements that were shown, with words of both."""
    shown = told[: reply.shown["told_before"]]
    seen: set[tuple[int, str]] = set()
    for one in reply.value.contradictions[:MOST_CHECKED]:
        quotation = quotation_in(one.quotation, response.text)
        if quotation is None or one.may_have_changed or not 1 <= one.number <= len(shown):
            continue
        old = shown[one.number - 1]
        if quotation_in(one.told_quotation, old.line) is None or (one.number, quotation) in seen:
            continue
        seen.add((one.number, quotation))
        yield Conflict(
            subject=old.subject,
            old=one_line(old.text, LONGEST),
            old_source=old.source,
            new=one_line(quotation, LONGEST),
            new_source=response.source,
            severity=one.severity,
        )
