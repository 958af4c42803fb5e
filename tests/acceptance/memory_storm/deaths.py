"""Memory workers are killed at random points while users tell facts for rules, for models, and over two documents.

Nobody stops telling until the last kill; then what is left is worked on in peace and looked at.
"""

import asyncio
import time
from dataclasses import dataclass
from itertools import islice
from random import Random

from tests.acceptance.chaos.table import Row
from tests.acceptance.faults.plan import Every, Fault, FaultPlan, play
from tests.acceptance.memory_storm.stage import Stage
from tests.acceptance.memory_storm.told import Kind, tellings
from tests.acceptance.memory_storm.verdict import Verdict, judge

#: Seconds that the model takes: long enough to be killed over it.
MODEL_S = 0.02
KINDS: tuple[Kind, ...] = ("by_rules", "by_model", "by_rules")
#: Facts in one message.
TURN = 4
#: Facts of one user that are told and not dealt with, beyond which that user waits: so many are in flight.
AHEAD = 8
#: A kill takes few users with it, whose facts wait for the lease; the others go on.
SETTINGS = {"listen_items": 4, "listen_users": 4}
#: The share of kills that wait until their victim takes facts; the others may hit it while it starts.
_AT_WORK = 0.8


@dataclass(frozen=True)
class Profile:
    """How many `kills` of so many `workers`, over what so many `users` tell; `gap_s` at most between two kills."""

    kills: int
    workers: int
    users: int
    gap_s: float


LONG = Profile(kills=500, workers=4, users=48, gap_s=0.3)
SHORT = Profile(kills=6, workers=3, users=8, gap_s=0.3)


def plan(profile: Profile, seed: int) -> FaultPlan:
    """Return the kills, each of a worker that is replaced at once; most wait until it takes facts."""
    kills = Fault(
        kind="kill",
        role="worker",
        when=Every(0.0, profile.gap_s, share=_AT_WORK),
        times=profile.kills,
    )
    return FaultPlan(seed=seed, faults=(kills,), load="until the last fault")


class _Deaths:
    """Users who tell on while workers are killed; `at_work` counts those that took facts already."""

    def __init__(self, on: Stage, users: int) -> None:
        self._on = on
        self._users = {f"mortal-{number}": tellings(KINDS) for number in range(users)}
        self.at_work = 0

    async def work(self) -> None:
        """Let every user tell a few facts at a time, as long as not too many of theirs are in flight."""
        on = self._on
        while True:
            for user, told in self._users.items():
                if len(on.told[user]) - await on.closed(user) < AHEAD:
                    # Once it is sent it counts as told, also when the answer is not waited for.
                    await asyncio.shield(on.tell(user, list(islice(told, TURN))))
            await asyncio.sleep(0.02)

    async def strike(self, fault: Fault, dice: Random) -> None:
        """Kill one worker and replace it."""
        self.at_work += await self._on.cast.kill_and_replace(fault, dice)

    async def drain(self) -> None:
        """Return once all that was told is dealt with."""
        told = self._on.told
        await self._on.until_closed({user: len(facts) for user, facts in told.items()})

    async def look(self) -> Verdict:
        """Return what became of all that was told."""
        return await judge(self._on.store, self._on.facts, self._on.told)


async def run(on: Stage, profile: Profile, seed: int = 1) -> list[Row]:
    """Kill as many, and return what was promised beside what was measured."""
    started = time.monotonic()
    await on.begin(profile.workers, MODEL_S, **SETTINGS)
    deaths = _Deaths(on, profile.users)
    verdict = await play(plan(profile, seed), deaths)
    seconds = time.monotonic() - started
    return [
        Row(
            f"{profile.kills} memory workers killed: no fact lost, doubled or half applied, no document torn",
            f"{verdict.words()} of {verdict.facts:,} facts in {verdict.documents} documents, {seconds:.0f} s; "
            f"{deaths.at_work} kills hit a worker that took facts"
            + "".join(f"; {one}" for one in verdict.examples),
            verdict.is_fine and verdict.facts > profile.kills,
        )
    ]
