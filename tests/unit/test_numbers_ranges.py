"""Ranges: both ends, which of them belong, and what is no range."""

import pytest

from contracts.errors import InvalidAmount
from quantities.numerals import find_amounts, find_ranges, parse_number


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("between 3 and 8 guests", ["[3,8)"]),
        ("from two hundred to five hundred", ["[200,500)"]),
        ("3-8", ["[3,8)"]),
        ("3 ~ 8", ["[3,8)"]),
        ("at least 15", ["[15,)"]),
        ("more than half", ["(0.5,)"]),
        ("fewer than a million", ["(,1000000)"]),
        ("up to 40", ["(,40]"]),
        ("40 or more", ["[40,)"]),
        ("40+", ["[40,)"]),
        ("40 or fewer", ["(,40]"]),
        ("no more than 6", ["(,6]"]),
        ("not less than 6", ["[6,)"]),
        ("over 12, under 20", ["(12,20)"]),
        ("greater than 12 and less than or equal to 20", ["(12,20]"]),
        ("less than 12 and more than 20", ["(,12)", "(20,)"]),
        ("more than 9 or equal to it", ["[9,)"]),
        ("n >= 4 and k < 7", ["[4,)", "(,7)"]),
        ("equal to 9 or less", ["(,9]"]),
        ("equals 9", ["[9,9]"]),
        ("8-3", []),
        ("2024-01-02", []),
        ("9 people", []),
        ("at least 1.500", []),
    ],
)
def test_a_range_has_the_ends_that_were_said(text: str, wanted: list[str]) -> None:
    """Comparatives leave their number out, "at least" and "or more" take it in."""
    assert [str(found) for found in find_ranges(text)] == wanted


def test_a_range_shares_its_unit_and_points_at_its_words() -> None:
    """The unit may be said once, on either end."""
    text = "pay between 5 and 9 euros or $10-20"
    assert [(found.unit, found.text) for found in find_ranges(text)] == [
        ("EUR", "between 5 and 9 euros"),
        ("USD", "$10-20"),
    ]
    assert all(text[found.start : found.end] == found.text for found in find_ranges(text))


def test_a_number_lies_inside_a_range_or_not() -> None:
    """The ends count as they were said."""
    (found,) = find_ranges("from 5 to 10")
    assert 5 in found
    assert 10 not in found
    assert "7" not in found


@pytest.mark.parametrize(
    ("locale", "value"),
    [("de", 1500), ("de-CH", "1.5"), ("en", "1.5"), ("en-IN", "1.5"), ("pt_BR", 1500), ("fr", 1500), ("ja", "1.5")],
)
def test_a_declared_locale_settles_what_a_point_means(locale: str, value: object) -> None:
    """Without one, both readings stay."""
    assert str(parse_number("1.500", locale=locale)) == str(value)
    assert find_amounts("1.500")[0].value is None


def test_an_unknown_locale_is_refused_by_name() -> None:
    """The message names the tag and what to give instead."""
    with pytest.raises(InvalidAmount, match=r"'xx-YY'.*decimal_mark"):
        find_amounts("1.500", locale="xx-YY")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("€ 2.345,6", "2345.6"),
        ("79,95 euro", "79.95"),
        ("1 234 567,89", "1234567.89"),
        ("8,00,000", "800000"),
        ("80'000", "80000"),
        ("80\u2009000", "80000"),
        ("\u0968\u0967", "21"),
        ("7,5 million", "7500000"),
        ("7,5 kg", "7.5"),
    ],
)
def test_digits_with_one_possible_reading_need_no_locale(text: str, value: str) -> None:
    """A unit beside a comma, Indian groups, any space and any script."""
    assert str(parse_number(text)) == value
