"""Project memory: searches of ten thousand decisions beside fetching what they find, and appending one more.

Searches and a bare HMGET of as many records take turns in one process, on connections of their own.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Any

from redis.asyncio import Redis

from benchmarks.document_rows import Call, bare_client, in_turns, timed
from benchmarks.processes import NotMeasuredError
from benchmarks.profiles import Profile
from benchmarks.table import Row, percentile
from tasklore.memory import keys
from tasklore.memory.projects.project import ProjectMemory
from tasklore.runtime.servers import valkey

PROJECT = "bench"
#: Decisions that are searched, and words of each.
DECISIONS = 10_000
WORDS = (15, 40)
#: Different words of all of them, which differ in how often they are said as words of a language do.
VOCABULARY = 8_000
#: Tags of all of them, two on each.
TAGS = 40
#: Records of an answer.
FOUND = 20
#: Milliseconds that a search may take at the 95th percentile.
ASKED_MS = 20.0

#: How often letters stand in English, per thousand.
_LETTERS = {
    "e": 127,
    "t": 91,
    "a": 82,
    "o": 75,
    "i": 70,
    "n": 67,
    "s": 63,
    "h": 61,
    "r": 60,
    "d": 43,
    "l": 40,
    "c": 28,
    "u": 28,
    "m": 24,
    "w": 24,
    "f": 22,
    "g": 20,
    "y": 20,
    "p": 19,
    "b": 15,
    "v": 10,
    "k": 8,
    "j": 2,
    "x": 2,
    "q": 1,
}


async def measure(redis_url: str, profile: Profile) -> list[Row]:
    """Return the rows, all measured on the running loop."""
    async with (
        bare_client(redis_url) as bare,
        valkey.connect(redis_url, deadline_s=60.0) as lent,
    ):
        # A pause of the machine is a slow sample here; with the deadline of a task it would end the measurement.
        memory = ProjectMemory(lent, deadline_s=60.0)
        chance = random.Random(7)
        words = _words(chance)
        say = _sayings(words, chance)
        before = await _used(bare)
        await _fill(memory, say, chance)
        kb = (await _used(bare) - before) / DECISIONS / 1024
        return [
            *await _searches(bare, memory, words, profile),
            await _appends(memory, say, profile, kb),
        ]


async def _searches(
    bare: Redis, memory: ProjectMemory, words: list[str], profile: Profile
) -> list[Row]:
    newest = await memory.search(PROJECT, limit=FOUND)
    middle = (await memory.search(PROJECT, limit=DECISIONS // 20))[-1].at_ms
    wishes: dict[str, dict[str, Any]] = {
        "one common word": {"text": words[0]},
        "two words": {"text": f"{words[40]} {words[60]}"},
        "five common words": {"text": " ".join(words[2:7])},
        "the beginning of a word": {"text": words[500][:3]},
        "a tag": {"tags": ["tag-3"]},
        "a tag and a word": {"tags": ["tag-3"], "text": words[10]},
        "a range of time": {"since_ms": middle - 60_000, "until_ms": middle},
        "a word of a range of time": {"until_ms": middle, "text": words[5]},
        "a word that nobody said": {"text": "zzzqqq"},
        "words that nobody said together": {"text": " ".join(words[2:14])},
    }

    def search(wish: dict[str, Any]) -> Call:
        async def ask(_number: int) -> object:
            return await memory.search(PROJECT, **wish, limit=FOUND)

        return ask

    async def fetch(_number: int) -> object:
        return await bare.hmget(keys.project(PROJECT), ids)

    ids = [record.record_id for record in newest]
    raw, *taken = await in_turns(
        [fetch, *map(search, wishes.values())], profile.questions
    )
    rows = [
        timed(
            f"redis-py HMGET of {FOUND} records",
            raw,
            "what a search fetches in the end",
        )
    ]
    for (name, wish), times in zip(wishes.items(), taken, strict=True):
        count = len(await memory.search(PROJECT, **wish, limit=FOUND))
        p95 = percentile(times.ms, 0.95)
        how = (
            f"{DECISIONS:,} decisions, {count} found, {profile.questions:,} in turns; "
            f"p95 {p95:.1f} ms, asked at most {ASKED_MS:g}"
        )
        rows.append(timed(f"project searched for {name}", times, how, ("HMGET", raw)))
    return rows


async def _appends(
    memory: ProjectMemory, say: Callable[[], str], profile: Profile, kb: float
) -> Row:
    async def append(_number: int) -> object:
        return await memory.append(PROJECT, "decision", say(), tags=("tag-1", "tag-2"))

    (taken,) = await in_turns([append], profile.questions)
    low, high = WORDS
    return timed(
        "decision appended",
        taken,
        f"{low} to {high} words, to {DECISIONS:,}; {kb:.1f} KB of memory each",
    )


async def _fill(
    memory: ProjectMemory, say: Callable[[], str], chance: random.Random
) -> None:
    async def append(count: int) -> None:
        for _ in range(count):
            tags = [f"tag-{number}" for number in chance.sample(range(TAGS), 2)]
            await memory.append(PROJECT, "decision", say(), tags=tags)

    await asyncio.gather(*(append(DECISIONS // 10) for _ in range(10)))
    if sum(project.decisions for project in await memory.projects()) != DECISIONS:
        raise NotMeasuredError("not every decision was noted")


def _words(chance: random.Random) -> list[str]:
    """Return words, those that are said most first; short ones are."""
    found: set[str] = set()
    while len(found) < VOCABULARY:
        found.add(
            "".join(
                chance.choices(
                    [*_LETTERS], [*_LETTERS.values()], k=chance.randint(3, 11)
                )
            )
        )
    return sorted(found, key=lambda word: (len(word), word))


def _sayings(words: list[str], chance: random.Random) -> Callable[[], str]:
    """Return what says something new each time: the n-th word of a language is said about every n-th time."""
    weights = [1 / (place + 2) for place in range(len(words))]
    return lambda: " ".join(chance.choices(words, weights, k=chance.randint(*WORDS)))


async def _used(bare: Redis) -> int:
    return int((await bare.info("memory"))["used_memory"])
