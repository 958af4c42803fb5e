"""The long-term memory: results by question, served again until their time is over.

An optimisation, never a need: every call that a task waits for has a small budget; MemoryUnavailable means "compute".
"""

from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta

from redis.asyncio import Redis

from tasklore.contracts.errors import MemoryUnavailable
from tasklore.contracts.parameters.neighbours import Neighbourhood
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import Command, CommandBatch, as_mapping
from tasklore.memory.long_term import scripts
from tasklore.memory.long_term.entries import (
    CachedResult,
    Entry,
    EntrySelection,
    IndexPosition,
    LongTermStats,
    NearMatch,
    Quarantined,
    check_entry,
    check_selection,
    decode,
    decode_entry,
    encode,
    summarise,
)
from tasklore.memory.long_term.index import (
    NEVER,
    PAGE,
    EntryIndex,
    ending,
    listing,
    listing_near,
    listing_user,
    trimming,
)
from tasklore.memory.long_term.neighbours import find_nearest, forgetting, remembering
from tasklore.memory.long_term.owners import note_hits

#: Seconds for one step of what a person asked for (list, forget, stats): no task waits for it.
PATIENT_S = 5.0

#: Seconds for counting hits: the host flushes once a second.
FLUSH_S = 1.0

#: Entries between two looks for those that are over, of which each lets go of more than are stored meanwhile.
_TRIM_EVERY = 100
#: Milliseconds by which the clocks of two machines may differ: what still lives by one of them is listed.
_CLOCKS_DIFFER_MS = 60_000
#: Milliseconds after which an agent is listed again: a crash of the server may have taken that back.
_LISTED_MS = 600_000


class LongTermMemory:
    """Remembers results under the keys of `tasklore.memory.keys.ltm` and recalls them while they live.

    Args:
        budget_s: Seconds that recalling or remembering may cost a task; then MemoryUnavailable, as after any late step.
        breaker: Shared with others of this server when given; a frozen server costs one budget a rest.
    """

    def __init__(
        self, client: Redis, *, budget_s: float = 0.05, breaker: Breaker | None = None
    ) -> None:
        self.breaker = breaker or Breaker()
        #: Values found under our keys that nobody can read; each was dropped and counted as a miss.
        self.corrupt_entries = 0
        self._quick = CommandBatch(client, budget_s, self.breaker)
        self._flush = CommandBatch(client, FLUSH_S, self.breaker)
        self._patient = CommandBatch(client, PATIENT_S)
        self._index = EntryIndex(client, deadline_s=PATIENT_S)
        #: When each agent was listed, by the caller's clock, in ms; entries stored since the last look for those over.
        self._agents_listed: dict[str, int] = {}
        self._untrimmed = 0

    async def recall(self, key: str) -> CachedResult | None:
        """Return the answer remembered at *key*, or None when there is none or its time is over.

        Raises:
            MemoryUnavailable: no answer within the budget, or the server is resting after failures.
        """
        return (await self.recall_many((key,)))[0]

    async def recall_many(self, entry_keys: Sequence[str]) -> list[CachedResult | None]:
        """Return `recall` of each key with one MGET; all of one agent, whose entries share a hash tag."""
        if not entry_keys:
            return []
        values = (await self._quick.run([("MGET", *entry_keys)]))[0]
        answers = [None if value is None else decode(value) for value in values]
        if None in answers:
            await self._drop_corrupt(entry_keys, values, answers)
        return answers

    async def nearest(
        self, asked: Sequence[tuple[str, Neighbourhood]]
    ) -> list[NearMatch | None]:
        """Return for each question, by its entry key, the nearest neighbour that is remembered; None without one.

        The key itself is not looked at: an exact answer is asked for first.

        Raises:
            MemoryUnavailable: no answer within the budget, or the server is resting after failures.
        """
        return await find_nearest(self._quick, asked)

    async def _drop_corrupt(
        self,
        entry_keys: Sequence[str],
        values: list[bytes | None],
        answers: list[CachedResult | None],
    ) -> None:
        broken = [
            key
            for key, value, answer in zip(entry_keys, values, answers, strict=True)
            if answer is None and value is not None
        ]
        if broken:
            self.corrupt_entries += len(broken)
            with suppress(MemoryUnavailable):
                listed = [keys.ltm_listing(key) for key in broken]
                await self._quick.run(
                    [("UNLINK", *broken), *(("ZREM", *one) for one in listed)]
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
        """Store *result_json* at *key* until *ttl* from now, for ever when None; being served does not prolong it.

        *user_token* is whose task stored it, so that forgetting the user finds it; known already for a user's own key.
        With *near* it may also be found by questions next to it.

        Raises:
            MemoryUnavailable: not stored within the budget, or the server is resting after failures.
            InvalidInput: *key* is not a long-term memory key, or *ttl* is under a millisecond.
        """
        parts, lifetime_ms = check_entry(key, ttl)
        value = encode(
            result_json,
            created_at_ms=now_ms,
            computed_ms=computed_ms,
            agent_version=parts.version,
            parameters_json=parameters_json,
            near=near,
            nano_usd=nano_usd,
        )
        token = user_token or parts.user_token
        until = NEVER if lifetime_ms is None else now_ms + lifetime_ms
        # First, so that no entry is ever unknown to forgetting.
        commands = self._list(parts.agent_id, key, until, now_ms)
        if token is not None:
            note = scripts.NOTE_USER, 1, keys.ltm_users(token), key, until, now_ms
            commands += [listing_user(token, until), ("FCALL", *note)]
        hits = keys.hits_of(key)
        if near is not None:
            root, _, *others = keys.near(key, near.frame, near.place.count("|") + 1)
            commands.append(listing_near(root, 1 + len(others), until))
            commands.append(
                remembering(
                    key, value=value, lifetime_ms=lifetime_ms, near=near, now_ms=now_ms
                )
            )
        elif lifetime_ms is None:
            commands += [("SET", key, value), ("PERSIST", hits)]
        else:
            commands += [
                ("SET", key, value, "PX", lifetime_ms),
                ("PEXPIRE", hits, lifetime_ms),
            ]
        await self._quick.run(commands)

    def _list(
        self, agent_id: str, key: str, until: int | str, now_ms: int
    ) -> list[Command]:
        """Return what lists an entry; now and then also its agent, and what lets go of entries that are over."""
        commands = [listing(key, until)]
        if now_ms - self._agents_listed.get(agent_id, -_LISTED_MS) >= _LISTED_MS:
            self._agents_listed[agent_id] = now_ms
            commands.append(("SADD", keys.ltm_agents(), agent_id))
        self._untrimmed += 1
        if self._untrimmed >= _TRIM_EVERY:
            self._untrimmed = 0
            commands += [
                trimming(keys.ltm_index(agent_id), now_ms - _CLOCKS_DIFFER_MS),
                trimming(keys.ltm_user_lists(), now_ms - _CLOCKS_DIFFER_MS),
            ]
        return commands

    async def count_hits(
        self,
        served: Mapping[str, int],
        own: Mapping[tuple[str, str], int] | None = None,
    ) -> int:
        """Add how often each entry key was *served* since the last call; return how many of them still live.

        An entry whose time is over is not counted and never brought back. *own* is how many of these hits were of
        whom, by user token and entry: so an answer that only they asked for is known from one that others did too.

        Raises:
            MemoryUnavailable: Redis did not answer in time; some may have been counted.
        """
        by_agent: dict[str, list[str]] = defaultdict(list)
        for key in served:
            by_agent[_tag(key)].append(key)
        # First: counted twice after a lost reply, it is too many of their own, and the answer goes with them.
        commands = note_hits(own or {})
        noted = len(commands)
        for agent_keys in by_agent.values():
            for page in _pages(agent_keys):
                named = [name for key in page for name in (key, keys.hits_of(key))]
                commands.append(
                    (
                        "FCALL",
                        scripts.COUNT_HITS,
                        len(named),
                        *named,
                        *[served[key] for key in page],
                    )
                )
        return sum((await self._flush.run(commands))[noted:])

    async def put(
        self, key: str, result_json: bytes, *, ttl: timedelta | None, now_ms: int
    ) -> None:
        """Store a result by hand, keeping the question and the computing time of the old one.

        Raises:
            InvalidInput: *key* is not a long-term memory key.
        """
        known = await self.show(key)
        await self.remember(
            key,
            result_json,
            computed_ms=known.answer.computed_ms if known else 0,
            ttl=ttl,
            now_ms=now_ms,
            parameters_json=known.parameters_json if known else b"{}",
            near=known.standing if known else None,
        )

    async def show(self, key: str) -> Entry | None:
        """Return everything about the entry at *key*, or None when there is none."""
        found = await self._load([key])
        return found[0] if found else None

    async def entries(
        self,
        *,
        agent_id: str | None = None,
        task: str | None = None,
        since_ms: int | None = None,
    ) -> AsyncIterator[Entry]:
        """Yield every entry of the agent and task that was created at *since_ms* or later, in no order.

        Raises:
            MemoryUnavailable: Redis did not answer a page in time.
        """
        wanted = EntrySelection(agent_id=agent_id, task=task, created_since_ms=since_ms)
        seen: set[str] = set()
        async for page in self._index.walk(agent_id):
            # A scan may name a key twice while Redis resizes its table.
            fresh = [
                key for key in dict.fromkeys(_select(page, wanted)) if key not in seen
            ]
            seen.update(fresh)
            for entry in await self._load(fresh):
                if wanted.holds(entry.answer):
                    yield entry

    async def stats(self, agent_id: str | None = None) -> LongTermStats:
        """Return how many entries there are, how often they were served and the time that saved.

        Raises:
            MemoryUnavailable: Redis did not answer a page in time.
        """
        return summarise(
            [
                (entry.parts.task_name, entry.hits, entry.answer.computed_ms)
                async for entry in self.entries(agent_id=agent_id)
            ]
        )

    async def left_behind(
        self, in_force: Mapping[tuple[str, str], str]
    ) -> dict[str, int]:
        """Return how many entries of each agent are of other versions than those *in_force*, by agent and task.

        Raises:
            MemoryUnavailable: Redis did not answer a page in time.
        """
        wanted = EntrySelection(in_force=in_force)
        counts = defaultdict[str, int](int)
        async for page in self._index.walk():
            for key in _select(page, wanted):
                counts[_tag(key)] += 1
        return dict(counts)

    async def forget(
        self,
        key: str | None = None,
        *,
        agent_id: str | None = None,
        task: str | None = None,
        created_before_ms: int | None = None,
        user_token: str | None = None,
        in_force: Mapping[tuple[str, str], str] | None = None,
        everything: bool = False,
    ) -> int:
        """Remove the entries that fit every given condition and return how many there were.

        *user_token* means what the user's tasks stored, shared answers included; *in_force* what other versions than
        these, by agent and task, left behind. An agent as a whole, or everything,
        takes the quarantine along.

        Raises:
            InvalidInput: no condition is given; say `everything=True` to mean it.
            MemoryUnavailable: Redis did not answer a step in time; entries removed so far stay removed.
        """
        wanted = check_selection(
            key,
            agent_id=agent_id,
            task=task,
            created_before_ms=created_before_ms,
            user_token=user_token,
            everything=everything,
            in_force=in_force,
        )
        if key is not None:
            return await self._forget_page([key], wanted)
        if user_token is not None:
            return await self._forget_user(user_token, wanted)
        count = 0
        is_whole = task is None and created_before_ms is None and in_force is None
        async for page in self._index.walk(agent_id):
            count += await self._forget_page(page, wanted)
            if is_whole:
                near = [key for key in page if keys.is_near(key)]
                await self._patient.run([("UNLINK", key) for key in near])
        if is_whole:
            count += await self._forget_quarantine(agent_id)
            if agent_id is None:
                await self._forget_indexes()
        return count

    async def count_forgotten(
        self,
        key: str | None = None,
        *,
        agent_id: str | None = None,
        task: str | None = None,
        created_before_ms: int | None = None,
        user_token: str | None = None,
        in_force: Mapping[tuple[str, str], str] | None = None,
        everything: bool = False,
    ) -> int:
        """Return how many entries `forget` would remove with the same conditions, those in quarantine left out.

        Raises:
            InvalidInput, MemoryUnavailable: as `forget`.
        """
        wanted = check_selection(
            key,
            agent_id=agent_id,
            task=task,
            created_before_ms=created_before_ms,
            user_token=user_token,
            everything=everything,
            in_force=in_force,
        )
        if key is not None:
            return await self._count_page([key], wanted)
        if user_token is not None:
            index = keys.ltm_users(user_token)
            listed = _texts((await self._patient.run([("ZRANGE", index, 0, -1)]))[0])
            return sum(
                [await self._count_page(page, wanted) for page in _pages(listed)]
            )
        count = 0
        seen: set[str] = set()
        async for page in self._index.walk(agent_id):
            # As in `entries`: a scan may name a key twice.
            fresh = [key for key in dict.fromkeys(page) if key not in seen]
            seen.update(fresh)
            count += await self._count_page(fresh, wanted)
        return count

    async def _count_page(self, page: Sequence[str], wanted: EntrySelection) -> int:
        chosen = _select(page, wanted)
        if wanted.needs_values:
            return sum(wanted.holds(one.answer) for one in await self._load(chosen))
        return sum(await self._exist(chosen)) if chosen else 0

    async def _forget_indexes(self) -> None:
        async for tokens in self._index.users():
            lists = [
                key
                for token in tokens
                for key in (keys.ltm_users(token), keys.ltm_served(token))
            ]
            if lists:
                await self._patient.run([("UNLINK", key) for key in lists])
        await self._patient.run([("UNLINK", keys.ltm_user_lists())])

    async def _forget_user(self, user_token: str, wanted: EntrySelection) -> int:
        index = keys.ltm_users(user_token)
        listed = _texts((await self._patient.run([("ZRANGE", index, 0, -1)]))[0])
        count = 0
        for page in _pages(listed):
            count += await self._forget_page(page, wanted)
            left = await self._exist(page)
            gone = [key for key, there in zip(page, left, strict=True) if not there]
            if gone:
                await self._patient.run([("ZREM", index, *gone)])
        return count

    async def _exist(self, entry_keys: Sequence[str]) -> list[int]:
        return await self._patient.run([("EXISTS", key) for key in entry_keys])

    async def _forget_page(self, page: Sequence[str], wanted: EntrySelection) -> int:
        chosen = _select(page, wanted)
        if wanted.needs_values:
            chosen = [
                entry.key
                for entry in await self._load(chosen)
                if wanted.holds(entry.answer)
            ]
        return sum(await self._patient.run([forgetting(key) for key in chosen]))

    async def _forget_quarantine(self, agent_id: str | None) -> int:
        held = await self._quarantines(agent_id)
        counts = await self._patient.run([("HLEN", key) for key in held])
        await self._patient.run([("UNLINK", key) for key in held])
        return sum(counts)

    async def forget_quarantined(self, entries: Iterable[Quarantined]) -> int:
        """Remove these entries of the quarantine alone, and return how many were there."""
        return sum(
            await self._patient.run(
                [
                    ("HDEL", keys.quarantine(one.agent_id), one.file_key)
                    for one in entries
                ]
            )
        )

    async def quarantine(self, agent_id: str, results: Mapping[str, bytes]) -> None:
        """Keep imported *results* by their keys for people to look at; nothing here is ever served.

        All of the agent's are gone `QUARANTINE_KEPT` after the first of them came.
        """
        if results:
            fields = [part for pair in results.items() for part in pair]
            await self._patient.run(
                [
                    ("SADD", keys.ltm_agents(), agent_id),
                    ("HSET", keys.quarantine(agent_id), *fields),
                    ending(keys.quarantine(agent_id)),
                ]
            )

    async def quarantined(self, agent_id: str | None = None) -> list[Quarantined]:
        """Return the entries in quarantine, of one agent when given, ordered by agent and key."""
        held = await self._quarantines(agent_id)
        replies = await self._patient.run([("HGETALL", key) for key in held])
        return sorted(
            (
                Quarantined(keys.parse_quarantine(key), name.decode(), value)
                for key, reply in zip(held, replies, strict=True)
                for name, value in as_mapping(reply).items()
            ),
            key=lambda one: (one.agent_id, one.file_key),
        )

    async def _quarantines(self, agent_id: str | None) -> list[str]:
        if agent_id is not None:
            return [keys.quarantine(agent_id)]
        return sorted({key async for key in self._index.quarantines()})

    async def _load(self, entry_keys: Sequence[str]) -> list[Entry]:
        if not entry_keys:
            return []
        commands: list[Command] = [
            ("MGET", key, keys.hits_of(key)) for key in entry_keys
        ]
        replies = await self._patient.run(
            commands + [("PTTL", key) for key in entry_keys]
        )
        found = (
            decode_entry(
                key,
                value,
                int(hits) if hits and hits.isdigit() else 0,
                left if left >= 0 else None,
            )
            for key, (value, hits), left in zip(
                entry_keys, replies, replies[len(entry_keys) :], strict=False
            )
            if value is not None and left != _GONE
        )
        return [entry for entry in found if entry is not None]


#: PTTL's word for a key that is not there.
_GONE = -2


def _select(page: Iterable[str], wanted: EntrySelection) -> list[str]:
    return [
        key
        for key in page
        if (parts := keys.parse_ltm(key)) is not None and wanted.names(parts)
    ]


def _texts(names: Iterable[bytes]) -> list[str]:
    return [name.decode(errors="replace") for name in names]


def _tag(key: str) -> str:
    return key[key.index("{") + 1 : key.index("}")]


def _pages(names: Sequence[str]) -> list[Sequence[str]]:
    return [names[start : start + PAGE] for start in range(0, len(names), PAGE)]
