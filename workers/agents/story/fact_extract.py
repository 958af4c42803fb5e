"""What is worth knowing of those who are only mentioned: at most five facts of each file, as they stand there.

Only the full stop at the end of a fact is left out, since facts are shown in a row; a name that one begins with stays.
A model picks lines by their numbers, so that a fact is always the file's own. Of files that are too large for one
question it sees the lines that have most in common with the response.
"""

import asyncio
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from pydantic import JsonValue, ValidationError

from contracts.analysis_immediate import EntityAnalysis, FactExtraction
from contracts.stories import Entity
from memory.stories.arithmetic import reduction
from workers import Agent, Context
from workers.agents.story.asking import RULES, Asked, Block, asked, picked, tokens_of
from workers.agents.story.reading.casting import Handles, cast_of
from workers.agents.story.reading.file_lines import FileLine, lines_of
from workers.agents.story.reading.prose import without_stop
from workers.agents.story.reading.relevance import content_of
from workers.agents.story.rules.tiers import file_tokens, tiers_of
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "fact_extract"

#: Facts of one file.
MOST_FACTS = 5
#: Tokens of all lines that a model is shown: what instructions and the response leave of its question.
_LINES = 600
#: Tokens of a line's number.
_NUMBER = 5
#: What a line is worth that names somebody in the scene, for each word that it shares with the response, and when its
#: heading shares one.
_PRESENT, _SHARED, _HEADED = 3.0, 2.0, 1.0
#: What the first line of a file is worth for being that, the second half as much and so on: it says who somebody is.
_FIRST = 3.0
#: Words of a line from which on the words that it shares are worth less: a long one shares some with any text.
_LONG = 6

agent = Agent("StoryFactAgent", description="Condenses the files of whoever is mentioned to at most five facts each.")


class FactChoice(Answer):
    """What a model picks: numbers of lines, of all files together."""

    reasoning: str
    facts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class File:
    """The lines of somebody's file in its order, and the scores of each for this response, by its place."""

    entity: Entity
    lines: tuple[FileLine, ...]
    scores: Mapping[int, float]

    def best(self) -> list[FileLine]:
        """Return its lines, those first that matter most."""
        return sorted(self.lines, key=lambda line: (-self.scores[line.place], line.place))


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> FactExtraction:
    """Return the facts of tier 2, and what condensing its files saved."""
    story = context.story
    response, entities = await story.response(), await story.entities()
    found = await story.section("entity_analysis")
    files = await asyncio.to_thread(_read, response.text, entities, found)
    shown = await asyncio.to_thread(_shown, files)
    answer = None
    if files:
        blocks = (Block.response(response.text), *_blocks(files, shown))
        answer = await asked(context, SECTION, FactChoice, blocks=blocks, most=MOST_FACTS)
    return await asyncio.to_thread(_section, files, shown, answer)


def _read(text: str, entities: Sequence[Entity], found: JsonValue) -> tuple[File, ...]:
    """Return the files of tier 2, as *found* by the agent of that section, or as rules see it without one."""
    names = _second_tier(found)
    by_name = {one.name: one for one in entities}
    condensed = tiers_of(text, entities).condensed if names is None else [by_name[n] for n in names if n in by_name]
    setting = _Setting(
        Handles(entities), frozenset(cast_of(text, entities).in_scene), content_of(text, without=by_name)
    )
    files = ((entity, lines_of(entity.text)) for entity in condensed)
    return tuple(
        File(entity, lines, {line.place: setting.score(entity, line) for line in lines}) for entity, lines in files
    )


def _second_tier(found: JsonValue) -> list[str] | None:
    """Return the names in tier 2 of the section *found*, None when its agent has left none."""
    try:
        section = EntityAnalysis.model_validate(found)
    except ValidationError:
        return None
    return None if section.status is not None else [one.name for one in section.tier2]


@dataclass(frozen=True, slots=True)
class _Setting:
    """What makes a line matter: who is in the scene, and the words that say what the response is about, by stem."""

    handles: Handles
    present: frozenset[str]
    about: Mapping[str, str]

    def score(self, entity: Entity, line: FileLine) -> float:
        """Return what a *line* of the file of *entity* is worth for this response."""
        own = (entity.name, *entity.aliases)
        named = {one.name for one in self.handles.find(line.text)} - {entity.name}
        words = content_of(line.text, without=own).keys()
        shared = len(words & self.about.keys()) / math.sqrt(max(1.0, len(words) / _LONG))
        headed = content_of(line.heading, without=own).keys() & self.about.keys()
        here = _PRESENT * bool(named & self.present) + _SHARED * shared + _HEADED * bool(headed)
        return here + _FIRST / (1 + line.place)


def _shown(files: Sequence[File]) -> tuple[tuple[FileLine, ...], ...]:
    """Return the lines of each file that a model is shown, in its order: the best, as many as there is room for.

    Files take turns, so that none is left out for a longer one.
    """
    left, chosen = _LINES, [list[FileLine]() for _ in files]
    for turn in zip_longest(*(file.best() for file in files)):
        for number, line in enumerate(turn):
            cost = 0 if line is None else tokens_of(line.text) + _NUMBER
            if line is not None and cost <= left:
                left -= cost
                chosen[number].append(line)
    return tuple(tuple(sorted(lines, key=lambda line: line.place)) for lines in chosen)


def _blocks(files: Sequence[File], shown: Sequence[Sequence[FileLine]]) -> Iterator[Block]:
    """Yield one block for each file; the numbers of its lines go on behind those of the file before."""
    first = 1
    for file, lines in zip(files, shown, strict=True):
        yield Block(file.entity.name, [line.text for line in lines], rank=2, numbered=True, first=first)
        first += len(lines)


def _section(
    files: Sequence[File], shown: Sequence[Sequence[FileLine]], answer: Asked[FactChoice] | None
) -> FactExtraction:
    facts: dict[str, tuple[str, ...]] = {}
    first = 1
    for file, lines in zip(files, shown, strict=True):
        chosen: list[FileLine] = []
        if answer is not None:
            seen = lines[: answer.shown[file.entity.name]]
            chosen = picked((number - first + 1 for number in answer.value.facts), seen, MOST_FACTS)
        first += len(lines)
        best = chosen or file.best()[:MOST_FACTS]
        if best:
            told = (without_stop(line.text) for line in sorted(best, key=lambda line: line.place))
            facts[file.entity.name] = tuple(dict.fromkeys(told))
    before = sum(file_tokens(file.entity) for file in files)
    after = sum(tokens_of(fact) for told in facts.values() for fact in told)
    by = RULES if answer is None else answer.model
    return FactExtraction(by=by, facts=facts, reduction=reduction(before, after))
