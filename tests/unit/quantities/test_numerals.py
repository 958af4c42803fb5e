"""What counts as an amount in a sentence, what it is worth and where it stands."""

from decimal import Decimal, localcontext

import pytest

from contracts.errors import AmbiguousAmount, InvalidAmount
from quantities.numerals import find_amounts, parse_amount, parse_number


def values(text: str) -> list[Decimal | None]:
    """Return what each amount in *text* is worth."""
    return [found.value for found in find_amounts(text)]


def money(text: str) -> list[tuple[str, str | None]]:
    """Return the value and the unit of each amount in *text*."""
    return [(str(found.value), found.unit) for found in find_amounts(text)]


@pytest.mark.parametrize(
    "text",
    [
        "50000",
        "50,000",
        "50.000,00",
        "50 000",
        "50\u202f000",
        "50'000",
        "50_000",
        "50000.0",
        "5e4",
        "50k",
        "50K",
        "50 k",
        "fifty k",
        "50 grand",
        "50 thousand",
        "fifty thousand",
        "fifty-thousand",
        "Fifty Thousand",
        "$50,000.00",
        "$50k",
        "£50,000",
        "50,000 dollars",
        "USD 50,000",
        "USD50000",
        "50000usd",
        "0.05 million",
        "0.05m",
        "half a lakh",
        "half of a lakh",
        "1/2 lakh",
        "½ lakh",
        "\u0665\u0660\u0660\u0660\u0660",
        "\uff15\uff10\uff0c\uff10\uff10\uff10",
        "fifty thousand (50,000)",
    ],
)
def test_every_wording_of_fifty_thousand_is_fifty_thousand(text: str) -> None:
    """One value, whatever the spelling."""
    assert parse_number(text) == 50_000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1.5 million", "1500000"),
        ("one and a half million", "1500000"),
        ("two and a half million", "2500000"),
        ("2½ million", "2500000"),
        ("2 1/2 million", "2500000"),
        ("3 million and a half", "3500000"),
        ("one billion and three quarters million", "1000750000"),
        ("quarter million", "250000"),
        ("three quarters of a million", "750000"),
        ("three quarters", "0.75"),
        ("half", "0.5"),
        ("a fifth", "0.2"),
        ("twenty-three fifths", "4.6"),
        ("five and a quarter", "5.25"),
        ("five-and-a-half million", "5500000"),
        ("two-hundred-and-five", "205"),
        ("1/2", "0.5"),
        ("¾", "0.75"),
        ("5 lakh", "500000"),
        ("5,00,000", "500000"),
        ("12,34,567.89", "1234567.89"),
        ("three lakh crore", "3e12"),
        ("three cr twelve lac fifty-six thousand seven hundred twenty-one", "31256721"),
        ("twenty-five hundred", "2500"),
        ("nineteen hundred seventy-three", "1973"),
        ("a hundred and one", "101"),
        ("thousand nine hundred twenty", "1920"),
        ("one twenty two", "122"),
        ("zero eight", "8"),
        ("ninety - five", "95"),
        ("3 hundred and 21", "321"),
        ("4 thousand 3 hundred", "4300"),
        ("six crore and two hundred", "60000200"),
        ("two hundred and two thousand", "202000"),
        ("seventy-five thousand, five hundred", "75500"),
        ("a dozen", "12"),
        ("3 dozen", "36"),
        ("half a dozen", "6"),
        ("two hundred dozens", "2400"),
        ("a couple of", "2"),
        ("minus five point five", "-5.5"),
        ("five point two five million", "5250000"),
        ("point 77", "0.77"),
        (".77", "0.77"),
        ("-504", "-504"),
        ("- 1,200,000", "-1200000"),
        ("\u22123", "-3"),
        ("-$50", "-50"),
        ("$-50", "-50"),
        ("+7", "7"),
        ("1.3e6", "1300000"),
        ("1E-3", "0.001"),
        ("1,674,200.5 M", "1674200500000"),
        ("1MM", "1000000"),
        ("3bn", "3e9"),
        ("5,00", "5"),
        ("0,5", "0.5"),
        ("1,5k", "1500"),
        ("12,50 €", "12.5"),
        ("1.500 million", "1500000"),
        ("007", "7"),
        ("0", "0"),
        ("one hundred twenty-three thousand four hundred fifty-six point seven eight", "123456.78"),
    ],
)
def test_an_english_number_has_its_value(text: str, value: str) -> None:
    """Digits, words, scales, fractions and signs, alone and mixed."""
    assert parse_number(text) == Decimal(value)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("[5000, 7000, 8000]", [5000, 7000, 8000]),
        ("5k, 7k and 8k", [5000, 7000, 8000]),
        ("5,7,8", [5, 7, 8]),
        ("5000,7000,8000", [5000, 7000, 8000]),
        ("500 600 700", [500, 600, 700]),
        ("1.5,2.5", [1.5, 2.5]),
        ("5,000, 7,000", [5000, 7000]),
        ("5000-7000", [5000, 7000]),
        ("5k-7k", [5000, 7000]),
        ("10 - 5", [10, 5]),
        ("five thousand, six thousand and seven thousand", [5000, 6000, 7000]),
        ("two thousand, three left", [2000, 3]),
        ("fifty thousand and twenty thousand spent", [50000, 20000]),
        ("50 thousand and 20 people", [50000, 20]),
        ("4000 3 hundred and 21", [4000, 321]),
        ("sixty fifteen", [60, 15]),
        ("5k 300", [5000, 300]),
        ("limit:50000 spent=42000", [50000, 42000]),
        ("one two three", [1, 2, 3]),
        ("5000\t300", [5000, 300]),
        ("fifty\nthousand", [50]),
    ],
)
def test_neighbouring_numbers_stay_apart(text: str, wanted: list[float]) -> None:
    """Lists, ranges and sums are several amounts, never one long number."""
    assert values(text) == [Decimal(str(value)) for value in wanted]


@pytest.mark.parametrize(
    "text",
    [
        "A4",
        "covid19",
        "covid-19",
        "GPT-4",
        "v2",
        "v1.5",
        "2x",
        "10th",
        "3rd",
        "#12",
        "item.5",
        "john50@x.org",
        "50@x.org",
        "https://x.org/12/34",
        "192.168.1.2",
        "1.2.3",
        "10:30",
        "10:30:15",
        "2024-01-02",
        "2024-11",
        "01/02/2024",
        "2024-01-02T10:30:00Z",
        "31.12.2024",
        "24/7",
        "10am",
        "10 pm",
        "no one",
        "anyone",
        "this one",
        "one of them",
        "a budget",
        "an hour",
        "hundreds of people",
        "the second half",
        "this quarter",
        "a third option",
        "on the twenty-first",
        "one hundred fifth",
        "half past",
        "$",
        "-",
        "",
        "hundred hundreds",
        "10/0",
        "7" * 61,
        "1e999999999",
        "1.1^2",
    ],
)
def test_what_only_looks_like_a_number_is_none(text: str) -> None:
    """Identifiers, dates, times, addresses, ordinals and pronouns are left alone."""
    assert values(text) == []


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("$5", [("5", "USD")]),
        ("5 bucks", [("5", "USD")]),
        ("€5", [("5", "EUR")]),
        ("5 €", [("5", "EUR")]),
        ("10 $ 30 $", [("10", "USD"), ("30", "USD")]),
        ("$ 10 $ 30", [("10", "USD"), ("30", "USD")]),
        ("50 dollar 40 rmb", [("50", "USD"), ("40", "CNY")]),
        ("GBP 350", [("350", "GBP")]),
        ("115USD", [("115", "USD")]),
        ("Rs.500", [("500", "INR")]),
        ("35 lakh rupees", [("3500000", "INR")]),
        ("five million yen", [("5000000", "JPY")]),
        ("75 USD million", [("75000000", "USD")]),
        ("A$5", [("5", "AUD")]),
        ("a $5 cake", [("5", "USD")]),
        ("10 hong kong dollars", [("10", "HKD")]),
        ("$50 AUD", [("50", "AUD")]),
        ("$50,000 USD", [("50000", "USD")]),
        ("5 cents", [("0.05", "USD")]),
        ("500c", [("5", "USD")]),
        ("5¢", [("0.05", "USD")]),
        ("470 pence", [("4.7", "GBP")]),
        ("3 dollars and 50 cents", [("3.5", "USD")]),
        ("50%", [("50", "%")]),
        ("twenty percent", [("20", "%")]),
        ("5 per cent", [("5", "%")]),
        ("5km", [("5", "km")]),
        ("3 years", [("3", "year")]),
        ("5mm", [("5", "mm")]),
        ("50-dollar limit", [("50", "USD")]),
        ("ALL 5 solutions", [("5", None)]),
        ("I try 5 times", [("5", None)]),
        ("50 apples", [("50", None)]),
        ("3 USD50 cards", [("3", None), ("50", "USD")]),
    ],
)
def test_a_unit_beside_the_number_belongs_to_it(text: str, wanted: list[tuple[str, str | None]]) -> None:
    """Currencies before or after, cents as parts of their currency, percent and plain units."""
    assert money(text) == wanted


@pytest.mark.parametrize(
    ("text", "readings"),
    [("1.500", [Decimal("1.5"), 1500]), ("50.000", [50, 50_000]), ("5,00,00", [50_000, 500_000])],
)
def test_a_number_with_two_readings_is_not_guessed(text: str, readings: list[Decimal]) -> None:
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
    assert [text[found.start : found.end] for found in find_amounts(text)] == [
        "\uff15\uff10\uff0c\uff10\uff10\uff10",
        "\u2212$3.50",
    ]
    assert [found.text for found in find_amounts(text)] == ["\uff15\uff10\uff0c\uff10\uff10\uff10", "\u2212$3.50"]


def test_a_bare_dollar_lists_whose_it_can_be() -> None:
    """What a sign leaves open is said, so that a field may settle it."""
    assert "CAD" in parse_amount("$5").also
    assert parse_amount("US$5").also == ()


@pytest.mark.parametrize("text", ["", "hello", "5 or 6", "5 apples", "about 5", "1.2.3"])
def test_a_text_that_is_not_one_amount_is_refused(text: str) -> None:
    """The message quotes the text and says what to write."""
    with pytest.raises(InvalidAmount, match="write"):
        parse_amount(text)


def test_values_do_not_depend_on_the_decimal_context_of_the_caller() -> None:
    """A caller who rounds to three digits gets every digit."""
    with localcontext(prec=3):
        assert [found.value for found in find_amounts("$123456.789k")] == [Decimal(123456789)]
