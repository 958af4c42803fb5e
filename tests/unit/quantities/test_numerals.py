"""Amounts in sentences: which words count, their worth, their unit, and their place."""

from decimal import Decimal, localcontext

import pytest

from tasklore.contracts.errors import AmbiguousAmount, InvalidAmount
from tasklore.contracts.quantities.amounts import canonical
from tasklore.contracts.quantities.numerals import (
    FoundAmount,
    find_amounts,
    parse_amount,
    parse_number,
)
from tasklore.contracts.quantities.units import CURRENCIES, unit_named


def of_kind(text: str, kind: str) -> tuple[FoundAmount, ...]:
    """Return the amounts of one kind in *text*."""
    return tuple(found for found in find_amounts(text) if found.kind == kind)


def values(text: str) -> list[Decimal | None]:
    """Return what each amount in *text* is worth."""
    return [found.value for found in find_amounts(text)]


def worth(found: tuple[FoundAmount, ...]) -> list[tuple[str, str | None]]:
    """Return the value and unit of each amount, values without zeros behind."""
    return [(canonical(one.value or Decimal(0)), one.unit) for one in found]


@pytest.mark.parametrize(
    "text",
    [
        "50,000", "50.000,00", "50\u202f000", "50'000", "5e4", "50K", "50 k", "50 grand", "fifty-thousand",
        "$50,000.00", "50,000 dollars", "USD50000", "0.05m", "half of a lakh", "\u00bd lakh",
        "\u0665\u0660\u0660\u0660\u0660", "\uff15\uff10\uff0c\uff10\uff10\uff10", "fifty thousand (50,000)",
    ],
)  # fmt: skip
def test_every_wording_of_fifty_thousand_is_fifty_thousand(text: str) -> None:
    """One value, whatever the spelling."""
    assert parse_number(text) == 50_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("one and a half million", "1500000"), ("2 1/2 million", "2500000"), ("3 million and a half", "3500000"),
        ("three quarters of a million", "750000"), ("twenty-three fifths", "4.6"), ("five and a quarter", "5.25"),
        ("12,34,567.89", "1234567.89"), ("three lakh crore", "3000000000000"),
        ("hundred and two point four", "102.4"), ("one twenty two", "122"), ("zero zero four", "4"),
        ("two hundred and two thousand", "202000"), ("three dozen and a half", "42"), ("half a hundred", "50"),
        ("minus five point five", "-5.5"), ("eighty point oh seven", "80.07"), (".77", "0.77"), ("$-50", "-50"),
        ("1E-3", "0.001"), ("3bn", "3000000000"), ("0,5", "0.5"), ("1.500 million", "1500000"), ("007", "7"),
        ("4-3/8", "4.375"), ("9 & 1/2", "9.5"), ("two thirds of a dozen", "8"), ("thirtyfour", "34"),
    ],
)  # fmt: skip
def test_an_english_number_has_its_value(text: str, value: str) -> None:
    """Digits, words, scales, fractions and signs, alone and mixed."""
    assert parse_number(text) == Decimal(value)


@pytest.mark.parametrize(
    "text",
    ["sixty hundred", "thousand thousand", "five zero", "zero zero zero", "8-1/20"],
)
def test_what_english_does_not_put_together_is_refused(text: str) -> None:
    """It is asked for again rather than guessed."""
    with pytest.raises(InvalidAmount):
        parse_number(text)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[5000, 7000, 8000]", [5000, 7000, 8000]), ("5k, 7k and 8k", [5000, 7000, 8000]), ("5,7,8", [5, 7, 8]),
        ("500 600 700", [500, 600, 700]), ("5,000, 7,000", [5000, 7000]), ("5k-7k", [5000, 7000]),
        ("two thousand, three left", [2000, 3]), ("50 thousand and 20 people", [50000, 20]),
        ("limit:50000 spent=42000", [50000, 42000]), ("one two three", [1, 2, 3]), ("fifty\nthousand", [50]),
    ],
)  # fmt: skip
def test_neighbouring_numbers_stay_apart(text: str, wanted: list[float]) -> None:
    """Lists, ranges and sums are several amounts, never one long number."""
    assert values(text) == wanted


@pytest.mark.parametrize(
    "text",
    [
        "covid-19", "v1.5", "2x", "10th", "#12", "john50@x.org", "https://x.org/12/34", "192.168.1.2", "10:30",
        "2024-01-02T10:30:00Z", "31.12.2024", "24/7", "10 pm", "this one", "the fourth one", "a budget",
        "hundreds of people", "this quarter", "one hundred fifth", "$", "", "10/0", "1e999999999",
        "ten hundred thousand", "a dollar bill", "a yen for it", "dozens of reasons", "the million dollar question",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_number_is_none(text: str) -> None:
    """Identifiers, dates, times, addresses, ordinals, pronouns and things that are named after a number."""
    assert [found for found in find_amounts(text) if not found.is_vague] == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("5 bucks", [("5", "USD")]), ("10 $ 30 $", [("10", "USD"), ("30", "USD")]), ("115USD", [("115", "USD")]),
        ("Rs.500", [("500", "INR")]), ("75 USD million", [("75000000", "USD")]), ("$50 AUD", [("50", "AUD")]),
        ("10 hong kong dollars", [("10", "HKD")]), ("500c", [("5", "USD")]), ("470 pence", [("4.7", "GBP")]),
        ("3 dollars and 50 cents", [("3.5", "USD")]), ("twenty percent", [("20", "%")]), ("5km", [("5", "km")]),
        ("ALL 5 solutions", [("5", None)]), ("50 apples", [("50", None)]), ("a quarter percent", [("0.25", "%")]),
        ("12 stone 7 pounds", [("12.5", "stone")]), ("an hour and a quarter", [("1.25", "hour")]),
        ("thousand dollars a month", [("1000", "USD")]), ("two thousand, fifty yen", [("2050", "JPY")]),
        ("sixty (60) days", [("60", "day")]), ("dozen eggs", [("12", None)]),
        ("three dollars and a half", [("3.5", "USD")]),
        ("a dollar", [("1", "USD")]), ("run a mile and a half", [("1.5", "mile")]),
        ("3 dollars a gallon", [("3", "USD")]),
        ("5 dollars and half of a mile", [("5", "USD"), ("0.5", "mile")]),
    ],
)  # fmt: skip
def test_a_unit_beside_the_number_belongs_to_it(
    text: str, wanted: list[tuple[str, str | None]]
) -> None:
    """Currencies before or after, cents as parts of their currency, percent, measures, and an article for one."""
    assert worth(find_amounts(text)) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("c$ 7.25", [("7.25", "CAD")]), ("45 MEUR", [("45000000", "EUR")]), ("2 bn kr", [("2000000000", "SEK")]),
        ("300 west german marks", [("300", "DEM")]), ("7 won the game", []), ("TRY 80", [("80", "TRY")]),
        ("try 80 times", []), ("5€-9€", [("5", "EUR"), ("9", "EUR")]), ("4 ETH", [("4", "ETH")]), ("php 7", []),
        ("a buck fifty", [("1.5", "USD")]), ("all 60 of us $ 70", [("70", "USD")]), ("Euro 96", []),
        ("eur 9,50", [("9.5", "EUR")]), ("5 mils of meth", []), ("a pound and a half", [("1.5", "GBP")]),
        ("27 dollars 80", [("27.8", "USD")]), ("2 yuan 5 jiao 3 fen", [("2.53", "CNY")]),
        ("4 dollars 50 an hour", [("4.5", "USD")]), ("6 dollars 300 times", [("6", "USD")]),
        ("6 dollars and 3 will do", [("6", "USD")]), ("a 50p coin", [("0.5", "GBP")]), ("a 720p screen", []),
    ],
)  # fmt: skip
def test_a_price_is_found_however_its_currency_is_named(
    text: str, wanted: list[tuple[str, str]]
) -> None:
    """Signs, codes with a scale, names of countries, small coins behind it; words of English stay words."""
    assert worth(of_kind(text, "money")) == wanted


@pytest.mark.parametrize(
    ("text", "value", "unit", "said", "said_unit"),
    [
        ("380 pence", "3.8", "GBP", "380", "pence"),
        ("25 basis points", "0.25", "%", "25", "basis points"),
        ("-3 Euro", "-3", "EUR", "-3", "Euro"),
        ("12", "12", None, "12", ""),
    ],
)
def test_what_was_said_is_kept_beside_what_it_is_worth(
    text: str, value: str, unit: str | None, said: str, said_unit: str
) -> None:
    """A table of prices wants the pence, a parameter the pounds."""
    (found,) = find_amounts(text)
    assert (found.value, found.unit) == (Decimal(value), unit)
    assert (found.said, found.said_unit) == (Decimal(said), said_unit)


def test_every_code_of_money_is_a_unit() -> None:
    """A field may declare any of them, also those that no sentence is read for."""
    assert all(
        (unit := unit_named(code)) and unit.code == code and unit.is_currency
        for code in CURRENCIES
    )


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("7 to 9 km", [("7", "km"), ("9", "km")]), ("7 or 9 cents", [("0.07", "USD"), ("0.09", "USD")]),
        ("EUR 7 to 9", [("7", "EUR"), ("9", "EUR")]), ("300 to 2 thousand euros", [("300", "EUR"), ("2000", "EUR")]),
        ("7x9x2 m", [("7", "m"), ("9", "m"), ("2", "m")]), ("7 km to 9", [("7", "km"), ("9", None)]),
        ("item 7 - $9", [("7", None), ("9", "USD")]), ("7 x 9 kg", [("7", None), ("9", "kg")]),
        ("7 people and 9 km", [("7", None), ("9", "km")]),
    ],
)  # fmt: skip
def test_both_ends_of_a_span_have_its_unit(
    text: str, wanted: list[tuple[str, str | None]]
) -> None:
    """Where it can be meant for both; lists, products and what stands beside a price are no spans."""
    assert worth(find_amounts(text)) == wanted


def test_a_scale_at_the_second_end_leaves_the_first_with_two_readings() -> None:
    first, second = find_amounts("7 to 9 million dollars")
    assert (first.value, first.readings, first.unit) == (None, (7_000_000, 7), "USD")
    assert second.value is not None


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("1.500", [Decimal("1.5"), 1500]),
        ("50.000", [50, 50_000]),
        ("5,00,00", [50_000, 500_000]),
    ],
)
def test_a_number_with_two_readings_is_not_guessed(
    text: str, readings: list[Decimal]
) -> None:
    """Both readings are handed out and the number itself is refused."""
    (found,) = find_amounts(f"limit {text}")
    assert (found.value, list(found.readings)) == (None, readings)
    with pytest.raises(AmbiguousAmount) as caught:
        parse_number(text)
    assert caught.value.readings == tuple(str(reading) for reading in readings)


def test_a_known_decimal_mark_settles_the_reading() -> None:
    """The writer's habit, when known, leaves one reading."""
    assert parse_number("1.500", decimal_mark=".") == Decimal("1.5")
    assert parse_number("1.500", decimal_mark=",") == 1500
    assert parse_number("1,500", decimal_mark=",") == Decimal("1.5")
    assert parse_number("1,500") == 1500


def test_a_span_points_at_the_text_as_it_was_written() -> None:
    """Places count characters of the original sentence, also past letters of other scripts."""
    text = "Größe \uff15\uff10\uff0c\uff10\uff10\uff10 and \u2212$3.50, ok"
    places = [
        (text[found.start : found.end], found.text) for found in find_amounts(text)
    ]
    assert places == [
        ("\uff15\uff10\uff0c\uff10\uff10\uff10",) * 2,
        ("\u2212$3.50",) * 2,
    ]


def test_a_bare_dollar_lists_whose_it_can_be() -> None:
    """What a sign leaves open is said, so that a field may settle it."""
    assert "CAD" in parse_amount("$5").also
    assert parse_amount("US$5").also == ()


@pytest.mark.parametrize(
    "text", ["", "hello", "5 or 6", "5 apples", "about 5", "1.2.3"]
)
def test_a_text_that_is_not_one_amount_is_refused(text: str) -> None:
    """The message quotes the text and says what to write."""
    with pytest.raises(InvalidAmount, match="write"):
        parse_amount(text)


def test_values_do_not_depend_on_the_decimal_context_of_the_caller() -> None:
    """A caller who rounds to three digits gets every digit."""
    with localcontext(prec=3):
        assert values("$123456.789k") == [Decimal(123456789)]
