"""Money keeps the currency it was given: never without one, and never two that pass for one."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from tasklore.contracts.errors import (
    AmbiguousAmount,
    InvalidParameters,
    UnitMismatch,
)
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount, Money
from tasklore.contracts.quantities.amounts.amount import RESULT
from tasklore.contracts.quantities.amounts.money import read_money, spell_money
from tasklore.memory.long_term.card_parameters import parameters_of
from tests.type_checks import check_types


class Invoice(Parameters):
    """Money alone, left out, in a list, and beside a currency of something else."""

    price: Money
    fee: Money | None = None
    parts: tuple[Money, ...] = ()
    tip: Money = Field("5 EUR")
    to_currency: str = "EUR"


class InEuros(Parameters):
    """An amount in one currency, as 0.2 knows it."""

    price: Amount = Field(unit="EUR")


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ("120 quid", "120 GBP"),
        ("$5", "5 USD"),
        ("C$5", "5 CAD"),
        ("€1,234.50", "1234.5 EUR"),
        ("five hundred euros", "500 EUR"),
        ("99 Swedish kronor", "99 SEK"),
        ("50 euro cents", "0.5 EUR"),
        ("470 pence", "4.7 GBP"),
        ("5 ALL", "5 ALL"),
        ("-5 CHF", "-5 CHF"),
        ("1.2340 EUR", "1.2340 EUR"),
        ({"value": 5, "unit": "TOP"}, "5 TOP"),
        ({"value": "50k", "unit": "yen"}, "50000 JPY"),
        (Amount(5, "EUR"), "5 EUR"),
    ],
)
def test_the_currency_that_was_said_is_kept(raw: object, text: str) -> None:
    assert spell_money(read_money(raw)) == text
    assert read_money(text) == read_money(raw)


@pytest.mark.parametrize(
    ("raw", "readings"),
    [
        ("80 kr", ("80 SEK", "80 NOK", "80 DKK", "80 ISK", "80 CZK", "80 SKK")),
        ("¥500", ("500 JPY", "500 CNY")),
        ("5 lei", ("5 RON", "5 MDL")),
        ({"value": 5, "unit": "lei"}, ("5 RON", "5 MDL")),
    ],
)
def test_a_name_of_several_currencies_is_refused_with_them(
    raw: object, readings: tuple[str, ...]
) -> None:
    with pytest.raises(AmbiguousAmount, match=f"as '{readings[0]}'") as refused:
        read_money(raw)
    assert refused.value.readings == readings


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"price": 5}, "price: 5 names no currency where money is expected"),
        ({"price": "fifty"}, "as '50 EUR'"),
        ({"price": Amount(5)}, "names no currency"),
        ({"price": "20%"}, "is in % where money is expected"),
        ({"price": "3 km"}, "is in km where money is expected"),
        ({"price": True}, "is not a valid amount"),
        ({"price": "5 EUR", "parts": ["5 EUR", 5]}, "parts: 5 names no currency"),
        ({"price": "1.234 EUR"}, "can mean 1.234 or 1234"),
    ],
)
def test_what_names_no_currency_is_refused_with_the_cure(
    raw: dict[str, Any], said: str
) -> None:
    with pytest.raises(InvalidParameters) as refused:
        Invoice.read(raw)
    assert said in str(refused.value)


def test_each_currency_is_another_question() -> None:
    keys = {
        Invoice.read({"price": f"100 {code}"}).key("convert")
        for code in ("GBP", "USD", "EUR", "JPY")
    }
    assert keys == {
        f"convert:100{code}:~none:no_parts:5EUR:EUR"
        for code in ("GBP", "USD", "EUR", "JPY")
    }


def test_a_question_of_0_2_in_a_declared_unit_is_the_same_question() -> None:
    """What was remembered in one declared currency is found by money in it, and by it alone."""
    assert InEuros.read({"price": 50}).key("t") == "t:50EUR"

    class Priced(Parameters):
        price: Money

    assert Priced.read({"price": "50 euros"}).key("t") == "t:50EUR"
    assert Priced.read({"price": "50 USD"}).key("t") == "t:50USD"


def test_two_currencies_never_meet() -> None:
    said = Invoice.read({"price": "100 GBP", "fee": "3 USD"})
    assert said.fee is not None
    for meet in (
        lambda left, right: left + right,
        lambda left, right: left - right,
        lambda left, right: left / right,
        lambda left, right: left < right,
        lambda left, right: left >= right,
        lambda left, right: max(left, right),
    ):
        with pytest.raises(UnitMismatch, match=r"(GBP|USD) (and|by) .*(GBP|USD)"):
            meet(said.price, said.fee)
    assert said.price != Amount(100, "USD")
    assert said.price * Decimal("1.5") == Amount(150, "GBP")


def test_a_card_reads_and_keys_money_as_its_class_does() -> None:
    by_card = parameters_of("t", json.loads(json.dumps(Invoice.schema_for_cards())))
    raw = {"price": "120 quid", "fee": "3 USD", "parts": ["5 EUR"]}
    assert by_card.read(raw).key("t") == Invoice.read(raw).key("t")
    with pytest.raises(InvalidParameters, match="names no currency"):
        by_card.read({"price": 5})


def test_parameters_travel_and_come_back() -> None:
    sent = Invoice.read({"price": "1.2340 EUR", "parts": ["5 SEK", "7 NOK"]})
    assert Invoice.read(json.loads(sent.model_dump_json())) == sent


class Converted(BaseModel):
    """A result of money."""

    total: Money


def test_a_result_says_the_currency_always() -> None:
    total = Converted(total=Amount("33.333333333333333333", "EUR"))
    assert json.loads(total.model_dump_json(context=RESULT)) == {
        "total": {"value": 33.3333333333333, "unit": "EUR"}
    }
    described = TypeAdapter(Money).json_schema(mode="serialization")
    assert (described["type"], described["required"]) == ("object", ["value", "unit"])
    with pytest.raises(ValidationError, match="names no currency"):
        Converted(total=Amount(5))


@pytest.mark.parametrize(
    ("annotation", "declared", "said"),
    [
        (Money, Field(unit="EUR"), "declare Amount with Field"),
        (Money, Field(any_currency=True), "declare Amount with Field"),
        (Money | int, ..., "declare Money alone"),
        (Money, "80 kr", "default of price cannot be used: '80 kr' can mean"),
    ],
)
def test_a_contradiction_is_refused_when_the_class_is_made(
    annotation: Any, declared: Any, said: str
) -> None:
    body = {"__annotations__": {"price": annotation}, "__module__": __name__}
    with pytest.raises(TypeError, match=said):
        type(
            "Slip",
            (Parameters,),
            body | ({} if declared is ... else {"price": declared}),
        )


PROGRAM = """
from decimal import Decimal

from pydantic import BaseModel

from tasklore import Agent, Amount, Field, Money, Parameters

agent = Agent("BankAgent", description="Converts money.", keywords=("convert",))


class Conversion(Parameters):
    amount: Money = Field(cues=("convert",))
    fee: Money | None = None
    parts: tuple[Money, ...] = ()
    in_euros: Amount = Field(unit="EUR")


class Converted(BaseModel):
    total: Money


@agent.task(remember="shared")
async def convert(said: Conversion) -> Converted:
    total: Money = said.amount * Decimal("1.1") + sum(said.parts)
    return Converted(total=total if said.fee is None else total - said.fee)


GIVEN = Conversion(amount=Amount("5 EUR"), in_euros=Amount(3, "EUR"))
"""

SLIPS = """

def slip(said: Conversion) -> float:
    said.amount * 1.1
    Conversion(amount=5, in_euros=Amount(3, "EUR"))
    return said.fee + said.amount
"""


def test_a_program_outside_is_typed(tmp_path: Path) -> None:
    faults = check_types(tmp_path, {"right": PROGRAM, "wrong": PROGRAM + SLIPS})
    errors = [line for line in faults if "error:" in line]
    assert all(line.startswith("wrong.py:") for line in faults), faults
    assert len(errors) == 4, faults


def test_a_literal_currency_beside_money_is_of_something_else() -> None:
    class Exchange(Parameters):
        amount: Money
        currency: Literal["EUR", "USD"] = "EUR"

    said = Exchange.read({"amount": "10 yen"})
    assert (str(said.amount), said.currency) == ("10 JPY", "EUR")
