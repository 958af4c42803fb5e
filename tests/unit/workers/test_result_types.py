"""The JSON type of a result follows from its field, not from its value, and its schema says so."""

import json
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from tasklore.ltm.result_fit import demand_fitting
from workers import Agent, Amount, Duration, Parameters, Percent, Quantity
from workers.card import card_of
from workers.testing import AgentKit, run_task


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
async def test_a_type_does_not_depend_on_the_value(whole: Any, parts: int, each: float) -> None:
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
    """Rounding is for results alone: what is sent on or kept as a question stays exact."""
    parts = Parts(whole=Amount("1234567890123456.78"))
    assert Parts.model_validate_json(parts.model_dump_json()) == parts
    assert (await run_task(agent, "split", parts)).result["exact"] == "1234567890123456.78"
