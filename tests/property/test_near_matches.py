"""A near answer is never of another unit, sign or text, nor further away than was declared."""

import asyncio
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount
from tasklore.memory import keys
from tests.fakes.stores import FakeLongTermMemory


class Plan(Parameters):
    """A percentage, an absolute tolerance, and what must be equal."""

    limit: Amount = Field(unit="USD", tolerance="2.5%")
    people: int | None = Field(None, tolerance=3)
    town: str = ""
    past: tuple[Amount, ...] = ()


#: Many of them alike, so that most are somebody's neighbours, and some at a border or a hair beyond it.
limits = st.one_of(
    st.decimals(min_value=-110, max_value=110, places=1, allow_nan=False),
    st.sampled_from(
        [
            "100",
            "102.5",
            "97.5",
            "102.5000000000000000000000001",
            "97.49999999999999999999",
            "0",
            "-100",
        ]
    ),
    st.builds(
        lambda digits, power: Decimal(digits).scaleb(power),
        st.integers(990, 1010),
        st.integers(-33, 30),
    ),
)
plans = st.fixed_dictionaries(
    {"limit": limits},
    optional={
        "people": st.integers(-4, 8),
        "town": st.sampled_from(["Kiel", "kiel", "~near+USD", "100USD"]),
        "past": st.lists(st.sampled_from([1, "1.5"]), max_size=2),
    },
)


@given(plans, st.lists(plans, max_size=12))
def test_a_near_answer_is_within_every_tolerance_and_equal_in_all_else(
    asked: dict[str, Any], others: list[dict[str, Any]]
) -> None:
    question = Plan.read(asked)
    known = [Plan.read(other) for other in others]
    memory = FakeLongTermMemory()
    found = asyncio.run(_nearest(memory, question, known))
    near = [other for other in known if _is_near(question, other)]
    if found is None:
        assert near == []
        return
    [served] = {
        Parameters.key(other, "plan"): other for other in known if _key(other) == found
    }.values()
    assert _is_near(question, served)
    assert _used(question, served) == min(_used(question, other) for other in near)


async def _nearest(
    memory: FakeLongTermMemory, asked: Plan, known: list[Plan]
) -> str | None:
    for other in known:
        near = Parameters.neighbourhood(other, "plan")
        await memory.remember(
            _key(other),
            b"1",
            computed_ms=1,
            ttl=timedelta(hours=1),
            now_ms=1,
            near=near,
        )
    here = Parameters.neighbourhood(asked, "plan")
    assert here is not None
    [found] = await memory.nearest([(_key(asked), here)])
    return found.key if found is not None else None


def _key(plan: Plan) -> str:
    return keys.ltm("Planner", "1.1", Parameters.key(plan, "plan"))


def _is_near(asked: Plan, other: Plan) -> bool:
    if (asked.town, asked.past) != (other.town, other.past) or asked == other:
        return False
    one = asked.limit.value
    two = other.limit.value
    if _sign(one) != _sign(two) or abs(Fraction(one) - Fraction(two)) > abs(
        Fraction(one)
    ) * Fraction(25, 1000):
        return False
    if asked.people is None or other.people is None:
        return asked.people is other.people
    return (
        _sign(asked.people) == _sign(other.people)
        and abs(asked.people - other.people) <= 3
    )


def _sign(number: Decimal | int) -> int:
    return (number > 0) - (number < 0)


def _used(asked: Plan, other: Plan) -> Fraction:
    one = Fraction(asked.limit.value)
    two = Fraction(other.limit.value)
    used = abs(one - two) / (abs(one) * Fraction(25, 1000)) if one else Fraction()
    return used + Fraction(abs((asked.people or 0) - (other.people or 0)), 3)
