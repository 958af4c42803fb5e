"""Choose the older memories that the next response may rest on, by character and the most relevant first."""

from collections.abc import Iterator

from tasklore import Agent
from tasklore.contracts.analysis.immediate import MemoryExtraction, RecalledMemory
from tasklore.contracts.analysis.stories import StoryMemory, source_of
from tasklore.memory.stories.arithmetic import reduction, resolve_id
from tasklore.workers.agents.story.blocks import memories_of, summary_of, title_of
from tasklore.workers.agents.story.checks import FindingFault, check_length
from tasklore.workers.agents.story.parts import Finding, Part, Text, without_none
from tasklore.workers.agents.story.prose import one_line
from tasklore.workers.agents.story.question import serve
from tasklore.workers.agents.story.tokens import count_tokens, take_turns
from tasklore.workers.agents.story.view import StoryView
from tasklore.workers.answers import AnswerSchema

#: Characters that memories are chosen for, memories of each, and characters of a reason: a line of the next prompt.
MOST_CHARACTERS = 3
MOST_MEMORIES = 3
LONGEST_WHY = 100


class ChosenMemory(Finding):
    """A memory, by its id, that the next response may rest on, and why; the quotation stands in the response."""

    id: Text = ""
    why: Text = ""


class ChosenMemories(AnswerSchema):
    """All memories that a model chooses."""

    reasoning: Text
    memories: tuple[ChosenMemory, ...] = ()


class RecallPart(Part[ChosenMemories, MemoryExtraction]):
    """Choose at most three memories for each of at most three characters."""

    section = "memory_extract"
    answer = ChosenMemories
    result = MemoryExtraction
    needs = ("memories",)
    blocks = ("memories", "response")
    limits = {"most": MOST_MEMORIES, "longest": LONGEST_WHY}  # noqa: RUF012 - a class constant

    def is_askable(self, view: StoryView) -> bool:
        """Return whether a mentioned character has a memory."""
        return bool(memories_of(view))

    def faults(self, finding: Finding, view: StoryView) -> Iterator[FindingFault]:
        """Yield a fault for an id that was not shown."""
        if isinstance(finding, ChosenMemory):
            yield from check_length("why", finding.why, LONGEST_WHY)
            if _find_memory(finding.id, view) is None:
                yield FindingFault(
                    "id", f"{finding.id[:40]!r} is none; copy an id of memories"
                )

    def reduce(
        self, view: StoryView, answer: ChosenMemories | None
    ) -> MemoryExtraction:
        """Take three memories a character, those that just occurred first, much smaller than they are."""
        owned = dict(list(memories_of(view).items())[:MOST_CHARACTERS])
        chosen = {
            name: _choose(found, view, answer)[:MOST_MEMORIES]
            for name, found in owned.items()
        }
        every = (one for found in owned.values() for one in found)
        before = sum(
            count_tokens(f"{title_of(one)}: {one.text or one.summary}") for one in every
        )
        memories, after = take_turns(
            chosen, lambda one: f"{one.title}: {one.summary}", before
        )
        return MemoryExtraction(memories=memories, reduction=reduction(before, after))


agent = serve(
    RecallPart(),
    Agent(
        "StoryMemoryRecallAgent",
        description="Chooses older memories that the next response of a story needs.",
    ),
)


def _find_memory(short_id: str, view: StoryView) -> StoryMemory | None:
    memories = {one.id: one for found in memories_of(view).values() for one in found}
    memory_id = resolve_id(short_id, memories)
    return None if memory_id is None else memories[memory_id]


def _choose(
    owned: list[StoryMemory], view: StoryView, answer: ChosenMemories | None
) -> list[RecalledMemory]:
    """Return memories of one character, each once: those that just occurred, then those chosen.

    Without an answer, all in their order, the gravest first.
    """
    now = view.response.number
    why = {one.id: "Just occurred" for one in owned if one.response == now}
    for choice in answer.memories if answer is not None else ():
        memory = _find_memory(choice.id, view)
        if memory is not None and memory in owned:
            why.setdefault(memory.id, one_line(choice.why, LONGEST_WHY))
    if answer is None:
        why = {
            one.id: why.get(one.id, f"Significance {one.significance}") for one in owned
        }
    by_id = {one.id: one for one in owned}
    chosen = []
    for memory_id, reason in why.items():
        one = by_id[memory_id]
        # Before the story chapter 0 has no response 0.
        number = one.response if one.response or one.chapter else None
        fields = without_none(
            id=one.id,
            title=title_of(one),
            when=None if number is None else source_of(one.chapter, number),
            significance=one.significance,
            why=reason,
            summary=summary_of(one),
        )
        chosen.append(RecalledMemory.model_validate(fields))
    return chosen
