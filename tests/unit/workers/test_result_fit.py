"""What `ltm set` takes: what a task could have returned, by the card of a real agent."""

import json
from datetime import timedelta
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, TypeAdapter

from contracts.errors import InvalidInput
from quantities.amounts.amount import RESULT
from tasklore.ltm.result_fit import demand_fitting
from workers import Agent, Amount, Duration, Parameters, Percent
from workers.agents.budget import agent as budget
from workers.card import card_of


class Colour(Enum):
    """A closed word."""

    RED = "red"


class Inner(BaseModel):
    """Something inside."""

    cost: Amount
    share: Percent | None = None


class Wide(BaseModel):
    """A result with something of every kind."""

    flag: bool
    count: int
    ratio: float
    text: str
    word: Literal["a", "b"]
    colour: Colour
    within: timedelta
    lasts: Duration
    pair: tuple[int, str]
    inner: Inner
    many: list[Inner] = []
    names: dict[str, int] = {}
    free: Any = None


agent = Agent("WideAgent")


@agent.task(remember="shared")
async def make(parameters: Parameters) -> Wide:
    """Make one."""
    raise NotImplementedError


@agent.task(remember="shared")
async def count(parameters: Parameters) -> dict[str, int]:
    """Count."""
    return {}


RIGHT: dict[str, Any] = {
    "flag": True, "count": 1, "ratio": 0.5, "text": "x", "word": "a", "colour": "red", "within": "PT1H", "lasts": "P1M",
    "pair": [1, "x"], "inner": {"cost": 4, "share": "20%"}, "many": [{"cost": 4.5, "share": None}],
    "names": {"x": 1}, "free": {"any": [1]},
}  # fmt: skip


def test_what_a_task_writes_fits_its_own_card() -> None:
    """The schema says what is written, amounts with and without a unit among it."""
    demand_fitting(RIGHT, card_of(agent), "make")
    for cost in (Amount(4), Amount("29") / 7, Amount(4, "USD"), Amount("0.1")):
        inner = json.loads(TypeAdapter(Inner).dump_json(Inner(cost=cost), context=RESULT))
        demand_fitting(RIGHT | {"inner": inner}, card_of(agent), "make")
    demand_fitting({"b": 2}, card_of(agent), "count")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"flag": 1}, "flag must be of type boolean, not int"),
        ({"count": True}, "count must be of type integer, not bool"),
        ({"word": "c"}, r"word must be one of \['a', 'b'\], not 'c'"),
        ({"pair": ["x", 1]}, r"pair\[0\] must be of type integer, not str"),
        ({"inner": {}}, "inner.cost is missing"),
        ({"many": [{"cost": 1, "share": 3}]}, r"many\[0\].share must be of type"),
        ({"names": {"x": "y"}}, "names.x must be of type integer, not str"),
    ],
)
def test_a_field_that_does_not_fit_is_named(change: dict[str, Any], said: str) -> None:
    """With its place, what it takes, and where that can be read."""
    with pytest.raises(InvalidInput, match=rf"no result of WideAgent.make: {said}.*tasklore agents list --json"):
        demand_fitting(RIGHT | change, card_of(agent), "make")


def test_a_missing_field_and_an_unknown_task_are_named() -> None:
    """As a person types them."""
    with pytest.raises(InvalidInput, match="spending_rate is missing; overshoot_risk is missing"):
        demand_fitting({"remaining": 1}, card_of(budget), "analyze_budget")
    with pytest.raises(InvalidInput, match="has no task 'analyse'; it has analyze_budget"):
        demand_fitting({}, card_of(budget), "analyse")
