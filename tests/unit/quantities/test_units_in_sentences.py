"""Quantities in sentences: which numbers are measured, in what, and which are not."""

from decimal import Decimal

import pytest

from quantities.amounts import Quantity
from quantities.numerals import Found, find_amounts


def of_kind(text: str, kind: str) -> tuple[Found, ...]:
    """Return the amounts of one kind in *text*."""
    return tuple(found for found in find_amounts(text) if found.kind == kind)


def quantities(text: str) -> list[tuple[str, str | None, str]]:
    """Return value, unit and wording of each quantity in *text*."""
    return [(f"{found.value:.6g}", found.unit, found.text) for found in of_kind(text, "measure")]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("the shelf is 6 ft 3 in high", [("6.25", "ft", "6 ft 3 in")]),
        ("she is 5'6\" and he is 6'", [("5.5", "ft", "5'6\""), ("6", "ft", "6'")]),
        ("a parcel of 7 pounds, 8 ounces", [("7.5", "lb", "7 pounds, 8 ounces")]),
        ("bake it for 1 hour and 15 minutes", [("1.25", "hour", "1 hour and 15 minutes")]),
        ("2 kg 250 g of flour", [("2.25", "kg", "2 kg 250 g")]),
        ("5 km, 300 m and 2 kg", [("5", "km", "5 km"), ("300", "m", "300 m"), ("2", "kg", "2 kg")]),
        ("between 1 hour and 30 minutes", [("1", "hour", "1 hour"), ("30", "minute", "30 minutes")]),
        ("a quarter mile further", [("0.25", "mile", "a quarter mile")]),
        ("pumps 40,000 barrels a day", [("40000", "barrel/day", "40,000 barrels a day")]),
        ("ten below zero celsius", [("-10", "°C", "ten below zero celsius")]),
        ("my account is 5 below zero", []),
        ("it costs three pounds", []),
        ("$5, 20% and 7 people", []),
        ("flat-204m is at gate 12 in terminal 3", []),
    ],
)
def test_quantities_are_found_with_their_units(text: str, wanted: list[tuple[str, str, str]]) -> None:
    """Compounds are one quantity; money, counts and names are none."""
    assert quantities(text) == wanted


@pytest.mark.parametrize("text", ["the pole is 4m long", "4m deep", "a 4m x 6m room", "a height of 4m", "the 4m race"])
def test_a_small_m_beside_a_word_of_extent_is_a_metre(text: str) -> None:
    """In every reading of the sentence."""
    assert find_amounts(text)[0].value == 4
    assert find_amounts(text)[0].unit == "m"


@pytest.mark.parametrize("text", ["$4m", "\u00a34m tall order", "4m people", "the limit is 4m", "raise 4M"])
def test_a_small_m_elsewhere_is_a_million(text: str) -> None:
    """Money first of all."""
    assert find_amounts(text)[0].value == 4_000_000
    assert of_kind(text, "measure") == ()


@pytest.mark.parametrize(
    ("text", "unit"),
    [
        ("71 F", "°F"),
        ("it was 71 F in the shade", "°F"),
        ("bake it at 350F", "°F"),
        ("water freezes at 0 C", "°C"),
    ],
)
def test_a_letter_of_a_thermometer_says_degrees(text: str, unit: str) -> None:
    """Alone, after what a thermometer stands at, and in a sentence about heat."""
    (found,) = of_kind(text, "measure")
    assert found.unit == unit


@pytest.mark.parametrize("text", ["seat 12F", "gate 71 F", "24C", "70c each on a cold day", "5 F grades", "a 3F cabin"])
def test_the_same_letter_elsewhere_says_none(text: str) -> None:
    """It is a seat, a mark, or cents."""
    assert of_kind(text, "measure") == ()


def test_an_f_of_a_field_for_capacitance_is_a_farad() -> None:
    """The field knows; nobody else means farads without saying so."""
    assert Quantity("2 F").unit == "°F"
    assert Quantity("2 F", "mF") == Quantity("2000 mF")
    assert str(Quantity("2 farads")) == "2 farad"


@pytest.mark.parametrize("part", ["5' ", '5" ', "5 ft 2 in ", "half a ", "5 (", "5 km per ", "age 5 ", "5 square "])
def test_a_hostile_text_gives_ordered_quantities(part: str) -> None:
    """Thousands of characters of what looks like units."""
    place = 0
    for found in of_kind(part * (4_000 // len(part)), "measure"):
        assert place <= found.start < found.end
        assert isinstance(found.value, Decimal)
        place = found.end
