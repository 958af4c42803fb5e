"""Measures by name and in sentences: which words after a number are units, and their worth."""

from decimal import Decimal

import pytest

from tasklore.contracts.quantities.amounts import Quantity
from tasklore.contracts.quantities.numerals import FoundAmount, find_amounts
from tasklore.contracts.quantities.units import measure_after, measure_named
from tasklore.contracts.quantities.units.catalogue import base_code
from tasklore.contracts.quantities.units.measures import BASES, RATES


@pytest.mark.parametrize(
    ("text", "code", "name"),
    [
        ("12 km", "km", " km"),
        ("12 KM", "km", " KM"),
        ("7 - litre tank", "l", " - litre"),
        ("8 (mg)", "mg", " (mg)"),
        ("9 square miles", "mile2", " square miles"),
        ("9-square-foot", "ft2", "-square-foot"),
        ("9 cm\u00b3", "cm3", " cm\u00b3"),
        ("9 metres squared", "m2", " metres squared"),
        ("70 miles per hour", "mile/h", " miles per hour"),
        ("70 km/h", "km/h", " km/h"),
        ("2 millimetres a day", "mm/day", " millimetres a day"),
        ("4 m/s\u00b2", "m/s2", " m/s\u00b2"),
        ("4 grams per litre", "g/l", " grams per litre"),
        ("64 Mb/s", "Mbit/s", " Mb/s"),
        ("64 MB/s", "MB/s", " MB/s"),
        ("64 KiB", "KiB", " KiB"),
        ("5 MW", "MW", " MW"),
        ("5 kilowatt hours", "kWh", " kilowatt hours"),
        ("30 \u00b0 c", "\u00b0C", " \u00b0 c"),
        ("30 degrees Fahrenheit", "\u00b0F", " degrees Fahrenheit"),
        ("6 fl. oz.", "fl oz", " fl. oz"),
        ("6' high", "ft", "'"),
        ("6 in long", "inch", " in long"[:3]),
    ],
)
def test_a_measure_is_read_after_its_number(text: str, code: str, name: str) -> None:
    """In every usual writing, and no character further."""
    number = next(
        place for place in range(len(text)) if text[place] not in "0123456789./"
    )
    found = measure_after(text, number)

    assert found is not None
    assert (found[0].code, text[number : found[1]]) == (code, name)


@pytest.mark.parametrize(
    "text",
    [
        "5 in the morning",
        "5 in 2020",
        "5 M",
        "5 people",
        "5m212",
        "5 per cent",
        "5 - g",
        "5's",
        "5 dam reports",
        "5 " + "k" * 100_000,
    ],
)
def test_what_is_no_measure_is_left_alone(text: str) -> None:
    """Prepositions, capitals of something else, identifiers, money."""
    assert measure_after(text, 1) is None


@pytest.mark.parametrize(
    "text", ['"5"', 'set it to "5"', "say '5' now", "\u201c5\u201d"]
)
def test_a_closing_quotation_mark_is_no_inch(text: str) -> None:
    """The mark that opened stands before the number."""
    assert measure_after(text, text.index("5") + 1) is None


@pytest.mark.parametrize(
    ("name", "base", "worth"),
    [
        ("ft", "m", "0.3048"),
        ("acre", "m2", "4046.8564224"),
        ("gallon", "m3", "0.003785411784"),
        ("lb", "g", "453.59237"),
        ("GiB", "bit", "8589934592"),
        ("kWh", "J", "3600000"),
    ],
)
def test_a_measure_is_worth_what_its_definition_says(
    name: str, base: str, worth: str
) -> None:
    """Exactly: no factor is rounded."""
    measure = measure_named(name)

    assert measure is not None
    assert (measure.scale, base_code(measure.dimension)) == (Decimal(worth), base)


def test_every_code_and_every_one_word_rate_is_a_name() -> None:
    for base in BASES:
        found = measure_named(base.code)
        assert found is not None, base
        assert found.code == base.code
    for name in RATES:
        found = measure_named(name)
        assert found is not None, name
        assert measure_named(found.code) == found


def test_a_measure_of_several_sizes_has_no_worth() -> None:
    measure = measure_named("ton")

    assert measure is not None
    assert measure.scale is None


def of_kind(text: str, kind: str) -> tuple[FoundAmount, ...]:
    """Return the amounts of one kind in *text*."""
    return tuple(found for found in find_amounts(text) if found.kind == kind)


def quantities(text: str) -> list[tuple[str, str | None, str]]:
    """Return value, unit and wording of each quantity in *text*."""
    return [
        (f"{found.value:.6g}", found.unit, found.text)
        for found in of_kind(text, "measure")
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("the shelf is 6 ft 3 in high", [("6.25", "ft", "6 ft 3 in")]),
        ("she is 5'6\" and he is 6'", [("5.5", "ft", "5'6\""), ("6", "ft", "6'")]),
        ("a parcel of 7 pounds, 8 ounces", [("7.5", "lb", "7 pounds, 8 ounces")]),
        (
            "bake it for 1 hour and 15 minutes",
            [("1.25", "hour", "1 hour and 15 minutes")],
        ),
        ("2 kg 250 g of flour", [("2.25", "kg", "2 kg 250 g")]),
        (
            "5 km, 300 m and 2 kg",
            [("5", "km", "5 km"), ("300", "m", "300 m"), ("2", "kg", "2 kg")],
        ),
        (
            "between 1 hour and 30 minutes",
            [("1", "hour", "1 hour"), ("30", "minute", "30 minutes")],
        ),
        ("a quarter mile further", [("0.25", "mile", "a quarter mile")]),
        (
            "pumps 40,000 barrels a day",
            [("40000", "barrel/day", "40,000 barrels a day")],
        ),
        ("ten below zero celsius", [("-10", "°C", "ten below zero celsius")]),
        ("my account is 5 below zero", []),
        ("it costs three pounds", []),
        ("$5, 20% and 7 people", []),
        ("flat-204m is at gate 12 in terminal 3", []),
    ],
)
def test_quantities_are_found_with_their_units(
    text: str, wanted: list[tuple[str, str, str]]
) -> None:
    """Compounds are one quantity; money, counts and names are none."""
    assert quantities(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "the pole is 4m long",
        "4m deep",
        "a 4m x 6m room",
        "a height of 4m",
        "the 4m race",
    ],
)
def test_a_small_m_beside_a_word_of_extent_is_a_metre(text: str) -> None:
    """In every reading of the sentence."""
    assert find_amounts(text)[0].value == 4
    assert find_amounts(text)[0].unit == "m"


@pytest.mark.parametrize(
    "text", ["$4m", "\u00a34m tall order", "4m people", "the limit is 4m", "raise 4M"]
)
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


@pytest.mark.parametrize(
    "text",
    [
        "seat 12F",
        "gate 71 F",
        "24C",
        "70c each on a cold day",
        "5 F grades",
        "a 3F cabin",
    ],
)
def test_the_same_letter_elsewhere_says_none(text: str) -> None:
    """It is a seat, a mark, or cents."""
    assert of_kind(text, "measure") == ()


def test_an_f_of_a_field_for_capacitance_is_a_farad() -> None:
    assert Quantity("2 F").unit == "°F"
    assert Quantity("2 F", "mF") == Quantity("2000 mF")
    assert str(Quantity("2 farads")) == "2 farad"


@pytest.mark.parametrize(
    "part",
    ["5' ", '5" ', "5 ft 2 in ", "half a ", "5 (", "5 km per ", "age 5 ", "5 square "],
)
def test_a_hostile_text_gives_ordered_quantities(part: str) -> None:
    """Thousands of characters of what looks like units."""
    place = 0
    for found in of_kind(part * (4_000 // len(part)), "measure"):
        assert place <= found.start < found.end
        assert isinstance(found.value, Decimal)
        place = found.end
