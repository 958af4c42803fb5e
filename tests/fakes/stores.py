"""Stores that remember in this process only, for unit tests of what uses them: each passes its store's contract suite.

Times to live run on the clock handed in, monotonic seconds.
"""

import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from tasklore.contracts.parameters.neighbours import Neighbourhood
from tasklore.memory import keys
from tasklore.memory.conversations.conversation import KEEP, KEEP_FOR
from tasklore.memory.long_term.entries import (
    CachedResult,
    Entry,
    EntrySelection,
    IndexPosition,
    NearMatch,
    Quarantined,
    check_entry,
    decode,
    decode_entry,
    encode,
)

Clock = Callable[[], float]


class FakeConversations:
    """Stands for `tasklore.memory.conversations.conversation.Conversations`."""

    def __init__(
        self,
        *,
        keep_turns: int = KEEP,
        keep: timedelta = KEEP_FOR,
        clock: Clock = time.monotonic,
    ) -> None:
        self._keep_turns = keep_turns
        self._keep_s = keep.total_seconds()
        self._clock = clock
        self._turns: dict[str, tuple[float, dict[str, bytes]]] = {}
        self._owned: dict[str, tuple[float, set[str]]] = {}

    async def append(
        self,
        conversation_id: str,
        turn: bytes,
        turn_id: str,
        *,
        user_id: str | None = None,
        beside: object = (),
    ) -> bool:
        if user_id:
            self._owned[user_id] = (
                self._clock() + self._keep_s,
                {*await self.of_user(user_id), conversation_id},
            )
        turns = self._living(conversation_id)
        if turn_id in turns:
            return False
        turns[turn_id] = turn
        while len(turns) > self._keep_turns:
            del turns[next(iter(turns))]
        self._turns[keys.conversation(conversation_id).said] = (
            self._clock() + self._keep_s,
            turns,
        )
        return True

    async def replace(self, conversation_id: str, turn: bytes, by: bytes) -> bool:
        turns = self._living(conversation_id)
        turn_id = next((name for name in reversed(turns) if turns[name] == turn), None)
        if turn_id is None:
            return False
        turns[turn_id] = by
        return True

    async def of_user(self, user_id: str) -> list[str]:
        until, owned = self._owned.get(user_id, (0.0, set()))
        return sorted(owned) if self._clock() < until else []

    async def recent(self, conversation_id: str, count: int = 20) -> list[bytes]:
        return (
            list(self._living(conversation_id).values())[-count:] if count > 0 else []
        )

    def _living(self, conversation_id: str) -> dict[str, bytes]:
        until, turns = self._turns.get(
            keys.conversation(conversation_id).said, (0.0, {})
        )
        return turns if self._clock() < until else {}


@dataclass(slots=True)
class _Value:
    raw: bytes
    until: float | None
    users: set[str] = field(default_factory=set)
    hits: int = 0


class FakeLongTermMemory:
    """Stands for `tasklore.memory.long_term.store.LongTermMemory`."""

    def __init__(self, *, clock: Clock = time.monotonic) -> None:
        self.corrupt_entries = 0
        self._clock = clock
        self._values: dict[str, _Value] = {}
        self._quarantine: dict[tuple[str, str], bytes] = {}

    async def recall(self, key: str) -> CachedResult | None:
        value = self._living(key)
        return None if value is None else decode(value.raw)

    async def recall_many(self, entry_keys: Sequence[str]) -> list[CachedResult | None]:
        return [await self.recall(key) for key in entry_keys]

    async def nearest(
        self, asked: Sequence[tuple[str, Neighbourhood]]
    ) -> list[NearMatch | None]:
        return [await self._nearest(key, near) for key, near in asked]

    async def _nearest(self, key: str, near: Neighbourhood) -> NearMatch | None:
        places: dict[str, Entry] = {}
        for other in list(self._values):
            entry = await self.show(other)
            if (
                entry is not None
                and entry.standing is not None
                and keys.near_of(other) == keys.near_of(key)
            ):
                places |= (
                    {entry.standing.place: entry}
                    if entry.standing.frame == near.frame
                    else {}
                )
        nearest = near.nearest(list(places), 1)
        return (
            NearMatch(places[nearest[0]].key, nearest[0], places[nearest[0]].answer)
            if nearest
            else None
        )

    async def remember(
        self,
        key: str,
        result_json: bytes,
        *,
        computed_ms: int,
        ttl: timedelta | None,
        now_ms: int,
        user_token: str | None = None,
        parameters_json: bytes = b"{}",
        near: IndexPosition | None = None,
        nano_usd: int = 0,
    ) -> None:
        parts, lifetime_ms = check_entry(key, ttl)
        raw = encode(
            result_json,
            created_at_ms=now_ms,
            computed_ms=computed_ms,
            agent_version=parts.version,
            parameters_json=parameters_json,
            near=near,
            nano_usd=nano_usd,
        )
        value = self._living(key) or _Value(raw, None)
        value.raw = raw
        value.until = (
            None if lifetime_ms is None else self._clock() + lifetime_ms / 1000
        )
        token = user_token or parts.user_token
        if token is not None:
            value.users.add(token)
        self._values[key] = value

    async def count_hits(
        self,
        served: Mapping[str, int],
        own: Mapping[tuple[str, str], int] | None = None,
    ) -> int:
        living = [
            (value, count)
            for key, count in served.items()
            if (value := self._living(key)) is not None
        ]
        for value, count in living:
            value.hits += count
        return len(living)

    async def show(self, key: str) -> Entry | None:
        value = self._living(key)
        if value is None:
            return None
        expires_in_ms = (
            None if value.until is None else round((value.until - self._clock()) * 1000)
        )
        return decode_entry(key, value.raw, value.hits, expires_in_ms)

    async def entries(
        self,
        *,
        agent_id: str | None = None,
        task: str | None = None,
        since_ms: int | None = None,
    ) -> AsyncIterator[Entry]:
        wanted = EntrySelection(agent_id=agent_id, task=task, created_since_ms=since_ms)
        for key in list(self._values):
            entry = await self.show(key)
            if (
                entry is not None
                and wanted.names(entry.parts)
                and wanted.holds(entry.answer)
            ):
                yield entry

    async def quarantine(self, agent_id: str, results: Mapping[str, bytes]) -> None:
        self._quarantine.update(
            {(agent_id, file_key): result for file_key, result in results.items()}
        )

    async def quarantined(self, agent_id: str | None = None) -> list[Quarantined]:
        return [
            Quarantined(place[0], place[1], result)
            for place, result in sorted(self._quarantine.items())
            if agent_id in (None, place[0])
        ]

    def _living(self, key: str) -> _Value | None:
        value = self._values.get(key)
        if (
            value is not None
            and value.until is not None
            and self._clock() >= value.until
        ):
            del self._values[key]
            return None
        return value
