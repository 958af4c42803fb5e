"""What a person types into a form of the console becomes the value that the task takes, money with its currency."""

from typing import Any

import pytest

from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount, Money
from tasklore.supervisor.http.console.parameter_forms import (
    make_fields,
    read_parameters,
)


class Bill(Parameters):
    """Amounts of three kinds, and a number that may be any text."""

    price: Money
    fee: Money | None = None
    limit: Amount = Field(0, unit="EUR")
    code: float | str = ""


def typed(**texts: str) -> dict[str, Any]:
    fields = make_fields(Bill.schema_for_cards(), texts)
    values, checked = read_parameters(fields)
    assert not [one.fault for one in checked if one.fault]
    return values


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("$50", "50USD"),
        ("50 yen", "50JPY"),
        (" 120 EUR ", "120EUR"),
        ('"120 EUR"', "120EUR"),
        ('{"value": "120", "unit": "SEK"}', "120SEK"),
    ],
)
def test_money_is_typed_as_people_write_it(text: str, key: str) -> None:
    values = typed(price=text, fee=text)
    assert Bill.read(values).key("t") == f"t:{key}:{key}:0EUR:%"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("50k", "50k"),
        ("50", 50),
        ("50.5", 50.5),
        ("0.1234567890123456789", "0.1234567890123456789"),
        ("true", "true"),
        ("[1]", "[1]"),
    ],
)
def test_digits_are_kept_and_nothing_becomes_what_it_may_not_be(
    text: str, value: Any
) -> None:
    assert typed(price="1 EUR", limit=text)["limit"] == value


@pytest.mark.parametrize(("text", "value"), [("20", 20), ("20 A", "20 A")])
def test_a_number_beside_a_text_stays_one(text: str, value: Any) -> None:
    assert typed(price="1 EUR", code=text)["code"] == value


def test_the_form_asks_for_one_line() -> None:
    kinds = {one.name: one.kind for one in make_fields(Bill.schema_for_cards())}
    assert kinds == dict.fromkeys(("price", "fee", "limit", "code"), "wording")
