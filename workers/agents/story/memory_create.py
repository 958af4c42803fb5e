"""Find what characters will remember of a response; ids are made of its number and a word for what happened."""

from collections.abc import Iterator

from contracts.analysis.background import MemoryCreation, NewMemory
from workers import Agent, Context
from workers.agents.story.parts import (
    Count,
    Fault,
    Finding,
    Part,
    Text,
    Texts,
    enroll,
    length_faults,
    number_faults,
    one_of,
    person_faults,
    tags_from,
)
from workers.agents.story.prose import one_line
from workers.agents.story.seen import Seen, Turn
from workers.agents.story.sharing import analyse as analyse_part
from workers.agents.story.shown import LONGEST_SUMMARY
from workers.answers import Answer

#: Memories of one response: more were no choice.
MOST_MEMORIES = 4
#: The highest significance, and characters of a tone: three words.
_HIGHEST, _LONGEST_TONE = 10, 40

agent = Agent("StoryMemoryCreationAgent", description="Finds what characters will remember of a response of a story.")


class FoundMemory(Finding):
    """One memory as a model words it."""

    character: Text = ""
    type: Text = one_of(
        "revelation", "promise", "conflict", "loss", "first_time", "discovery", "decision", "character_moment"
    )
    significance: Count = -1
    tone: Text = ""
    summary: Text = ""
    place: Text = ""
    tags: Texts = ()
    slug: Text = ""


class FoundMemories(Answer):
    """What a model would remember."""

    reasoning: Text
    memories: tuple[FoundMemory, ...] = ()


class MemoryCreationPart(Part[FoundMemories, MemoryCreation]):
    """New memories."""

    section = "memory_create"
    answer = FoundMemories
    needs = ("memories_before",)
    blocks = ("names", "response")
    limits = {"most": MOST_MEMORIES, "longest": LONGEST_SUMMARY}  # noqa: RUF012 - a class constant

    def faults(self, finding: Finding, seen: Seen) -> Iterator[Fault]:
        """Yield a character that is none, a significance off its scale, and numbers that were not told."""
        if not isinstance(finding, FoundMemory):
            return
        yield from person_faults("character", finding.character, seen)
        yield from length_faults("summary", finding.summary, LONGEST_SUMMARY)
        yield from number_faults("summary", finding.summary, seen.response.text)
        if not 1 <= finding.significance <= _HIGHEST:
            yield Fault("significance", f"must be a whole number from 1 to {_HIGHEST}")

    def reduce(self, seen: Seen, answer: FoundMemories | None) -> MemoryCreation:
        """Take the most significant, and give them ids."""
        found = [] if answer is None else sorted(answer.memories, key=lambda one: -one.significance)[:MOST_MEMORIES]
        return self.settle(MemoryCreation(memories=tuple(_memory(one, seen) for one in found)), seen)


PART = enroll(MemoryCreationPart())


@agent.task(remember=False, uses=("llm", "clock"), in_words=False)
async def analyse(_turn: Turn, context: Context) -> MemoryCreation:
    """Find at most four memories, the most significant first."""
    return await analyse_part(PART, context)


def _memory(found: FoundMemory, seen: Seen) -> NewMemory:
    owner = seen.handles.owner(found.place)
    told = {
        "id": f"MEM-{seen.response.number}-{' '.join(tags_from((found.slug,)) or (found.type,))}",
        "character": seen.owner_of(found.character),
        "location": owner if owner is not None and seen.by_name[owner].kind == "location" else None,
        "type": found.type,
        "significance": found.significance,
        "tone": one_line(found.tone, _LONGEST_TONE) or None,
        "summary": one_line(found.summary, LONGEST_SUMMARY),
        "quote": " ".join(found.quotation.split()),
        "tags": tags_from(found.tags),
    }
    return NewMemory.model_validate({name: value for name, value in told.items() if value is not None})
