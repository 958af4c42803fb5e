"""Prices: every way to name a currency, its parts, and what was said beside what it is worth."""

from decimal import Decimal

import pytest

from quantities.numerals import Found, find_amounts
from quantities.units import CURRENCIES, unit_named


def of_kind(text: str, kind: str) -> tuple[Found, ...]:
    """Return the amounts of one kind in *text*."""
    return tuple(found for found in find_amounts(text) if found.kind == kind)


def prices(text: str) -> list[tuple[str, str | None]]:
    """Return the value and currency of each price in *text*."""
    return [(str(found.value), found.unit) for found in of_kind(text, "money")]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("$ 410 million first mortgage", [("410000000", "USD")]),
        ("c$ 7.25", [("7.25", "CAD")]),
        ("u . s . $ 12", [("12", "USD")]),
        ("12 u.s. dollars", [("12", "USD")]),
        ("45 MEUR", [("45000000", "EUR")]),
        ("KCHF 8", [("8000", "CHF")]),
        ("GBPm 3.5", [("3500000", "GBP")]),
        ("60 EUR million", [("60000000", "EUR")]),
        ("2 bn kr", [("2000000000", "SEK")]),
        ("$ 6 m", [("6000000", "USD")]),
        ("6 m dollars", [("6000000", "USD")]),
        ("90 million dutch guilders", [("90000000", "NLG")]),
        ("300 west german marks", [("300", "DEM")]),
        ("40 papua new guinea kina", [("40", "PGK")]),
        ("rupees 700", [("700", "INR")]),
        ("RM 35", [("35", "MYR")]),
        ("2,000 won", [("2000", "KRW")]),
        ("7 won the game", []),
        ("TOP 10, ALL 5, bob 3", []),
        ("TRY 80", [("80", "TRY")]),
        ("try 80 times", []),
        ("5€-9€", [("5", "EUR"), ("9", "EUR")]),
        ("1 $ 20 dollars", [("20", "USD")]),
        ("half a dollar", [("0.5", "USD")]),
        ("30 million ecus and 40 european currency units", [("30000000", "XEU"), ("40", "XEU")]),
        ("6 special drawing rights", [("6", "XDR")]),
        ("800 scottish pounds", [("800", "GBP")]),
        ("70 finnish marks", [("70", "FIM")]),
        ("0.3 ether, 4 ETH and 9 litecoins", [("0.3", "ETH"), ("4", "ETH"), ("9", "LTC")]),
        ("700 dogecoins", [("700", "DOGE")]),
        ("RD$ 250", [("250", "DOP")]),
        ("N$30", [("30", "NAD")]),
        ("n $ 30", [("30", "USD")]),
        ("R2.5 of the software, N5, P 25, fl 350, sh 5", []),
        ("Fr. 30.50", [("30.5", "CHF")]),
        ("15,000 Rp", [("15000", "IDR")]),
        ("30 RM", [("30", "MYR")]),
        ("70 Fr.", [("70", "CHF")]),
        ("40 Tk and 60 Dhs", [("40", "BDT"), ("60", "AED")]),
        ("5 dm, 30 rm, 3 rp", []),
        ("Php 450", [("450", "PHP")]),
        ("php 7", []),
        ("NTD 300, 400 NTD", [("300", "TWD"), ("400", "TWD")]),
        ("a buck fifty", [("1.5", "USD")]),
        ("a dollar twenty", [("1.2", "USD")]),
        ("SKr 700", [("700", "SEK")]),
        ("Euro 96", []),
        ("5 crores of rupees", [("50000000", "INR")]),
        ("6 million of them", []),
        ("6 lats", []),
        ("6 million real estates", []),
        ("6 m$", [("6000000", "USD")]),
        ("60 us $ 70", [("70", "USD")]),
        ("all 60 of us $ 70", [("70", "USD")]),
        ("4 rub it in", []),
        ("a quarter dollar", [("0.25", "USD")]),
        ("USD.70", []),
        ("we take INR. 40 guests came", []),
        ("90us$", [("90", "USD")]),
        ("7 hk dollars, 8 NZ dollars", [("7", "HKD"), ("8", "NZD")]),
        ("eur 9,50 and CHF12,80", [("9.5", "EUR"), ("12.8", "CHF")]),
        ("rooms 9,50 and 70", []),
        ("45 musd and keur 6", [("45000000", "USD"), ("6000", "EUR")]),
        ("5 mils of meth", []),
        ("euro 88, euro 6, euro 2028", []),
        ("meet in rm 60", []),
        ("she got 9 marks", []),
        ("she paid and 9 won", []),
        ("the 2,000 Guineas, 3 guinea pigs", []),
        ("hundred dollar question", []),
        ("a pound and a half", [("1.5", "GBP")]),
        ("4 euros and 3 for 2 euros", [("4", "EUR"), ("2", "EUR")]),
        ("4 dollars 20 cents and 3", [("4.2", "USD")]),
    ],
)
def test_a_price_is_found_however_its_currency_is_named(text: str, wanted: list[tuple[str, str]]) -> None:
    """Signs, codes with a scale, names of countries, tokenised text; words of English stay words."""
    assert prices(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("27 dollars 80", "27.8"),
        ("eighteen euros thirty five", "18.35"),
        ("three kuai and four mao six", "3.46"),
        ("2 yuan 5 jiao 3 fen", "2.53"),
        ("three kuai sixteen", "3.16"),
        ("8 rubles 20 kopeks", "8.2"),
        ("0 dollars and 45 cents", "0.45"),
        ("4 usd 75 more", "4.75"),
        ("four pounds fifty please", "4.5"),
        ("4 dollars 50 an hour", "4.5"),
    ],
)
def test_a_small_number_after_a_price_is_its_cents(text: str, wanted: str) -> None:
    """Named parts add up, and a bare number below a hundred is counted in the next smaller coin."""
    assert [found.value for found in of_kind(text, "money")] == [Decimal(wanted)]


@pytest.mark.parametrize(
    "text",
    [
        "6 dollars 300 times",
        "6 dollars and 40 minutes",
        "$6 and 12 people",
        "6 dollars 2 yen",
        "6 usd,40 more",
        "6 dollars and 3 will do",
    ],
)
def test_a_number_that_counts_something_else_is_no_cents(text: str) -> None:
    """The price stays what it was."""
    assert of_kind(text, "money")[0].value == 6


def test_a_parameter_takes_no_cents_from_an_and() -> None:
    """Only the reading for prices joins "15 dollars and 15"; a sentence may mean two amounts."""
    assert [found.value for found in find_amounts("9 dollars and 30")] == [9, 30]
    assert [found.value for found in find_amounts("9 dollars 30")] == [Decimal("9.3")]


@pytest.mark.parametrize(
    ("text", "value", "unit", "said", "said_unit"),
    [
        ("380 pence", "3.8", "GBP", "380", "pence"),
        ("$5k", "5000", "USD", "5000", "$"),
        ("25 basis points", "0.25", "%", "25", "basis points"),
        ("7 km", "7", "km", "7", "km"),
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
    assert all((unit := unit_named(code)) and unit.code == code and unit.is_currency for code in CURRENCIES)
