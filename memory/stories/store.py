"""Where stories are kept: their beginnings, their last responses, and what each response changed."""

from collections.abc import Collection

from pydantic import JsonValue
from redis.asyncio import Redis

from contracts.analysis_background import KnownFact
from contracts.stories import (
    Changes,
    Entity,
    Relations,
    StoryBase,
    StoryMemory,
    StoryResponse,
    StorySettings,
    StoryThread,
)
from memory.exchange import Exchange


class StoryStore:
    """Reads stories, and writes where they begin and their responses; changes are written with the analysis.

    Every method raises MemoryUnavailable when Redis did not answer within *deadline_s* seconds.
    """

    def __init__(self, client: Redis, *, deadline_s: float = 1.0) -> None:
        self._exchange = Exchange(client, deadline_s)

    async def load(self, base: StoryBase) -> bool:
        """Make *base* where its story begins, and return whether it is another one than before.

        What responses changed stays.
        """
        raise NotImplementedError

    async def settings(self, story_id: str) -> StorySettings:
        """Return how it is analysed."""
        raise NotImplementedError

    async def base_digest(self, story_id: str) -> str:
        """Return the digest of where it begins (`StoryBase.digest`)."""
        raise NotImplementedError

    async def entities(self, story_id: str) -> tuple[Entity, ...]:
        """Return everybody and everything with a file, in the order of their names."""
        raise NotImplementedError

    async def base_memories(self, story_id: str) -> tuple[StoryMemory, ...]:
        """Return the memories that it begins with."""
        raise NotImplementedError

    async def base_threads(self, story_id: str) -> tuple[StoryThread, ...]:
        """Return the threads that it begins with."""
        raise NotImplementedError

    async def base_knowledge(self, story_id: str) -> tuple[KnownFact, ...]:
        """Return what is known at its beginning."""
        raise NotImplementedError

    async def relations(self, story_id: str) -> Relations:
        """Return tiers, tastes and the scores that it begins with."""
        raise NotImplementedError

    async def changes(self, story_id: str, sections: Collection[str]) -> Changes:
        """Return what every response changed, as the agents of *sections* found it."""
        raise NotImplementedError

    async def put_response(self, story_id: str, response: StoryResponse, *, keep: int) -> bool:
        """Store a response, the last *keep* of the story staying; return whether it is another text than before."""
        raise NotImplementedError

    async def response(self, story_id: str, number: int) -> StoryResponse | None:
        """Return one response, None when it is not there (any more)."""
        raise NotImplementedError

    async def section(self, story_id: str, number: int, section: str) -> JsonValue:
        """Return what stands in one section of the analysis of a response, None when nothing does yet."""
        raise NotImplementedError

    async def delete(self, story_id: str) -> bool:
        """Remove a story with its responses and analyses; return whether there was one."""
        raise NotImplementedError
