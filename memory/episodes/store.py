"""The store of episodes: turns of one owner word for word, in order, and the search over them inside of Valkey.

Everything of an owner lies under one hash tag: the turns by number, their ids, the postings of each word, and counts. A
posting is 8 bytes: number, how often the word stands there with the speaker, length of the turn, day. Each script may
be sent again when its reply was lost.
"""

import asyncio
import json
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import SCOPES, user_of, user_token
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.episodes.episode import Episode, NearTurn
from tasklore.memory.episodes.words import words_of
from tasklore.memory.key_parts import token_of
from tasklore.memory.scripts import load

if TYPE_CHECKING:
    from tasklore.memory.episodes.vectors import VectorIndex

__all__ = ["Episodes", "Hit", "SearchResult", "open_episodes"]

#: How long a turn is kept unless a deployment, a scope or a person says otherwise; None is without end.
KEEP = timedelta(days=730)
#: Characters of one turn that are kept; the rest of a longer one is a document, not something said.
LONGEST = 20_000
#: Words of a question that are looked up; the rarest 24 of them are looked for.
MOST_WORDS = 100
#: Turns that one call removes as past their time.
TRIM = 100
#: Turns after which it is looked for some past their time.
_TRIM_EVERY = 50
#: What a hit's neighbour adds to its score: an answer seldom has the words of its question.
NEIGHBOUR = 0.35

_MOST_HITS = 200
_FIRST_DAY = date(2000, 1, 1)
_LAST_DAY = 65_535
_SPEAKERS = {"person": 1, "assistant": 2}
_OTHER = 3

_HERE = Path(__file__).parent
APPEND = load(_HERE, "append", "refuse")
SEARCH = load(_HERE, "search", "read")
REMOVE = load(_HERE, "remove", "finish")


@dataclass(frozen=True, slots=True)
class Hit:
    """A turn that answers a question, with its score; `coverage` is which share of the question's weight it holds."""

    episode: Episode
    score: float
    coverage: float
    number: int = 0


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found: hits, best first, among so many `turns`; `coverage` is the best of theirs, 0 to 1.

    `nearness` is that of the turn nearest in meaning, of whatever time and conversation, as `NearTurn` says; None
    without vectors.
    """

    hits: tuple[Hit, ...] = ()
    turns: int = 0
    nearness: float | None = None

    @property
    def coverage(self) -> float:
        """The largest share of the question's weight that one passage holds."""
        return max((hit.coverage for hit in self.hits), default=0.0)

    @property
    def is_nothing_said(self) -> bool:
        """Whether no passage holds enough of the question to answer it."""
        if not self.hits:
            return True
        if self.nearness is not None:
            return self.coverage < _HALF and self.nearness < _FAR_BELOW
        return self.coverage < NOTHING_BELOW


#: Below this share of a question's weight, held by the best passage, nothing was said about it; by words alone that can
#: be said of few, since what was said in other words shares none.
NOTHING_BELOW = 0.15
#: With vectors: below this nearness no turn answers a question, unless it has half of its words.
_FAR_BELOW = 0.671
_HALF = 0.5
#: How much the first places of a list count before the later ones, when two lists are made one.
_FUSION = 20


class _Keep(NamedTuple):
    """What holds for one owner: whether turns are kept, and for how many days; None is the deployment's."""

    is_on: bool
    days: int | None


class Episodes:
    """Keeps the turns of each owner with their agents.

    An owner is a user id, or `agent/`, `run/` or `org/` and a name.

    Args:
        vectors: Finds turns by their meaning too; None: by their words alone.
        keep: How long turns are kept, None without end; zero keeps none.
        deadline_s: Seconds for one round trip; then MemoryUnavailable, which every method may raise.
        breaker: When given, a server that keeps failing is left alone for a while.
    """

    def __init__(
        self,
        client: Redis,
        *,
        vectors: "VectorIndex | None" = None,
        keep: timedelta | None = KEEP,
        deadline_s: float = 1.0,
        breaker: Breaker | None = None,
    ) -> None:
        self.vectors = vectors
        self._keep = keep
        self._batch = CommandBatch(client, deadline_s, breaker, has_large_replies=True)

    async def append(self, owner: str, episodes: Sequence[Episode]) -> int:
        """Keep *episodes* behind those there are, each once by its turn id; return how many were new.

        Appending again is safe. Nothing is kept of an owner who has switched that off, nor any turn that was said
        before a tombstone of theirs (`tasklore.memory.tombstones`).
        """
        token = _token_of(owner)
        said = [episode for episode in episodes if episode.text.strip()]
        if not said or self._keep == timedelta(0):
            return 0
        settings = await self._settings(token)
        if not settings.is_on:
            return 0
        arguments: list[str | bytes | int] = []
        for episode in said:
            body = episode.model_copy(update={"text": episode.text[:LONGEST]})
            words = Counter(words_of(body.text))
            kept = body.model_dump_json(exclude_none=True).encode()
            arguments += [
                episode.turn_id,
                kept,
                _day(episode.at),
                _SPEAKERS.get(episode.speaker, _OTHER),
                int(episode.at.timestamp() * 1000),
                len(words),
            ]
            for word, often in words.items():
                arguments += [word, often]
        mine = keys.episodes(token)[:5]
        of = (*mine[:4], keys.tombstone(token))
        commands: list[Command] = [("FCALL", APPEND, len(of), *of, *arguments)]
        # When nothing more is said all goes but the settings of the owner.
        keep = self._keep if settings.days is None else timedelta(days=settings.days)
        if keep is None:
            commands += [("PERSIST", key) for key in mine]
        else:
            commands += [
                ("PEXPIRE", key, keep // timedelta(milliseconds=1)) for key in mine
            ]
        new, last = (await self._batch.run(commands))[0]
        if last // _TRIM_EVERY != (last - new) // _TRIM_EVERY:
            await self.trim(owner, datetime.now(UTC))
        return int(new)

    async def search(
        self,
        owner: str,
        query: str,
        *,
        limit: int = 20,
        since: date | None = None,
        until: date | None = None,
        speaker: str | None = None,
        conversation_id: str | None = None,
        asked: str | None = None,
    ) -> SearchResult:
        """Return turns on *query*, best first; *since* and *until* are the first and the last day.

        A turn of the words *asked*, the question itself as the chat just kept it, answers nothing.

        Raises:
            InvalidInput: *limit* is not 1 to 200.
        """
        if not 1 <= limit <= _MOST_HITS:
            raise InvalidInput(f"limit {limit} must be 1 to {_MOST_HITS}")
        words = list(dict.fromkeys(words_of(query)))[:MOST_WORDS]
        if not words:
            return SearchResult()
        is_narrowed = any(
            one is not None for one in (since, until, speaker, conversation_id)
        )
        wanted = _MOST_HITS if is_narrowed else limit
        kept_since = 0 if self._keep is None else _day(datetime.now(UTC) - self._keep)
        days = max(kept_since, _day(since)), _LAST_DAY if until is None else _day(until)
        by = _SPEAKERS.get(speaker, _OTHER) if speaker else 0
        spelled = json.dumps(conversation_id, ensure_ascii=False)
        named = "" if conversation_id is None else f'"conversation_id":{spelled}'
        terms: tuple[str | int, ...] = (
            wanted,
            *days,
            by,
            str(NEIGHBOUR),
            named,
            *words,
        )
        # Of who may only read.
        search: Command = (
            "FCALL_RO",
            SEARCH,
            4,
            *keys.episodes(_token_of(owner))[:4],
            *terms,
        )
        said = self._batch.run([search])
        if self.vectors is None:
            found = _read_reply((await said)[0])
        else:
            (reply,), near = await asyncio.gather(
                said, self.vectors.near(owner, query, wanted)
            )
            found = await self._fuse(owner, _read_reply(reply), near, asked)
        # A hit's neighbours come along; here they have to meet the conditions, too.
        hits = tuple(
            hit
            for hit in found.hits
            if conversation_id in (None, hit.episode.conversation_id)
            and speaker in (None, hit.episode.speaker)
            and days[0] <= _day(hit.episode.at) <= days[1]
            and not _says(hit.episode, asked)
        )
        return replace(found, hits=hits[:limit])

    async def _fuse(
        self,
        owner: str,
        found: SearchResult,
        near: Sequence[NearTurn],
        asked: str | None,
    ) -> SearchResult:
        """Return *found* with the turns *near* in meaning, each ranked by its places in both lists."""
        known = {hit.number: hit for hit in found.hits}
        missing = [number for number, *_ in near if number not in known]
        of = keys.episodes(_token_of(owner))
        bodies = (
            (await self._batch.run([("HMGET", of.turns, *missing)]))[0]
            if missing
            else []
        )
        for number, body in zip(missing, bodies, strict=True):
            if body is not None:
                known[number] = Hit(Episode.model_validate_json(body), 0.0, 0.0, number)
        scores: dict[int, float] = {}
        for ranked in (
            [hit.number for hit in found.hits],
            [number for number, *_ in near],
        ):
            for place, number in enumerate(ranked):
                scores[number] = scores.get(number, 0.0) + 1 / (_FUSION + place)
        order = sorted(
            (number for number in scores if number in known),
            key=lambda number: -scores[number],
        )
        hits = tuple(replace(known[number], score=scores[number]) for number in order)
        others = (
            one.nearness
            for one in near
            if one.number in known and not _says(known[one.number].episode, asked)
        )
        return SearchResult(hits, found.turns, max(others, default=None))

    async def before(self, owner: str, turn_id: str, count: int) -> tuple[Episode, ...]:
        """Return up to *count* turns that were kept before *turn_id*, oldest first; none where that is not known."""
        of = keys.episodes(_token_of(owner))
        number = (await self._batch.run([("HGET", of.ids, turn_id)]))[0]
        return (
            ()
            if number is None
            else await self._read_range(of.turns, int(number) - count, int(number) - 1)
        )

    async def recent(self, owner: str, count: int) -> tuple[Episode, ...]:
        """Return the last *count* turns, oldest first."""
        of = keys.episodes(_token_of(owner))
        last = int((await self._batch.run([("HGET", of.meta, "last")]))[0] or 0)
        return await self._read_range(of.turns, last - count + 1, last)

    async def first(self, owner: str) -> Episode | None:
        """Return the oldest turn of *owner*, None where there is none."""
        of = keys.episodes(_token_of(owner))
        first, last = await self._batch.run(
            [("HGET", of.meta, "first"), ("HGET", of.meta, "last")]
        )
        start = int(first or 1)
        found = await self._read_range(
            of.turns, start, min(int(last or 0), start + TRIM - 1)
        )
        return next(iter(found), None)

    async def settings(self, owner: str) -> tuple[bool, int | None]:
        """Return whether turns of *owner* are kept, and for how many days; None is the deployment's."""
        return await self._settings(_token_of(owner))

    async def settle(
        self, owner: str, *, is_on: bool = True, days: int | None = None
    ) -> None:
        """Say for *owner* whether turns are kept, and for how many days; None leaves that to the deployment.

        `agent/`, `run/` and `org/` alone stand for all owners of that scope that have no settings of their own.

        Raises:
            InvalidInput: *days* is less than 1.
        """
        if days is not None and days < 1:
            raise InvalidInput(
                f"days {days} must be 1 or more; switch keeping off instead"
            )
        of = keys.episodes(_token_of(owner))
        await self._batch.run(
            [
                (
                    "HSET",
                    of.settings,
                    "on",
                    int(is_on),
                    "days",
                    "" if days is None else days,
                )
            ]
        )

    async def keep_of(self, owner: str) -> timedelta | None:
        """Return how long turns of *owner* are kept, from when they were said; zero: none is, None: without end."""
        own = await self._settings(_token_of(owner))
        if not own.is_on:
            return timedelta(0)
        return self._keep if own.days is None else timedelta(days=own.days)

    async def trim(self, owner: str, now: datetime) -> int:
        """Remove up to 100 turns of *owner* whose time has passed, with their words; return how many."""
        token = _token_of(owner)
        of = keys.episodes(token)
        own = (await self._settings(token)).days
        keep = self._keep if own is None else timedelta(days=own)
        if keep is None:
            return 0
        first, last = await self._batch.run(
            [("HGET", of.meta, "first"), ("HGET", of.meta, "last")]
        )
        start = int(first or 1)
        end = int(last or 0)
        bodies = await self._bodies(of.turns, start, min(end, start + TRIM - 1))
        arguments: list[str | bytes | int] = []
        reached = start
        for number, body in bodies:
            reached = number + 1
            if body is None:
                continue
            episode = Episode.model_validate_json(body)
            if episode.at >= now - keep:
                reached = number
                break
            words = Counter(words_of(episode.text))
            arguments += [number, episode.turn_id, words.total(), len(words), *words]
        commands: list[Command] = (
            [("FCALL", REMOVE, 5, *of[:5], reached, *arguments)] if arguments else []
        )
        if reached > start:
            commands.append(("HSET", of.meta, "first", reached))
        return int((await self._batch.run(commands))[0]) if arguments else 0

    async def forget(self, owner: str) -> int:
        """Remove everything of *owner*, settings included; return how many turns there were."""
        of = keys.episodes(_token_of(owner))
        count, _ = await self._batch.run([("HLEN", of.turns), ("UNLINK", *of)])
        return int(count)

    async def count(self, owner: str) -> int:
        """Return how many turns of *owner* there are."""
        return int(
            (await self._batch.run([("HLEN", keys.episodes(_token_of(owner)).turns)]))[
                0
            ]
        )

    async def _settings(self, token: str) -> _Keep:
        # Behind the owner's own settings stand those of the whole scope; a user has none.
        scope, slash, name = user_of(token).partition("/")
        scopes = (
            (user_token(f"{scope}/"),) if slash and name and scope in SCOPES else ()
        )
        kept_at = [keys.episodes(one).settings for one in (token, *scopes)]
        found = await self._batch.run([("HMGET", key, "on", "days") for key in kept_at])
        is_on, days = next((one for one in found if one[0] is not None), (None, None))
        return _Keep(is_on != b"0", int(days) if days else None)

    async def _read_range(
        self, turns: str, first: int, last: int
    ) -> tuple[Episode, ...]:
        bodies = await self._bodies(turns, max(1, first), last)
        return tuple(
            Episode.model_validate_json(body) for _, body in bodies if body is not None
        )

    async def _bodies(
        self, turns: str, first: int, last: int
    ) -> list[tuple[int, bytes | None]]:
        numbers = list(range(first, last + 1))
        if not numbers:
            return []
        return list(
            zip(
                numbers,
                (await self._batch.run([("HMGET", turns, *numbers)]))[0],
                strict=True,
            )
        )


def open_episodes(
    client: Redis, keep_days: float | None, vectors: "VectorIndex | None" = None
) -> Episodes:
    """Return the store of a deployment that keeps turns for *keep_days*, None without end."""
    return Episodes(
        client,
        vectors=vectors,
        keep=None if keep_days is None else timedelta(days=keep_days),
    )


def _says(episode: Episode, asked: str | None) -> bool:
    return (
        asked is not None
        and episode.text.strip().casefold() == asked.strip().casefold()
    )


def _read_reply(reply: Sequence[Any]) -> SearchResult:
    """Return the reply of SEARCH as hits, each with the share of the question that it or a neighbour holds."""
    turns = int(reply[0])
    if turns == 0:
        return SearchResult()
    weights = [
        math.log(1 + (turns - held + 0.5) / (held + 0.5))
        for held in map(float, reply[1])
    ]
    whole = sum(weights)
    hits = []
    for at in range(2, len(reply), 4):
        bits = int(reply[at + 2])
        held = sum(weight for place, weight in enumerate(weights) if bits >> place & 1)
        share = held / whole if whole else 0.0
        hits.append(
            Hit(
                Episode.model_validate_json(reply[at + 3]),
                float(reply[at + 1]),
                share,
                int(reply[at]),
            )
        )
    return SearchResult(tuple(hits), turns)


def _day(at: date | datetime | None) -> int:
    """Return the days since 2000, within what a posting holds."""
    if at is None:
        return 0
    day = at.astimezone(UTC).date() if isinstance(at, datetime) else at
    return min(_LAST_DAY, max(0, (day - _FIRST_DAY).days))


def _token_of(owner: str) -> str:
    return token_of(
        owner, "episodes need an owner: a user id, or agent/, run/ or org/ and a name"
    )
