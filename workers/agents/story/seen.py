"""What the agents of a story look at: one response, and the story as it stood when the response was written."""

from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import JsonValue, ValidationError

from contracts.analysis.background import KnownFact
from contracts.analysis.immediate import EntityAnalysis
from contracts.analysis.stories import Entity, Relations, StoryMemory, StoryResponse, StorySettings
from memory.stories.view import PastScene, ThreadState
from workers import Parameters
from workers.agents.story.names import Handles
from workers.context.story import TaskStory

#: Scenes that are looked back at: as far as an alert on a tension that does not change counts.
_PAST = 50


class Turn(Parameters):
    """One response of a story; which one, the assignment says, and `context.story` has it."""


@dataclass(frozen=True)
class Seen:
    """One response and its story; what was not asked for in `read` is empty.

    `memories_before` and `threads_before` leave out what the response itself brought, `memories` and `threads` have it
    as far as it is known. `scenes` begin with the latest. `tier2` are the names that `entity_analysis` found for it,
    None when that section is not there.
    """

    response: StoryResponse
    settings: StorySettings
    entities: tuple[Entity, ...]
    relations: Relations = field(default_factory=Relations)
    scores: Mapping[str, float] = field(default_factory=dict)
    memories_before: tuple[StoryMemory, ...] = ()
    memories: tuple[StoryMemory, ...] = ()
    threads_before: tuple[ThreadState, ...] = ()
    threads: tuple[ThreadState, ...] = ()
    knowledge: tuple[KnownFact, ...] = ()
    scenes: tuple[PastScene, ...] = ()
    tier2: tuple[str, ...] | None = None

    @cached_property
    def handles(self) -> Handles:
        """The names of all entities."""
        return Handles(self.entities)

    @cached_property
    def named(self) -> Counter[str]:
        """How often the response names each entity, in the order of first appearance."""
        return self.handles.count(self.response.text)

    @cached_property
    def by_name(self) -> Mapping[str, Entity]:
        """Every entity by its full name."""
        return {entity.name: entity for entity in self.entities}

    @cached_property
    def characters(self) -> tuple[str, ...]:
        """The characters that the response names, in the order of first appearance."""
        return tuple(name for name in self.named if self.by_name[name].kind == "character")

    @property
    def open_threads(self) -> list[ThreadState]:
        """The threads that are open after the response, as far as that is known."""
        return [state for state in self.threads if state.is_open]

    @property
    def open_before(self) -> list[ThreadState]:
        """The threads that were open before the response."""
        return [state for state in self.threads_before if state.is_open]

    def owner_of(self, name: str) -> str:
        """Return the full name of whoever the story's files call *name*, *name* itself for somebody without a file."""
        return self.handles.owner(name) or name

    def is_character(self, name: str) -> bool:
        """Return whether *name* is that of a character with a file."""
        entity = self.by_name.get(name)
        return entity is not None and entity.kind == "character"


async def read(story: TaskStory, needs: Collection[str]) -> Seen:
    """Return what there is of *needs*, which are names of fields of `Seen`.

    Raises:
        UnknownStory: the story is gone.
        MemoryUnavailable: the store did not answer in time; the task is run again.
    """
    loads: Mapping[str, Callable[[], Awaitable[object]]] = {
        "relations": story.relations,
        "scores": lambda: story.scores(before=True),
        "memories_before": lambda: story.memories(before=True),
        "memories": story.memories,
        "threads_before": lambda: story.threads(before=True),
        "threads": story.threads,
        "knowledge": lambda: story.knowledge(before=True),
        "scenes": lambda: story.past_scenes(_PAST),
    }
    told = {name: await load() for name, load in loads.items() if name in needs}
    tier2 = _tier2(await story.section("entity_analysis")) if "tier2" in needs else None
    response, settings = await story.response(), await story.settings()
    return Seen(response, settings, await story.entities(), tier2=tier2, **told)  # type: ignore[arg-type]


def _tier2(found: JsonValue) -> tuple[str, ...] | None:
    """Return the names in tier 2 of the section *found*, None when its agent has left none."""
    try:
        section = EntityAnalysis.model_validate(found)
    except ValidationError:
        return None
    return None if section.status is not None else tuple(one.name for one in section.tier2)
