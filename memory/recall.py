"""The memory of one user, searched together: items of documents, and turns word for word."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time
from itertools import chain, zip_longest
from typing import Literal

import structlog

from tasklore.contracts.errors import InvalidInput, MemoryUnavailable
from tasklore.memory.documents.items import (
    Body,
    Item,
    lasting_name,
    leaf_text,
    leaf_values,
)
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.episodes.ranking import rank_items
from tasklore.memory.episodes.recall import ANY, SearchesEpisodes, Within, recall
from tasklore.memory.episodes.store import Hit, SearchResult

__all__ = [
    "MAX_LIMIT",
    "Memory",
    "Recalled",
    "Within",
    "is_question",
    "search_memory",
    "turns_for",
]

log = structlog.get_logger(__name__)

_QUESTION_MARKS = ("?", "\uff1f", "\u061f")
#: Memories of one search.
MAX_LIMIT = 100
#: Turns that are looked at for one question.
_MOST_TURNS = 40


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """One thing that a search found.

    `reference` is `RESOURCE_ID:PATH` of an item, the turn's id of a turn. `at` is the day on which it was said, None
    where that is not known; `until` the day on which it stopped being so. `speaker` is `person`, `assistant` or an
    agent's id. `score` compares within its source.
    """

    source: Literal["item", "turn"]
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
    """What a search found, items and turns taking turns, best first; `is_nothing_said` when neither answers it.

    `is_complete` is False where turns could not be looked up, so that items alone were.
    """

    memories: tuple[Memory, ...]
    is_nothing_said: bool
    is_complete: bool = True


async def search_memory(
    query: str,
    *,
    user_id: str,
    bodies: Mapping[str, Body],
    kinds: Kinds,
    episodes: SearchesEpisodes,
    now: datetime,
    at: date | None = None,
    limit: int = 20,
    within: Within = ANY,
) -> Recalled:
    """Return what answers *query* among *bodies* and the turns of *user_id*; with *at*, as it was on that day.

    Items are the person's own, of no conversation; so *within* others there are turns alone.

    Raises:
        InvalidInput: *query* has no word, or *limit* is not 1 to 100.
    """
    if not any(sign.isalnum() for sign in query):
        raise InvalidInput(f"query {query!r} has no word; say what to look for")
    if not 1 <= limit <= MAX_LIMIT:
        raise InvalidInput(f"limit {limit} must be 1 to {MAX_LIMIT}")
    found = SearchResult()
    is_complete = True
    try:
        found = await turns_for(
            query, user_id=user_id, episodes=episodes, now=now, at=at, within=within
        )
    except MemoryUnavailable as error:
        log.info("searched_without_turns", error=str(error))
        is_complete = False
    has_items = within.conversation_id is None and within.speaker in (None, "person")
    items = [
        one
        for one in (
            _items_for(query, bodies, kinds, at or now.date()) if has_items else ()
        )
        if within.is_open
        or (
            one.at is not None
            and (within.since or one.at) <= one.at <= (within.until or one.at)
        )
    ]
    turns = (
        Memory(
            source="turn",
            text=one.text,
            reference=one.turn_id,
            at=one.at.date(),
            score=hit.score,
            speaker=one.agent_id or one.speaker,
        )
        for hit in _once_a_turn(found.hits)
        for one in [hit.episode]
    )
    mixed = chain.from_iterable(zip_longest(items, turns))
    memories = tuple(one for one in mixed if one is not None)[:limit]
    return Recalled(memories, not items and found.is_nothing_said, is_complete)


def _once_a_turn(hits: Sequence[Hit]) -> Iterable[Hit]:
    """Return of each turn the best of its passages."""
    best: dict[str, Hit] = {}
    for hit in hits:
        best.setdefault(hit.episode.turn_id, hit)
    return best.values()


async def turns_for(
    query: str,
    user_id: str,
    episodes: SearchesEpisodes,
    now: datetime,
    at: date | None = None,
    within: Within = ANY,
) -> SearchResult:
    """Return the turns that answer *query*, best first; with *at*, those that were said by the end of that day.

    Raises:
        MemoryUnavailable: the store did not answer in time.
    """
    if not any(sign.isalnum() for sign in query):
        return SearchResult()
    then = now if at is None else datetime.combine(at, time.max, now.tzinfo)
    found = await recall(
        episodes, user_id, query, then, limit=_MOST_TURNS, within=within
    )
    return replace(
        found, hits=tuple(hit for hit in found.hits if hit.episode.at <= then)
    )


def _items_for(
    query: str, bodies: Mapping[str, Body], kinds: Kinds, day: date
) -> Sequence[Memory]:
    """Return the items that have to do with *query*, best first, as they stood on *day*; the past behind what holds."""
    found: list[tuple[str, Memory, bool]] = []
    for resource_id, body in bodies.items():
        kind = kinds.get(resource_id)
        for path, value in leaf_values(body):
            item = Item.read(value)
            state = item.state(day) if item is not None else ""
            if (
                item is None
                or state in {"expired", "paused"}
                or (item.added is not None and item.added > day)
            ):
                continue
            place = kind.place_at(path) if kind is not None else None
            heading = place.meaning if place is not None else str(path.parent)
            reference = f"{resource_id}:{lasting_name(path, value)}"
            memory = Memory(
                source="item",
                text=item.display,
                reference=reference,
                at=item.added,
                score=0.0,
                speaker="person",
                subject=item.subject,
                since=item.since,
                until=item.until,
            )
            found.append(
                (
                    f"{heading} {item.subject or ''} {leaf_text(value)}",
                    memory,
                    state == "past",
                )
            )
    scores = rank_items(query, [text for text, _, _ in found], kinds)
    order = sorted(
        range(len(found)), key=lambda number: (found[number][2], -scores[number])
    )
    return [found[number][1] for number in order if scores[number] > 0]


def is_question(text: str) -> bool:
    """Return whether *text* ends by asking something, in any script."""
    return text.rstrip(" \"'!").endswith(_QUESTION_MARKS)
