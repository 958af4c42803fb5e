"""No currency that was said is dropped where it matters, and two of them never meet in one task."""

from typing import Any, Literal

import pytest

from tasklore.contracts.parameters.model import Parameters
from tasklore.contracts.quantities.amounts import Amount
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import Clarification
from tests.understanding_cases import card_for, parameters_of, understand


class Payment(Parameters):
    """An amount beside its currency."""

    amount: Amount
    currency: Literal["EUR", "USD"] = "EUR"


class Transfer(Parameters):
    """The same with any currency."""

    amount: Amount
    currency: str = "EUR"


PAY = Catalogue([card_for("PayAgent", "pay", Payment, "Pay an amount.", ("pay",))])
SEND = Catalogue([card_for("SendAgent", "send", Transfer, "Send it.", ("send",))])


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
