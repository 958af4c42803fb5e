"""What each view of a sentence takes for a number, and how fractions, powers and ratios are read."""

from decimal import Decimal

import pytest

from quantities.numerals import find_amounts, find_numbers, find_percents


def numbers(text: str) -> list[Decimal | None]:
    """Return the values of the view of numbers."""
    return [found.value for found in find_numbers(text)]


@pytest.mark.parametrize(
    ("text", "top", "bottom"),
    [
        ("a sixteenth", 1, 16),
        ("a forty-third", 1, 43),
        ("one sixty-fourth", 1, 64),
        ("three thirty-seconds", 3, 32),
        ("two hundred forty sevenths", 200, 47),
        ("two hundred and forty sevenths", 240, 7),
        ("two hundred forty-one sevenths", 241, 7),
        ("a thousand ninths", 1000, 9),
        ("eighty five thousandths", 85, 1000),
        ("six and eleven twelfths", 83, 12),
        ("one hundred and nine tenths", 1009, 10),
        ("three hundred and seventeen hundredths", 30017, 100),
        ("4 sevenths", 4, 7),
        ("minus three eighths", -3, 8),
        ("two - ninths", 2, 9),
        ("half a percent", 1, 2),
    ],
)
def test_a_fraction_in_words_is_divided_exactly(text: str, top: int, bottom: int) -> None:
    """The longest denominator that leaves a numerator, and parts below one after "and"."""
    (found,) = find_amounts(text)
    assert found.value is not None
    assert abs(found.value * bottom - top) < Decimal("1e-25")
    assert found.text == text


@pytest.mark.parametrize(
    "text",
    [
        "the thirty-third", "two hundredth", "six thousandth", "one hundred and fourth", "a third party", "second",
        "twenty one thousand one hundredth", "one million one thousandth", "four thousand, seventeenth",
    ],
)  # fmt: skip
def test_an_ordinal_is_neither_a_number_nor_a_part(text: str) -> None:
    """A place in an order has no amount."""
    assert find_amounts(text) == ()


@pytest.mark.parametrize("text", ["four thousand, third time", "four thousand, first", "four thousand, fifth, sixth"])
def test_a_number_before_a_comma_stays_where_an_ordinal_begins_something_else(text: str) -> None:
    """Only what ends there is one place."""
    assert [found.value for found in find_amounts(text)] == [4000]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2^10", ["1024"]),
        ("-4^-1", ["-0.25"]),
        ("1.2^+2 is 1.44", ["1.44", "1.44"]),
        ("5 over 8", ["0.625"]),
        ("one over forty", ["0.025"]),
        ("3 out of 4 voters", ["0.75"]),
        ("one in two hundred", ["0.005"]),
        ("14 out of 12", ["14", "12"]),
        ("put 9 in three boxes", ["9", "3"]),
        ("6 in 2024", ["6", "2024"]),
        ("$300 over 4 months", ["300", "4"]),
        ("10.1.0.7", ["10", "1", "0", "7"]),
        ("version 1.2.3", []),
        ("a 35mm film on the 12km road", []),
        ("12 km", ["12"]),
        ("3m wide, 3M sold", ["3000000"]),
        ("470 pence", ["470"]),
        ("a single room for a couple of nights", ["1", "2"]),
        ("none of these", []),
        ("15T", ["15000000000000"]),
    ],
)
def test_the_table_of_numbers_has_its_own_customs(text: str, wanted: list[str]) -> None:
    """Powers, ratios and addresses count; digits glued to a unit are a quantity."""
    assert numbers(text) == [Decimal(value) for value in wanted]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("2^10", []),
        ("10.1.0.7", []),
        ("5 over 8", ["5", "8"]),
        ("one in six", ["1", "6"]),
        ("a few", []),
        ("single", []),
    ],
)
def test_what_may_mean_something_else_is_no_parameter(text: str, wanted: list[str]) -> None:
    """A supervisor never divides, raises or takes an address for a limit."""
    assert [found.value for found in find_amounts(text)] == [Decimal(value) for value in wanted]


def test_a_wording_by_custom_is_marked_as_vague() -> None:
    """Three is "a few" only because tables say so."""
    assert [(found.value, found.is_vague) for found in find_numbers("a few of the 7 pairs")] == [(3, True), (7, False)]
    assert find_amounts("a couple of days")[0].is_vague
    assert not find_amounts("two days")[0].is_vague


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("18 %", ["18"]),
        ("% 18", ["18"]),
        ("%18", ["18"]),
        ("forty per cent", ["40"]),
        ("percent of 340", ["340"]),
        ("9 percent of 340", ["9"]),
        ("half a percent", ["0.5"]),
        ("35 basis points", ["0.35"]),
        ("2 percentage points", ["2"]),
        ("7-9 %", ["7", "9"]),
        ("between 7 and 9 percent", ["7", "9"]),
        ("20%-30%", ["20", "30"]),
        ("6 1 / 8 %", ["6.125"]),
        ("13 . 4 %", ["13.4"]),
        ("2,5 %", ["2.5"]),
        ("a percentage", []),
        ("the % of votes", []),
        ("a%20b", []),
        ("9 people", []),
    ],
)
def test_percentages_are_found_in_every_writing(text: str, wanted: list[str]) -> None:
    """Before or after the number, in words, as points, at both ends of a span; without a number nothing."""
    assert [found.value for found in find_percents(text)] == [Decimal(value) for value in wanted]


def test_a_remainder_is_no_percentage_of_a_parameter() -> None:
    """Only the reading for percentages takes a sign that stands apart before its number."""
    assert [(found.value, found.unit) for found in find_amounts("n % 10 people")] == [(10, None)]


def test_crores_and_crowns_are_told_apart() -> None:
    """After words "Kr" is ten million, after digits a Scandinavian coin."""
    assert [(found.value, found.unit) for found in find_amounts("two hundred Kr")] == [(2_000_000_000, None)]
    assert [(found.value, found.unit) for found in find_amounts("200 kr")] == [(200, "SEK")]
