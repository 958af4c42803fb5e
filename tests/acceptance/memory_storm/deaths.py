"""Memory workers are killed at random points while users tell facts for rules, for models, and over two documents.

Nobody stops telling until the last kill; then what is left is worked on in peace and looked at.
"""

import asyncio
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from random import Random

from tests.acceptance.chaos.table import Row
from tests.acceptance.memory_storm.stage import Stage
from tests.acceptance.memory_storm.told import Kind, Told, tellings
from tests.acceptance.memory_storm.verdict import judge

#: Seconds that the model takes: long enough to be killed over it.
MODEL_S = 0.02
KINDS: tuple[Kind, ...] = ("by_rules", "by_model", "by_rules")
#: Facts in one message.
TURN = 4
#: Facts of one user that are told and not dealt with, beyond which that user waits: so many are in flight.
AHEAD = 8
#: A kill takes few users with it, whose facts wait for the lease; the others go on.
SETTINGS = {"listen_items": 4, "listen_users": 4}
#: How many of ten kills wait until their victim takes facts; the others may hit it while it starts.
_AT_WORK = 8


@dataclass(frozen=True)
class Profile:
    """How many `kills` of so many `workers`, over what so many `users` tell; `gap_s` at most between two kills."""

    kills: int
    workers: int
    users: int
    gap_s: float


LONG = Profile(kills=500, workers=4, users=48, gap_s=0.3)
SHORT = Profile(kills=6, workers=3, users=8, gap_s=0.3)


async def run(on: Stage, profile: Profile, seed: int = 1) -> list[Row]:
    """Kill as many, and return what was promised beside what was measured."""
    started = time.monotonic()
    await on.begin(profile.workers, MODEL_S, **SETTINGS)
    users = {f"mortal-{number}": tellings(KINDS) for number in range(profile.users)}
    async with asyncio.TaskGroup() as group:
        telling = group.create_task(_tell_on(on, users))
        at_work = await _kill(on, profile, Random(seed))
        telling.cancel()
    await on.until_closed({user: len(told) for user, told in on.told.items()})
    verdict = await judge(on.store, on.facts, on.told)
    seconds = time.monotonic() - started
    return [
        Row(
            f"{profile.kills} memory workers killed: no fact lost, doubled or half applied, no document torn",
            f"{verdict.words()} of {verdict.facts:,} facts in {verdict.documents} documents, {seconds:.0f} s; "
            f"{at_work} kills hit a worker that took facts"
            + "".join(f"; {one}" for one in verdict.examples),
            verdict.is_fine and verdict.facts > profile.kills,
        )
    ]


async def _tell_on(on: Stage, users: dict[str, Iterator[Told]]) -> None:
    """Let every user tell a few facts at a time, as long as not too many of theirs are in flight."""
    while True:
        for user, told in users.items():
            if len(on.told[user]) - await on.closed(user) < AHEAD:
                # Once it is sent it counts as told, also when the answer is not waited for.
                await asyncio.shield(on.tell(user, list(islice(told, TURN))))
        await asyncio.sleep(0.02)


async def _kill(on: Stage, profile: Profile, random: Random) -> int:
    """Kill one worker after the other, each replaced at once; return how many of them took facts already."""
    at_work = 0
    for _ in range(profile.kills):
        victim = random.choice(on.workers)
        if random.randrange(10) < _AT_WORK:
            await victim.begun()
        await asyncio.sleep(random.uniform(0.0, profile.gap_s))
        at_work += victim.ready.done()
        victim.kill()
        await victim.gone()
        on.workers.remove(victim)
        await on.fork()
    return at_work
