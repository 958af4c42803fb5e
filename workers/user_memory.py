"""What is remembered of one user: items of documents and what was said, searched together and shown in a prompt."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time
from typing import TYPE_CHECKING

import structlog

from contracts.errors import InvalidInput, MemoryUnavailable
from workers.documents import BUDGET_TOKENS, UserDocuments

if TYPE_CHECKING:
    from memory.documents.items import Body
    from memory.documents.kinds import Kinds
    from memory.episodes.recall import SearchesEpisodes
    from memory.episodes.store import Episode, Found

log = structlog.get_logger(__name__)

#: Turns that are looked at for one question.
_MOST_TURNS = 40


@dataclass(frozen=True, slots=True)
class Memory:
    """One thing that a search found.

    `source` is `item` or `turn`. `reference` is `RESOURCE_ID:PATH` of an item, the turn's id of a turn. `at` is the day
    on which it was said, None where that is not known; `until` the day on which it stopped being so. `speaker` is
    `person`, `assistant` or an agent's id. `score` compares within its source.
    """

    source: str
    text: str
    reference: str
    at: date | None
    score: float
    speaker: str = "person"
    subject: str | None = None
    since: date | None = None
    until: date | None = None


@dataclass(frozen=True, slots=True)
class Recalled:
    """What a search found, items and turns taking turns, best first; `is_nothing_said` when neither answers it."""

    memories: tuple[Memory, ...]
    is_nothing_said: bool


class UserMemory:
    """What is remembered of one user; of no one else anything can be named here."""

    def __init__(self, documents: UserDocuments, episodes: "SearchesEpisodes") -> None:
        self._documents = documents
        self._episodes = episodes

    async def block(self, query: str = "", *, budget_tokens: int = BUDGET_TOKENS) -> str:
        """Return what must not be missing and what answers *query*, as a block for a prompt; "" for nothing.

        What was said stands in it word for word, as quoted data. Where turns cannot be looked up, items alone do.

        Raises:
            MemoryUnavailable: the documents did not answer in time.
        """
        from memory.episodes.recall import quotation_of

        try:
            found = await self._recall(query)
        except MemoryUnavailable as error:
            log.info("block_without_turns", error=str(error))
            return await self._documents.rendered(query=query, budget_tokens=budget_tokens)
        said = [] if found is None or found.is_nothing_said else [quotation_of(hit) for hit in found.hits]
        return await self._documents.rendered(query=query, budget_tokens=budget_tokens, said=said)

    async def search(self, query: str, *, at: date | None = None, limit: int = 20) -> Recalled:
        """Return what answers *query* among items and turns; with *at*, as it was on that day.

        Raises:
            InvalidInput: *query* has no word, or *limit* is not 1 to 100.
            MemoryUnavailable: the store did not answer in time.
        """
        if not any(sign.isalnum() for sign in query):
            raise InvalidInput(f"query {query!r} has no word; say what to look for")
        if not 1 <= limit <= 100:
            raise InvalidInput(f"limit {limit} must be 1 to 100")
        found = await self._recall(query, at)
        items = items_for(
            query, await self._documents.bodies(), self._documents.kinds, at or self._documents.now.date()
        )
        turns = [] if found is None else [_turn(hit.episode, hit.score) for hit in found.hits]
        mixed = [one for pair in zip(_padded(items, turns), _padded(turns, items), strict=True) for one in pair]
        memories = tuple(one for one in mixed if one is not None)[:limit]
        return Recalled(memories, not items and (found is None or found.is_nothing_said))

    async def _recall(self, query: str, at: date | None = None) -> "Found | None":
        from memory.episodes.recall import recall

        if not any(sign.isalnum() for sign in query):
            return None
        now = self._documents.now if at is None else datetime.combine(at, time.max, self._documents.now.tzinfo)
        found = await recall(self._episodes, self._documents.user_id, query, now, limit=_MOST_TURNS)
        return found if at is None else type(found)(tuple(h for h in found.hits if h.episode.at <= now), found.turns)


def items_for(query: str, bodies: "Mapping[str, Body]", kinds: "Kinds", day: date) -> list[Memory]:
    """Return the items that have to do with *query*, best first, as they stood on *day*; the past behind what holds."""
    from memory.documents.items import Item, lasting_name, leaf_text, leaf_values
    from memory.episodes.ranking import rank

    found = []
    for resource_id, body in bodies.items():
        kind = kinds.get(resource_id)
        for path, value in leaf_values(body):
            item, place = Item.read(value), kind.place_at(path) if kind is not None else None
            if item is not None and (item.added is None or item.added <= day):
                heading = f"{resource_id.replace('_', ' ')} {place.path.last if place is not None else ''}"
                text = f"{heading} {item.subject or ''} {leaf_text(value)}"
                found.append((text, item, f"{resource_id}:{lasting_name(path, value)}", item.state(day)))
    scores = rank(query, [text for text, *_ in found])
    memories = [
        (
            state == "past",
            Memory("item", item.display, reference, item.added, score, "person", item.subject, item.since, item.until),
        )
        for (_, item, reference, state), score in zip(found, scores, strict=True)
        if score > 0 and state not in {"expired", "paused"}
    ]
    memories.sort(key=lambda one: (one[0], -one[1].score))
    return [memory for _, memory in memories]


def _turn(episode: "Episode", score: float) -> Memory:
    speaker = episode.agent_id or episode.speaker
    return Memory("turn", episode.text, episode.turn_id, episode.at.date(), score, speaker)


def _padded(one: list[Memory], other: list[Memory]) -> "list[Memory | None]":
    return [*one, *[None] * (len(other) - len(one))]
