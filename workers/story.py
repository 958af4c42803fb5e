"""What a running task may know of the story whose response it analyses: as it stood then, and never another story."""

from collections.abc import Collection
from typing import TYPE_CHECKING, Protocol

from contracts.errors import InvalidInput
from memory.stories import view

if TYPE_CHECKING:
    from pydantic import JsonValue

    from contracts.analysis_background import KnownFact
    from contracts.stories import (
        Changes,
        Entity,
        Relations,
        StoryMemory,
        StoryResponse,
        StorySettings,
        StoryThread,
    )
    from memory.stories.view import PastScene, ThreadState


class StoryStore(Protocol):
    """What is needed of `memory.stories.store.StoryStore`.

    Every method raises UnknownStory when there is no such story, MemoryUnavailable when the store did not answer.
    """

    async def settings(self, story_id: str) -> "StorySettings":
        """Return how it is analysed."""

    async def entities(self, story_id: str) -> "tuple[Entity, ...]":
        """Return everybody and everything with a file, in the order of their names."""

    async def base_memories(self, story_id: str) -> "tuple[StoryMemory, ...]":
        """Return the memories that it begins with."""

    async def base_threads(self, story_id: str) -> "tuple[StoryThread, ...]":
        """Return the threads that it begins with."""

    async def base_knowledge(self, story_id: str) -> "tuple[KnownFact, ...]":
        """Return what is known at its beginning."""

    async def relations(self, story_id: str) -> "Relations":
        """Return tiers, tastes and the scores that it begins with."""

    async def changes(self, story_id: str, sections: Collection[str]) -> "Changes":
        """Return what every response changed, as the agents of *sections* found it."""

    async def response(self, story_id: str, number: int) -> "StoryResponse | None":
        """Return one response, None when it is not there (any more)."""

    async def section(self, story_id: str, number: int, section: str) -> "JsonValue":
        """Return what stands in one section of the analysis of a response, None when nothing does yet."""


class TaskStory:
    """The story of a task: `before` leaves out what the response itself changed, the others have it as far as known.

    Every method raises UnknownStory when the story is gone, and MemoryUnavailable when the store did not answer in
    time: then the task is run again.
    """

    def __init__(self, story_id: str, number: int, store: StoryStore) -> None:
        self.story_id = story_id
        self.number = number
        self._store = store

    async def response(self) -> "StoryResponse":
        """Return the response that is analysed.

        Raises:
            InvalidInput: it is not there (any more).
        """
        found = await self._store.response(self.story_id, self.number)
        if found is None:
            msg = f"response {self.number} of story {self.story_id!r} is not there any more; analyse it with its text"
            raise InvalidInput(msg)
        return found

    async def settings(self) -> "StorySettings":
        """Return how the story is analysed."""
        return await self._store.settings(self.story_id)

    async def entities(self) -> "tuple[Entity, ...]":
        """Return everybody and everything with a file, in the order of their names."""
        return await self._store.entities(self.story_id)

    async def relations(self) -> "Relations":
        """Return tiers, tastes and the scores that the story began with."""
        return await self._store.relations(self.story_id)

    async def memories(self, *, before: bool = False) -> "tuple[StoryMemory, ...]":
        """Return what characters remember, the oldest first."""
        base = await self._store.base_memories(self.story_id)
        return view.memories(base, await self._changes("memory_create"), self._upto(before))

    async def knowledge(self, *, before: bool = False) -> "tuple[KnownFact, ...]":
        """Return what is known of the story's world, the oldest first."""
        base = await self._store.base_knowledge(self.story_id)
        return view.facts(base, await self._changes("knowledge"), self._upto(before))

    async def threads(self, *, before: bool = False) -> "tuple[ThreadState, ...]":
        """Return every plot thread and how it stands, resolved ones too."""
        base = await self._store.base_threads(self.story_id)
        return view.threads(base, await self._changes("plot_threads"), self._upto(before))

    async def scores(self, *, before: bool = False) -> dict[str, float]:
        """Return the score of each pair, in points, by `contracts.stories.pair_of`."""
        return view.scores(await self.relations(), await self._changes("relationship"), self._upto(before))

    async def past_scenes(self, count: int) -> "tuple[PastScene, ...]":
        """Return the last *count* scenes before this response, the latest first."""
        return view.scenes(await self._changes("resp_analyzer"), self._upto(before=True), count)

    async def section(self, section: str) -> "JsonValue":
        """Return what another agent found in this response, by the key of its section; None when nothing yet."""
        return await self._store.section(self.story_id, self.number, section)

    def _upto(self, before: bool) -> int:
        return self.number - 1 if before else self.number

    async def _changes(self, section: str) -> "Changes":
        return await self._store.changes(self.story_id, (section,))
