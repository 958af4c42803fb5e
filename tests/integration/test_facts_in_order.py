"""Facts that a model is needed for, on a real store: what was said later never loses to what waited."""

from collections.abc import Mapping
from typing import Any

import pytest
from redis.asyncio import Redis

from contracts.errors import LlmError, LlmUnavailable
from contracts.messages import ExtractedFacts, Fact
from tests.integration.listening import Room, eventually, now
from tests.memory_bench import Model
from workers.agents.memory_worker import agent

#: A fact that no pattern reads.
ODD = "User's idea of a good morning is an omelette"


@pytest.fixture
def room(redis: Redis) -> Room:
    """Return an empty store, and what listeners need around it."""
    return Room(redis)


async def learn(room: Room, *texts: str, start: int = 1) -> None:
    """Append facts about what ann eats, called `f1` and on."""
    rows = []
    for number, text in enumerate(texts, start=start):
        fact = Fact(fact_id=f"f{number}", text=text, tags=("food",))
        body = ExtractedFacts(turn_id=f"t{number}", conversation_id="c", user_id="ann", facts=(fact,), at=now())
        rows.append((fact.fact_id, body.model_dump_json().encode()))
    await room.facts.append("ann", rows)


def answer(role: str, _user: str) -> Mapping[str, Any]:
    """Answer as two models that see one thing to do: to take out what is liked first, and put in an omelette."""
    if role == "editor":
        edits = [{"operation": "insert", "path": "food.likes", "display": "An omelette"}]
        return {"reasoning": "so it says", "decision": "proceed", "edits": edits}
    return {"reasoning": "looked", "locations": [], "suggested_insert_path": ["food.likes"]}


async def test_what_waited_for_a_model_does_not_undo_what_was_said_meanwhile(room: Room) -> None:
    """To be vegan no more left no trace but its row, and that is enough."""
    model: Any = Model()
    room.services.llm = model
    await learn(room, "User likes steak", "User likes Grandma's secret", "User is vegan")
    async with room.listening(agent, "facts") as outflow:
        await room.closed("facts", "ann")
        assert (await room.states("facts", "ann"))["f3"] == "needs_model"

        await learn(room, "User is not vegan any more", start=4)
        outflow.look_soon()
        await room.closed("facts", "ann")
        model.respond = answer
        assert await room.facts.resume_all() == 1
        outflow.look_soon()
        await room.closed("facts", "ann")

    rows = {row.row_id: row for row in await room.rows("facts", "ann")}
    assert {name: row.state for name, row in rows.items()} == {
        "f1": "done",
        "f2": "done",
        "f3": "rejected",
        "f4": "done",
    }
    assert rows["f3"].reason.startswith("older: superseded by f4")
    assert await room.likes("ann") == ["Steak", "Grandma's secret"]
    assert model.asked == []


async def test_what_waited_for_a_model_is_done_when_nothing_was_said_against_it(room: Room) -> None:
    """Whatever else was said meanwhile."""
    model: Any = Model()
    room.services.llm = model
    await learn(room, ODD, "User likes bagels")
    async with room.listening(agent, "facts") as outflow:
        await room.closed("facts", "ann")
        model.respond = answer
        assert await room.facts.resume_all() == 1
        outflow.look_soon()
        await room.closed("facts", "ann")

    assert await room.states("facts", "ann") == {"f1": "done", "f2": "done"}
    assert await room.likes("ann") == ["Bagels", "An omelette"]


async def test_a_blip_of_the_model_changes_no_order(room: Room) -> None:
    """The fact stays first and is tried again; what came before it does not wait, what comes after it does."""
    seen: list[list[str]] = []
    left = [3]

    def respond(role: str, user: str) -> Mapping[str, Any] | LlmError:
        seen.append([line for line in user.splitlines() if "Bagels" in line])
        if left[0]:
            left[0] -= 1
            return LlmUnavailable("503")
        return answer(role, user)

    model: Any = Model(respond)
    room.services.llm = model
    await learn(room, "User likes tea", ODD, "User likes bagels")
    async with room.listening(agent, "facts"):
        await room.closed("facts", "ann")

    assert await room.states("facts", "ann") == {"f1": "done", "f2": "done", "f3": "done"}
    assert await room.likes("ann") == ["Tea", "An omelette", "Bagels"]
    assert room.counts.seen["fact:needs_model"] == 0
    assert not any(seen)


async def test_a_model_that_stays_away_holds_up_nobody_for_ever(room: Room) -> None:
    """Its fact waits for it aside, and comes back."""
    room.services.llm = Model(lambda _role, _user: LlmUnavailable("503"))  # type: ignore[assignment]
    await learn(room, ODD, "User likes bagels")
    async with room.listening(agent, "facts"):

        async def is_over() -> bool:
            return (await room.states("facts", "ann")) == {"f1": "needs_model", "f2": "done"}

        await eventually(is_over)
    assert await room.likes("ann") == ["Bagels"]
    (parked,) = [row for row in await room.rows("facts", "ann") if row.row_id == "f1"]
    assert (parked.attempts, parked.note) == (0, b"parked")
