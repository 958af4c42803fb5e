"""Many workers write one user's documents while a model takes 50 ms for each answer; others are told beside it.

What the other users wait for their facts is measured twice: before the storm, and while it goes on.
"""

import asyncio
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice

from benchmarks.table import percentile
from tasklore.contracts.edits import Insert
from tasklore.memory.documents.draft import Draft, Origin, Plan
from tasklore.memory.documents.guard import LIMITS
from tasklore.memory.documents.items import make_item
from tasklore.memory.documents.storage.repository import Committed
from tests.acceptance.chaos.table import Row
from tests.acceptance.memory_storm.stage import Stage
from tests.acceptance.memory_storm.told import FOOD, GENERAL, ROUTINE, Told, tellings
from tests.acceptance.memory_storm.verdict import judge

#: Seconds that the model takes for each answer.
MODEL_S = 0.05
#: Facts in one message: what a turn may teach.
TURN = 10
STORMY = "stormy"
#: Where a person writes beside the workers; nothing is told about it.
BY_HAND = "food.dislikes"


@dataclass(frozen=True)
class Profile:
    """How many: `edits` of one user by `workers`, `by_hand` by a person; `others` are told `beside` facts each."""

    workers: int
    edits: int
    others: int
    beside: int
    by_hand: int


LONG = Profile(workers=8, edits=4_000, others=7, beside=30, by_hand=40)
SHORT = Profile(workers=3, edits=90, others=2, beside=1, by_hand=2)


async def run(on: Stage, profile: Profile) -> list[Row]:
    """Let it storm, and return what was promised beside what was measured."""
    await on.begin(profile.workers, MODEL_S)
    others = {
        f"other-{number}": tellings(("by_model",)) for number in range(profile.others)
    }
    calm = await _latencies(on, others, profile.beside)
    started = time.time()
    by_model = list(
        islice(tellings(("by_model",), (FOOD, GENERAL, ROUTINE)), profile.edits)
    )
    await _tell_all(on, STORMY, by_model)
    async with asyncio.TaskGroup() as group:
        beside = group.create_task(_latencies(on, others, profile.beside))
        by_hand = group.create_task(_write_by_hand(on, profile.by_hand, profile.edits))
    at_end_of_others = profile.edits - await on.closed(STORMY)
    await on.until_closed({STORMY: profile.edits})
    seconds = time.time() - started
    verdict = await judge(on.store, on.facts, on.told)
    written = len(
        (await on.store.snapshot(STORMY)).documents[FOOD].body["food"]["dislikes"]
    )  # type: ignore[index,call-overload,arg-type]
    asked = f"{profile.workers} processes, {profile.edits:,} edits of one user, 50 ms of a model for those of food"
    hurried = beside.result()
    return [
        Row(
            f"{asked}: none lost, doubled or out of order",
            f"{verdict.words()} of {verdict.facts:,} facts in {seconds:.0f} s ({profile.edits / seconds:.0f}/s)"
            + "".join(f"; {one}" for one in verdict.examples),
            verdict.is_fine,
        ),
        Row(
            f"{profile.by_hand} edits by a person beside them: none lost",
            f"{written} there; {by_hand.result()} written anew over the workers' edits",
            written == profile.by_hand,
        ),
        Row(
            "facts of others are not delayed: all stored while that user's still wait",
            f"p50 {percentile(hurried, 0.5):.2f} s, p95 {percentile(hurried, 0.95):.2f} s in the storm, "
            f"p50 {percentile(calm, 0.5):.2f} s, p95 {percentile(calm, 0.95):.2f} s before; "
            f"{at_end_of_others:,} still waited",
            at_end_of_others > 0,
        ),
    ]


async def _tell_all(on: Stage, user: str, told: Sequence[Told]) -> None:
    for start in range(0, len(told), TURN):
        await on.tell(user, told[start : start + TURN])


async def _latencies(
    on: Stage, others: dict[str, Iterator[Told]], rounds: int
) -> list[float]:
    """Tell each of *others* a fact, wait until all are stored, *rounds* times; return what each took in seconds."""
    taken: list[float] = []
    for _ in range(rounds):
        sent: dict[str, float] = {}
        for user, told in others.items():
            sent[user] = time.time()
            await on.tell(user, [next(told)])
        await on.until_closed({user: len(on.told[user]) for user in others})
        for user in others:
            # By the server's clock, which is that of this machine.
            newest = max(row.at_ms for row in await on.facts.rows(user, 10**6))
            taken.append(newest / 1000 - sent[user])
    return taken


async def _write_by_hand(on: Stage, count: int, of: int) -> int:
    """Add *count* items at even distances of the storm's course; return how often the documents had moved meanwhile."""
    stale = 0
    for number in range(count):
        await on.until_closed({STORMY: of * number // (count + 1)})
        while True:
            now = datetime.now(UTC)
            draft = Draft(await on.store.snapshot(STORMY), LIMITS, now)
            made = make_item(f"Drosk {number}", added=now.date(), source="told")
            add = Insert(path=BY_HAND, new_value=made, file=FOOD)
            draft.apply(
                Plan(
                    plan_id=f"hand-{number}",
                    edits=(add,),
                    origin=Origin(by="person", at=now),
                )
            )
            if isinstance(await on.store.commit(draft), Committed):
                break
            stale += 1
    return stale
