"""The view of an agent: one response, and the story as it stood when the response was written."""

import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from pydantic import ValidationError

from tasklore import Parameters
from tasklore.contracts.analysis.background import KnownFact
from tasklore.contracts.analysis.immediate import EntityAnalysis
from tasklore.contracts.analysis.stories import (
    Entity,
    Relations,
    StoryMemory,
    StoryResponse,
    StorySettings,
)
from tasklore.memory.stories.view import PastScene, ThreadState
from tasklore.workers.agents.story.names import Handles
from tasklore.workers.context.story import TaskStory

#: Scenes that are looked back at: as far as an alert on a tension that does not change counts.
_PAST = 50


class Turn(Parameters):
    """One response of a story; the assignment carries its number, and `context.story` its text."""


@dataclass(frozen=True, kw_only=True)
class StoryView:
    """One response and its story; fields that were not demanded in `read` are empty.

    `memories_before` and `threads_before` leave out the changes of the response itself, `memories` and `threads` have
    those that are known. `scenes` begin with the latest. `tier2` are names that `entity_analysis` found, None without
    that section.
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
    def mentions(self) -> Counter[str]:
        """How often the response names each entity, in the order of first appearance."""
        return self.handles.count(self.response.text)

    @cached_property
    def by_name(self) -> Mapping[str, Entity]:
        """Every entity by its full name."""
        return {entity.name: entity for entity in self.entities}

    @cached_property
    def characters(self) -> tuple[str, ...]:
        """The characters that the response names, in the order of first appearance."""
        return tuple(
            name for name in self.mentions if self.by_name[name].kind == "character"
        )

    @property
    def open_threads(self) -> list[ThreadState]:
        """The threads that are open after the response."""
        return [state for state in self.threads if state.is_open]

    @property
    def open_before(self) -> list[ThreadState]:
        """The threads that were open before the response."""
        return [state for state in self.threads_before if state.is_open]

    def owner_of(self, name: str) -> str:
        """Return the full name of the entity called *name*, *name* itself for one without a file."""
        return self.handles.owner(name) or name

    def is_character(self, name: str) -> bool:
        """Return whether *name* is that of a character with a file."""
        entity = self.by_name.get(name)
        return entity is not None and entity.kind == "character"


async def read(story: TaskStory, needs: Collection[str]) -> StoryView:
    """Load the fields *needs* of a `StoryView`.

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
    fields = {name: await load() for name, load in loads.items() if name in needs}
    if "tier2" in needs:
        with contextlib.suppress(ValidationError):
            section = EntityAnalysis.model_validate(
                await story.section("entity_analysis")
            )
            fields["tier2"] = (
                None
                if section.status is not None
                else tuple(one.name for one in section.tier2)
            )
    response = await story.response()
    settings = await story.settings()
    return StoryView(
        response=response,
        settings=settings,
        entities=await story.entities(),
        **fields,  # type: ignore[arg-type]
    )
