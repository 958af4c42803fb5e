"""Stands for `memory.stories.store.StoryStore` in tests without servers; the same tests hold for both."""

from collections.abc import Collection, Mapping

from pydantic import JsonValue

from contracts.analysis_background import KnownFact
from contracts.errors import UnknownStory
from contracts.stories import (
    Changes,
    Entity,
    Relations,
    StoryBase,
    StoryChange,
    StoryMemory,
    StoryResponse,
    StorySettings,
    StoryThread,
)


class FakeStories:
    """Stories in memory: `put` one, `add_response`, `note` what a response changed, `leave` a section."""

    def __init__(self) -> None:
        self._bases: dict[str, StoryBase] = {}
        self._responses: dict[tuple[str, int], StoryResponse] = {}
        self._changes: dict[str, dict[int, dict[str, StoryChange]]] = {}
        self._sections: dict[tuple[str, int, str], JsonValue] = {}

    def put(self, base: StoryBase) -> None:
        """Take *base* as the beginning of its story."""
        self._bases[base.settings.story_id] = base

    def add_response(self, story_id: str, response: StoryResponse) -> None:
        """Store a response."""
        self._responses[story_id, response.number] = response

    def note(self, story_id: str, number: int, section: str, change: StoryChange) -> None:
        """Note what a response changed, as the agent of *section* found it."""
        self._changes.setdefault(story_id, {}).setdefault(number, {})[section] = change

    def leave(self, story_id: str, number: int, sections: Mapping[str, JsonValue]) -> None:
        """Note what agents found in a response."""
        self._sections |= {(story_id, number, section): found for section, found in sections.items()}

    async def settings(self, story_id: str) -> StorySettings:
        """Return how it is analysed."""
        return self._base(story_id).settings

    async def entities(self, story_id: str) -> tuple[Entity, ...]:
        """Return everybody and everything with a file, in the order of their names."""
        return tuple(sorted(self._base(story_id).entities, key=lambda entity: entity.name))

    async def base_memories(self, story_id: str) -> tuple[StoryMemory, ...]:
        """Return the memories that it begins with."""
        return self._base(story_id).memories

    async def base_threads(self, story_id: str) -> tuple[StoryThread, ...]:
        """Return the threads that it begins with."""
        return self._base(story_id).threads

    async def base_knowledge(self, story_id: str) -> tuple[KnownFact, ...]:
        """Return what is known at its beginning."""
        return self._base(story_id).knowledge

    async def relations(self, story_id: str) -> Relations:
        """Return tiers, tastes and the scores that it begins with."""
        return self._base(story_id).relations

    async def changes(self, story_id: str, sections: Collection[str]) -> Changes:
        """Return what every response changed, as the agents of *sections* found it."""
        self._base(story_id)
        told = self._changes.get(story_id, {})
        return {n: {one: change for one, change in by.items() if one in sections} for n, by in told.items()}

    async def response(self, story_id: str, number: int) -> StoryResponse | None:
        """Return one response, None when it is not there."""
        self._base(story_id)
        return self._responses.get((story_id, number))

    async def section(self, story_id: str, number: int, section: str) -> JsonValue:
        """Return what stands in one section of the analysis of a response, None when nothing does yet."""
        self._base(story_id)
        return self._sections.get((story_id, number, section))

    def _base(self, story_id: str) -> StoryBase:
        if story_id not in self._bases:
            raise UnknownStory(f"there is no story {story_id!r}; load it with `tasklore story load FOLDER`")
        return self._bases[story_id]
