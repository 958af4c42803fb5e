"""Claimed facts at work on a real store: written down and closed in one step, whatever fails or dies in between."""

import asyncio
from collections import Counter
from collections.abc import Sequence

import pytest
from redis.asyncio import Redis

from contracts.messages import Fact
from memory import keys
from tests.integration.listening import (
    LEASE_S,
    PATIENCE_S,
    Room,
    eventually,
    fact_row,
    judge,
    keep_all,
    now,
    now_ms,
    plan_of,
)
from workers.execution.exclusive_runs import ExclusiveRuns
from workers.listening.context import ListenContext
from workers.listening.values import FactBatch, Ruling


@pytest.fixture
def room(redis: Redis) -> Room:
    """Return an empty store, and what listeners need around it."""
    return Room(redis)


async def test_facts_are_written_down_and_closed_in_one_step(room: Room) -> None:
    """All of a batch together, each with its plan."""
    await room.learn("ann", "omelettes", "pasta", "pasta")
    async with room.listening(judge(keep_all), "facts"):
        await room.closed("facts", "ann")
    assert await room.likes("ann") == ["omelettes", "pasta"]
    rows = {row.row_id: row for row in await room.rows("facts", "ann")}
    assert [(row.state, row.plan_id) for row in map(rows.get, ("f1", "f2", "f3")) if row is not None] == [
        ("done", "plan-f1"),
        ("done", "plan-f2"),
        ("done", None),
    ]
    assert rows["f3"].reason == "known: it is there"
    assert room.counts.seen == Counter({"fact:applied": 2, "fact:known": 1, "edit:insert": 2})
    assert len(await room.store.history("ann")) == 2


async def test_documents_that_moved_meanwhile_are_looked_at_again(room: Room) -> None:
    """The listener rules over what is there now, and nothing of anybody is lost."""
    drafts: list[int] = []

    async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        drafts.append(len(context.draft.body("resource_user_food_prefs")["food"]["likes"]))  # type: ignore[index, call-overload, arg-type]
        if len(drafts) == 1:
            # Somebody else is quicker, with another table of facts of the same user.
            await room.facts.append("ann", [fact_row("ann", 9, "soup")])
            other = Room(room.redis)
            snapshot = await other.store.snapshot("ann")
            await _commit_like(other, snapshot, "soup")
        return await keep_all(batch, context)

    await room.learn("ann", "omelettes")
    async with room.listening(judge(rule), "facts", items=1):
        await room.closed("facts", "ann")
    assert await room.likes("ann") == ["soup", "omelettes"]
    assert drafts[:2] == [0, 1]
    assert room.counts.seen["stale"] == 1
    assert room.counts.seen["fact:known"] == 1


async def test_facts_ruled_on_under_a_lost_lease_change_nothing(room: Room) -> None:
    """Neither documents nor rows, and nobody is asked again: they are somebody else's."""
    ruled: list[int] = []

    async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        ruled.append(1)
        await room.redis.delete(keys.queue("facts", "YW5u").lease)
        claim = await room.facts.claim("ann", holder="other", limit=9, lease_ms=int(LEASE_S * 1000), now_ms=now_ms())
        assert claim is not None
        return await keep_all(batch, context)

    await room.learn("ann", "omelettes")
    async with room.listening(judge(rule), "facts") as outflow:
        await eventually(lambda: _has(ruled))
        outflow.stop()
        await asyncio.wait_for(outflow.emptied(), PATIENCE_S)
    assert len(ruled) == 1
    assert await room.likes("ann") == []
    assert await room.states("facts", "ann") == {"f1": "waiting"}
    assert room.counts.seen == Counter()


async def test_one_poisoned_fact_is_set_aside_and_its_neighbours_are_kept(room: Room) -> None:
    """The batch fails, its facts run one by one, and only the culprit is held up, and what follows it until then."""
    batches: list[list[str]] = []

    async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        batches.append([pending.fact.fact_id for pending in batch.facts])
        if any(pending.fact.text == "poison" for pending in batch.facts):
            raise ValueError("a bug")
        return await keep_all(batch, context)

    await room.learn("ann", "one", "two", "poison", "four")
    async with room.listening(judge(rule), "facts"):
        await room.closed("facts", "ann")
    assert await room.likes("ann") == ["one", "two", "four"]
    assert (await room.states("facts", "ann"))["f3"] == "failed"
    assert batches[:4] == [["f1", "f2", "f3", "f4"], ["f1"], ["f2"], ["f3"]]
    assert batches.count(["f3"]) == 3
    assert batches[-1] == ["f4"]


async def test_a_fact_that_kills_its_worker_is_set_aside_too(room: Room) -> None:
    """Nobody lives to say what happened: its runs are counted by whoever finds them."""
    await room.learn("ann", "killer", "two")
    for _ in range(5):
        await eventually(lambda: _claims_and_dies(room, "ann"))
    ruled: list[str] = []

    async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        ruled.extend(pending.fact.fact_id for pending in batch.facts)
        return await keep_all(batch, context)

    async with room.listening(judge(rule), "facts"):
        await room.closed("facts", "ann")
    assert ruled == ["f2"]
    assert (await room.states("facts", "ann"))["f1"] == "failed"


async def test_what_a_crash_has_hit_runs_alone_until_it_has_come_through(room: Room) -> None:
    """Only one of them is to blame, and it must not take the others with it again and again."""
    under_way, beside = set[str](), dict[str, set[str]]()

    async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        under_way.add(batch.user_id)
        beside.setdefault(batch.user_id, set()).update(under_way)
        await asyncio.sleep(0.02)
        beside[batch.user_id].update(under_way)
        under_way.remove(batch.user_id)
        return await keep_all(batch, context)

    struck, others = ["ann", "ben", "cat"], ["dan", "eve"]
    for user in struck:
        await room.learn(user, "soup")
        await eventually(lambda one=user: _claims_and_dies(room, one))  # type: ignore[misc]
    for user in others:
        await room.learn(user, "soup", "salad")
    async with room.listening(judge(rule), "facts", items=1):
        await room.closed("facts", *struck, *others)
    assert [beside[user] for user in struck] == [{"ann"}, {"ben"}, {"cat"}]
    for user in struck:
        assert await room.states("facts", user) == {"f1": "done"}


async def test_what_is_to_run_alone_waits_for_nobody_for_ever(room: Room) -> None:
    """Where something runs for long, it comes later, and the others go on; who waits for it may leave."""
    exclusive = ExclusiveRuns(patience_s=0.01)
    await exclusive.enter(alone=False)
    await room.learn("ann", "soup")
    await eventually(lambda: _claims_and_dies(room, "ann"))
    await room.learn("ben", "salad")
    async with room.listening(judge(keep_all), "facts", exclusive=exclusive) as outflow:
        await room.closed("facts", "ben")
        assert await room.states("facts", "ann") == {"f1": "waiting"}
        outflow.stop()
        await asyncio.wait_for(outflow.emptied(), PATIENCE_S)


async def test_what_cannot_be_read_or_is_another_users_is_set_aside(room: Room) -> None:
    """And holds nothing up."""
    await room.facts.append("ann", [("odd", b"no JSON"), fact_row("ben", 1, "his"), fact_row("ann", 2, "hers")])
    async with room.listening(judge(keep_all), "facts"):
        await room.closed("facts", "ann")
    assert await room.states("facts", "ann") == {"odd": "failed", "f1": "failed", "f2": "done"}
    assert await room.likes("ann") == ["hers"]
    assert await room.likes("ben") == []


async def _claims_and_dies(room: Room, user: str) -> bool:
    """Claim what there is for a moment, and never say a word on it; False while the last lease still runs."""
    return await room.facts.claim(user, holder="mortal", limit=32, lease_ms=1, now_ms=now_ms()) is not None


async def _has(found: list[int]) -> bool:
    return bool(found)


async def _commit_like(room: Room, snapshot: object, text: str) -> None:
    """Write one more thing that is liked, beside every table."""
    from memory.documents.draft import Draft, Snapshot
    from memory.documents.guard import LIMITS

    assert isinstance(snapshot, Snapshot)
    draft = Draft(snapshot, LIMITS, now())
    draft.apply(plan_of(Fact(fact_id=f"other-{text}", text=text), now()))
    await room.store.commit(draft)
