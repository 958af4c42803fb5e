"""Claimed facts on a real store: written and closed in one step, in order, whatever fails or waits in between."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import LlmError, LlmUnavailable
from tasklore.contracts.messages import ExtractedFacts, Fact
from tasklore.memory import keys
from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.guard import LIMITS
from tasklore.workers.agents.memory_worker import agent
from tasklore.workers.execution.crash_isolation import CrashIsolation
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.values import FactBatch, Ruling
from tests.integration.listening import (
    FOOD,
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
from tests.memory_bench import Model


@pytest.fixture
def room(redis: Redis) -> Room:
    return Room(redis)


async def test_facts_are_written_and_closed_in_one_step(room: Room) -> None:
    await room.learn("ann", "omelettes", "pasta", "pasta")
    async with room.listening(judge(keep_all), "facts"):
        await room.closed("facts", "ann")
    assert await room.likes("ann") == ["omelettes", "pasta"]
    rows = {row.row_id: row for row in await room.rows("facts", "ann")}
    assert [
        (row.state, row.plan_id)
        for row in map(rows.get, ("f1", "f2", "f3"))
        if row is not None
    ] == [
        ("done", "plan-f1"),
        ("done", "plan-f2"),
        ("done", None),
    ]
    assert rows["f3"].reason == "known: it is there"
    assert room.counts.seen == Counter(
        {"fact:applied": 2, "fact:known": 1, "edit:insert": 2}
    )
    assert len(await room.store.history("ann")) == 2


async def test_facts_are_ruled_on_again_when_documents_changed_meanwhile(
    room: Room,
) -> None:
    drafts: list[int] = []

    async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        drafts.append(
            len(context.draft.body("resource_user_food_prefs")["food"]["likes"])
        )  # type: ignore[index, call-overload, arg-type]
        if len(drafts) == 1:
            # Another writer is quicker.
            await room.facts.append("ann", [fact_row("ann", 9, "soup")])
            draft = Draft(await room.store.snapshot("ann"), LIMITS, now())
            draft.apply(plan_of(Fact(fact_id="other-soup", text="soup"), now()))
            await Room(room.redis).store.commit(draft)
        return await keep_all(batch, context)

    await room.learn("ann", "omelettes")
    async with room.listening(judge(rule), "facts", items=1):
        await room.closed("facts", "ann")
    assert await room.likes("ann") == ["soup", "omelettes"]
    assert drafts[:2] == [0, 1]
    assert room.counts.seen["stale"] == 1
    assert room.counts.seen["fact:known"] == 1


async def test_a_plan_that_is_stored_already_is_made_once_beside_those_that_are_not(
    room: Room,
) -> None:
    """Whoever stored it died before the rows were closed; the next draft knows it."""
    drafts: list[int] = []

    async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        drafts.append(len(batch.facts))
        assert len(drafts) <= 2
        plans = [plan_of(pending.fact, context.now()) for pending in batch.facts]
        for plan in plans:
            context.draft.apply(plan)
        return [
            Ruling(fact_id=plan.plan_id[5:], outcome="applied", reasoning="", plan=plan)
            for plan in plans
        ]

    draft = Draft(await room.store.snapshot("ann"), LIMITS, now())
    draft.apply(plan_of(Fact(fact_id="f1", text="omelettes"), now()))
    await room.store.commit(draft)
    await room.learn("ann", "omelettes", "pasta")
    async with room.listening(judge(rule), "facts"):
        await room.closed("facts", "ann")
    assert await room.likes("ann") == ["omelettes", "pasta"]
    assert await room.states("facts", "ann") == {"f1": "done", "f2": "done"}
    assert drafts == [2, 2]


async def test_facts_ruled_on_under_a_lost_lease_change_nothing(room: Room) -> None:
    ruled = asyncio.Event()
    batches = []

    async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        batches.append(batch)
        ruled.set()
        await room.redis.delete(keys.queue("facts", "YW5u").lease)
        claim = await room.facts.claim(
            "ann",
            holder="other",
            limit=9,
            lease_ms=int(LEASE_S * 1000),
            now_ms=now_ms(),
        )
        assert claim is not None
        return await keep_all(batch, context)

    await room.learn("ann", "omelettes")
    async with room.listening(judge(rule), "facts") as outflow:
        await asyncio.wait_for(ruled.wait(), PATIENCE_S)
        outflow.stop()
        await asyncio.wait_for(outflow.emptied(), PATIENCE_S)
    assert len(batches) == 1
    assert await room.likes("ann") == []
    assert await room.states("facts", "ann") == {"f1": "waiting"}
    assert room.counts.seen == Counter()


async def test_one_failing_fact_is_set_aside_and_its_neighbours_are_kept(
    room: Room,
) -> None:
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


async def test_facts_after_a_crash_run_alone_until_they_have_come_through(
    room: Room,
) -> None:
    """Only one of them is to blame, and it must not take the others with it again and again."""
    under_way = set[str]()
    beside = dict[str, set[str]]()

    async def rule(batch: FactBatch, context: ListenContext) -> Sequence[Ruling]:
        under_way.add(batch.user_id)
        beside.setdefault(batch.user_id, set()).update(under_way)
        await asyncio.sleep(0.02)
        beside[batch.user_id].update(under_way)
        under_way.remove(batch.user_id)
        return await keep_all(batch, context)

    struck = ["ann", "ben", "cat"]
    others = ["dan", "eve"]
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


async def test_an_exclusive_run_that_has_to_wait_long_lets_the_others_go_on(
    room: Room,
) -> None:
    exclusive = CrashIsolation(patience_s=0.01)
    await exclusive.enter(alone=False)
    await room.learn("ann", "soup")
    await eventually(lambda: _claims_and_dies(room, "ann"))
    await room.learn("ben", "salad")
    async with room.listening(judge(keep_all), "facts", exclusive=exclusive) as outflow:
        await room.closed("facts", "ben")
        assert await room.states("facts", "ann") == {"f1": "waiting"}
        outflow.stop()
        await asyncio.wait_for(outflow.emptied(), PATIENCE_S)


async def test_unreadable_facts_and_those_of_another_user_are_set_aside(
    room: Room,
) -> None:
    await room.facts.append(
        "ann",
        [("odd", b"no JSON"), fact_row("ben", 1, "his"), fact_row("ann", 2, "hers")],
    )
    async with room.listening(judge(keep_all), "facts"):
        await room.closed("facts", "ann")
    assert await room.states("facts", "ann") == {
        "odd": "failed",
        "f1": "failed",
        "f2": "done",
    }
    assert await room.likes("ann") == ["hers"]
    assert await room.likes("ben") == []


async def _claims_and_dies(room: Room, user: str) -> bool:
    """Claim what there is for a moment, and never say a word on it; False while the last lease still runs."""
    return (
        await room.facts.claim(
            user, holder="mortal", limit=32, lease_ms=1, now_ms=now_ms()
        )
        is not None
    )


#: A fact for which a model is asked what it leaves out.
VEGAN = ("food.diets", "Vegan", "new")


async def learn(room: Room, *facts: tuple[str, str, str], start: int = 1) -> None:
    rows = []
    for number, (category, value, relation) in enumerate(facts, start=start):
        told = {
            "fact_id": f"f{number}",
            "text": f"You: {value}",
            "evidence": value,
            "category": category,
        }
        fact = Fact.model_validate({**told, "value": value, "relation": relation})
        body = ExtractedFacts(
            turn_id=f"t{number}",
            conversation_id="c",
            user_id="ann",
            facts=(fact,),
            at=now(),
        )
        rows.append((fact.fact_id, body.model_dump_json().encode()))
    await room.facts.append("ann", rows)


def likes(what: str) -> tuple[str, str, str]:
    return ("food.likes", what, "new")


def sweep(_role: str, _user: str) -> Mapping[str, Any]:
    return {
        "reasoning": "looked",
        "locations": [{"fact": 1, "path": f"{FOOD}:food.likes[0]"}],
    }


async def live(room: Room, place: str = "likes") -> list[str]:
    food: Any = (await room.store.snapshot("ann", [FOOD])).documents[FOOD].body["food"]
    return [one["display"] for one in food[place] if "until" not in one]


def away(_role: str, _user: str) -> LlmError:
    return LlmUnavailable("503")


async def parked(room: Room, fact_id: str) -> None:
    async def is_parked() -> bool:
        return (await room.states("facts", "ann"))[fact_id] == "needs_model"

    await eventually(is_parked)


async def test_a_fact_that_waited_for_a_model_does_not_undo_what_was_said_meanwhile(
    room: Room,
) -> None:
    model: Any = Model(away)
    room.services.llm = model
    await learn(room, likes("Steak"), VEGAN)
    async with room.listening(agent, "facts") as outflow:
        await parked(room, "f2")
        await learn(room, ("food.diets", "Vegan", "ends"), start=3)
        outflow.look_soon()
        await parked(room, "f3")
        model.respond = lambda _role, _user: {"reasoning": "nothing", "locations": []}
        assert await room.facts.resume_all() == 2
        outflow.look_soon()
        await room.closed("facts", "ann")

    states = await room.states("facts", "ann")
    assert {states["f1"], states["f3"]} == {"done"}
    assert await live(room) == ["Steak"]
    assert await live(room, "diets") in ([], ["Vegan"])


async def test_a_fact_waits_for_a_model_aside_and_is_applied_when_it_answers(
    room: Room,
) -> None:
    model: Any = Model(away)
    room.services.llm = model
    await learn(room, likes("Steak"), VEGAN, likes("Bagels"))
    async with room.listening(agent, "facts") as outflow:
        await parked(room, "f2")
        await room.closed("facts", "ann")
        assert await live(room) == ["Steak", "Bagels"]
        (row,) = [row for row in await room.rows("facts", "ann") if row.row_id == "f2"]
        assert (row.attempts, row.note) == (0, b"parked")
        model.respond = sweep
        assert await room.facts.resume_all() == 1
        outflow.look_soon()
        await room.closed("facts", "ann")

    assert set((await room.states("facts", "ann")).values()) == {"done"}
    assert (await live(room), await live(room, "diets")) == (["Bagels"], ["Vegan"])


async def test_a_short_failure_of_the_model_changes_no_order(room: Room) -> None:
    """The fact stays first and is tried again; the one before it does not wait, the one after it does."""
    seen: list[bool] = []
    left = [3]

    def respond(role: str, user: str) -> Mapping[str, Any] | LlmError:
        seen.append("Bagels" in user.partition("lines\n")[2])
        left[0] -= 1
        return LlmUnavailable("503") if left[0] >= 0 else sweep(role, user)

    room.services.llm = Model(respond)  # type: ignore[assignment]
    await learn(room, likes("Steak"), VEGAN, likes("Bagels"))
    async with room.listening(agent, "facts"):
        await room.closed("facts", "ann")

    assert set((await room.states("facts", "ann")).values()) == {"done"}
    assert (await live(room), await live(room, "diets")) == (["Bagels"], ["Vegan"])
    assert room.counts.seen["fact:needs_model"] == 0
    assert not any(seen)
