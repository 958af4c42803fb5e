"""What a running task may know of the story whose response it analyses: as it stood then, and never another story."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING

from tasklore.contracts.errors import InvalidInput

if TYPE_CHECKING:
    from pydantic import JsonValue

    from tasklore.contracts.analysis.background import KnownFact
    from tasklore.contracts.analysis.stories import (
        Entity,
        Relations,
        StoryMemory,
        StoryResponse,
        StorySettings,
    )
    from tasklore.memory.stories.shared_answers import SharedAnswers
    from tasklore.memory.stories.store import StoryStore
    from tasklore.memory.stories.view import PastScene, StandingStory, ThreadState


class TaskStory:
    """The story of a task: `before` leaves out what the response itself changed, the others have it as far as known.

    Every method raises UnknownStory when the story is gone, and MemoryUnavailable when the store did not answer in
    time: then the task is run again.
    """

    def __init__(
        self,
        story_id: str,
        number: int,
        store: "StoryStore",
        answers: "SharedAnswers",
        *,
        run: str,
    ) -> None:
        self.story_id = story_id
        self.number = number
        #: How agents share questions to models: `ten`, `grouped` or `one`.
        self.calls = answers.calls
        self._store = store
        self._answers = answers
        self._run = run

    async def response(self) -> "StoryResponse":
        """Return the response that is analysed.

        Raises:
            InvalidInput: it is not there (any more).
        """
        found = await self._store.response(self.story_id, self.number)
        if found is None:
            msg = f"response {self.number} of story {self.story_id!r} no longer exists; analyse it with its text"
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
        return (await self._standing("memory_create", before)).memories

    async def knowledge(self, *, before: bool = False) -> "tuple[KnownFact, ...]":
        """Return the known facts of the story's world, the oldest first."""
        return (await self._standing("knowledge", before)).knowledge

    async def threads(self, *, before: bool = False) -> "tuple[ThreadState, ...]":
        """Return every plot thread and how it stands, resolved ones too."""
        return (await self._standing("plot_threads", before)).threads

    async def scores(self, *, before: bool = False) -> "Mapping[str, float]":
        """Return the score of each pair, in points, by `tasklore.contracts.analysis.stories.pair_of`."""
        return (await self._standing("relationship", before)).scores

    async def past_scenes(self, count: int) -> "tuple[PastScene, ...]":
        """Return the last *count* scenes before this response, the latest first."""
        return (await self._standing("resp_analyzer", before=True)).scenes[:count]

    async def section(self, section: str) -> "JsonValue":
        """Return what another agent found in this response, by the key of its section; None when nothing yet."""
        return await self._store.section(self.story_id, self.number, section)

    async def share(
        self, name: str, compute: "Callable[[], Awaitable[JsonValue]]", *, wait_s: float
    ) -> "JsonValue":
        """Return what *compute* returns in the first of the tasks of this analysis that ask for *name*.

        The others wait for it, *wait_s* at most, then compute for themselves; so they do without the store.
        """
        name = f"{self._run}:{name}"
        return await self._answers.get_or_compute(
            self.story_id, self.number, name, compute, wait_s=wait_s
        )

    async def _standing(self, section: str, before: bool) -> "StandingStory":
        return await self._store.standing(
            self.story_id, self.number, (section,), after=not before
        )
