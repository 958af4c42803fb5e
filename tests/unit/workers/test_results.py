"""Results: the JSON type follows from the field, its schema says so, and setting one takes what a task may return."""

import json
from datetime import timedelta
from decimal import Decimal
from enum import Enum
from typing import Any, Literal

import pytest
from pydantic import BaseModel, TypeAdapter

from tasklore import Agent, Amount, Duration, Parameters, Percent, Quantity
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.quantities.amounts.amount import RESULT
from tasklore.supervisor.operations.result_fit import demand_fitting
from tasklore.workers.agents.budget import agent as budget
from tasklore.workers.card import card_of
from tasklore.workers.testing import AgentKit, run_task


class Parts(Parameters):
    """What is shared, and by how many."""

    whole: Amount
    parts: int = 1


class Share(BaseModel):
    """What each gets, in every kind of value."""

    each: Amount
    exact: Decimal
    several: list[Amount]
    by_name: dict[str, Amount]
    maybe: Amount | None
    share: Percent
    length: Quantity
    lasts: Duration
    within: timedelta


agent = Agent("ShareAgent")


@agent.task(remember="shared")
async def split(parts: Parts) -> Share:
    """Split something."""
    each = parts.whole / parts.parts
    return Share(
        each=each,
        exact=each.value,
        several=[each],
        by_name={"each": each},
        maybe=each,
        share=Percent(each.value),
        length=Quantity(each.value, "m"),
        lasts=Duration("90 minutes"),
        within=timedelta(seconds=7),
    )


def types_of(value: Any) -> Any:
    """Return *value* with each number and text in it replaced by its JSON type."""
    if isinstance(value, dict):
        return {name: types_of(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [types_of(inner) for inner in value]
    return "number" if isinstance(value, int | float) else type(value).__name__


@pytest.mark.parametrize(
    ("whole", "parts", "each"),
    [
        (28, 7, 4),
        (29, 7, 4.14285714285714),
        ("12345678901234567890", 1, 12345678901234567890),
        ("0.000000000000000000001", 3, 3.33333333333333e-22),
    ],
)
async def test_a_type_does_not_depend_on_the_value(
    whole: Any, parts: int, each: float
) -> None:
    """Whole numbers are exact, others have 15 digits; who needs more declares a Decimal, which is always a text."""
    kit = AgentKit(agent)
    report = await kit.run("split", {"whole": whole, "parts": parts})
    result: Any = report.result
    assert (result["each"], result["several"], result["by_name"], result["maybe"]) == (
        each,
        [each],
        {"each": each},
        each,
    )
    assert types_of(result) == {
        **dict.fromkeys(("each", "maybe"), "number"),
        "several": ["number"],
        "by_name": {"each": "number"},
        **dict.fromkeys(("exact", "share", "length", "lasts", "within"), "str"),
    }
    demand_fitting(result, card_of(agent), "split")
    # What is remembered is the very same.
    again = await kit.run("split", {"whole": whole, "parts": parts})
    assert (again.memory.outcome, again.result) == ("hit", result)


def test_the_schema_of_a_result_names_one_type_a_field() -> None:
    """A typed client is generated from it; a parameter still takes texts."""
    (task,) = card_of(agent).tasks
    told = json.dumps(task.result)
    assert '"type": "number"}, {"type": "string"}' not in told
    result: Any = task.result
    each = result["properties"]["each"]["anyOf"]
    assert [option["type"] for option in each] == ["number", "object"]
    assert each[1]["properties"]["value"] == {"type": "number"}
    parameters: Any = task.parameters
    assert {"type": "string"} in parameters["properties"]["whole"]["anyOf"]


async def test_a_parameter_that_travels_loses_no_digit() -> None:
    parts = Parts(whole=Amount("1234567890123456.78"))
    assert Parts.model_validate_json(parts.model_dump_json()) == parts
    assert (await run_task(agent, "split", parts)).result[
        "exact"
    ] == "1234567890123456.78"


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


wide_agent = Agent("WideAgent")


@wide_agent.task(remember="shared")
async def make(parameters: Parameters) -> Wide:
    """Make one."""
    raise NotImplementedError


@wide_agent.task(remember="shared")
async def count(parameters: Parameters) -> dict[str, int]:
    """Count."""
    return {}


RIGHT: dict[str, Any] = {
    "flag": True, "count": 1, "ratio": 0.5, "text": "x", "word": "a", "colour": "red", "within": "PT1H", "lasts": "P1M",
    "pair": [1, "x"], "inner": {"cost": 4, "share": "20%"}, "many": [{"cost": 4.5, "share": None}],
    "names": {"x": 1}, "free": {"any": [1]},
}  # fmt: skip


def test_what_a_task_writes_fits_its_own_card() -> None:
    demand_fitting(RIGHT, card_of(wide_agent), "make")
    for cost in (Amount(4), Amount("29") / 7, Amount(4, "USD"), Amount("0.1")):
        inner = json.loads(
            TypeAdapter(Inner).dump_json(Inner(cost=cost), context=RESULT)
        )
        demand_fitting(RIGHT | {"inner": inner}, card_of(wide_agent), "make")
    demand_fitting({"b": 2}, card_of(wide_agent), "count")


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
    with pytest.raises(
        InvalidInput,
        match=rf"no result of WideAgent.make: {said}.*tasklore agents list --json",
    ):
        demand_fitting(RIGHT | change, card_of(wide_agent), "make")


def test_a_missing_field_and_an_unknown_task_are_named() -> None:
    """As a person types them."""
    with pytest.raises(
        InvalidInput, match="spending_rate is missing; overshoot_risk is missing"
    ):
        demand_fitting({"remaining": 1}, card_of(budget), "analyze_budget")
    with pytest.raises(
        InvalidInput, match="has no task 'analyse'; it has analyze_budget"
    ):
        demand_fitting({}, card_of(budget), "analyse")
