"""Rows of turns and facts at work on a real store: in order, once, whatever fails or dies in between."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from typing import Literal

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import EditRefused, GiveUp, LlmUnavailable
from tasklore.contracts.messages import ChatTurn, Fact
from tasklore.memory import keys
from tasklore.runtime.servers import valkey
from tasklore.runtime.servers.embedded import EmbeddedServers
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.turns import TurnWork
from tasklore.workers.listening.values import FactBatch, Ruling
from tests.integration.listening import (
    LEASE_S,
    PATIENCE_S,
    Room,
    ear,
    judge,
    keep_all,
    now,
    now_ms,
    plan_of,
)
from tests.integration.listening import parrot as learn_words


@pytest.fixture
def room(redis: Redis) -> Room:
    return Room(redis)


async def test_facts_of_turns_become_rows_once_in_order_and_the_turns_are_closed(
    room: Room,
) -> None:
    await room.say("ann", "one", "", "three")
    async with room.listening(ear(learn_words), "turns"):
        await room.closed("turns", "ann")
        await room.say("ann", "four", start=4)
        await room.closed("turns", "ann")
    assert await room.texts("ann") == ["one", "three", "four"]
    found = await room.found("ann")
    assert [one.turn_id for one in found] == ["t1", "t3", "t4"]
    assert {(one.user_id, one.conversation_id) for one in found} == {("ann", "c")}
    assert await room.facts.owners_due(now_ms(), 9) == ["ann"]
    assert set((await room.states("turns", "ann")).values()) == {"done"}
    assert room.counts.seen == Counter({"turn:learned": 3, "turn:nothing": 1})


async def test_the_facts_of_a_turn_are_one_write_and_wake_who_works_on_them(
    room: Room,
) -> None:
    """No note goes before it, and nothing is closed behind it: there is nothing in between at which to die."""
    woken = asyncio.Event()
    work = room.work_of(ear(learn_words), "turns")
    assert isinstance(work, TurnWork)
    work.handed_over = woken.set
    await room.say("ann", "one")
    claim = await room.turns.claim(
        "ann", holder="w", limit=9, lease_ms=60_000, now_ms=now_ms()
    )
    assert claim is not None
    await room.redis.config_resetstat()
    assert await work.work(claim, lambda: False, 0) == 0.0
    assert woken.is_set()
    calls = (await room.redis.info("commandstats"))["cmdstat_fcall"]["calls"]
    assert calls == 3, "two marks and what is between them"


async def test_facts_that_waited_when_the_turn_ended_are_worked_on(room: Room) -> None:
    """From what was said to what is known, by two loops that share nothing but the store."""
    await room.say("ann", "plums")
    async with (
        room.listening(judge(keep_all), "facts"),
        room.listening(ear(learn_words), "turns"),
    ):
        await room.closed("turns", "ann")
        await room.closed("facts", "ann")
    assert await room.likes("ann") == ["plums"]


@pytest.mark.parametrize("hangs", ["before", "after"])
async def test_a_worker_that_dies_around_a_hand_over_loses_and_doubles_nothing(
    room: Room, hangs: Literal["before", "after"]
) -> None:
    asked: list[str] = []

    async def learn(turn: ChatTurn, context: ListenContext) -> list[Fact]:
        asked.append(turn.turn_id)
        return [Fact(fact_id=f"fact-{len(asked)}", text=f"said {len(asked)}")]

    await room.say("ann", "one")
    await room.die_handing_over(ear(learn), hangs)
    assert await room.texts("ann") == ([] if hangs == "before" else ["said 1"])
    async with room.listening(ear(learn), "turns"):
        await room.closed("turns", "ann")
    runs = 2 if hangs == "before" else 1
    assert asked == ["t1"] * runs
    assert await room.texts("ann") == [f"said {runs}"]


async def test_a_model_that_is_away_or_a_store_that_refuses_costs_no_attempt(
    room: Room,
) -> None:
    left = [7]

    async def learn(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
        if left[0]:
            left[0] -= 1
            raise LlmUnavailable("503")
        return await learn_words(turn, context)

    room.facts.refuses = 3
    await room.say("ann", "one", "two")
    async with room.listening(ear(learn), "turns"):
        await room.closed("turns", "ann")
    assert await room.texts("ann") == ["one", "two"]
    assert [row.attempts for row in await room.rows("turns", "ann")] == [0, 0]


async def test_facts_that_are_too_large_are_refused_with_a_reason(room: Room) -> None:
    async def learn(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
        count = 500 if turn.text == "many" else 1
        return [Fact(fact_id=f"f{one}", text="x" * 2_000) for one in range(count)]

    await room.say("ann", "many", "few")
    async with room.listening(ear(learn), "turns"):
        await room.closed("turns", "ann")
    assert await room.states("turns", "ann") == {"t1": "failed", "t2": "done"}
    (reason,) = [
        row.reason for row in await room.rows("turns", "ann") if row.row_id == "t1"
    ]
    assert "return fewer or shorter ones" in reason
    assert [one.turn_id for one in await room.found("ann")] == ["t2"]


async def test_nothing_of_a_forgotten_user_comes_back_by_a_hand_over(
    room: Room,
) -> None:
    """Forgotten while the listener thinks: the claim is gone, so that neither facts nor a mark of theirs stay."""
    begun = asyncio.Event()
    may_end = asyncio.Event()

    async def learn(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
        begun.set()
        await may_end.wait()
        return await learn_words(turn, context)

    await room.say("ann", "one")
    async with room.listening(ear(learn), "turns"):
        await asyncio.wait_for(begun.wait(), PATIENCE_S)
        for table in (room.turns, room.facts):
            await table.forget("ann")
        may_end.set()
    assert await room.redis.keys("*") == []


async def test_a_turn_that_always_fails_is_set_aside_and_the_next_go_on(
    room: Room,
) -> None:
    runs: list[str] = []

    async def learn(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
        runs.append(turn.turn_id)
        if turn.text == "poison":
            raise ValueError("a bug")
        return await learn_words(turn, context)

    await room.say("ann", "one", "poison", "three")
    async with room.listening(ear(learn), "turns"):
        await room.closed("turns", "ann")
    assert runs == ["t1", "t2", "t2", "t2", "t3"]
    assert await room.states("turns", "ann") == {
        "t1": "done",
        "t2": "failed",
        "t3": "done",
    }
    assert (
        next(
            row.reason for row in await room.rows("turns", "ann") if row.row_id == "t2"
        )
        == "ValueError: a bug"
    )
    assert room.counts.seen["retry:turns"] == 2
    assert room.counts.seen["turn:failed"] == 1


async def test_a_slow_user_delays_no_other(room: Room) -> None:
    held = asyncio.Event()

    async def learn(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
        if turn.user_id == "slow":
            await held.wait()
        return await learn_words(turn, context)

    await room.say("slow", "one")
    await room.say("quick", "two")
    async with room.listening(ear(learn), "turns"):
        await room.closed("turns", "quick")
        assert (await room.states("turns", "slow"))["t1"] != "done"
        held.set()
        await room.closed("turns", "slow")


async def test_several_workers_share_users_and_never_a_user(room: Room) -> None:
    """None of them serves more users at once than it may."""
    at_work = Counter[str]()
    seen = list[str]()

    async def learn(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
        at_work[context.user_id] += 1
        assert at_work[context.user_id] == 1
        assert at_work.total() <= 3
        await asyncio.sleep(0)
        at_work[context.user_id] -= 1
        seen.append(f"{context.user_id} {turn.turn_id}")
        return []

    users = [f"user-{number}" for number in range(6)]
    for user in users:
        await room.say(user, *["word"] * 12)
    agent = ear(learn)
    async with (
        room.listening(agent, "turns", items=3, users=1),
        room.listening(agent, "turns", items=5, users=1),
        room.listening(agent, "turns", items=1, users=1),
    ):
        await room.closed("turns", *users)
    for user in users:
        assert [word for word in seen if word.startswith(user)] == [
            f"{user} t{number}" for number in range(1, 13)
        ]


async def test_a_worker_that_stops_ends_its_row_and_gives_the_rest_back(
    room: Room,
) -> None:
    begun = asyncio.Event()
    may_end = asyncio.Event()

    async def learn(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
        begun.set()
        await may_end.wait()
        return await learn_words(turn, context)

    await room.say("ann", "one", "two")
    async with room.listening(ear(learn), "turns") as outflow:
        await asyncio.wait_for(begun.wait(), PATIENCE_S)
        outflow.stop()
        may_end.set()
        await asyncio.wait_for(outflow.emptied(), PATIENCE_S)
        assert await room.texts("ann") == ["one"]
    claim = await room.turns.claim(
        "ann", holder="next", limit=9, lease_ms=1000, now_ms=now_ms()
    )
    assert [row.row_id for row in claim.rows] == ["t2"]


async def test_a_worker_that_is_cut_short_gives_its_rows_back(room: Room) -> None:
    begun = asyncio.Event()

    async def learn(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
        begun.set()
        await asyncio.Event().wait()
        return []

    await room.say("ann", "one")
    async with room.listening(ear(learn), "turns", cut_short=True):
        await asyncio.wait_for(begun.wait(), PATIENCE_S)
    claim = await room.turns.claim(
        "ann", holder="next", limit=9, lease_ms=1000, now_ms=now_ms()
    )
    assert [(row.row_id, row.attempts, row.crashes) for row in claim.rows] == [
        ("t1", 0, 0)
    ]


async def test_a_worker_that_lost_its_lease_stops_and_changes_nothing(
    room: Room,
) -> None:
    begun = asyncio.Event()
    cut = asyncio.Event()

    async def learn(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
        begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut.set()
            raise
        return []

    await room.say("ann", "one")
    async with room.listening(ear(learn), "turns", lease_s=0.3, cut_short=True):
        await asyncio.wait_for(begun.wait(), PATIENCE_S)
        # As if it had been silent for too long.
        await room.redis.delete(keys.queue("turns", "YW5u").lease)
        claim = await room.turns.claim(
            "ann",
            holder="other",
            limit=9,
            lease_ms=int(LEASE_S * 1000),
            now_ms=now_ms(),
        )
        assert claim is not None
        await asyncio.wait_for(cut.wait(), PATIENCE_S)
        assert await room.turns.renew(claim, int(LEASE_S * 1000))
    assert await room.found("ann") == []


async def test_a_fact_that_needs_a_model_waits_and_keeps_its_place(room: Room) -> None:
    has_model = [False]

    async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        riddles = [
            one for one in batch.facts if one.fact.text == "riddle" and not has_model[0]
        ]
        rest = tuple(one for one in batch.facts if one not in riddles)
        ruled = await keep_all(FactBatch(batch.user_id, rest), context)
        return [
            *ruled,
            *(
                Ruling(
                    fact_id=one.fact.fact_id,
                    outcome="needs_model",
                    reasoning="two readings",
                )
                for one in riddles
            ),
        ]

    await room.learn("ann", "riddle", "two")
    async with room.listening(judge(rule), "facts") as outflow:
        await room.closed("facts", "ann")
        assert await room.states("facts", "ann") == {"f1": "needs_model", "f2": "done"}
        has_model[0] = True
        assert await room.facts.resume_all() == 1
        outflow.look_soon()
        await room.closed("facts", "ann")
    assert await room.likes("ann") == ["two", "riddle"]
    assert room.counts.seen["fact:needs_model"] == 1


async def test_refusals_are_counted_by_their_reason(room: Room) -> None:
    async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        with pytest.raises(EditRefused):
            context.draft.apply(
                plan_of(batch.facts[0].fact, now(), path="_metadata.tags")
            )
        context.refused("evidence")
        return [Ruling(fact_id="f1", outcome="rejected", reasoning="it may not")]

    await room.learn("ann", "one")
    async with room.listening(judge(rule), "facts"):
        await room.closed("facts", "ann")
    assert await room.states("facts", "ann") == {"f1": "rejected"}
    edits = {"edit:insert:refused": 1, "refused:protected": 1, "refused:evidence": 1}
    assert room.counts.seen == Counter(edits | {"fact:rejected": 1})


async def test_a_fact_that_a_listener_gives_up_is_not_tried_again(room: Room) -> None:
    runs: list[int] = []

    async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        runs.append(len(batch.facts))
        raise GiveUp("never")

    await room.learn("ann", "one", "two")
    async with room.listening(judge(rule), "facts"):
        await room.closed("facts", "ann")
    assert set((await room.states("facts", "ann")).values()) == {"failed"}
    assert runs == [2, 1, 1]


async def test_while_the_store_is_away_nothing_is_lost_and_nothing_done_twice(
    own_servers: EmbeddedServers,
) -> None:
    async with valkey.connect(own_servers.redis_url) as client:
        room = Room(client)
        struck = asyncio.Event()

        async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
            if batch.facts[0].fact.fact_id == "f5" and not struck.is_set():
                own_servers.valkey.kill()
                struck.set()
            return await keep_all(batch, context)

        await room.learn("ann", *(f"food {number}" for number in range(1, 11)))
        async with room.listening(judge(rule), "facts", items=1, lease_s=5.0):
            await asyncio.wait_for(struck.wait(), PATIENCE_S)
            await own_servers.valkey.start()
            await room.closed("facts", "ann")
        assert await room.likes("ann") == [f"food {number}" for number in range(1, 11)]
        assert set((await room.states("facts", "ann")).values()) == {"done"}
