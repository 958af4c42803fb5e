"""How much an older memory has to do with a response, and why, in words: what they share, how long ago it was."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from contracts.stories import Entity, StoryMemory, StoryResponse
from workers.agents.story.reading.casting import Handles
from workers.agents.story.reading.phrases import one_line
from workers.agents.story.reading.relevance import content_of, shared_by

#: Characters of a reason: a line of the next prompt.
LONGEST_WHY = 100
#: Characters of a summary, and of a title that is made of one.
_LONGEST_SUMMARY, _LONGEST_TITLE = 140, 40

#: What counts how much: a shared word (six at most), one that is a tag or stands in the title, somebody who is there.
_WORD, _TAG, _PERSON, _MOST_WORDS = 1, 2, 2, 6
#: Words that a reason names.
_NAMED = 3
#: Responses ago up to which a memory is fresh, and what that counts.
_FRESH = ((0, 4), (5, 2), (20, 1))


@dataclass(frozen=True, slots=True)
class Recall:
    """A memory that may matter now; `weight` 0 when it has nothing to do with the response."""

    memory: StoryMemory
    weight: int
    why: str


def weighed(
    response: StoryResponse, owned: Mapping[str, Sequence[StoryMemory]], entities: Sequence[Entity]
) -> dict[str, list[Recall]]:
    """Return the memories that each character has, *owned* by name, the most relevant first.

    The more significant goes first where two are as relevant, then the later.
    """
    characters = [entity for entity in entities if entity.kind == "character"]
    names, handles = [entity.name for entity in characters], Handles(characters)
    told = content_of(response.text, without=names)
    there = {naming.name for naming in handles.find(response.text)}
    every = [(character, memory) for character, memories in owned.items() for memory in memories]
    shared = shared_by(told, [content_of(_whole(memory), without=names) for _, memory in every])
    found: dict[str, list[Recall]] = {character: [] for character in owned}
    for (character, memory), common in zip(every, shared, strict=True):
        people = sorted({naming.name for naming in handles.find(_whole(memory))} & (there - {character}))
        marks = content_of(" ".join((memory.title, *memory.tags)), without=names)
        stems = [*filter(marks.__contains__, common), *(stem for stem in common if stem not in marks)]
        points = sum(_TAG if stem in marks else _WORD for stem in stems[:_MOST_WORDS]) + _PERSON * len(people)
        number = number_of(memory)
        ago = None if number is None else response.number - number
        why = _why([told[stem] for stem in stems[:_NAMED]], people, ago)
        found[character].append(Recall(memory, points + _freshness(points, ago), why))
    return {character: sorted(recalls, key=_rank) for character, recalls in found.items()}


def _freshness(points: int, ago: int | None) -> int:
    """Return what counts beside *points* for how long *ago* it was; nothing for what has nothing to do with it."""
    if ago is None or (not points and ago):
        return 0
    return next((fresh for most, fresh in _FRESH if ago <= most), 0)


def _whole(memory: StoryMemory) -> str:
    return " ".join((memory.title, memory.summary, memory.text, *memory.tags))


def number_of(memory: StoryMemory) -> int | None:
    """Return the number of the response in which it happened, None before the story: chapter 0 has no response 0."""
    return memory.response if memory.response or memory.chapter else None


def title_of(memory: StoryMemory) -> str:
    """Return what a memory is called, even if nobody has given it a title."""
    return memory.title or one_line(summary_of(memory), _LONGEST_TITLE) or memory.id


def summary_of(memory: StoryMemory) -> str:
    """Return a memory in one line."""
    return one_line(memory.summary or memory.text, _LONGEST_SUMMARY)


def _rank(recall: Recall) -> tuple[int, int, int, str]:
    memory = recall.memory
    return -recall.weight, -memory.significance, -(memory.response or 0), memory.id


def _why(shared: Sequence[str], people: Sequence[str], ago: int | None) -> str:
    parts = ["Just occurred"] if ago == 0 else []
    if shared:
        parts.append(f"shares {', '.join(shared)}")
    if people:
        parts.append(f"about {', '.join(people)}, who {'is' if len(people) == 1 else 'are'} named now")
    if ago:
        parts.append(f"{ago} response{'' if ago == 1 else 's'} ago")
    why = one_line("; ".join(parts) or "Nothing shared with the scene", LONGEST_WHY)
    return why[:1].upper() + why[1:]
