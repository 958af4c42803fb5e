"""Hide the memory of a user for a day, and bring it back with later words.

Turns that came while it was hidden are added to it by their ids, and later items of documents one by one as facts,
which are ruled on like any others. Each step may be repeated.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date, datetime

from pydantic import ValidationError
from pydantic_core import from_json
from redis.asyncio import Redis

from tasklore.contracts.messages import ChatTurn, ExtractedFacts, Fact
from tasklore.memory.conversations.conversation import Conversations
from tasklore.memory.documents.entries import DocumentEntry, live_entries
from tasklore.memory.documents.items import Body
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.episodes.episode import Episode
from tasklore.memory.episodes.recall import KeepsTurns
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.memory.tombstones.store import Hidden, PutAside, Tombstones
from tasklore.workers.listening.turn_episodes import episode_of

#: Characters of a fact, as `Fact.text` takes them.
_LONGEST = 2_000


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedAgain:
    """How much that came while a memory was hidden was added to it again: *turns*, and *items* of documents."""

    turns: int = 0
    items: int = 0

    @property
    def is_anything(self) -> bool:
        """Whether there was any of it."""
        return bool(self.turns or self.items)


@dataclass(kw_only=True)
class HiddenMemory:
    """Hides and brings back the memory of users in *redis*; *episodes* keeps their turns.

    Args:
        deadline_s: Seconds for one round trip; then MemoryUnavailable, which every method may raise.
    """

    redis: Redis
    kinds: Kinds
    episodes: KeepsTurns
    deadline_s: float = 1.0
    stones: Tombstones = field(init=False)

    def __post_init__(self) -> None:
        self.stones = Tombstones(self.redis, deadline_s=self.deadline_s)

    async def hide(self, user_id: str, *, by: str, now: datetime) -> Hidden:
        """Hide all of *user_id*, once for each *by*, and return until when it can be brought back."""
        # What waits to be told again belongs to what is hidden now.
        await self._add_again(user_id)
        return await self.stones.hide(user_id, by=by, now=now)

    async def bring_back(
        self, user_id: str, *, by: str, now: datetime
    ) -> AddedAgain | None:
        """Bring back what *user_id* had hidden last, once for each *by*; None where nothing is hidden."""
        if not await self.stones.bring_back(user_id, by=by, now=now):
            return None
        return await self._add_again(user_id)

    async def _add_again(self, user_id: str) -> AddedAgain:
        """Add all that was put aside of *user_id* to the memory, if anything was, and remove it there."""
        aside = await self.stones.put_aside(user_id)
        if aside is None:
            return AddedAgain()
        turns = PersonalQueue(self.redis, "turns", deadline_s=self.deadline_s)
        facts = PersonalQueue(self.redis, "facts", deadline_s=self.deadline_s)
        conversations = Conversations(self.redis, deadline_s=self.deadline_s)
        if b"on" in aside.settings:
            days = aside.settings.get(b"days")
            await self.episodes.settle(
                user_id,
                is_on=aside.settings[b"on"] != b"0",
                days=int(days) if days else None,
            )
        late = aside.late.get("turns", ())
        said = [Episode.model_validate_json(body) for body in aside.episodes]
        said += _episodes_in(body for _, body in late)
        said.sort(key=lambda one: one.at)
        await self.episodes.append(user_id, said)
        await conversations.own(user_id, aside.conversations)
        # Also without a row: whoever looks at the queues learns that those which came back wait.
        await turns.append(user_id, [*late, *aside.rows.get("turns", ())])
        items = list(facts_of(aside, user_id, self.kinds))
        learned = [
            (one.facts[0].fact_id, one.model_dump_json(exclude_none=True).encode())
            for one in items
        ]
        await facts.append(
            user_id,
            [*aside.late.get("facts", ()), *learned, *aside.rows.get("facts", ())],
        )
        await self.stones.settle(user_id)
        return AddedAgain(turns=len(said), items=len(items))


def facts_of(aside: PutAside, user_id: str, kinds: Kinds) -> Iterator[ExtractedFacts]:
    """Yield each item that was learned while a memory was hidden, and holds, as a fact with a lasting id."""
    bodies: dict[str, Body] = {
        resource_id: from_json(body) for resource_id, body in aside.bodies.items()
    }
    today = aside.at.date()
    entries = sorted(
        live_entries(bodies, kinds, today), key=lambda entry: entry.reference
    )
    for number, entry in enumerate(entries, 1):
        if not entry.text.strip():
            continue
        fact = _fact_of(entry, f"{aside.by}-{number}")
        yield ExtractedFacts(
            turn_id=aside.by,
            conversation_id=next(iter(aside.conversations), aside.by),
            user_id=user_id,
            facts=(fact,),
            at=aside.at,
        )


def _fact_of(entry: DocumentEntry, fact_id: str) -> Fact:
    item = entry.item
    text = entry.text[:_LONGEST]
    given: dict[str, str | float | bool | date | None] = {}
    if item is not None:
        given = {
            "subject": item.subject,
            "valid_from": item.since,
            "expiry": item.expiry,
            "durability": item.durability,
            "confidence": item.confidence,
            "inferred": item.is_inferred,
        }
    return Fact.model_validate(
        {
            "fact_id": fact_id,
            "text": text,
            "value": text,
            "category": entry.category,
            "reasoning": "said while the rest was hidden",
            **given,
        }
    )


def _episodes_in(bodies: Iterator[bytes]) -> list[Episode]:
    """Return the turns of rows as they are kept; what cannot be read is for the listener to set aside."""
    found = []
    for body in bodies:
        try:
            episode = episode_of(ChatTurn.model_validate_json(body))
        except ValidationError:
            continue
        if episode is not None:
            found.append(episode)
    return found
