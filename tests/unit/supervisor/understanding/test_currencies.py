"""No currency that was said is dropped where it matters, and two of them never meet in one task."""

from typing import Any, Literal

import pytest

from tasklore.contracts.messages import TaskCall
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import Clarification
from tests.understanding_cases import (
    budget_turn,
    card_for,
    parameters_of,
    said,
    understand,
)


class Payment(Parameters):
    """An amount beside its currency."""

    amount: Amount
    currency: Literal["EUR", "USD"] = "EUR"


class Transfer(Parameters):
    """The same with any currency."""

    amount: Amount
    currency: str = "EUR"


class Tip(Parameters):
    """An amount alone, and a number that may be left out."""

    amount: Amount
    guests: int | None = None


class Conversion(Parameters):
    """An amount from one currency into another."""

    amount: Amount
    from_currency: str
    to_currency: str


class Route(Parameters):
    """A length in a unit."""

    length: Amount = Field(unit="km")


PAY = Catalogue([card_for("PayAgent", "pay", Payment, "Pay an amount.", ("pay",))])
SEND = Catalogue([card_for("SendAgent", "send", Transfer, "Send it.", ("send",))])
TIP = Catalogue([card_for("TipAgent", "tip", Tip, "Give a tip.", ("tip",))])
CONVERT = Catalogue(
    [card_for("BankAgent", "convert", Conversion, "Convert money.", ("convert",))]
)
ROUTE = Catalogue([card_for("RoadAgent", "route", Route, "Plan it.", ("route",))])


@pytest.mark.parametrize(
    "text",
    [
        "limit 500 euros and 40000 yen spent",
        "limit $500 and 400 euros spent",
        "budget: limit 500 pounds, spent 30 USD",
    ],
)
def test_two_currencies_of_one_task_are_asked_about(text: str) -> None:
    found = understand(text)
    assert isinstance(found, Clarification), found
    assert set(found.missing) == {"budget_limit", "spent"}
    assert "in two currencies" in found.question


@pytest.mark.parametrize(
    "text",
    [
        "limit $50,000.00 and 42k spent",
        "limit 50k euros and 42k euros spent",
        "limit $50,000 and 42,000 USD spent",
    ],
)
def test_one_currency_for_all_is_as_good_as_none(text: str) -> None:
    found = parameters_of(understand(text))
    assert found == {"budget_limit": 50_000, "spent": 42_000}


@pytest.mark.parametrize(
    ("catalogue", "text", "parameters"),
    [
        (PAY, "pay 120", {"amount": 120}),
        (PAY, "pay 120 euros", {"amount": 120, "currency": "EUR"}),
        (PAY, "pay $120", {"amount": 120, "currency": "USD"}),
        (SEND, "send 120 yen", {"amount": 120, "currency": "JPY"}),
    ],
)
def test_a_field_for_the_currency_takes_the_one_that_was_said(
    catalogue: Catalogue, text: str, parameters: dict[str, Any]
) -> None:
    assert parameters_of(understand(text, catalogue=catalogue)) == parameters


@pytest.mark.parametrize("text", ["pay 120 yen", "pay 120 yen, currency EUR"])
def test_a_currency_that_a_field_does_not_take_is_asked_about(text: str) -> None:
    found = understand(text, catalogue=PAY)
    assert isinstance(found, Clarification), found
    assert found.missing == ("currency",)
    assert "You wrote '120 yen'" in found.question


@pytest.mark.parametrize("text", ["send 80 kr", "send 500 rupees"])
def test_a_name_of_several_currencies_is_asked_about(text: str) -> None:
    """The likeliest of them would be a guess."""
    found = understand(text, catalogue=SEND)
    assert isinstance(found, Clarification), found
    assert found.missing == ("currency",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tip 120 yen", "'120 yen'"),
        ("tip $120", "'$120'"),
        ("a tip of €120 please", "'€120'"),
        ("tip JPY 120", "'JPY 120'"),
        ("amount 120 dollars, tip it", "'120 dollars'"),
        ("tip a hundred bucks", "'a hundred bucks'"),
        ("tip 120, in yen", "'yen'"),
        ("tip in euros: 120", "'euros'"),
        ("tip 120 (GBP)", "'GBP'"),
        ("tip 5 km", "'5 km'"),
        ("tip 3 pounds", "'3 pounds'"),
        ("tip 20%", "'20%'"),
        ("tip 12, guests 3 euros", "'3 euros'"),
    ],
)
def test_a_currency_or_unit_that_nothing_takes_is_asked_about(
    text: str, words: str
) -> None:
    found = understand(text, catalogue=TIP)
    assert isinstance(found, Clarification), found
    assert words in found.question


def test_a_number_alone_answers_that_question() -> None:
    asked = understand("tip 120 yen", catalogue=TIP)
    assert isinstance(asked, Clarification)
    turns = [
        said("person", "tip 120 yen"),
        said("assistant", asked.question, asked.call, "TipAgent"),
    ]
    assert parameters_of(understand("110", turns, TIP)) == {"amount": 110}


@pytest.mark.parametrize(
    ("text", "parameters"),
    [
        ("send 120, in yen", {"amount": 120, "currency": "JPY"}),
        ("send 120 (GBP)", {"amount": 120, "currency": "GBP"}),
    ],
)
def test_a_currency_apart_from_its_number_goes_to_the_field_for_it(
    text: str, parameters: dict[str, Any]
) -> None:
    assert parameters_of(understand(text, catalogue=SEND)) == parameters


def test_a_unit_apart_from_its_number_is_no_other_unit() -> None:
    assert parameters_of(understand("route length 5, in km", catalogue=ROUTE)) == {
        "length": 5
    }
    found = understand("route length 5, in miles", catalogue=ROUTE)
    assert isinstance(found, Clarification), found


def test_of_two_currencies_the_one_of_the_amount_has_to_be_said() -> None:
    """Which of two fields is the amount's is not guessed; where both are said, one of them has to be it."""
    found = understand("convert 100 GBP to EUR", catalogue=CONVERT)
    assert isinstance(found, Clarification), found
    whole = "convert 100 GBP, from currency GBP, to currency EUR"
    assert parameters_of(understand(whole, catalogue=CONVERT)) == {
        "amount": 100,
        "from_currency": "GBP",
        "to_currency": "EUR",
    }


@pytest.mark.parametrize("text", ["and with 40000 yen spent?", "the same, spent $45k"])
def test_an_amount_is_not_put_beside_one_of_an_earlier_turn_in_another_currency(
    text: str,
) -> None:
    said_before = said("person", "limit 50k euros and 42k euros spent")
    turns = [said_before, *budget_turn(budget_limit=50_000, spent=42_000)[-1:]]
    found = understand(text, turns)
    assert isinstance(found, Clarification), found
    assert "in two currencies" in found.question


@pytest.mark.parametrize("text", ["and with 45k euros spent?", "and with 45k spent?"])
def test_an_amount_in_the_same_currency_goes_on_with_an_earlier_turn(text: str) -> None:
    said_before = said("person", "limit 50k euros and 42k euros spent")
    turns = [said_before, *budget_turn(budget_limit=50_000, spent=42_000)[-1:]]
    assert parameters_of(understand(text, turns)) == {
        "budget_limit": 50_000,
        "spent": 45_000,
    }


def test_an_answer_in_another_currency_does_not_complete_a_task() -> None:
    """The limit of the question before was in euros."""
    turns = [
        said("person", "budget: limit 500 euros"),
        said(
            "assistant",
            "What is spent?",
            TaskCall(name="analyze_budget", parameters={"budget_limit": 500}),
            "BudgetTrackerAgent",
        ),
    ]
    found = understand("40000 yen", turns)
    assert isinstance(found, Clarification), found
    assert set(found.missing) == {"budget_limit", "spent"}
    assert parameters_of(understand("400 euros", turns)) == {
        "budget_limit": 500,
        "spent": 400,
    }
