"""Find new memories of characters in a response; ids are made of its number and a word for the event."""

from collections.abc import Iterator

from tasklore import Agent
from tasklore.contracts.analysis.background import MemoryCreation, NewMemory
from tasklore.workers.agents.story.blocks import LONGEST_SUMMARY
from tasklore.workers.agents.story.checks import (
    FindingFault,
    check_length,
    check_numbers,
    check_person,
)
from tasklore.workers.agents.story.parts import (
    Count,
    Finding,
    Part,
    Text,
    Texts,
    one_of,
    tags_from,
    without_none,
)
from tasklore.workers.agents.story.prose import one_line
from tasklore.workers.agents.story.question import serve
from tasklore.workers.agents.story.view import StoryView
from tasklore.workers.answers import AnswerSchema

#: Memories of one response: more were no choice.
MOST_MEMORIES = 4
#: The highest significance, and characters of a tone: three words.
_HIGHEST = 10
_LONGEST_TONE = 40


class FoundMemory(Finding):
    """One memory as a model words it."""

    character: Text = ""
    type: Text = one_of(
        "revelation",
        "promise",
        "conflict",
        "loss",
        "first_time",
        "discovery",
        "decision",
        "character_moment",
    )
    significance: Count = -1
    tone: Text = ""
    summary: Text = ""
    place: Text = ""
    tags: Texts = ()
    slug: Text = ""


class FoundMemories(AnswerSchema):
    """All memories that a model finds."""

    reasoning: Text
    memories: tuple[FoundMemory, ...] = ()


class MemoryCreationPart(Part[FoundMemories, MemoryCreation]):
    """Find at most four memories, the most significant first."""

    section = "memory_create"
    answer = FoundMemories
    result = MemoryCreation
    needs = ("memories_before",)
    blocks = ("names", "response")
    limits = {"most": MOST_MEMORIES, "longest": LONGEST_SUMMARY}  # noqa: RUF012 - a class constant

    def faults(self, finding: Finding, view: StoryView) -> Iterator[FindingFault]:
        """Yield faults of character, summary and significance."""
        if isinstance(finding, FoundMemory):
            yield from check_person("character", finding.character, view)
            yield from check_length("summary", finding.summary, LONGEST_SUMMARY)
            yield from check_numbers("summary", finding.summary, view.response.text)
            if not 1 <= finding.significance <= _HIGHEST:
                yield FindingFault(
                    "significance", f"must be a whole number from 1 to {_HIGHEST}"
                )

    def reduce(self, view: StoryView, answer: FoundMemories | None) -> MemoryCreation:
        """Take the most significant, and give them ids."""
        found = (
            []
            if answer is None
            else sorted(answer.memories, key=lambda one: -one.significance)[
                :MOST_MEMORIES
            ]
        )
        memories = []
        for one in found:
            owner = view.handles.owner(one.place)
            fields = without_none(
                id=f"MEM-{view.response.number}-{' '.join(tags_from((one.slug,)) or (one.type,))}",
                character=view.owner_of(one.character),
                location=owner
                if owner is not None and view.by_name[owner].kind == "location"
                else None,
                type=one.type,
                significance=one.significance,
                tone=one_line(one.tone, _LONGEST_TONE) or None,
                summary=one_line(one.summary, LONGEST_SUMMARY),
                quote=" ".join(one.quotation.split()),
                tags=tags_from(one.tags),
            )
            memories.append(NewMemory.model_validate(fields))
        return self.settle(MemoryCreation(memories=tuple(memories)), view)


agent = serve(
    MemoryCreationPart(),
    Agent(
        "StoryMemoryCreationAgent",
        description="Finds what characters will remember of a response of a story.",
    ),
)
