"""Fields of percentages and measures: what a sentence has to say for them, and what they never take."""

from typing import Any

import pytest

from contracts.parameters import Field, Parameters
from quantities.amounts import Amount
from quantities.amounts.percent import Percent
from quantities.amounts.quantity import Quantity
from supervisor.catalogue import Catalogue
from supervisor.understanding import Ambiguous, Missing
from tests.understanding_cases import card_for, parameters_of, understand


class Loan(Parameters):
    """A loan, and what it costs."""

    principal: Amount = Field(cues=("loan of", "borrow"))
    rate: Percent = Field(cues=("interest",))


class Parcel(Parameters):
    """A parcel, how heavy it is and how long."""

    weight: Quantity = Field(unit="kg", cues=("weighs",))
    length: Quantity | None = Field(None, cues=("long",))


HOUSE = Catalogue([
    card_for("LoanAgent", "plan_loan", Loan, "Plan a loan.", ("loan", "mortgage")),
    card_for("ParcelAgent", "send_parcel", Parcel, "Send a parcel.", ("parcel", "send")),
])  # fmt: skip


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Plan a loan of 300k at 3.5%", {"principal": 300000, "rate": "3.5%"}),
        ("Plan a loan of 300k with an interest of 4 percent", {"principal": 300000, "rate": "4%"}),
        ("Plan a loan of 300k, interest 4", {"principal": 300000, "rate": "4%"}),
        ("Send a parcel that weighs 5 kg", {"weight": "5 kg"}),
        ("Send a parcel of 500 g", {"weight": "0.5 kg"}),
        ("Send a parcel, weighs 5", {"weight": "5 kg"}),
        ("Send a parcel that weighs 5 kg and is 2 feet long", {"weight": "5 kg", "length": "2 ft"}),
    ],
)
def test_a_percentage_or_measure_is_known_by_its_unit_or_its_cue(text: str, expected: dict[str, Any]) -> None:
    """A bare number is taken only where it is announced."""
    assert parameters_of(understand(text, catalogue=HOUSE)) == expected


def test_a_bare_number_is_no_percentage() -> None:
    """It is asked for."""
    found = understand("4: plan a loan of 300k", catalogue=HOUSE)
    assert isinstance(found, Missing)
    assert found.missing == ("rate",)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("Send a parcel that weighs 5 miles", "What is weight in kg? You wrote '5 miles', which is in mile."),
        (
            "Send a parcel that weighs 5 kg and is 2 long",
            "What is length with its unit? You wrote '2'.",
        ),
    ],
)
def test_another_dimension_or_no_unit_is_asked_about(text: str, question: str) -> None:
    """Nothing is converted across dimensions, and no unit is guessed."""
    found = understand(text, catalogue=HOUSE)
    assert isinstance(found, Ambiguous | Missing)
    assert question in found.question
