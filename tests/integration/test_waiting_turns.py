"""Turns that wait for a model, on a real store: known facts and those added later become rows once."""

import asyncio
import json
from collections.abc import Sequence
from datetime import timedelta
from typing import Literal, cast

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import (
    BudgetSpent,
    LlmError,
    LlmMalformed,
    LlmTimeout,
)
from tasklore.contracts.identifiers import user_token
from tasklore.contracts.messages import ChatTurn, ExtractedFacts, Fact
from tasklore.memory import keys
from tasklore.memory.queues.waiting_rows import WaitingRow, count_waiting, rows_waiting
from tasklore.runtime.models.llm import Expense, Reply
from tasklore.workers.agents.switchboard import agent as switchboard
from tasklore.workers.agents.switchboard.answer import Heard, HeardFact
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.testing import ScriptedLlm
from tests.integration.listening import PATIENCE_S, Room, ear, eventually, now

#: One sentence for the rules and one for a model.
SAID = "I like omelettes. Somehow cheese and my stomach are no friends."
TOLD = "Your stomach and cheese are no friends"
BY_RULES = ("t1-0", "User likes omelettes")
BY_MODEL = ("t1-1", TOLD)


class Fickle(ScriptedLlm):
    """A model that is away until `is_there` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.configured = True
        self.is_there = False
        self.known = list[str]()
        self.error: LlmError = LlmTimeout("late")
        self.hangs: asyncio.Event | None = None

    async def ask(
        self, role: str, answer: type, *, system: str, user: str, **_options: object
    ) -> Reply:  # type: ignore[type-arg, override]  # one answer
        if self.hangs is not None:
            self.hangs.set()
            await asyncio.Event().wait()
        if not self.is_there:
            raise self.error
        self.known.append(user)
        fact = HeardFact(
            statement=TOLD,
            category="food.dislikes",
            value="cheese",
            quotation="cheese and my stomach are no friends",
            turn=1,
        )
        return Reply(
            Heard(reasoning="they say so", facts=(fact,)), Expense(), "fickle", 1, 0.0
        )


@pytest.fixture
def model() -> Fickle:
    return Fickle()


@pytest.fixture
def room(redis: Redis, model: Fickle) -> Room:
    room = Room(redis)
    room.services.llm = model
    return room


async def learned(room: Room, user: str = "ann") -> list[tuple[str, str]]:
    """Return the id and the text of every fact about *user* that became a row, in order."""
    return [
        (fact.fact_id, fact.text)
        for one in await room.found(user)
        for fact in one.facts
    ]


async def waiting_turn(room: Room) -> WaitingRow:
    """Return the one turn of Ann that is listed as waiting; facts may wait beside it."""
    (row,) = [
        row
        for row in await rows_waiting("ann", room.turns, room.facts)
        if row.kind == "turn"
    ]
    return row


async def work(room: Room, *until: str) -> None:
    """Work on Ann's turn until it has come to one of these states."""
    async with room.listening(switchboard, "turns"):

        async def is_there() -> bool:
            return (await room.states("turns", "ann"))["t1"] in until

        await eventually(is_there)


async def test_facts_read_by_rules_become_rows_and_the_turn_waits(room: Room) -> None:
    await room.say("ann", SAID, "I hate olives")
    async with room.listening(switchboard, "turns"):
        await room.closed("turns", "ann")
    assert await learned(room) == [BY_RULES, ("t2-0", "User dislikes olives")]
    assert await room.states("turns", "ann") == {
        "t1": "needs_model",
        "t2": "needs_model",
    }
    (row,) = [row for row in await room.rows("turns", "ann") if row.row_id == "t1"]
    assert row.reason == "LlmTimeout: late"
    room.services.llm.configured = False
    await room.say("ben", SAID)
    async with room.listening(switchboard, "turns"):
        await room.closed("turns", "ben")
    assert await room.states("turns", "ben") == {"t1": "done"}


async def test_a_turn_that_no_budget_pays_for_says_what_helps(
    room: Room, model: Fickle
) -> None:
    await room.say("ann", SAID)
    await work(room, "needs_model")
    row = await waiting_turn(room)
    assert row.cure == "configure a model, or wait until it answers"
    model.error = BudgetSpent("limit 'acme' is spent", "acme", unit="usd")
    await room.turns.resume("ann")
    await work(room, "needs_model")
    row = await waiting_turn(room)
    assert row.reason == "BudgetSpent: limit 'acme' is spent"
    assert row.cure == "raise the limit, or wait for its next day or month"


async def test_a_model_that_is_back_adds_its_facts_and_none_becomes_a_row_twice(
    room: Room, model: Fickle
) -> None:
    await room.say("ann", SAID)
    await work(room, "needs_model")
    for _ in range(3):
        assert await room.turns.resume("ann") == 1
        await work(room, "needs_model")
    assert await learned(room) == [BY_RULES]

    model.is_there = True
    room.services.at += timedelta(hours=1)
    await room.turns.resume("ann")
    await work(room, "done")

    assert await learned(room) == [BY_RULES, BY_MODEL]
    assert "User likes omelettes" in model.known[0]
    first, second = await room.found("ann")
    assert first.at == second.at
    assert room.counts.seen == {"turn:needs_model": 4, "turn:learned": 1}


async def test_a_turn_of_which_the_rules_read_nothing_waits_too(
    room: Room, model: Fickle
) -> None:
    await room.say("ann", SAID.partition(". ")[2])
    await work(room, "needs_model")
    assert await learned(room) == []
    model.is_there = True
    await room.turns.resume("ann")
    await work(room, "done")
    assert await learned(room) == [("t1-0", TOLD)]


@pytest.mark.parametrize("hangs", ["before", "after"])
async def test_a_worker_killed_around_a_hand_over_loses_and_doubles_nothing(
    room: Room, model: Fickle, hangs: Literal["before", "after"]
) -> None:
    await room.say("ann", SAID)
    await room.die_handing_over(switchboard, hangs)
    assert await learned(room) == ([] if hangs == "before" else [BY_RULES])
    await work(room, "needs_model")
    assert await learned(room) == [BY_RULES]

    model.is_there = True
    await room.turns.resume("ann")
    await room.die_handing_over(switchboard, hangs)
    await work(room, "done")

    assert await learned(room) == [BY_RULES, BY_MODEL]
    assert len(model.known) == (2 if hangs == "before" else 1)


@pytest.mark.parametrize("waits_for", [None, "LlmTimeout: late"])
@pytest.mark.parametrize("has_arrived", [False, True], ids=["noted", "published"])
async def test_facts_that_a_worker_of_0_2_noted_become_rows_and_nobody_is_asked(
    room: Room, has_arrived: bool, waits_for: str | None
) -> None:
    """It noted them, published them maybe, and died before it closed the turn."""
    fact = Fact(fact_id=BY_RULES[0], text=BY_RULES[1])
    extracted = ExtractedFacts(
        turn_id="t1", conversation_id="c", user_id="ann", facts=(fact,), at=now()
    )
    body = extracted.model_dump_json(exclude_none=True).encode()
    note = {**extracted.model_dump(mode="json"), "published": 0, "waits_for": waits_for}
    await room.say("ann", SAID)
    of = keys.queue("turns", user_token("ann"))
    await room.redis.hset(of.state, "n:t1", json.dumps(note))
    if has_arrived:
        await room.facts.append("ann", [(fact.fact_id, body)])

    async def learn(turn: ChatTurn, context: ListenContext) -> Sequence[Fact]:
        raise AssertionError("the listener is asked about what was answered")

    async with room.listening(ear(learn), "turns"):
        await room.closed("turns", "ann")
    (row,) = await room.rows("turns", "ann")
    expected = ("needs_model", waits_for) if waits_for else ("done", "learned")
    assert (row.state, row.reason) == expected
    assert [row.body for row in await room.rows("facts", "ann")] == [body]


async def test_a_turn_whose_answer_cannot_be_read_waits_through_kills_and_a_month(
    room: Room, model: Fickle
) -> None:
    """Listed with what the model wrote; a worker that is killed while it asks is no fault of the turn."""
    await room.say("ann", SAID)
    model.error = LlmMalformed("no JSON", answer="Sure! Here are the facts")
    await work(room, "needs_model")
    for _ in range(6):
        await room.turns.resume("ann")
        await kill_while_asking(room, model)
    for _ in range(3):
        room.services.at += timedelta(days=10)
        await room.turns.resume("ann")
        await work(room, "needs_model")
        row = await waiting_turn(room)
        assert (row.row_id, row.state) == ("t1", "needs_model")
        assert "Sure! Here are the facts" in row.reason
    model.is_there = True
    for _ in range(64):
        await room.turns.resume("ann")
        await work(room, "needs_model", "done")
        if model.known:
            break
    assert await learned(room) == [BY_RULES, BY_MODEL]


async def test_what_failed_is_listed_behind_any_number_of_others(room: Room) -> None:
    """A thousand turns that were learned since hide none."""
    await room.turns.append("ann", [("bad", b"no turn")])
    async with room.listening(switchboard, "turns"):
        await room.closed("turns", "ann")
    model = cast("Fickle", room.services.llm)
    model.configured = False
    numbers = range(1_100)
    await room.say("ann", *("hm" for _ in numbers))
    async with room.listening(switchboard, "turns"):
        await room.closed("turns", "ann")
    row = await waiting_turn(room)
    assert (row.row_id, row.state) == ("bad", "failed")
    assert await count_waiting("ann", room.turns, room.facts) == 1


async def test_a_handler_that_returns_known_facts_again_doubles_nothing(
    room: Room,
) -> None:
    seen: list[tuple[int, Sequence[Fact]]] = []

    async def learn(turn: ChatTurn, context: ListenContext) -> list[Fact]:
        seen.append((context.attempt, context.known_facts))
        if len(seen) == 1:
            context.wait_for_model("it is asleep")
        return [Fact(fact_id="f1", text=f"run {len(seen)}")]

    await room.say("ann", "one")
    async with room.listening(ear(learn), "turns"):
        await room.closed("turns", "ann")
    await room.turns.resume("ann")
    async with room.listening(ear(learn), "turns"):
        await room.closed("turns", "ann")

    assert await learned(room) == [("f1", "run 1")]
    assert [(attempt, [fact.text for fact in known]) for attempt, known in seen] == [
        (1, []),
        (2, ["run 1"]),
    ]
    (row,) = await room.rows("turns", "ann")
    assert (row.state, row.reason) == ("done", "learned")


async def kill_while_asking(room: Room, model: Fickle) -> None:
    """Have a worker end that waits for the answer of its model."""
    model.hangs = asyncio.Event()
    async with room.listening(switchboard, "turns", cut_short=True):
        await asyncio.wait_for(model.hangs.wait(), PATIENCE_S)
    model.hangs = None
