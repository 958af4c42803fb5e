"""Numbers as they are spoken and jotted down: bare scales, scores, leading zeros, "point oh five", "3-1/2"."""

from decimal import Decimal

import pytest

from contracts.errors import InvalidAmount
from quantities.numerals import find_amounts, parse_number


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("zero zero four", "4"),
        ("eighty point oh seven", "80.07"),
        ("point oh oh one", "0.001"),
        ("half a hundred", "50"),
        ("half hundred thousand", "50000"),
        ("three quarters of a hundred", "75"),
        ("thirtyfour", "34"),
        ("two thousand sixtyone", "2061"),
        ("4-3/8", "4.375"),
        ("4-\u00be", "4.75"),
        ("9 & 1/2", "9.5"),
        ("three hundred dozen", "3600"),
        ("7 thou", "7000"),
        ("\u20134.5", "-4.5"),
        ("eleven thousand two hundred crore", "112000000000"),
        ("two lakh fifty thousand crore", "2500000000000"),
        ("four thousand five hundred million", "4500000000"),
        ("7hundred", "700"),
        ("two thirds of a dozen", "8"),
        ("five eighths of a million", "625000"),
        ("0.6 of a million", "600000"),
        ("three - quarters", "0.75"),
        ("1\u20444", "0.25"),
        ("four hundred and three quarters", "400.75"),
        ("three hundred thousandths", "0.3"),
    ],
)
def test_a_number_is_read_as_it_is_spoken(text: str, value: str) -> None:
    """Each is one number, of all its words."""
    assert parse_number(text) == Decimal(value)


@pytest.mark.parametrize("text", ["five zero", "oh five", "final score and seven", "zero zero zero", "8-1/20"])
def test_what_only_looks_like_one_number_is_refused(text: str) -> None:
    """Digits in a row, a score in a game and a difference are several."""
    with pytest.raises(InvalidAmount):
        parse_number(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("thousand dollars a month", [("1000", "USD")]),
        ("two thousand, three of which", [("2000", None), ("3", None)]),
        ("one thousand, fifty and sixty", [("1000", None), ("50", None), ("60", None)]),
        ("two thousand, fifty yen", [("2050", "JPY")]),
        ("five thousand and three hundred crore", [("5000", None), ("3000000000", None)]),
        ("five thousand two million", [("5000", None), ("2000000", None)]),
        ("30 thousand 250 people", [("30000", None), ("250", None)]),
        ("a one-way ticket for two", [("2", None)]),
        ("a one-off payment", []),
        ("at one point", []),
        ("this one", []),
        ("this one dollar", [("1", "USD")]),
        ("a one-mile run", [("1", "mile")]),
        ("hundred miles away", [("100", "mile")]),
        ("a million dollar question", [("1000000", "USD")]),
        ("the million dollar question", []),
        ("few hundred dollars", []),
        ("multi-million dollars", []),
        ("tens of thousand dollars", []),
        ("a half-hearted try", []),
        ("half-mile runs", [("0.5", "mile")]),
        ("thousands of miles", []),
        ("dozen eggs", [("12", None)]),
        ("a table for dozen guests", [("12", None)]),
        ("cheaper by the dozen", []),
        ("several dozen eggs", []),
        ("sixty (60) days", [("60", "day")]),
        ("6 (six) cents", [("0.06", "USD")]),
        ("8 thousand and 50 cents", [("8000", None), ("0.5", "USD")]),
        ("between 6 thousand and 9", [("6000", None), ("9", None)]),
    ],
)
def test_a_bare_scale_counts_what_follows_it(text: str, wanted: list[tuple[str, str | None]]) -> None:
    """Several of a unit, or of anything after a dozen; a name of one thing and a loose scale count nothing."""
    found = [(one.value, one.unit) for one in find_amounts(text)]
    assert found == [(Decimal(value), unit) for value, unit in wanted]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("One ticket to Oslo", [1]),
        ("one person", [1]),
        ("one more", [1]),
        ("only one", [1]),
        ("one or two", [1, 2]),
        ("One glass", [1]),
        ("One never knows", []),
        ("my only one", []),
        ("one with mushrooms", []),
    ],
)
def test_one_that_opens_a_sentence_counts_unless_it_is_anybody(text: str, wanted: list[int]) -> None:
    """Before a noun it is a number, before a verb nobody in particular."""
    assert [found.value for found in find_amounts(text)] == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("room 21B for 3 people", [3]),
        ("seat 14C by the window", []),
        ("flat 900k", [900_000]),
        ("question 3b has 4 parts", [4]),
        ("a profit of 12B", [12_000_000_000]),
    ],
)
def test_a_letter_glued_to_the_number_of_a_place_makes_it_a_name(text: str, wanted: list[int]) -> None:
    """A room "21B" is no 21 billion; a flat can have its price behind it."""
    assert [found.value for found in find_amounts(text)] == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("dozens of reasons", []),
        ("second to none", []),
        ("\u20ac3m", [3_000_000]),
    ],
)
def test_a_word_that_is_a_number_by_itself_is_none_in_a_sentence(text: str, wanted: list[int]) -> None:
    """A table of numerals has "nil" and "dozens"; and money before a small m makes it a million."""
    assert [found.value for found in find_amounts(text)] == wanted
