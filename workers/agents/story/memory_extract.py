"""Choose the older memories that the next response may rest on, by character and the most relevant first."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest

from contracts.analysis_immediate import MemoryExtraction, RecalledMemory
from contracts.stories import Entity, StoryMemory, StoryResponse, source_of
from memory.episodes.ranking import rank
from memory.stories.arithmetic import reduction
from workers import Agent, Context
from workers.agents.story.asking import RULES, Block, asked, tokens_of
from workers.agents.story.grounding import MOST_CHECKED, line_of
from workers.agents.story.loading import Loading
from workers.agents.story.names import Names, counts_of
from workers.agents.story.text import one_line
from workers.agents.story.turn import Turn
from workers.answers import Answer

SECTION = "memory_extract"
#: Characters that memories are chosen for, memories of each, and how many of each a model may choose from.
MOST_CHARACTERS, MOST_MEMORIES, _OFFERED = 3, 3, 12
#: Characters of a reason, of a summary, and of a title that is made of one.
LONGEST_WHY, _LONGEST_SUMMARY, _LONGEST_TITLE = 100, 140, 40

agent = Agent("StoryMemoryRecallAgent", description="Chooses older memories that the next response of a story needs.")


class ProposedRecall(Answer):
    """A memory, by its number, that a model would recall."""

    number: int
    why: str


class ProposedRecalls(Answer):
    """What a model would recall."""

    reasoning: str
    memories: tuple[ProposedRecall, ...]


@dataclass(frozen=True, slots=True)
class Recall:
    """A memory that may matter now, and why; *score* 0 when it shares no word with the response."""

    memory: StoryMemory
    score: float
    why: str = ""

    @property
    def title(self) -> str:
        """What it is called, even if nobody has given it a title."""
        return self.memory.title or one_line(self.summary, _LONGEST_TITLE) or self.memory.id

    @property
    def summary(self) -> str:
        """It in one line."""
        return one_line(self.memory.summary or self.memory.text, _LONGEST_SUMMARY)


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> MemoryExtraction:
    """Choose at most three memories for each of at most three characters whom the response names."""
    story = context.story
    response, entities = await story.response(), await story.entities()
    recalls = await asyncio.to_thread(_ranked, response, await story.memories(), entities)
    by, chosen = RULES, {name: [one for one in found if one.score > 0] for name, found in recalls.items()}
    offered = _interleaved(recalls)
    if offered:
        lines = [f"{name}: {one.title}. {one.summary}" for name, one in offered]
        blocks = [Block("memories", lines, numbered=True), Block.response(response.text)]
        reply = await asked(context, SECTION, ProposedRecalls, blocks=blocks, most=MOST_MEMORIES, longest=LONGEST_WHY)
        if reply is not None:
            shown = offered[: reply.shown["memories"]]
            by, chosen = reply.model, _grounded(reply.value.memories, shown, response)
    return await asyncio.to_thread(_section, by, recalls, chosen)


def _ranked(
    response: StoryResponse, memories: Sequence[StoryMemory], entities: Sequence[Entity]
) -> dict[str, list[Recall]]:
    """Return what those whom the response names most remember, what shares most words with it first."""
    counts, names = counts_of(response.text, entities), Names(entities)
    owned: dict[str, list[StoryMemory]] = {name: [] for name in sorted(counts, key=lambda name: -counts[name])}
    for memory in memories:
        owned.get(names.owner(memory.character) or memory.character, []).append(memory)
    kept = [(name, found) for name, found in owned.items() if found][:MOST_CHARACTERS]
    every = [(name, memory) for name, found in kept for memory in found]
    scores = rank(response.text, [" ".join((one.title, one.summary, one.text, *one.tags)) for _, one in every])
    recalls: dict[str, list[Recall]] = {name: [] for name, _ in kept}
    for (name, memory), score in zip(every, scores, strict=True):
        recalls[name].append(Recall(memory, score, _ago(memory, response)))
    return {name: sorted(found, key=_order) for name, found in recalls.items()}


def _order(recall: Recall) -> tuple[float, int, int, str]:
    memory = recall.memory
    return -recall.score, -memory.significance, -(memory.response or 0), memory.id


def _number_of(memory: StoryMemory) -> int | None:
    """Return the number of the response in which it happened, None before the story: chapter 0 has no response 0."""
    return memory.response if memory.response or memory.chapter else None


def _ago(memory: StoryMemory, response: StoryResponse) -> str:
    number = _number_of(memory)
    if number is None:
        return "before the story"
    ago = response.number - number
    return "just happened" if ago <= 0 else f"{ago} response{'' if ago == 1 else 's'} ago"


def _interleaved(recalls: Mapping[str, Sequence[Recall]]) -> list[tuple[str, Recall]]:
    """Return what a model may choose from, the best of each character before the second of any."""
    rows = zip_longest(*([(name, one) for one in found[:_OFFERED]] for name, found in recalls.items()))
    return [pair for pair in chain.from_iterable(rows) if pair is not None]


def _grounded(
    proposed: Sequence[ProposedRecall], shown: Sequence[tuple[str, Recall]], response: StoryResponse
) -> dict[str, list[Recall]]:
    """Return the memories that a model chose out of those it saw, by character and in its order, each once."""
    chosen: dict[str, dict[str, Recall]] = {}
    for one in proposed[:MOST_CHECKED]:
        if 1 <= one.number <= len(shown):
            name, recall = shown[one.number - 1]
            why = line_of(one.why, (response.text, recall.title, recall.summary), LONGEST_WHY) or recall.why
            chosen.setdefault(name, {}).setdefault(recall.memory.id, Recall(recall.memory, recall.score, why))
    return {name: list(found.values()) for name, found in chosen.items()}


def _section(
    by: str, recalls: Mapping[str, Sequence[Recall]], chosen: Mapping[str, Sequence[Recall]]
) -> MemoryExtraction:
    """Return the section: three memories of each at most, and what is saved over the whole texts of all of theirs."""
    every = [one for found in recalls.values() for one in found]
    before = sum(tokens_of(f"{one.title}: {one.memory.text or one.memory.summary}") for one in every)
    loading, after = Loading(before), 0
    memories: dict[str, tuple[RecalledMemory, ...]] = {}
    for name, found in chosen.items():
        costs = [(one, tokens_of(f"{one.title}: {one.summary}")) for one in found[:MOST_MEMORIES]]
        kept = [(one, cost) for one, cost in costs if loading.takes(cost)]
        after += sum(cost for _, cost in kept)
        if kept:
            memories[name] = tuple(_recalled(one) for one, _ in kept)
    return MemoryExtraction(by=by, memories=memories, reduction=reduction(before, after))


def _recalled(recall: Recall) -> RecalledMemory:
    memory = recall.memory
    told = {
        "id": memory.id,
        "title": recall.title,
        "when": None if (number := _number_of(memory)) is None else source_of(memory.chapter, number),
        "significance": memory.significance,
        "why": recall.why,
        "summary": recall.summary,
    }
    return RecalledMemory.model_validate({name: value for name, value in told.items() if value is not None})
