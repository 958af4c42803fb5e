"""Units that are said once for two numbers, and what is said with an article alone."""

from decimal import Decimal

import pytest

from quantities.numerals import Found, find_amounts


def said(found: tuple[Found, ...]) -> list[tuple[str | None, str | None]]:
    """Return the value and unit of each amount."""
    return [(None if one.value is None else format(one.value, "f"), one.unit) for one in found]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("7 to 9 km", [("7", "km"), ("9", "km")]),
        ("between 7 and 9 litres", [("7", "l"), ("9", "l")]),
        ("7-9 dollars", [("7", "USD"), ("9", "USD")]),
        ("7 or 9 cents", [("0.07", "USD"), ("0.09", "USD")]),
        ("$7-9", [("7", "USD"), ("9", "USD")]),
        ("EUR 7 to 9", [("7", "EUR"), ("9", "EUR")]),
        ("from 9 to 7 miles", [("9", "mile"), ("7", "mile")]),
        ("300 to 2 thousand euros", [("300", "EUR"), ("2000", "EUR")]),
        ("7x9 feet", [("7", "ft"), ("9", "ft")]),
        ("a 7 by 9 inch tray", [("7", "inch"), ("9", "inch")]),
        ("7x9x2 m", [("7", "m"), ("9", "m"), ("2", "m")]),
    ],
)
def test_both_ends_of_a_span_have_its_unit(text: str, wanted: list[tuple[str, str]]) -> None:
    """Whichever end it is said at, when it can be meant for both."""
    assert said(find_amounts(text)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("7 km to 9", [("7", "km"), ("9", None)]),
        ("item 7 - $9", [("7", None), ("9", "USD")]),
        ("9 - 7 km", [("9", None), ("7", "km")]),
        ("7 x 9 kg", [("7", None), ("9", "kg")]),
        ("7 people and 9 km", [("7", None), ("9", "km")]),
        ("room 7, 9 km away", [("7", None), ("9", "km")]),
        ("4x4, 2x, MX500x20", []),
    ],
)
def test_a_unit_that_counts_one_number_stays_with_it(text: str, wanted: list[tuple[str, str]]) -> None:
    """Lists, multiplications and what stands beside a price are no spans, and neither is every "x"."""
    assert said(find_amounts(text)) == wanted


@pytest.mark.parametrize(
    ("text", "readings"),
    [("7 to 9 million dollars", (7_000_000, 7)), ("$ 1.5 to 2 million", (1_500_000, Decimal("1.5")))],
)
def test_a_scale_at_the_second_end_leaves_the_first_with_two_readings(text: str, readings: tuple[object, ...]) -> None:
    """Seven dollars or seven million: who asked knows, so nobody guesses."""
    first, second = find_amounts(text)
    assert (first.value, first.readings, first.unit) == (None, readings, "USD")
    assert second.value is not None


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("a dollar", [("1", "USD")]),
        ("lend me a euro, please", [("1", "EUR")]),
        ("it costs a pound fifty", [("1.5", "GBP")]),
        ("a dollar and five cents", [("1.05", "USD")]),
        ("run a mile and a half", [("1.5", "mile")]),
        ("an ounce of gold", [("1", "oz")]),
    ],
)
def test_an_article_alone_says_one(text: str, wanted: list[tuple[str, str]]) -> None:
    """Of money and of measures that are nothing else."""
    assert said(find_amounts(text)) == wanted
    assert said(find_amounts("twice a mile")) == []


@pytest.mark.parametrize(
    "text",
    [
        "a dollar bill",
        "a pound cake",
        "a mile marker",
        "a foot",
        "how many feet in a mile",
        "a dollar's worth",
        "a yen for it",
    ],
)
def test_the_article_of_a_noun_says_no_number(text: str) -> None:
    """The unit is a part of another thing, or is only spoken of."""
    assert find_amounts(text) == ()


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("$3 a pound", [("3", "USD")]),
        ("3 dollars a gallon", [("3", "USD")]),
        ("3 cents a mile", [("0.03", "USD")]),
        ("twice a mile", []),
    ],
)
def test_an_article_after_an_amount_says_each(text: str, wanted: list[tuple[str, str]]) -> None:
    """A rate has no second amount."""
    assert said(find_amounts(text)) == wanted


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("three dollars and a half", "3.5", "USD"),
        ("7 cents and a quarter", "0.0725", "USD"),
        ("two hours and a half", "2.5", "hour"),
        ("four miles and three quarters", "4.75", "mile"),
    ],
)
def test_a_fraction_after_a_unit_is_a_part_of_it(text: str, value: str, unit: str) -> None:
    """It has no unit of its own."""
    assert said(find_amounts(text)) == [(value, unit)]


def test_a_fraction_of_something_else_stays_apart() -> None:
    """A half of a million and three quarters of a mile are amounts themselves."""
    assert said(find_amounts("5 dollars and a half million"))[0] == ("5", "USD")
    assert said(find_amounts("5 dollars and half the crew"))[0] == ("5", "USD")
    assert said(find_amounts("5 dollars and half of a mile")) == [("5", "USD"), ("0.5", "mile")]
