"""Percentages whose word or sign is not right behind the number, and those that open with a scale or a fraction."""

from decimal import Decimal

import pytest

from quantities.amounts import Percent
from quantities.numerals import find_percents


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("hundred percent sure", ["100"]),
        ("hundred % wool", ["100"]),
        ("hundred and twenty per cent", ["120"]),
        ("several hundred percent", []),
        ("percentages of sixty", ["60"]),
        ("45 (percent)", ["45"]),
        ("45 (%) of all", ["45"]),
        ("seven (7) percent", ["7"]),
        ("7 (seven) per cent", ["7"]),
        ("30 p.c. of it", ["30"]),
        ("6 per centum", ["6"]),
        ("\u0663\u0660\u066a", ["30"]),
        ("quarter of a percent", ["0.25"]),
        ("quarter of one percent", ["0.25"]),
        ("3 & 1/2 percent", ["3.5"]),
        ("3-1/2 percent", ["3.5"]),
        ("twenty-to-forty percent", ["20", "40"]),
        ("from 15 up to 25 percent", ["15", "25"]),
        ("minus 4 to plus 4 percent", ["-4", "4"]),
        ("40 60 percent", ["60"]),
        ("40 and 60 percent", ["60"]),
        ("between 40 and 60 percent", ["40", "60"]),
        ("per cents of 60", ["60"]),
        ("a share of thirty\npercent", ["30"]),
        ("(8)% and 9.%", ["8", "9"]),
        ("\u20138%", ["-8"]),
        ("8\u20139%", ["8", "9"]),
        ("4, 8 and 12 percent", ["4", "8", "12"]),
        ("4, 8, or 12 %", ["4", "8", "12"]),
        ("12, 8 and 4 percent", ["4"]),
        ("in 4, 8 and 12 percent", ["12"]),
        ("1990, 2000 and 2010 percent", ["2010"]),
        ("4 apples, 8 and 12 percent", ["12"]),
        ("two to three percent", ["2", "3"]),
        ("one to two percent", ["1", "2"]),
        ("one in 4 or 25 %", ["25"]),
        ("a percentage point", ["1"]),
        ("a full percentage point", ["1"]),
        ("5/8 of a percentage point", ["0.625"]),
        ("0.4 of a percent", ["0.4"]),
        ("3 / 8 of a percent", ["0.375"]),
        ("half of 1 percent", ["0.5"]),
        ("5 of 1 percent", ["1"]),
        ("60per cent", ["60"]),
        ("60per-cent", ["60"]),
        ("60per person", []),
        ("60pc of voters", ["60"]),
        ("60 p.c", ["60"]),
        ("60 PC games", []),
        ("this one percent", ["1"]),
        ("the one per cent", ["1"]),
        ("plus or minus two percent", ["2"]),
        ("two hundred and three quarters percent", ["200.75"]),
        ("$6 (6%)", ["6"]),
        ("a percentage (of sorts)", []),
        ("a small percent of 30-year-olds", []),
    ],
)
def test_a_percentage_is_found_in_its_rarer_wordings(text: str, wanted: list[str]) -> None:
    """In brackets, as both ends of a span and after a bare scale; a percentage of nothing is none."""
    assert [found.value for found in find_percents(text)] == [Decimal(value) for value in wanted]


@pytest.mark.parametrize(
    ("text", "points"),
    [
        ("hundred percent", "100"),
        ("fifteen (15) percent", "15"),
        ("quarter of a percent", "0.25"),
        ("2-3/4 %", "2.75"),
        ("\u0665\u066a", "5"),
    ],
)
def test_a_field_of_percentages_takes_them(text: str, points: str) -> None:
    """What one percentage is in a sentence is one in a parameter."""
    assert Percent(text) == Percent(Decimal(points))


def test_the_span_of_a_percentage_reaches_behind_its_brackets() -> None:
    """What is pointed at is the whole wording."""
    (found,) = find_percents("a fee of nine (9) percent, 20 people")
    assert (found.text, found.unit) == ("nine (9) percent", "%")
    (found,) = find_percents("share: 12 (percent)")
    assert (found.text, found.said_unit) == ("12 (percent)", "(percent)")
