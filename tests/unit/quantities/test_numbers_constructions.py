"""Numbers that are built in rarer ways: loose scales, parts of one percent, countries before prices, quarter miles."""

from decimal import Decimal

import pytest

from contracts.errors import InvalidAmount
from quantities.numerals import Found, find_amounts, parse_number


def of_kind(text: str, kind: str) -> tuple[Found, ...]:
    """Return the amounts of one kind in *text*."""
    return tuple(found for found in find_amounts(text) if found.kind == kind)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("hundred", "100"),
        ("million", "1000000"),
        ("hundred and seven", "107"),
        ("thousand and three", "1003"),
        ("hundred thousand", "100000"),
        ("thousand million", "1000000000"),
        ("hundred and two point four", "102.4"),
        ("two thousand point five", "2000.5"),
        ("six million point zero two", "6000000.02"),
        ("three dozen and a half", "42"),
        ("two million and a half", "2500000"),
        ("ninty three", "93"),
        ("fifteen hundred", "1500"),
        ("forty-one hundred", "4100"),
    ],
)
def test_a_scale_opens_a_number_and_decimals_close_it(text: str, value: str) -> None:
    """A scale needs no "one" before it, and "point" may follow it."""
    assert parse_number(text) == Decimal(value)


@pytest.mark.parametrize("text", ["sixty hundred", "ninety hundred", "thousand thousand", "hundred hundred"])
def test_scales_that_english_does_not_put_together_are_refused(text: str) -> None:
    """Nobody counts in sixty hundreds: it is asked for again rather than guessed."""
    with pytest.raises(InvalidAmount):
        parse_number(text)


@pytest.mark.parametrize("text", ["ten hundred thousand", "sixty hundred thousand yen"])
def test_the_end_of_such_a_wording_is_no_number_either(text: str) -> None:
    """A hundred thousand is not what "ten hundred thousand" says."""
    assert find_amounts(text) == ()


@pytest.mark.parametrize("text", ["several hundred million people", "a few hundred thousand", "many thousand and more"])
def test_a_loose_scale_is_no_number(text: str) -> None:
    """Nobody can tell how many "several hundred million" are."""
    assert [found for found in find_amounts(text) if not found.is_vague] == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("only one car", ["1"]),
        ("the only one", []),
        ("the only one car", []),
        ("the fourth one", []),
        ("get a new one in the mail", []),
        ("neither one", []),
        ("three quarter million", ["750000"]),
        ("one metric ton", ["1"]),
        ("One square mile", ["1"]),
        ("stay for one day", ["1"]),
        ("one day", ["1"]),
        ("one day he stayed", []),
        ("we knew that one day he would", []),
    ],
)
def test_one_is_counted_where_something_is_measured_by_it(text: str, wanted: list[str]) -> None:
    """The text "one metric ton" opens with a number, "the fourth one" ends in a pronoun."""
    assert [str(found.value) for found in find_amounts(text)] == wanted


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("half of one percent", "0.5"),
        ("one tenth of one per cent", "0.1"),
        ("a quarter percent", "0.25"),
        ("18 per-cent", "18"),
        ("3 percentage-points", "3"),
    ],
)
def test_a_part_of_a_percent_is_one_percentage(text: str, value: str) -> None:
    """The "one" of "half of one percent" is no percentage of its own."""
    assert [found.value for found in of_kind(text, "percent")] == [Decimal(value)]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("changed canadian dollars 3 days ago", []),
        ("changed euros 3 days ago", []),
        ("rm 12", []),
        ("9 japan yen", [("9", "JPY")]),
        ("RMB75", [("75", "CNY")]),
        ("a 50p coin", [("0.50", "GBP")]),
        ("2 pounds 40p", [("2.40", "GBP")]),
        ("a 720p screen, 1080p or 4.50p", []),
    ],
)
def test_money_is_named_by_its_country_on_either_side(text: str, wanted: list[tuple[str, str]]) -> None:
    """A name before a number that counts something else is not its unit."""
    assert [(found.value, found.unit) for found in of_kind(text, "money")] == [(Decimal(v), unit) for v, unit in wanted]


@pytest.mark.parametrize(
    ("text", "value", "unit"),
    [
        ("a quarter-mile track", "0.25", "mile"),
        ("two and three quarter inches", "2.75", "inch"),
        ("12 stone 7 pounds", "12.5", "stone"),
        ("6 sq in", "6", "inch2"),
        ("9 cu. in. of air", "9", "inch3"),
        ("30 fluid oz", "30", "fl oz"),
        ("2 exabytes", "2", "EB"),
        ("80 gms", "80", "g"),
        ("5 arc minutes", "5", "arcminute"),
        ("a kilometre and a half", "1.5", "km"),
        ("an hour and a quarter", "1.25", "hour"),
    ],
)
def test_a_measure_is_read_in_its_rarer_names(text: str, value: str, unit: str) -> None:
    """Short and split names, and pounds beside stones, are measures too."""
    assert [(found.value, found.unit) for found in of_kind(text, "measure")] == [(Decimal(value), unit)]


@pytest.mark.parametrize("text", ["wait an hour", "a day in May", "per an hour and a day"])
def test_a_time_with_an_article_is_no_quantity_of_one(text: str) -> None:
    """An article counts a time only where a part follows: "an hour and a half"."""
    assert find_amounts(text) == ()


@pytest.mark.parametrize("text", ["the last quarter was good", "sales a quarter per region", "first quarter sales"])
def test_a_quarter_of_a_year_is_no_fraction(text: str) -> None:
    """Only a length, an area or a volume makes a lone quarter a number."""
    assert of_kind(text, "measure") == ()
