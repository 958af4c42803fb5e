"""Percent and Quantity: input, equality, conversion, and the form on the wire."""

import copy
import pickle
from decimal import Decimal
from typing import Any

import pytest
from pydantic import TypeAdapter

from tasklore.contracts.errors import (
    AmbiguousAmount,
    InvalidAmount,
    InvalidParameters,
    UnitMismatch,
)
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount, Percent, Quantity


class Trip(Parameters):
    """A field of each, with and without a declared unit."""

    distance: Quantity = Field(unit="km")
    load: Quantity = Field("50 kg", unit="kg")
    discount: Percent = Field("20%")
    legs: tuple[Quantity, ...] = Field((), unit="km")
    anything: Quantity | None = None


@pytest.mark.parametrize(
    "spelling",
    [
        "20%",
        "20 percent",
        "twenty per cent",
        20,
        20.0,
        Decimal("20.00"),
        "20",
        Amount(20, "%"),
    ],
)
def test_every_spelling_makes_the_same_percentage(spelling: object) -> None:
    """A bare number counts percent points."""
    assert Percent(spelling) == Percent("20%")
    assert (str(Percent(spelling)), hash(Percent(spelling))) == (
        "20%",
        hash(Percent(20)),
    )


def test_a_percentage_calculates() -> None:
    """Shares of amounts keep the unit; percentages add up."""
    assert Percent("20%").of(Amount(50, "USD")) == Amount(10, "USD")
    assert Percent("12.5%").of(80) == 10
    assert Percent(5) + Percent("10%") - Percent(3) == Percent(12)
    assert -Percent(5) * 2 == Percent(-10)
    assert Percent(5) < Percent("5.1%")
    with pytest.raises(TypeError):
        Percent(5) * 0.5  # type: ignore[operator]  # what is refused


@pytest.mark.parametrize(
    "wrong", ["5 km", "$5", True, float("nan"), None, "many", "1" * 61]
)
def test_what_is_no_percentage_is_refused(wrong: object) -> None:
    """Other units, booleans, NaN."""
    with pytest.raises(InvalidAmount):
        Percent(wrong)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("1 km", "1000 m"),
        ("5 ft 2 in", "1.5748 m"),
        ("90 minutes", "1.5 hours"),
        ("0 \u00b0C", "32 \u00b0F"),
        ("0 \u00b0C", "273.15 kelvin"),
        ("1/3 mile", "536.4480 m"),
    ],
)
def test_what_is_worth_the_same_is_equal(one: str, other: str) -> None:
    """With one hash, whatever the unit."""
    assert Quantity(one) == Quantity(other)
    assert hash(Quantity(one)) == hash(Quantity(other))
    assert Quantity(other).to(Quantity(one).unit) == Quantity(one)


def test_a_quantity_converts_exactly_or_to_34_digits() -> None:
    """A kilometre in metres is exact; an inch in feet does not end."""
    assert str(Quantity("2.5 km").to("m")) == "2500 m"
    assert str(Quantity("100 \u00b0C").to("\u00b0F")) == "212 \u00b0F"
    assert str(Quantity("5 ft 2 in").to("inch")) == "62 inch"
    assert Quantity("1 inch").to("ft").value == Decimal(
        "0.08333333333333333333333333333333333"
    )


@pytest.mark.parametrize(
    ("raw", "unit", "words"),
    [
        ("5 kg", "km", ["weight", "length", "km"]),
        ("5 ton", "kg", ["several sizes"]),
        ("5%", None, ["%"]),
        (5, "wibble", ["wibble", "Amount"]),
    ],
)
def test_across_dimensions_is_a_unit_mismatch(
    raw: object, unit: str | None, words: list[str]
) -> None:
    """The message names both sides."""
    with pytest.raises(UnitMismatch) as caught:
        Quantity(raw, unit)
    assert all(word in str(caught.value) for word in words)


def test_a_bare_number_needs_a_unit() -> None:
    """Declared by the field, or said."""
    assert Quantity.read(5, unit="km") == Quantity("5 km")
    with pytest.raises(InvalidAmount, match="names no unit"):
        Quantity(5)
    with pytest.raises(AmbiguousAmount):
        Quantity("1.500 km")


def test_quantities_calculate_within_a_dimension() -> None:
    """In the unit of the left operand; order across dimensions is refused, and so is a sum of temperatures."""
    assert str(Quantity("1 km") + Quantity("500 m") - Quantity("1 m")) == "1.4990 km"
    assert Quantity("3 kg") * 2 == Quantity("6 kg") == Quantity("12 kg") / 2
    assert Quantity("1 mile") > Quantity("1 km")
    for wrong in (
        lambda: Quantity("1 km") + Quantity("1 kg"),
        lambda: Quantity("1 km") < Quantity("1 kg"),
    ):
        with pytest.raises(UnitMismatch):
            wrong()
    with pytest.raises(UnitMismatch, match="temperatures"):
        Quantity("5 \u00b0C") + Quantity("5 \u00b0C")


@pytest.mark.parametrize(
    "value",
    [
        Percent("12.5%"),
        Quantity("5 ft 2 in"),
        Quantity(5, "K"),
        Quantity("3 \u00b5g/g"),
        Quantity(Decimal("1.234"), "km"),
        Percent(Decimal("-1.234")),
    ],
)
def test_values_are_frozen_and_survive_every_journey(value: Any) -> None:
    """Copy, pickle, JSON and their own text."""
    adapter: TypeAdapter[Any] = TypeAdapter(type(value))
    assert copy.deepcopy(value) == pickle.loads(pickle.dumps(value)) == value  # noqa: S301 - our own bytes
    assert adapter.validate_json(adapter.dump_json(value)) == value
    assert str(type(value)(str(value))) == str(value)
    with pytest.raises(AttributeError, match="cannot be changed"):
        value.value = Decimal(1)
    with pytest.raises(AttributeError, match="stays"):
        del value.value


def test_a_field_reads_converts_and_keys_its_type() -> None:
    """Every wording of the same trip is one question; the schema names type and unit."""
    asked = Trip.read({"distance": "5 km", "legs": ["500 m", 2]})
    again = Trip.read(
        {"distance": 5, "load": "50000 g", "discount": 20, "legs": ["0.5 km", "2 km"]}
    )

    assert (
        asked.key("plan")
        == again.key("plan")
        == "plan:5000m:50000g:20%%25:500m,2000m:~none"
    )
    assert str(asked.legs[0]) == "0.5 km"
    schema = Trip.schema_for_cards()["properties"]
    assert (schema["distance"]["format"], schema["distance"]["unit"]) == (
        "quantity",
        "km",
    )
    assert schema["discount"]["format"] == "percent"


def test_a_field_names_itself_in_what_it_refuses() -> None:
    """One sentence with the field and the cure; a declared unit that is none is a mistake of the class."""
    with pytest.raises(InvalidParameters, match=r"distance: .* send it in km"):
        Trip.read({"distance": "5 kg"})
    with pytest.raises(TypeError, match="wibble"):
        type(
            "Wrong",
            (Parameters,),
            {"__annotations__": {"far": Quantity}, "far": Field(unit="wibble")},
        )
