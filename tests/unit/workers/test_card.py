"""Agent cards: their content, and which changes are a change of contract."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from tasklore import Agent, Amount, Field, Parameters
from tasklore.contracts.messages import AgentCard
from tasklore.workers.card import card_of, same_contract


class Result(BaseModel):
    """What a task of these tests returns."""

    each: Amount


def build(
    *,
    agent_id: str = "TripAgent",
    version: int = 1,
    task_version: int = 1,
    remember: Literal["shared", "user", False] = "shared",
    prose: str = "one",
    fields: dict[str, Any] | None = None,
    result: Any = Result,
) -> AgentCard:
    """Return the card of an agent with one task whose parameters are *fields*."""
    agent = Agent(agent_id, version=version, description=prose, keywords=(prose,))
    fields = fields or {
        "hotel": (Amount, Field(cues=(prose,), examples=(prose,), description=prose))
    }
    kinds = {name: kind for name, (kind, _) in fields.items()}
    defaults = {name: default for name, (_, default) in fields.items()}
    trip = type(
        "Trip",
        (Parameters,),
        {
            "__annotations__": kinds,
            "__module__": __name__,
            "__doc__": prose,
            **defaults,
        },
    )

    async def share(trip: Parameters) -> Any:
        raise NotImplementedError

    share.__annotations__ = {"trip": trip, "return": result}
    share.__doc__ = prose
    agent.task(
        version=task_version, remember=remember, keywords=(prose,), examples=(prose,)
    )(share)
    return card_of(agent)


def test_a_card_tells_what_a_caller_needs() -> None:
    """Schema, aliases, cues, result, limits and prose are all there, and survive the wire."""
    agent = Agent("TripAgent", version=2, description="Trips.", keywords=("trip",))

    class Trip(Parameters):
        hotel: Amount = Field(aliases=("room",), cues=("room for",), unit="USD")
        travellers: int = 2

    @agent.task(
        deadline=timedelta(seconds=90),
        max_attempts=3,
        remember=False,
        examples=("share a room",),
    )
    async def share(trip: Trip) -> Result:
        """Share the hotel."""
        return Result(each=trip.hotel / trip.travellers)

    card = card_of(agent)
    (task,) = card.tasks
    properties: Any = task.parameters["properties"]
    assert (card.agent_id, card.version, card.description, card.keywords) == (
        "TripAgent",
        2,
        "Trips.",
        ("trip",),
    )
    assert (task.name, task.description, task.remember) == (
        "share",
        "Share the hotel.",
        "never",
    )
    assert (task.deadline_s, task.max_attempts, task.examples) == (
        90.0,
        3,
        ("share a room",),
    )
    assert properties["hotel"]["aliases"] == ["room"]
    assert properties["hotel"]["cues"] == ["room for"]
    assert properties["hotel"]["unit"] == "USD"
    assert task.parameters["required"] == ["hotel"]
    assert task.result is not None
    assert "each" in str(task.result["properties"])
    assert AgentCard.model_validate_json(card.model_dump_json()) == card


def test_prose_is_no_part_of_the_contract() -> None:
    """Descriptions, keywords, cues and examples may be improved without a new version."""
    one = build(prose="one")
    other = build(prose="other")
    assert one != other
    assert same_contract(one, other)
    assert len(one.digest) == 16


#: Each is a change that callers or memories would notice.
CHANGES: dict[str, Callable[[], AgentCard]] = {
    "agent id": lambda: build(agent_id="OtherAgent"),
    "agent version": lambda: build(version=2),
    "task version": lambda: build(task_version=2),
    "remember": lambda: build(remember="user"),
    "result": lambda: build(result=int),
    "field name": lambda: build(fields={"room": (Amount, Field())}),
    "field type": lambda: build(fields={"hotel": (int, Field())}),
    "default": lambda: build(fields={"hotel": (Amount, Field(Amount(5)))}),
    "alias": lambda: build(fields={"hotel": (Amount, Field(aliases=("room",)))}),
    "unit": lambda: build(fields={"hotel": (Amount, Field(unit="USD"))}),
    "another field": lambda: build(
        fields={"hotel": (Amount, Field()), "title": (str, Field("x"))}
    ),
}


@pytest.mark.parametrize("change", CHANGES)
def test_what_callers_and_memories_depend_on_is_the_contract(change: str) -> None:
    """Two live workers that differ in it must not share a queue."""
    assert not same_contract(build(), CHANGES[change]())


def test_the_order_of_fields_is_part_of_the_contract() -> None:
    """It is the order of values in the memory's key."""
    one: dict[str, Any] = {"hotel": (Amount, Field()), "room": (Amount, Field())}
    assert not same_contract(
        build(fields=one), build(fields=dict(reversed(one.items())))
    )


def test_a_parameter_called_like_prose_counts() -> None:
    fields = [
        {"title": (str, Field())},
        {"title": (int, Field())},
        {"description": (int, Field())},
    ]
    assert len({build(fields=field).digest for field in fields}) == 3  # type: ignore[arg-type]  # tuples of anything
