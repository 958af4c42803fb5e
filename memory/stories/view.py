"""A story as it stood when a response was written: its beginning, and what earlier responses changed.

Nothing that a later response brought is seen, so that a response that is analysed late, or again, is told the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from contracts.analysis_background import KnownFact
from contracts.stories import Changes, Relations, StoryChange, StoryMemory, StoryThread


@dataclass(frozen=True, slots=True)
class ThreadState:
    """A thread and how it stands: `last_mention` and `resolved_at` are numbers of responses, None for none."""

    thread: StoryThread
    last_mention: int | None = None
    resolved_at: int | None = None

    @property
    def is_open(self) -> bool:
        """Whether no response has resolved it."""
        return self.resolved_at is None


@dataclass(frozen=True, slots=True)
class PastScene:
    """What one earlier response was like."""

    number: int
    scene: str | None
    tension: float | None
    timestamp: str | None


def memories(base: Sequence[StoryMemory], changes: Changes, upto: int) -> tuple[StoryMemory, ...]:
    """Return every memory up to and with response *upto*, the oldest first; a later one of an id takes its place."""
    found = {memory.id: memory for memory in base if (memory.response or 0) <= upto}
    for _, change in _until(changes, upto):
        found |= {memory.id: memory for memory in change.memories}
    return tuple(found.values())


def facts(base: Sequence[KnownFact], changes: Changes, upto: int) -> tuple[KnownFact, ...]:
    """Return what is known up to and with response *upto*, each fact once, the oldest first."""
    found = {(fact.subject, fact.fact): fact for fact in base}
    for _, change in _until(changes, upto):
        for fact in change.facts:
            found.setdefault((fact.subject, fact.fact), fact)
    return tuple(found.values())


def threads(base: Sequence[StoryThread], changes: Changes, upto: int) -> tuple[ThreadState, ...]:
    """Return every thread and how it stands after response *upto*, in the order in which they came up."""
    found = {thread.id: thread for thread in base}
    mentioned: dict[str, int] = {}
    resolved: dict[str, int] = {}
    for number, change in _until(changes, upto):
        for thread in change.threads:
            found.setdefault(thread.id, thread)
            mentioned[thread.id] = number
        mentioned |= dict.fromkeys((*change.mentioned, *change.resolved), number)
        for thread_id in change.mentioned:
            # Whoever takes it up again has opened it again.
            resolved.pop(thread_id, None)
        resolved |= dict.fromkeys(change.resolved, number)
    return tuple(ThreadState(one, mentioned.get(one.id, one.opened), resolved.get(one.id)) for one in found.values())


def scores(relations: Relations, changes: Changes, upto: int) -> dict[str, float]:
    """Return the score of each pair after response *upto*, in points, by `contracts.stories.pair_of`."""
    found = {bond.pair: bond.score for bond in relations.bonds}
    for _, change in _until(changes, upto):
        for pair, points in change.points.items():
            found[pair] = found.get(pair, 0) + points
    return found


def scenes(changes: Changes, upto: int, count: int) -> tuple[PastScene, ...]:
    """Return the last *count* scenes up to and with response *upto*, the latest first."""
    past = [
        PastScene(number, change.scene, change.tension, change.timestamp)
        for number, change in _until(changes, upto)
        if change.scene is not None
    ]
    return tuple(reversed(past[-count:])) if count else ()


def _until(changes: Changes, upto: int) -> Iterator[tuple[int, StoryChange]]:
    """Yield the number of each response up to *upto* and what an agent says it changed, the earliest first."""
    for number in sorted(number for number in changes if number <= upto):
        for change in changes[number].values():
            yield number, change
