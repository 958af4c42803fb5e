"""Measures by name: what is read after a number, what is not, and what each is worth."""

from decimal import Decimal

import pytest

from quantities.units import measure_after, measure_named
from quantities.units.catalogue import base_code
from quantities.units.measures import BASES, RATES


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
    number = next(place for place in range(len(text)) if text[place] not in "0123456789./")
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


@pytest.mark.parametrize("text", ['"5"', 'set it to "5"', "say '5' now", "\u201c5\u201d"])
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
def test_a_measure_is_worth_what_its_definition_says(name: str, base: str, worth: str) -> None:
    """Exactly: no factor is rounded."""
    measure = measure_named(name)

    assert measure is not None
    assert (measure.scale, base_code(measure.dimension)) == (Decimal(worth), base)


def test_every_code_and_every_one_word_rate_is_a_name() -> None:
    """What is kept can be read again."""
    for base in BASES:
        found = measure_named(base.code)
        assert found is not None, base
        assert found.code == base.code
    for name in RATES:
        found = measure_named(name)
        assert found is not None, name
        assert measure_named(found.code) == found


def test_a_measure_of_several_sizes_has_no_worth() -> None:
    """A ton is 907, 1000 or 1016 kilogrammes: nobody guesses which."""
    measure = measure_named("ton")

    assert measure is not None
    assert measure.scale is None
