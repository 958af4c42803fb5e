"""What is worth knowing of those who are only mentioned: at most five facts of each file, as they stand there.

Only the full stop at the end of a fact is left out, since facts are shown in a row. A model picks lines by their
numbers, so that a fact is always the file's own.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pydantic import JsonValue, ValidationError

from contracts.analysis_immediate import EntityAnalysis, FactExtraction
from contracts.stories import Entity
from memory.episodes.ranking import rank
from memory.stories.arithmetic import reduction
from workers import Agent, Context
from workers.agents.story.asking import RULES, Asked, Block, asked, picked, tokens_of
from workers.agents.story.file_lines import FileLine, lines_of
from workers.agents.story.loading import Loading
from workers.agents.story.text import without_stop
from workers.agents.story.tiers import file_tokens, tiers_of
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "fact_extract"

#: Facts of one file, and lines of one that a model is shown.
MOST_FACTS, _SHOWN = 5, 60

agent = Agent("StoryFactAgent", description="Condenses the files of whoever is mentioned to at most five facts each.")


class FactChoice(Answer):
    """What a model picks: numbers of lines, of all files together."""

    reasoning: str
    facts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class File:
    """Somebody's file: lines in its order that a model is shown, and those first that matter most without one."""

    entity: Entity
    lines: tuple[FileLine, ...]
    best: tuple[FileLine, ...]


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> FactExtraction:
    """Return the facts of tier 2, and what condensing its files saved."""
    story = context.story
    response, entities = await story.response(), await story.entities()
    found = await story.section("entity_analysis")
    files = await asyncio.to_thread(_read, response.text, entities, found)
    answer = None
    if files:
        blocks = (*_blocks(files), Block.response(response.text))
        answer = await asked(context, SECTION, FactChoice, blocks=blocks, most=MOST_FACTS)
    return await asyncio.to_thread(_section, files, answer)


def _read(text: str, entities: Sequence[Entity], found: JsonValue) -> tuple[File, ...]:
    """Return the files of tier 2, as *found* by the agent of that section, or by names without it."""
    names = _second_tier(found)
    by_name = {one.name: one for one in entities}
    condensed = tiers_of(text, entities).condensed if names is None else [by_name[n] for n in names if n in by_name]
    return tuple(_file(text, entity) for entity in condensed)


def _file(text: str, entity: Entity) -> File:
    lines = lines_of(entity.text)
    scores = rank(text, [f"{line.heading} {line.text}" for line in lines])
    # The first line says who somebody is.
    best = sorted(lines, key=lambda line: (line.place > 0, -scores[line.place], line.place))
    return File(entity, tuple(sorted(best[:_SHOWN], key=lambda line: line.place)), tuple(best))


def _second_tier(found: JsonValue) -> list[str] | None:
    """Return the names in tier 2 of the section *found*, None when its agent has left none."""
    try:
        section = EntityAnalysis.model_validate(found)
    except ValidationError:
        return None
    return None if section.status is not None else [one.name for one in section.tier2]


def _blocks(files: Sequence[File]) -> Iterator[Block]:
    """Yield one block for each file; the numbers of its lines go on behind those of the file before."""
    first = 1
    for file in files:
        yield Block(file.entity.name, [line.text for line in file.lines], rank=2, numbered=True, first=first)
        first += len(file.lines)


def _section(files: Sequence[File], answer: Asked[FactChoice] | None) -> FactExtraction:
    before = sum(file_tokens(file.entity) for file in files)
    loading = Loading(before)
    facts: dict[str, tuple[str, ...]] = {}
    first = 1
    for file in files:
        chosen: list[FileLine] = []
        if answer is not None:
            seen = file.lines[: answer.shown[file.entity.name]]
            chosen = picked((number - first + 1 for number in answer.value.facts), seen, MOST_FACTS)
        first += len(file.lines)
        best = [line for line in chosen or file.best[:MOST_FACTS] if loading.takes(tokens_of(without_stop(line.text)))]
        if best:
            told = (without_stop(line.text) for line in sorted(best, key=lambda line: line.place))
            facts[file.entity.name] = tuple(dict.fromkeys(told))
    after = sum(tokens_of(fact) for told in facts.values() for fact in told)
    by = RULES if answer is None else answer.model
    return FactExtraction(by=by, facts=facts, reduction=reduction(before, after))
