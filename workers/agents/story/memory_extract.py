"""Choose the older memories that the next response may rest on, by character and the most relevant first."""

from collections.abc import Iterator

from contracts.analysis.immediate import MemoryExtraction, RecalledMemory
from contracts.analysis.stories import StoryMemory, source_of
from memory.stories.arithmetic import reduction, resolve_id
from workers import Agent, Context
from workers.agents.story.parts import Fault, Finding, Part, Text, enroll, length_faults
from workers.agents.story.prose import one_line
from workers.agents.story.seen import Seen, Turn
from workers.agents.story.sharing import analyse as analyse_part
from workers.agents.story.shown import memories_of, summary_of, title_of
from workers.agents.story.sizes import count_tokens, take_turns
from workers.answers import Answer

#: Characters that memories are chosen for, memories of each, and characters of a reason: a line of the next prompt.
MOST_CHARACTERS, MOST_MEMORIES, LONGEST_WHY = 3, 3, 100

agent = Agent("StoryMemoryRecallAgent", description="Chooses older memories that the next response of a story needs.")


class ChosenMemory(Finding):
    """A memory, by its id, that the next response may rest on, and why; the quotation stands in the response."""

    id: Text = ""
    why: Text = ""


class ChosenMemories(Answer):
    """What a model would recall."""

    reasoning: Text
    memories: tuple[ChosenMemory, ...] = ()


class RecallPart(Part[ChosenMemories, MemoryExtraction]):
    """Memories for the next prompt."""

    section = "memory_extract"
    answer = ChosenMemories
    needs = ("memories",)
    blocks = ("memories", "response")
    limits = {"most": MOST_MEMORIES, "longest": LONGEST_WHY}  # noqa: RUF012 - a class constant

    def is_askable(self, seen: Seen) -> bool:
        """Return whether those whom the response names remember anything."""
        return bool(memories_of(seen))

    def faults(self, finding: Finding, seen: Seen) -> Iterator[Fault]:
        """Yield ids of no memory that was shown."""
        if isinstance(finding, ChosenMemory):
            yield from length_faults("why", finding.why, LONGEST_WHY)
            if _memory(finding.id, seen) is None:
                yield Fault("id", f"{finding.id[:40]!r} is none; copy an id of memories")

    def reduce(self, seen: Seen, answer: ChosenMemories | None) -> MemoryExtraction:
        """Take three memories a character, those that just occurred first, much smaller than they are."""
        owned = dict(list(memories_of(seen).items())[:MOST_CHARACTERS])
        chosen = {name: list(_recall(found, seen, answer))[:MOST_MEMORIES] for name, found in owned.items()}
        before = sum(
            count_tokens(f"{title_of(one)}: {one.text or one.summary}") for found in owned.values() for one in found
        )
        memories, after = take_turns(chosen, _text, before)
        return MemoryExtraction(memories=memories, reduction=reduction(before, after))


PART = enroll(RecallPart())


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> MemoryExtraction:
    """Choose at most three memories for each of at most three characters."""
    return await analyse_part(PART, context)


def _memory(said: str, seen: Seen) -> StoryMemory | None:
    memories = {one.id: one for found in memories_of(seen).values() for one in found}
    memory_id = resolve_id(said, memories)
    return None if memory_id is None else memories[memory_id]


def _recall(owned: list[StoryMemory], seen: Seen, answer: ChosenMemories | None) -> Iterator[RecalledMemory]:
    """Yield what is recalled of the memories of one character, each once: what just occurred, then what was chosen.

    Without an answer, all in their order, the gravest first.
    """
    now = seen.response.number
    why = {one.id: "Just occurred" for one in owned if one.response == now}
    for choice in answer.memories if answer is not None else ():
        memory = _memory(choice.id, seen)
        if memory is not None and memory in owned:
            why.setdefault(memory.id, one_line(choice.why, LONGEST_WHY))
    if answer is None:
        why = {one.id: why.get(one.id, f"Significance {one.significance}") for one in owned}
    by_id = {one.id: one for one in owned}
    yield from (_recalled(by_id[memory_id], reason) for memory_id, reason in why.items())


def _recalled(memory: StoryMemory, why: str) -> RecalledMemory:
    # Before the story chapter 0 has no response 0.
    number = memory.response if memory.response or memory.chapter else None
    told = {
        "id": memory.id,
        "title": title_of(memory),
        "when": None if number is None else source_of(memory.chapter, number),
        "significance": memory.significance,
        "why": why,
        "summary": summary_of(memory),
    }
    return RecalledMemory.model_validate({name: value for name, value in told.items() if value is not None})


def _text(one: RecalledMemory) -> str:
    return f"{one.title}: {one.summary}"
