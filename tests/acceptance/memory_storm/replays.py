"""The same things are told over and over, as new facts and as the same ones delivered again, by several workers.

What is known already adds nothing: no item, no revision, no plan.
"""

import asyncio
import time
from dataclasses import dataclass, replace

from tasklore.memory.documents.storage.history import json_bytes
from tests.acceptance.chaos.table import Row
from tests.acceptance.memory_storm.stage import Stage
from tests.acceptance.memory_storm.told import FOOD, Told
from tests.acceptance.memory_storm.verdict import judge

#: Facts in one message.
TURN = 20
#: Every so many rounds the very same facts are delivered again; the others tell them anew, in other words.
SAME_FACTS = 3
WORDINGS = (
    "User likes brel {}",
    "User loves brel {}",
    "User enjoys brel {}",
    "I like brel {}",
)


@dataclass(frozen=True)
class Profile:
    """How many `facts` are told in all, of `users`, `rounds` times, to `workers`."""

    facts: int
    users: int
    rounds: int
    workers: int


LONG = Profile(facts=1_000, users=10, rounds=20, workers=8)
SHORT = Profile(facts=40, users=2, rounds=4, workers=2)


async def run(on: Stage, profile: Profile) -> list[Row]:
    """Replay, and return what was promised beside what was measured."""
    each = profile.facts // profile.users
    await on.begin(profile.workers, model_s=0.0)
    users = [f"again-{number}" for number in range(profile.users)]
    told = [Told(number, WORDINGS[0].format(number), (FOOD,)) for number in range(each)]
    for user in users:
        for turn in _turns(told):
            await on.tell(user, turn)
    await on.until_closed(dict.fromkeys(users, each))
    before = await _state(on, users)
    started = time.monotonic()
    anew = 0
    for number in range(1, profile.rounds):
        anew += number % SAME_FACTS != 0
        await asyncio.gather(*(_repeat(on, user, told, number) for user in users))
    await on.until_closed(dict.fromkeys(users, each * (1 + anew)))
    seconds = time.monotonic() - started
    after = await _state(on, users)
    verdict = await judge(on.store, on.facts, on.told)
    replayed = (profile.rounds - 1) * profile.facts
    grown = sum(len(now) - len(then) for then, now in zip(before, after, strict=True))
    return [
        Row(
            f"{profile.facts:,} facts replayed {profile.rounds} times from {profile.workers} workers: growth 0",
            f"{grown} bytes, {sum(one != two for one, two in zip(before, after, strict=True))} documents changed; "
            f"{replayed:,} replays in {seconds:.0f} s; {verdict.words()}"
            + "".join(f"; {one}" for one in verdict.examples),
            before == after and verdict.is_fine,
        )
    ]


def _turns(told: list[Told]) -> list[list[Told]]:
    return [told[start : start + TURN] for start in range(0, len(told), TURN)]


async def _repeat(on: Stage, user: str, told: list[Told], number: int) -> None:
    """Tell *told* once more, in the *number*-th round."""
    is_same = number % SAME_FACTS == 0
    wording = WORDINGS[number % len(WORDINGS)]
    words = (
        told
        if is_same
        else [replace(one, text=wording.format(one.number)) for one in told]
    )
    for turn in _turns(words):
        await on.tell_again(user, turn, f"round-{number}", anew=not is_same)


async def _state(on: Stage, users: list[str]) -> list[bytes]:
    """Return every document of *users* with its revision, and the number of plans."""
    found: list[bytes] = []
    for user in users:
        documents = (await on.store.snapshot(user)).documents
        found += [json_bytes(one.body) for _, one in sorted(documents.items())]
        found.append(str(len(await on.store.history(user, limit=10**6))).encode())
    return found
