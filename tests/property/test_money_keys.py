"""Money from words to its key and back: every wording of one amount is one question, and no two currencies are."""

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasklore.contracts.errors import AmbiguousAmount, InvalidParameters, UnitMismatch
from tasklore.contracts.parameters.model import Parameters
from tasklore.contracts.quantities.amounts import Amount, Money, Percent
from tasklore.contracts.quantities.amounts.money import read_money, spell_money
from tasklore.contracts.quantities.units import CURRENCIES, NAMES, unit_named

codes = st.sampled_from(sorted(CURRENCIES))
numbers = st.decimals(
    allow_nan=False,
    allow_infinity=False,
    min_value=-(10**12),
    max_value=10**12,
    places=3,
)
wholes = st.integers(min_value=0, max_value=10**9)
#: Symbols and words that mean one currency, with its code.
NAMED = {
    "€{}": "EUR", "{} €": "EUR", "{} euros": "EUR", "£{}": "GBP", "{} quid": "GBP", "{} pounds sterling": "GBP",
    "${}": "USD", "{} bucks": "USD", "US${}": "USD", "C${}": "CAD", "{} Canadian dollars": "CAD", "{} yen": "JPY",
    "CHF {}": "CHF", "{} Swiss francs": "CHF", "₹{}": "INR", "{} zloty": "PLN", "{} Norwegian kroner": "NOK",
    "{} Swedish kronor": "SEK", "{} Danish crowns": "DKK", "{} yuan": "CNY", "BTC {}": "BTC",
}  # fmt: skip


class Price(Parameters):
    """Money, and a percentage of it."""

    price: Money
    discount: Percent = Percent(0)


@given(numbers, codes)
def test_what_is_written_is_read_as_exactly_that(number: Decimal, code: str) -> None:
    """As text and as an object, with any code of ISO 4217, those that are words too."""
    amount = Amount(number, code)
    assert read_money(spell_money(amount)) == amount
    assert read_money({"value": number, "unit": code}) == amount
    sent = Price(price=amount)
    assert Price.read(json.loads(sent.model_dump_json())).key("t") == sent.key("t")


@given(wholes, st.sampled_from(sorted(NAMED)), st.integers(0, 100))
def test_every_wording_of_one_amount_is_one_question(
    number: int, wording: str, points: int
) -> None:
    """Symbols, codes and words, beside a percentage, which is no money."""
    said = wording.format(f"{number:,}")
    key = Price.read({"price": said, "discount": f"{points}%"}).key("t")
    plain = {"value": number, "unit": NAMED[wording]}
    assert Price.read({"price": plain, "discount": points}).key("t") == key
    assert key.startswith(f"t:{number}{NAMED[wording]}:")
    with pytest.raises(InvalidParameters, match="is in %"):
        Price.read({"price": f"{points}%"})


@given(numbers, codes, numbers, codes)
def test_two_amounts_share_a_key_only_when_they_are_equal(
    one: Decimal, its_code: str, other: Decimal, other_code: str
) -> None:
    same = Price(price=Amount(one, its_code)).key("t") == Price(
        price=Amount(other, other_code)
    ).key("t")
    assert same == ((one, its_code) == (other, other_code))


@given(numbers)
def test_no_two_currencies_share_a_key(number: Decimal) -> None:
    keys = {Price(price=Amount(number, code)).key("t") for code in CURRENCIES}
    assert len(keys) == len(CURRENCIES)


@given(wholes, st.sampled_from(sorted(NAMES)))
def test_a_name_of_money_is_one_currency_or_asked_about(number: int, name: str) -> None:
    """What is read is one that the name can mean, and what is asked about offers such alone."""
    unit = unit_named(name)
    assert unit is not None
    meant = {code for code in (unit.code, *unit.also) if code in CURRENCIES}
    assert _offered(number, name) <= meant
    assert bool(_offered(number, name)) == bool(meant)


def _offered(number: int, name: str) -> set[str]:
    """Return the currency that an amount of *name* is read in, or those that are asked about."""
    try:
        return {str(read_money({"value": number, "unit": name}).unit)}
    except AmbiguousAmount as error:
        return {one.rsplit(" ", 1)[1] for one in error.readings}
    except UnitMismatch:
        return set()
