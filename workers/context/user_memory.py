"""The memory of the user of a task: items of documents and turns, searched and shown in a prompt."""

from datetime import date
from typing import TYPE_CHECKING

import structlog
from pydantic_core import to_json

from tasklore.contracts.errors import InvalidInput, MemoryUnavailable
from tasklore.workers.context.documents import BUDGET_TOKENS, UserDocuments

if TYPE_CHECKING:
    from tasklore.memory.episodes.episode import Episode
    from tasklore.memory.episodes.recall import SearchesEpisodes
    from tasklore.memory.recall import Recalled

log = structlog.get_logger(__name__)

#: Turns of a user that are listed at most, and turns that are looked at for each: others are answers to them.
_MOST_RECENT = 100
_LOOKED_AT = 3


class UserMemory:
    """The memory of one user; no other user can be named here."""

    def __init__(self, documents: UserDocuments, episodes: "SearchesEpisodes") -> None:
        self._documents = documents
        self._episodes = episodes

    async def block(
        self, query: str = "", *, budget_tokens: int = BUDGET_TOKENS
    ) -> str:
        """Return pinned items and answers to *query*, as a block for a prompt; "" for an empty one.

        Turns stand in it word for word, as quoted data. Where turns cannot be looked up, items alone do.

        Raises:
            MemoryUnavailable: the documents did not answer in time.
        """
        from tasklore.memory.episodes.recall import quotations_of
        from tasklore.memory.recall import turns_for

        documents = self._documents
        try:
            found = await turns_for(
                query, documents.user_id, self._episodes, documents.now
            )
        except MemoryUnavailable as error:
            log.info("block_without_turns", error=str(error))
            return await documents.rendered(query=query, budget_tokens=budget_tokens)
        return await documents.rendered(
            query=query, budget_tokens=budget_tokens, said=quotations_of(found)
        )

    async def recent(self, *, limit: int = 20) -> "tuple[Episode, ...]":
        """Return what the user said last, up to *limit* turns word for word, oldest first; none where none are kept.

        Raises:
            InvalidInput: *limit* is not 1 to 100.
            MemoryUnavailable: the store did not answer in time.
        """
        if not 1 <= limit <= _MOST_RECENT:
            raise InvalidInput(f"limit {limit} must be 1 to {_MOST_RECENT}")
        found = await self._episodes.recent(self._documents.user_id, _LOOKED_AT * limit)
        return tuple(one for one in found if one.speaker == "person")[-limit:]

    async def search(
        self, query: str, *, at: date | None = None, limit: int = 20
    ) -> "Recalled":
        """Return what answers *query* among items and turns; with *at*, as it was on that day.

        Raises:
            InvalidInput: *query* has no word, or *limit* is not 1 to 100.
            MemoryUnavailable: the store did not answer in time.
        """
        from tasklore.memory.recall import search_memory

        documents = self._documents
        found = await search_memory(
            query,
            user_id=documents.user_id,
            bodies=await documents.bodies(),
            kinds=documents.kinds,
            episodes=self._episodes,
            now=documents.now,
            at=at,
            limit=limit,
        )
        if documents.recorder is not None:
            documents.recorder.note(
                "memory",
                to_json(found.memories, fallback=str),
                name="search",
                given=query,
                at=None if at is None else at.isoformat(),
            )
        return found
