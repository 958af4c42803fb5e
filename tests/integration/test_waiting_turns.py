"""Turns that wait for a model, on a real store: known facts and those added later are each published once."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import cast

import pytest
from redis.asyncio import Redis

from tasklore.contracts.errors import (
    BudgetSpent,
    LlmError,
    LlmMalformed,
    LlmTimeout,
)
from tasklore.contracts.messages import ChatTurn, ExtractedFacts, Fact
from tasklore.memory.queues.claims import Claim
from tasklore.memory.queues.waiting_rows import count_waiting, rows_waiting
from tasklore.runtime.models.llm import Expense, Reply
from tasklore.workers.agents.switchboard import agent as switchboard
from tasklore.workers.agents.switchboard.answer import Heard, HeardFact
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.turns import read_lesson
from tasklore.workers.testing import ScriptedLlm
from tests.integration.listening import PATIENCE_S, Post, Room, ear, eventually

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


def published(room: Room) -> list[tuple[str, str]]:
    """Return the id and the text of every fact that was published, in order."""
    bodies = [
        ExtractedFacts.model_validate_json(body) for _, body, _ in room.post.stored
    ]
    return [(fact.fact_id, fact.text) for body in bodies for fact in body.facts]


async def work(room: Room, *until: str) -> None:
    """Work on Ann's turn until it has come to one of these states."""
    async with room.listening(switchboard, "turns"):

        async def is_there() -> bool:
            return (await room.states("turns", "ann"))["t1"] in until

        await eventually(is_there)


async def test_facts_read_by_rules_are_published_and_the_turn_waits(room: Room) -> None:
    await room.say("ann", SAID, "I hate olives")
    async with room.listening(switchboard, "turns"):
        await room.closed("turns", "ann")
    assert published(room) == [BY_RULES, ("t2-0", "User dislikes olives")]
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
    (row,) = await rows_waiting("ann", room.turns, room.facts)
    assert row.cure == "configure a model, or wait until it answers"
    model.error = BudgetSpent("limit 'acme' is spent", "acme", unit="usd")
    await room.turns.resume("ann")
    await work(room, "needs_model")
    (row,) = await rows_waiting("ann", room.turns, room.facts)
    assert row.reason == "BudgetSpent: limit 'acme' is spent"
    assert row.cure == "raise the limit, or wait for its next day or month"


async def test_a_model_that_is_back_adds_its_facts_and_none_is_published_twice(
    room: Room, model: Fickle
) -> None:
    await room.say("ann", SAID)
    await work(room, "needs_model")
    for _ in range(3):
        assert await room.turns.resume("ann") == 1
        await work(room, "needs_model")
    assert published(room) == [BY_RULES]

    model.is_there = True
    room.services.at += timedelta(hours=1)
    await room.turns.resume("ann")
    await work(room, "done")

    assert published(room) == [BY_RULES, BY_MODEL]
    assert "User likes omelettes" in model.known[0]
    assert len({name for _, _, name in room.post.stored}) == 2
    first, second = (
        ExtractedFacts.model_validate_json(body) for _, body, _ in room.post.stored
    )
    assert first.at == second.at
    assert room.counts.seen == {"turn:needs_model": 4, "turn:learned": 1}


async def test_a_turn_of_which_the_rules_read_nothing_waits_too(
    room: Room, model: Fickle
) -> None:
    await room.say("ann", SAID.partition(". ")[2])
    await work(room, "needs_model")
    assert room.post.stored == []
    model.is_there = True
    await room.turns.resume("ann")
    await work(room, "done")
    assert published(room) == [("t1-0", TOLD)]


async def test_a_worker_killed_before_it_published_leaves_that_to_the_next(
    room: Room, model: Fickle
) -> None:
    await room.say("ann", SAID)
    await kill_while_publishing(room)
    await work(room, "needs_model")
    assert published(room) == [BY_RULES]

    model.is_there = True
    await room.turns.resume("ann")
    await kill_while_publishing(room)
    await work(room, "done")

    assert published(room) == [BY_RULES, BY_MODEL]
    assert len(model.known) == 1


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
        (row,) = await rows_waiting("ann", room.turns, room.facts)
        assert (row.row_id, row.state) == ("t1", "needs_model")
        assert "Sure! Here are the facts" in row.reason
    model.is_there = True
    for _ in range(64):
        await room.turns.resume("ann")
        await work(room, "needs_model", "done")
        if model.known:
            break
    assert published(room) == [BY_RULES, BY_MODEL]


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
    (row,) = await rows_waiting("ann", room.turns, room.facts)
    assert (row.row_id, row.state) == ("bad", "failed")
    assert await count_waiting("ann", room.turns, room.facts) == 1


@pytest.mark.parametrize("last", [1, 2], ids=["published", "noted as published"])
async def test_a_worker_killed_before_the_turn_is_closed_loses_and_doubles_nothing(
    room: Room, model: Fickle, last: int
) -> None:
    await room.say("ann", SAID)
    await kill_after_note(room, last)
    model.is_there = True
    async with room.listening(switchboard, "turns"):
        await room.closed("turns", "ann")
    if (await room.states("turns", "ann"))["t1"] == "needs_model":
        await room.turns.resume("ann")
        await work(room, "done")

    assert list(dict.fromkeys(published(room))) == [BY_RULES, BY_MODEL]
    assert len({name for _, _, name in room.post.stored}) == 2
    assert published(room).count(BY_RULES) == (2 if last == 1 else 1)


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

    assert published(room) == [("f1", "run 1")]
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


async def kill_while_publishing(room: Room) -> None:
    """Have a worker end that has noted its facts, and is about to publish them."""
    post = room.post
    room.post = Post()
    room.post.is_hanging = True
    async with room.listening(switchboard, "turns", cut_short=True):
        await asyncio.wait_for(room.post.hangs.wait(), PATIENCE_S)
    room.post = post


async def kill_after_note(room: Room, last: int) -> None:
    """Have a worker end that wrote that many notes, before it closes its turn; the last is not written for 1."""
    claims = []
    hung = asyncio.Event()
    note = room.turns.note
    notes = [0]

    async def hanging_note(claim: Claim, row_id: str, body: bytes) -> bool:
        notes[0] += 1
        claims.append(claim)
        if notes[0] > last:
            hung.set()
            await asyncio.Event().wait()
        done = await note(claim, row_id, body)
        if notes[0] == last == 2:
            hung.set()
            await asyncio.Event().wait()
        return done

    room.turns.note = hanging_note  # type: ignore[method-assign]  # as if the process died there
    async with room.listening(switchboard, "turns", cut_short=True):
        await asyncio.wait_for(hung.wait(), PATIENCE_S)
    room.turns.note = note  # type: ignore[method-assign]
    claim = await room.turns.claim(
        "ann", holder="look", limit=1, lease_ms=1000, now_ms=0
    )
    lesson = read_lesson(claim.rows[0])
    assert lesson.is_published == (last == 2)
    await room.turns.release(claim)
