"""A story as it stood when a response was written: its beginning, and the changes of earlier responses.

Changes of later responses are left out, so that an analysis that comes late, or again, sees the same story.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.stories import (
    Changes,
    Relations,
    StoryBase,
    StoryChange,
    StoryMemory,
    StorySettings,
    StoryThread,
)
from tasklore.contracts.errors import InvalidInput, UnknownStory
from tasklore.memory.stories.arithmetic import plain

_Told = Sequence[tuple[int, StoryChange]]

#: Sections that change the story; what other agents find stays in its document.
CHANGING = (
    "resp_analyzer",
    "memory_create",
    "relationship",
    "plot_threads",
    "knowledge",
)


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


@dataclass(frozen=True, slots=True, kw_only=True)
class StoryInfo:
    """One story in a list; `updated_ms` is since 1970, responses and analyses are those still kept."""

    story_id: str
    title: str
    entities: int
    responses: int
    analyses: int
    updated_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StandingStory:
    """A story as it stood before a response, or after it, as far as it was asked for.

    `scenes` begin with the latest. `memory_ids` and `thread_ids` are those that everything but this response uses,
    later responses included; `opened_ids` are those of threads that it opened. `own` is what this response changed when
    it was analysed before, by section.
    """

    settings: StorySettings
    relations: Relations = field(default_factory=Relations)
    memories: tuple[StoryMemory, ...] = ()
    threads: tuple[ThreadState, ...] = ()
    knowledge: tuple[KnownFact, ...] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    scenes: tuple[PastScene, ...] = ()
    memory_ids: frozenset[str] = frozenset()
    thread_ids: frozenset[str] = frozenset()
    opened_ids: frozenset[str] = frozenset()
    own: Mapping[str, StoryChange] = field(default_factory=dict)


def unknown(story_id: str) -> UnknownStory:
    """Return the error for a missing story *story_id*."""
    return UnknownStory(
        f"there is no story {story_id!r}; load it with `tasklore stories load FOLDER`"
    )


def demand_changing(changes: Mapping[str, StoryChange | None]) -> None:
    """Check that each section of *changes* changes stories, where it changes something.

    Raises:
        InvalidInput: one does not.
    """
    for section, change in changes.items():
        if change is not None and section not in CHANGING:
            raise InvalidInput(
                f"section {section!r} changes no story; those that do are {', '.join(CHANGING)}"
            )


def standing(
    base: StoryBase, changes: Changes, number: int, *, after: bool = False
) -> StandingStory:
    """Return the story before response *number*, or *after* it, out of where it begins and what responses changed."""
    upto = number if after else number - 1
    told = {section: _told(changes, section) for section in CHANGING}
    until = {
        section: [(one, change) for one, change in by if one <= upto]
        for section, by in told.items()
    }
    others = {
        section: [change for one, change in by if one != number]
        for section, by in told.items()
    }
    made_memories = (
        one for change in others["memory_create"] for one in change.memories
    )
    opened = frozenset(
        one.id for change in others["plot_threads"] for one in change.threads
    )
    opened |= {one.id for one in base.threads}
    # One that was opened no more is still named by those that took it up: another is not to be taken for it.
    named = (
        one
        for change in others["plot_threads"]
        for one in (*change.mentioned, *change.resolved)
    )
    return StandingStory(
        settings=base.settings,
        relations=base.relations,
        memories=_memories(
            [one for one in base.memories if (one.response or 0) <= upto],
            until["memory_create"],
        ),
        threads=_threads(
            [one for one in base.threads if (one.opened or 0) <= upto],
            until["plot_threads"],
        ),
        knowledge=_knowledge(base.knowledge, until["knowledge"]),
        scores=_scores(base.relations, until["relationship"]),
        scenes=_scenes(until["resp_analyzer"]),
        memory_ids=frozenset(one.id for one in (*base.memories, *made_memories)),
        thread_ids=opened.union(named),
        opened_ids=opened,
        own=changes.get(number, {}),
    )


def _told(changes: Changes, section: str) -> _Told:
    """Return what the agent of *section* says that responses changed, the earliest first."""
    return sorted(
        ((number, by[section]) for number, by in changes.items() if section in by),
        key=lambda one: one[0],
    )


def _memories(base: Iterable[StoryMemory], told: _Told) -> tuple[StoryMemory, ...]:
    """Return every memory, the oldest first; a later one of an id takes its place."""
    found = {memory.id: memory for memory in base}
    for _, change in told:
        found.update((memory.id, memory) for memory in change.memories)
    return tuple(found.values())


def _knowledge(base: Iterable[KnownFact], told: _Told) -> tuple[KnownFact, ...]:
    """Return each fact once, the oldest first."""
    found = {(fact.subject, fact.fact): fact for fact in base}
    for _, change in told:
        for fact in change.facts:
            found.setdefault((fact.subject, fact.fact), fact)
    return tuple(found.values())


def _threads(base: Iterable[StoryThread], told: _Told) -> tuple[ThreadState, ...]:
    """Return every thread and how it stands, in the order in which they came up."""
    found = {thread.id: thread for thread in base}
    mentioned: dict[str, int] = {}
    resolved: dict[str, int] = {}
    for number, change in told:
        for thread in change.threads:
            found.setdefault(thread.id, thread)
            mentioned[thread.id] = number
        for thread_id in change.mentioned:
            mentioned[thread_id] = number
            # Whoever takes it up again has opened it again.
            resolved.pop(thread_id, None)
        for thread_id in change.resolved:
            mentioned[thread_id] = resolved[thread_id] = number
    return tuple(
        ThreadState(one, mentioned.get(one.id, one.opened), resolved.get(one.id))
        for one in found.values()
    )


def _scores(relations: Relations, told: _Told) -> dict[str, float]:
    """Return the score of each pair, in points."""
    found = {bond.pair: bond.score for bond in relations.bonds}
    for _, change in told:
        for pair, points in change.points.items():
            found[pair] = found.get(pair, 0) + points
    return {pair: plain(score) for pair, score in found.items()}


def _scenes(told: _Told) -> tuple[PastScene, ...]:
    """Return every scene that is known, the latest first."""
    return tuple(
        PastScene(number, change.scene, change.tension, change.timestamp)
        for number, change in reversed(told)
        if change.scene is not None
    )
