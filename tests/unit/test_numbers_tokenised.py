"""Numbers in tokenised text, which keeps a space around every mark: "$ 1 , 500 . 25", "a 30 - percent stake"."""

from decimal import Decimal

import pytest

from quantities.numerals import find_amounts, find_money, find_numbers, find_percents, find_quantities


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("it lent $ 4 , 750 to him", ["4750"]),
        ("$ 2 , 045 , 300 . 75 in all", ["2045300.75"]),
        ("rs 6 , 500 or usd 1 , 250", ["6500", "1250"]),
        ("about 8 , 200 yen each", ["8200"]),
        ("3 . 75 hong kong dollars", ["3.75"]),
        ("a $ 1 . 75 - a - ride ticket", ["1.75"]),
        ("a 40 - million - euro bridge", ["40000000"]),
        ("a 2 . 5 - million - dollar home", ["2500000"]),
        ("a 60 - cent coin", ["60"]),
        ("for $ 8 , $ 9 or $ 10", ["8", "9", "10"]),
        ("at $ 20 , 15 people came", ["20"]),
    ],
)
def test_a_price_is_joined_across_the_spaces_round_its_marks(text: str, wanted: list[str]) -> None:
    """Groups of three digits and decimals belong together where a currency stands beside them; a list stays one."""
    assert [str(found.said) for found in find_money(text)] == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("some 9 , 300 km away", ["9300"]),
        ("it weighs 2 . 4 tons", ["2.4"]),
        ("a 7 , 500 - square - foot hall", ["7500"]),
        ("a 5 . 2 - inch screen", ["5.2"]),
        ("1 / 4 inch thick", ["0.25"]),
    ],
)
def test_a_measure_is_joined_as_a_price_is(text: str, wanted: list[str]) -> None:
    """A unit behind the digits shows as well as a currency that they are one number."""
    assert [str(found.said) for found in find_quantities(text)] == wanted


def test_a_spaced_hyphen_joins_a_number_to_its_percent() -> None:
    """The cut in "a 15 - percent cut" is one of fifteen percent."""
    assert [str(found.value) for found in find_percents("a 15 - percent cut")] == ["15"]


def test_numbers_without_a_unit_stay_a_list() -> None:
    """Nothing says that "1 , 250" and "3 . 4" are one number each."""
    assert [str(found.value) for found in find_numbers("see 1 , 250 and 3 . 4")] == ["1", "250", "3", "4"]


def test_a_long_row_of_groups_is_read_once() -> None:
    """A thousand spaced groups before a unit make no endless number and no error."""
    assert find_amounts("$ " + "1 , 000 , " * 1000)


def test_a_declared_locale_decides_between_readings_and_refuses_none() -> None:
    """A run such as "1.234.567" can be but one number, whatever the writer usually does."""
    assert [found.value for found in find_numbers("42.195", locale="en")] == [Decimal("42.195")]
    assert [found.value for found in find_numbers("42.195", locale="de")] == [Decimal(42195)]
    for locale in ("en", "de"):
        assert [found.value for found in find_numbers("1.234.567", locale=locale)] == [Decimal(1234567)]
        assert [found.value for found in find_numbers("1,234,567", locale=locale)] == [Decimal(1234567)]
