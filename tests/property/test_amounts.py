"""Every spelling of a number is that number; text and JSON lose nothing; arithmetic keeps its laws."""

from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from quantities.amounts import Amount, canonical
from quantities.numerals import find_amounts, parse_number

ADAPTER = TypeAdapter(Amount)

whole_numbers = st.integers(min_value=-(10**15) + 1, max_value=10**15 - 1)
decimals = st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**20), max_value=10**20, places=6)
amounts = decimals.map(Amount)
units = st.sampled_from([None, "USD", "EUR", "km", "%"])

_SMALL = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["_", "_", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_SCALES = ((10**12, "trillion"), (10**9, "billion"), (10**6, "million"), (1000, "thousand"))
_INDIAN_SCALES = ((10**7, "crore"), (10**5, "lakh"), (1000, "thousand"))


def below_thousand(number: int, joint: str) -> str:
    """Spell 0 to 999, with *joint* after the hundreds."""
    if number >= 100:
        rest = f"{joint}{below_thousand(number % 100, joint)}" if number % 100 else ""
        return f"{_SMALL[number // 100]} hundred{rest}"
    if number < 20:
        return _SMALL[number]
    return _TENS[number // 10] + (f"-{_SMALL[number % 10]}" if number % 10 else "")


def in_words(number: int, joint: str = " ", scales: tuple[tuple[int, str], ...] = _SCALES) -> str:
    """Spell a whole number in English words."""
    if number < 0:
        return f"minus {in_words(-number, joint, scales)}"
    parts = []
    for size, name in scales:
        if number >= size:
            parts.append(f"{below_thousand(number // size, joint)} {name}")
            number %= size
    if number or not parts:
        parts.append(below_thousand(number, joint))
    return " ".join(parts)


def indian_groups(number: int) -> str:
    """Spell a whole number with Indian grouping ("12,34,567")."""
    digits = str(abs(number))
    head, tail = digits[:-3], digits[-3:]
    pairs: list[str] = []
    while head:
        pairs.insert(0, head[-2:])
        head = head[:-2]
    return ("-" if number < 0 else "") + ",".join([*pairs, tail])


def spellings(number: int) -> list[object]:
    """Return ways in which people and programs write *number*."""
    thousandth = canonical(Decimal(number) / 1000)
    return [
        number,
        float(number),
        Decimal(number),
        Decimal(f"{number}.00"),
        str(number),
        f"{number:,}",
        f"{number:_}",
        f"{number:,}.00",
        f"${number:,}",
        f"{number} dollars",
        f"USD {number:,}",
        f"{number}.0",
        f"{number}e0",
        # "1.234k" keeps its one reading because nobody groups in front of a scale
        f"{thousandth}k",
        f"{thousandth} thousand",
        in_words(number),
        in_words(number, joint=" and "),
        in_words(number).upper(),
        in_words(number).replace(" ", "-") if number >= 0 else in_words(number),
    ]


@given(whole_numbers)
def test_every_spelling_of_a_number_is_that_number(number: int) -> None:
    """Digits, groups, scales, words, signs, floats and decimals agree."""
    for spelling in spellings(number):
        assert Amount.read(spelling) == number, spelling


@given(st.integers(min_value=0, max_value=10**9 - 1))
def test_indian_spellings_agree(number: int) -> None:
    """Lakhs and crores, in groups and in words."""
    assert parse_number(indian_groups(number)) == number
    assert parse_number(in_words(number, scales=_INDIAN_SCALES)) == number


@given(st.integers(min_value=1000, max_value=10**15), st.integers(min_value=0, max_value=99))
def test_european_spellings_agree_once_two_marks_or_a_habit_are_known(number: int, cents: int) -> None:
    """Two marks ("1.234,50") leave one reading; a single one ("1.234") needs to be known as a habit."""
    grouped = f"{number:,}".replace(",", ".")
    assert parse_number(f"{grouped},{cents:02}") == number + Decimal(cents) / 100
    assert parse_number(grouped, decimal_mark=",") == number


@given(
    st.lists(st.integers(min_value=0, max_value=10**9), min_size=1, max_size=8), st.sampled_from([", ", " and ", "; "])
)
def test_a_list_gives_each_of_its_numbers(numbers: list[int], separator: str) -> None:
    """No separator with a space ever joins two numbers."""
    assert [found.value for found in find_amounts(separator.join(f"{number:,}" for number in numbers))] == numbers


@given(st.text(max_size=60) | st.text(alphabet="0123456789.,'-+/:$ keandhlf½", max_size=40))
def test_any_text_gives_ordered_spans_that_quote_it(text: str) -> None:
    """Nothing crashes, nothing overlaps, and each span is the text it names."""
    place = 0
    for found in find_amounts(text):
        assert place <= found.start < found.end
        assert text[found.start : found.end] == found.text
        assert (found.value is None) == (len(found.readings) == 2)
        place = found.end


@given(decimals, decimals)
def test_canonical_text_is_the_value(left: Decimal, right: Decimal) -> None:
    """Two values share a text exactly when they are equal, and the text is the value."""
    assert (canonical(left) == canonical(right)) == (left == right)
    assert Decimal(canonical(left)) == left


@given(decimals, units)
def test_json_gives_back_the_amount(value: Decimal, unit: str | None) -> None:
    """A round trip through the wire changes nothing."""
    amount = Amount(value, unit)
    assert ADAPTER.validate_json(ADAPTER.dump_json(amount)) == amount


@given(amounts, amounts, amounts)
def test_sums_and_products_keep_their_laws(first: Amount, second: Amount, third: Amount) -> None:
    """Nothing is rounded, so the order of a sum or a product of two cannot matter."""
    assert first + second == second + first
    assert (first + second) + third == first + (second + third)
    assert first * second == second * first
    assert first - first == 0
    assert 0 - (0 - first) == first


@given(amounts, amounts.filter(bool))
def test_quotient_and_remainder_make_the_dividend(first: Amount, second: Amount) -> None:
    """Floor division goes down, as for whole numbers of Python."""
    whole, rest = first // second, first % second
    assert whole * second + rest == first
    assert rest == 0 or (rest < 0) == (second < 0)
    assert abs(rest) < abs(second)


@given(st.integers(-(10**12), 10**12), st.integers(-(10**6), 10**6).filter(bool))
def test_whole_amounts_divide_like_whole_numbers(first: int, second: int) -> None:
    """`//` and `%` agree with int."""
    assert (Amount(first) // second, Amount(first) % second) == (first // second, first % second)


@given(amounts, units)
def test_equal_amounts_hash_alike(amount: Amount, unit: str | None) -> None:
    """An amount finds itself and its plain number in a dictionary."""
    assert hash(Amount(amount.value, unit)) == hash(Amount(Decimal(f"{amount.value:f}"), unit))
    assert {amount: 1}[amount.value] == 1
