"""Facts that wait for a model: what was said later never loses to what waited."""

from collections.abc import Mapping
from typing import Any

import pytest
from redis.asyncio import Redis

from contracts.errors import LlmError, LlmUnavailable
from contracts.messages import ExtractedFacts, Fact
from tests.integration.listening import FOOD, Room, eventually, now
from tests.memory_bench import Model
from workers.agents.memory_worker import agent

#: A fact for which a model is asked what it leaves out.
VEGAN = ("food.diets", "Vegan", "new")


@pytest.fixture
def room(redis: Redis) -> Room:
    """Return an empty store, and what listeners need around it."""
    return Room(redis)


async def learn(room: Room, *facts: tuple[str, str, str], start: int = 1) -> None:
    """Append facts about what ann eats, called `f1` and on: category, value and relation."""
    rows = []
    for number, (category, value, relation) in enumerate(facts, start=start):
        told = {"fact_id": f"f{number}", "text": f"You: {value}", "evidence": value, "category": category}
        fact = Fact.model_validate({**told, "value": value, "relation": relation})
        body = ExtractedFacts(turn_id=f"t{number}", conversation_id="c", user_id="ann", facts=(fact,), at=now())
        rows.append((fact.fact_id, body.model_dump_json().encode()))
    await room.facts.append("ann", rows)


def likes(what: str) -> tuple[str, str, str]:
    """Return a fact that search alone decides."""
    return ("food.likes", what, "new")


def sweep(_role: str, _user: str) -> Mapping[str, Any]:
    """Answer as a finder that takes out what is liked first."""
    return {"reasoning": "looked", "locations": [{"fact": 1, "path": f"{FOOD}:food.likes[0]"}]}


async def live(room: Room, place: str = "likes") -> list[str]:
    """Return what holds of one list of ann's food."""
    food: Any = (await room.store.snapshot("ann", [FOOD])).documents[FOOD].body["food"]
    return [one["display"] for one in food[place] if "until" not in one]


def away(_role: str, _user: str) -> LlmError:
    """Be away."""
    return LlmUnavailable("503")


async def parked(room: Room, fact_id: str) -> None:
    """Return once that fact waits for a model."""

    async def is_parked() -> bool:
        return (await room.states("facts", "ann"))[fact_id] == "needs_model"

    await eventually(is_parked)


async def test_a_fact_that_waited_for_a_model_does_not_undo_what_was_said_meanwhile(room: Room) -> None:
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


async def test_a_fact_waits_for_a_model_aside_and_is_applied_when_it_answers(room: Room) -> None:
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
