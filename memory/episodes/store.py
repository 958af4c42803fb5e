"""The store of episodes: turns of one owner word for word, in order, and the search over them inside of Valkey.

Everything of an owner lies under one hash tag: the turns by number, their ids, the postings of each word, and counts. A
posting is 8 bytes: number, how often the word stands there with the speaker, length of the passage, day. A long turn
has a number for each of its passages, with the first one's number in place of a body at the others. Beside its words a
turn is found by the month in which it was said and by the agent who said it. Each script may be sent again when its
reply was lost.
"""

import asyncio
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from redis.asyncio import Redis

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import SCOPES, user_of, user_token
from tasklore.memory import keys
from tasklore.memory.breaker import Breaker
from tasklore.memory.command_batch import Command, CommandBatch
from tasklore.memory.episodes.bodies import read_bodies
from tasklore.memory.episodes.episode import Episode, NearTurns
from tasklore.memory.episodes.fusion import WordScores, fuse
from tasklore.memory.episodes.passages import passages_of
from tasklore.memory.episodes.words import (
    index_words,
    names_in,
    telling_words,
    words_of,
)
from tasklore.memory.key_parts import token_of
from tasklore.memory.scripts import load

if TYPE_CHECKING:
    from tasklore.memory.episodes.vectors import VectorIndex

__all__ = ["EpisodePeriod", "Episodes", "Hit", "SearchResult", "open_episodes"]

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
NEIGHBOUR = 0.5
#: What a period adds, as a share of the best score, to what was said in it.
RAISE = 0.5
#: Months of a period whose turns are raised though they share no word with the question.
_MOST_MONTHS = 36

_MOST_HITS = 200
#: Hits that are read beside those that are wanted: the question itself, and what only asks and was kept before that was
#: known.
_MORE = 12
#: Parts of the reply of a search before its first hit, and where the count of names that were heard stands.
_HEAD = 8
_HEARD = 7
_FIRST_DAY = date(2000, 1, 1)
_LAST_DAY = 65_535
_ASKING = 0
_SPEAKERS = {"person": 1, "assistant": 2}
_OTHER = 3

_HERE = Path(__file__).parent
APPEND = load(_HERE, "append", "refuse")
SEARCH = load(_HERE, "search", "read")
REMOVE = load(_HERE, "remove", "finish")


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage of a turn that answers a question, with its score; a turn that is not long is one passage.

    `coverage` is which share of the question's weight it or a neighbour holds, 0 to 1; `number` is its number, and
    `passage` its place in the turn, from 0.
    """

    episode: Episode
    score: float
    coverage: float
    number: int = 0
    passage: int = 0

    @property
    def text(self) -> str:
        """The words of the passage."""
        passages = self.episode.texts
        return passages[min(self.passage, len(passages) - 1)].strip()


@dataclass(frozen=True, slots=True)
class EpisodePeriod:
    """The days that a question speaks of: turns of these days are raised above others."""

    first: date
    last: date


@dataclass(frozen=True, slots=True)
class SearchResult:
    """What a search found: hits, best first, among so many `turns`; `coverage` is the best of theirs, 0 to 1.

    `nearness` is that of the turn nearest in meaning, of whatever time and conversation, as `NearTurns` says; None
    without vectors. `is_of_stranger` where the question has names, and no turn has one of these.
    """

    hits: tuple[Hit, ...] = ()
    turns: int = 0
    nearness: float | None = None
    is_of_stranger: bool = False

    @property
    def coverage(self) -> float:
        """The largest share of the question's weight that one passage holds."""
        return max((hit.coverage for hit in self.hits), default=0.0)

    @property
    def is_nothing_said(self) -> bool:
        """Whether no passage answers the question: none is found, or it names a stranger."""
        if not self.hits:
            return True
        if self.nearness is None:
            return self.is_of_stranger
        least = _FAR_OF_STRANGER if self.is_of_stranger else _FAR_BELOW
        return self.coverage < _HALF and self.nearness < least


#: With vectors: below this nearness no turn answers a question, unless it has half of its words; of a stranger it takes
#: more. By words alone only of a stranger nothing was said, since what was said in other words shares none.
_FAR_BELOW = 0.55
_FAR_OF_STRANGER = 0.9
_HALF = 0.5


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
            text = episode.text[:LONGEST]
            passages = passages_of(text)
            body = episode.model_copy(update={"text": text, "passages": len(passages)})
            arguments += [
                episode.turn_id,
                _stored(body),
                _day(episode.at),
                _tag_of(episode),
                int(episode.at.timestamp() * 1000),
                len(passages),
            ]
            for words, count in _index_of(body):
                arguments += [count, len(words)]
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
        period: EpisodePeriod | None = None,
    ) -> SearchResult:
        """Return passages on *query*, best first; *since* and *until* are the first and the last day.

        Turns of *period* are raised. A turn of the words *asked*, the question itself as the chat just kept it,
        answers nothing, and neither does what a person only asked before.

        Raises:
            InvalidInput: *limit* is not 1 to 200.
        """
        if not 1 <= limit <= _MOST_HITS:
            raise InvalidInput(f"limit {limit} must be 1 to {_MOST_HITS}")
        # Whose turns they are goes without saying; an agent asks so ("What is Ana's dog called?").
        own = set() if "/" in owner else set(words_of(owner))
        words = telling_words(query, own)[:MOST_WORDS]
        if not words:
            return SearchResult()
        is_narrowed = any(
            one is not None for one in (since, until, speaker, conversation_id)
        )
        wanted = _MOST_HITS if is_narrowed else min(limit + _MORE, _MOST_HITS)
        kept_since = 0 if self._keep is None else _day(datetime.now(UTC) - self._keep)
        days = max(kept_since, _day(since)), _LAST_DAY if until is None else _day(until)
        by = _SPEAKERS.get(speaker, _OTHER) if speaker else 0
        spelled = json.dumps(conversation_id, ensure_ascii=False)
        named = "" if conversation_id is None else f'"conversation_id":{spelled}'
        months = () if period is None else _months_of(period)
        names = [name for name in names_in(asked or query) if name not in own]
        # What was said in other words shares none of these. Vectors find it by its meaning, a period by its day.
        others = (
            dict.fromkeys(
                word for word in index_words(query)[:MOST_WORDS] if word not in words
            )
            if self.vectors is None and period is None
            else {}
        )
        terms: tuple[str | int, ...] = (
            wanted,
            *days,
            by,
            str(NEIGHBOUR),
            named,
            *_raise_of(period),
            int(self.vectors is not None),
            len(months),
            len(names),
            len(words),
            *months,
            *names,
            *words,
            *others,
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
            reply = (await said)[0]
            found = _read_reply(reply)
        else:
            (reply,), near = await asyncio.gather(said, self.vectors.near(owner, query))
            found = _read_reply(reply)
            if near is not None and found.turns:
                found = await self._fuse(
                    owner, reply, found=found, near=near, wanted=wanted, asked=asked
                )
        is_of_stranger = bool(names) and found.turns > 0 and int(reply[_HEARD]) == 0
        # A hit's neighbours come along; here they have to meet the conditions, too.
        hits = (
            _within(hit, period)
            for hit in found.hits
            if conversation_id in (None, hit.episode.conversation_id)
            and speaker in (None, hit.episode.speaker)
            and days[0] <= _day(hit.episode.at) <= days[1]
            and not _says(hit.episode, asked)
            and not hit.episode.is_asking
        )
        return replace(
            found, hits=tuple(islice(hits, limit)), is_of_stranger=is_of_stranger
        )

    async def _fuse(
        self,
        owner: str,
        reply: Sequence[Any],
        *,
        found: SearchResult,
        near: NearTurns,
        wanted: int,
        asked: str | None,
    ) -> SearchResult:
        """Return the *wanted* best by the sum of both scores, each in deviations from the usual, with neighbours."""
        words = WordScores(reply[5], float(reply[3]), float(reply[4]), reply[6])
        scores = await asyncio.to_thread(fuse, words, near, wanted)
        known = {hit.number: hit for hit in found.hits}
        of = keys.episodes(_token_of(owner))
        missing = [number for number in scores if number not in known]
        read = await read_bodies(self._batch, of.turns, missing)
        for number, (first, body) in read.items():
            episode = Episode.model_validate_json(body)
            known[number] = Hit(
                episode,
                score=0.0,
                coverage=0.0,
                number=number,
                passage=number - first,
            )
        hits = tuple(
            replace(known[number], score=scores[number])
            for number in scores
            if number in known
        )
        nearness = dict(zip(near.numbers.tolist(), near.nearness.tolist(), strict=True))
        others = (
            nearness.get(hit.number, -1.0)
            for hit in hits
            if not _says(hit.episode, asked)
        )
        return SearchResult(hits, found.turns, max(others, default=None))

    async def before(self, owner: str, turn_id: str, count: int) -> tuple[Episode, ...]:
        """Return up to *count* turns that were kept before *turn_id*, oldest first; none where that is not known."""
        of = keys.episodes(_token_of(owner))
        number = (await self._batch.run([("HGET", of.ids, turn_id)]))[0]
        return (
            ()
            if number is None
            else await self._read_before(of.turns, int(number), count)
        )

    async def recent(self, owner: str, count: int) -> tuple[Episode, ...]:
        """Return the last *count* turns, oldest first."""
        of = keys.episodes(_token_of(owner))
        last = int((await self._batch.run([("HGET", of.meta, "last")]))[0] or 0)
        return await self._read_before(of.turns, last + 1, count)

    async def first(self, owner: str) -> Episode | None:
        """Return the oldest turn of *owner*, None where there is none."""
        of = keys.episodes(_token_of(owner))
        first, last = await self._batch.run(
            [("HGET", of.meta, "first"), ("HGET", of.meta, "last")]
        )
        start = int(first or 1)
        end = min(int(last or 0), start + TRIM - 1)
        bodies = await read_bodies(self._batch, of.turns, range(start, end + 1))
        return next(iter(_turns_in(bodies)), None)

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
            reached = max(reached, number + 1)
            if body is None:
                continue
            episode = Episode.model_validate_json(body)
            if episode.at >= now - keep:
                reached = number
                break
            for place, (words, count) in enumerate(_index_of(episode)):
                turn_id = "" if place else episode.turn_id
                arguments += [number + place, turn_id, count, len(words), *words]
            reached = number + episode.passages
        commands: list[Command] = (
            [("FCALL", REMOVE, 5, *of[:5], reached, *arguments)] if arguments else []
        )
        if reached > start:
            commands.append(("HSET", of.meta, "first", reached))
        return int((await self._batch.run(commands))[0]) if arguments else 0

    async def forget(self, owner: str) -> int:
        """Remove everything of *owner*, settings included; return how many turns there were."""
        of = keys.episodes(_token_of(owner))
        count, _ = await self._batch.run([("HGET", of.meta, "count"), ("UNLINK", *of)])
        return int(count or 0)

    async def count(self, owner: str) -> int:
        """Return how many turns of *owner* there are."""
        of = keys.episodes(_token_of(owner))
        return int((await self._batch.run([("HGET", of.meta, "count")]))[0] or 0)

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

    async def _read_before(
        self, turns: str, number: int, count: int
    ) -> tuple[Episode, ...]:
        """Return up to *count* turns before *number*, oldest first; those of many passages take more than one look."""
        found = list[Episode]()
        while number > 1 and len(found) < count and count:
            first = max(1, number - count)
            bodies = await read_bodies(self._batch, turns, range(first, number))
            if not bodies:
                # What is before was removed, as all that is past its time.
                break
            found = [*_turns_in(bodies), *found]
            number = first
        return tuple(found[-count:]) if count else ()

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


def _turns_in(bodies: Mapping[int, tuple[int, bytes]]) -> list[Episode]:
    """Return the turns whose first passage is among *bodies*, as `read_bodies` returns these, in order."""
    return [
        Episode.model_validate_json(body)
        for number, (first, body) in sorted(bodies.items())
        if number == first
    ]


def open_episodes(
    client: Redis, keep_days: float | None, vectors: "VectorIndex | None" = None
) -> Episodes:
    """Return the store of a deployment that keeps turns for *keep_days*, None without end."""
    return Episodes(
        client,
        vectors=vectors,
        keep=None if keep_days is None else timedelta(days=keep_days),
    )


def _within(hit: Hit, period: EpisodePeriod | None) -> Hit:
    """Return *hit*; one that was said in *period* holds as much of the question as an answer holds at least."""
    day = hit.episode.at.astimezone(UTC).date()
    if period is None or not period.first <= day <= period.last:
        return hit
    return replace(hit, coverage=max(hit.coverage, _HALF))


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
    passages = int(reply[1])
    weights = [
        math.log(1 + (passages - held + 0.5) / (held + 0.5))
        for held in map(float, reply[2])
    ]
    whole = sum(weights)
    hits = []
    for at in range(_HEAD, len(reply), 5):
        number, first, score, bits, body = reply[at : at + 5]
        held = sum(
            weight for place, weight in enumerate(weights) if int(bits) >> place & 1
        )
        hits.append(
            Hit(
                Episode.model_validate_json(body),
                score=float(score),
                coverage=held / whole if whole else 0.0,
                number=int(number),
                passage=int(number) - int(first),
            )
        )
    return SearchResult(tuple(hits), turns)


def _stored(episode: Episode) -> bytes:
    """Return *episode* as it is kept; that it is one passage goes without saying."""
    left_out = {"passages"} if episode.passages == 1 else set()
    return episode.model_dump_json(exclude_none=True, exclude=left_out).encode()


def _index_of(episode: Episode) -> Iterator[tuple[Counter[str], int]]:
    """Yield the index words of each passage, and how many words it has."""
    about = [_month_of(episode.at.astimezone(UTC).date())]
    about += words_of(episode.agent_id or "")
    for text in episode.texts:
        yield Counter([*index_words(text), *about]), len(words_of(text))


def _tag_of(episode: Episode) -> int:
    """Return who spoke as a posting holds it; a turn that only asks has a tag of its own."""
    if episode.is_asking:
        return _ASKING
    return _SPEAKERS.get(episode.speaker, _OTHER)


def _month_of(day: date) -> str:
    """Return by what a turn of that month is found; no word of a text is spelled so."""
    return f"@{day:%Y-%m}"


def _months_of(period: EpisodePeriod) -> tuple[str, ...]:
    """Return by what turns of *period* are found, () where these are too many to look at."""
    first = period.first.year * 12 + period.first.month - 1
    last = period.last.year * 12 + period.last.month - 1
    if last - first >= _MOST_MONTHS:
        return ()
    return tuple(
        _month_of(date(month // 12, month % 12 + 1, 1))
        for month in range(first, last + 1)
    )


def _raise_of(period: EpisodePeriod | None) -> tuple[int, int, str]:
    """Return first and last day of *period*, and the share of the best score that it adds."""
    if period is None:
        return 0, 0, "0"
    return _day(period.first), _day(period.last), str(RAISE)


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
