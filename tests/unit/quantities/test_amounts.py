"""Amounts: input, arithmetic, and the form on the wire."""

import copy
import json
import pickle
from decimal import Decimal, localcontext

import pytest
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from tasklore.contracts.errors import InvalidAmount, UnitMismatch
from tasklore.contracts.quantities.amounts import Amount

ADAPTER = TypeAdapter(Amount)


class Trip(BaseModel):
    """A model with amounts in the places where a user would put them."""

    model_config = ConfigDict(frozen=True)

    hotel: Amount
    tickets: tuple[Amount, ...] = ()
    tip: Amount | None = None


@pytest.mark.parametrize(
    "spelling",
    [
        50_000,
        Decimal("50000.00"),
        "50000",
        "50k",
        "fifty thousand",
        " 50,000 ",
        Amount(50_000),
        {"value": "50k"},
    ],
)
def test_every_spelling_makes_the_same_amount(spelling: object) -> None:
    """Value, hash and text are one."""
    amount = Amount(spelling)
    assert (amount, hash(amount), str(amount)) == (
        Amount(50_000),
        hash(50_000),
        "50000",
    )
    assert ADAPTER.validate_python(spelling) == amount


@pytest.mark.parametrize(
    ("wrong", "cure"),
    [
        (True, "send a number"),
        (None, "send a number"),
        (float("nan"), "finite"),
        (Decimal("NaN"), "finite"),
        (0.1 + 0.2, "send it as a string"),
        (1e61, "keep to 60"),
        (Decimal("1e-61"), "keep to 60"),
        ("1" * 61, "keep to 60"),
        ("one " * 500, "too long"),
        ("many", "write a number"),
        ({"unit": "USD"}, "send a number"),
        ({"value": 1, "currency": "USD"}, "send a number"),
        ({"value": {"value": 1}}, "send a number"),
        ({"value": 1, "unit": 3}, "not a valid unit"),
    ],
)
def test_what_is_no_exact_number_is_refused_with_the_cure(
    wrong: object, cure: str
) -> None:
    """The constructor and a model say the same sentence."""
    with pytest.raises(InvalidAmount, match=cure):
        Amount(wrong)
    with pytest.raises(ValidationError, match=cure) as caught:
        ADAPTER.validate_python(wrong)
    assert caught.value.errors()[0]["type"] == "invalid_amount"


def test_a_model_names_ambiguity_and_foreign_units_by_their_own_types() -> None:
    """A program can tell the three problems apart and offer the readings."""
    with pytest.raises(ValidationError) as caught:
        Trip.model_validate({"hotel": "1.500", "tip": {"value": "€5", "unit": "USD"}})
    first, second = caught.value.errors()
    assert (first["type"], first["ctx"]["readings"]) == (
        "ambiguous_amount",
        ["1.5", "1500"],
    )
    assert (second["type"], second["loc"]) == ("unit_mismatch", ("tip",))


@pytest.mark.parametrize(
    ("raw", "unit", "wanted"),
    [
        ("3 cups", None, Amount(3)),
        ("50k", "usd", Amount(50_000, "USD")),
        ("$50", "USD", Amount(50, "USD")),
        ("500c", "USD", Amount(5, "USD")),
        ("$5", "AUD", Amount(5, "AUD")),
        ("50 cents", "EUR", Amount("0.5", "EUR")),
        ("20%", "%", Amount(20, "%")),
        ("5 km", "km", Amount(5, "km")),
        (5, "parsec", Amount(5, "parsec")),
        ({"value": 5, "unit": "$"}, "CAD", Amount(5, "CAD")),
    ],
)
def test_a_field_reads_a_quantity_in_its_unit(
    raw: object, unit: str | None, wanted: Amount
) -> None:
    """A bare number is the field's unit, cents are parts of it, "$" is any dollar."""
    assert Amount.read(raw, unit=unit) == wanted


@pytest.mark.parametrize("raw", ["$50", Amount(50, "EUR"), "fifty yen", 50])
def test_a_field_of_any_currency_lets_it_go(raw: object) -> None:
    assert Amount.read(raw, any_currency=True) == Amount(50)


@pytest.mark.parametrize(
    ("raw", "unit", "words"),
    [
        ("5 km", None, ["km", "without a unit"]),
        ("$50", None, ["USD", "without a unit"]),
        (Amount(5, "EUR"), None, ["EUR", "without a unit"]),
        ("€5", "USD", ["EUR", "USD", "convert"]),
        ("US$5", "CAD", ["USD", "CAD", "convert"]),
        (Amount(5, "EUR"), "USD", ["EUR", "USD"]),
    ],
)
def test_another_unit_is_asked_about(
    raw: object, unit: str | None, words: list[str]
) -> None:
    with pytest.raises(UnitMismatch) as caught:
        Amount.read(raw, unit=unit)
    assert all(word in str(caught.value) for word in words)


def test_a_result_does_not_depend_on_the_decimal_context_of_the_caller() -> None:
    """A caller who rounds to two digits gets all 34 of a quotient."""
    with localcontext(prec=2):
        assert str(Amount(1) / 3) == "0." + "3" * 34
        assert Amount("123.4560") + 1 == Decimal("124.456")
        assert str(Amount("123456.789")) == "123456.789"


def test_one_unit_survives_and_two_do_not_mix() -> None:
    """A plain number takes the other's unit; a quotient of one unit has none."""
    price = Amount(10, "USD")
    assert [
        price + 1,
        1 + price,
        price - Amount(1, "USD"),
        price * 3,
        price / 4,
        price % 4,
    ] == [Amount(value, "USD") for value in (11, 11, 9, 30, "2.5", 2)]
    assert price / Amount(4, "USD") == Decimal("2.5")
    assert price // Amount(4, "USD") == 2
    assert price > 9
    assert price != 10
    for calculate in (
        lambda: price + Amount(1, "EUR"),
        lambda: price < Amount(1, "EUR"),
        lambda: price / Amount(1, "EUR"),
        lambda: price * price,
        lambda: price**2,
    ):
        with pytest.raises(UnitMismatch):
            calculate()


@pytest.mark.parametrize("other", [1.0, True, "1", None])
def test_a_float_a_bool_or_a_text_is_no_operand(other: object) -> None:
    """Nothing inexact slips in by an operator; equality is just false."""
    amount = Amount(1)
    for calculate in (
        lambda: amount + other,
        lambda: other - amount,
        lambda: amount * other,
        lambda: amount / other,
        lambda: amount < other,
    ):
        with pytest.raises(TypeError):
            calculate()
    assert amount != other


def test_impossible_results_are_errors_that_say_so() -> None:
    """Division by nothing, roots of negatives, results beyond 60 powers of ten."""
    for calculate in (
        lambda: Amount(1) / 0,
        lambda: Amount(0) / 0,
        lambda: Amount(1) // 0,
        lambda: Amount(1) % 0,
    ):
        with pytest.raises(ZeroDivisionError):
            calculate()
    for calculate in (
        lambda: Amount(-1) ** Decimal("0.5"),
        lambda: Amount(10) ** 100,
        lambda: Amount(10) ** 10**9,
        lambda: Amount(10**60) * 10,
    ):
        with pytest.raises(InvalidAmount):
            calculate()


def test_an_amount_never_changes() -> None:
    """Neither by assignment nor by copying."""
    amount = Amount(5, "USD")
    with pytest.raises(AttributeError):
        amount.value = Decimal(6)
    with pytest.raises(AttributeError):
        del amount.unit
    assert copy.deepcopy(amount) == pickle.loads(pickle.dumps(amount)) == amount  # noqa: S301 - our own bytes


@pytest.mark.parametrize(
    ("amount", "wire"),
    [
        (Amount(50_000), "50000"),
        (Amount(10**20), "100000000000000000000"),
        (Amount("1234567890123456"), '"1234567890123456"'),
        (Amount("0.1234567890123456"), '"0.1234567890123456"'),
        (Amount(50_000, "USD"), '{"value":50000,"unit":"USD"}'),
        (Amount("1234567890123456", "km"), '{"value":"1234567890123456","unit":"km"}'),
    ],
)
def test_json_keeps_every_digit(amount: Amount, wire: str) -> None:
    """A number where a double holds it, a text where it does not, an object with a unit; reading gives it back."""
    assert ADAPTER.dump_json(amount).decode() == wire
    assert ADAPTER.validate_json(wire) == amount


def test_a_model_reads_every_shape_and_writes_one() -> None:
    """Python keeps amounts, JSON gets the wire's shape."""
    trip = Trip.model_validate_json(
        '{"hotel": "50k", "tickets": [1.5, {"value": "7", "unit": "eur"}, "5 cents"]}'
    )
    assert trip.model_dump()["tickets"] == (
        Amount("1.5"),
        Amount(7, "EUR"),
        Amount("0.05", "USD"),
    )
    assert json.loads(trip.model_dump_json()) == {
        "hotel": 50000,
        "tickets": [1.5, {"value": 7, "unit": "EUR"}, {"value": 0.05, "unit": "USD"}],
        "tip": None,
    }


def test_the_json_schema_describes_the_three_shapes() -> None:
    """A form or a model sees number, text or object, and a sentence that explains them."""
    schema = Trip.model_json_schema()["properties"]["hotel"]
    assert [shape["type"] for shape in schema["anyOf"]] == [
        "number",
        "string",
        "object",
    ]
    assert "quantity" in schema["description"]
