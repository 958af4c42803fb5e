"""Every spelling of a number is that number, no text breaks the reader or slows it, and arithmetic keeps its laws."""

import operator
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from tasklore.contracts.quantities.amounts import Amount, canonical
from tasklore.contracts.quantities.errors import UnitMismatch
from tasklore.contracts.quantities.numerals import find_amounts, parse_number
from tasklore.contracts.quantities.times import find_durations, find_moments
from tests.steps import steps

ADAPTER = TypeAdapter(Amount)

whole_numbers = st.integers(min_value=-(10**15) + 1, max_value=10**15 - 1)
decimals = st.decimals(
    allow_nan=False,
    allow_infinity=False,
    min_value=-(10**20),
    max_value=10**20,
    places=6,
)
#: So close together that two of them are often equal.
near_numbers = st.integers(-3, 3).map(Decimal)
amounts = decimals.map(Amount)
units = st.sampled_from([None, "USD", "EUR", "km", "%"])

_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]
_NAMES = ["", " thousand", " million", " billion", " trillion"]
_PARTS = {
    3: "third",
    5: "fifth",
    7: "seventh",
    9: "ninth",
    11: "eleventh",
    16: "sixteenth",
    1000: "thousandth",
}
_PIECES = st.sampled_from([
    "one", "hundred", "thousand", "and", "half", "a", "third", "fifths", "twenty", "-", ",", ".", "/", "$",
    "%", "5", "1.500", "12,5", "km", "to", "between", "over", "in", "out", "of", "dollars", "cents", "point",
    "2^", "-1", "(", ")", "MUSD", "Kr", "kr", "u", "s", "3rd", "½", "few", "more", "than", "or", "less", "1e9",
    "£", "euro", "'", '"', "\u0663", "percent", "(%)", "score", "dozen", "zero", "oh", "&", "hundreds", "room", "5b",
])  # fmt: skip


def spelled(number: int, joint: str, between: str = " ") -> str:
    """Spell *number* by groups of three digits, with *joint* after hundreds and *between* groups."""
    if number == 0:
        return _ONES[0]
    groups = []
    for name in _NAMES:
        number, group = divmod(number, 1000)
        if group:
            groups.append(f"{group_spelled(group, joint)}{name}")
    return between.join(reversed(groups))


def spelled_in_crores(number: int, joint: str, between: str = " ") -> str:
    """Spell *number* as India does; crores are counted in thousands and lakhs themselves."""
    groups = []
    for name, size in (("crore", 10**7), ("lakh", 10**5), ("thousand", 1000)):
        count, number = divmod(number, size)
        if count:
            groups.append(f"{spelled_in_crores(count, joint)} {name}")
    return between.join(groups + ([spelled(number, joint)] if number else []))


def group_spelled(group: int, joint: str) -> str:
    """Spell 1 to 999."""
    hundreds, rest = divmod(group, 100)
    tens, ones = divmod(rest, 10)
    small = (
        _ONES[rest]
        if rest < 20
        else _TENS[tens - 2] + (f"-{_ONES[ones]}" if ones else "")
    )
    if not hundreds:
        return small
    return f"{_ONES[hundreds]} hundred" + (f"{joint}{small}" if rest else "")


def indian_groups(number: int) -> str:
    """Spell a whole number with Indian grouping ("12,34,567")."""
    digits = str(abs(number))
    head = digits[:-3]
    tail = digits[-3:]
    pairs: list[str] = []
    while head:
        pairs.insert(0, head[-2:])
        head = head[:-2]
    return ("-" if number < 0 else "") + ",".join([*pairs, tail])


def in_words(number: int, joint: str = " ") -> str:
    """Spell a whole number of either sign."""
    return f"minus {spelled(-number, joint)}" if number < 0 else spelled(number, joint)


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
        in_words(number, " and "),
        in_words(number).upper(),
        in_words(number).replace(" ", "-") if number >= 0 else in_words(number),
    ]


@given(whole_numbers)
def test_every_spelling_of_a_number_is_that_number(number: int) -> None:
    """Digits, groups, scales, words, signs, floats and decimals agree."""
    for spelling in spellings(number):
        assert Amount.read(spelling, any_currency=True) == number, spelling


@given(st.integers(min_value=0, max_value=10**9 - 1))
def test_indian_spellings_agree(number: int) -> None:
    """Lakhs and crores, in groups."""
    assert parse_number(indian_groups(number)) == number


@given(
    st.integers(min_value=1000, max_value=10**15),
    st.integers(min_value=0, max_value=99),
)
def test_european_spellings_agree_once_two_marks_or_a_habit_are_known(
    number: int, cents: int
) -> None:
    grouped = f"{number:,}".replace(",", ".")
    assert parse_number(f"{grouped},{cents:02}") == number + Decimal(cents) / 100
    assert parse_number(grouped, decimal_mark=",") == number


@given(
    st.lists(st.integers(min_value=0, max_value=10**9), min_size=1, max_size=8),
    st.sampled_from([", ", " and ", "; "]),
)
def test_a_list_gives_each_of_its_numbers(numbers: list[int], separator: str) -> None:
    """No separator with a space ever joins two numbers."""
    assert [
        found.value
        for found in find_amounts(separator.join(f"{number:,}" for number in numbers))
    ] == numbers


@given(st.integers(1, 10**12 - 1), st.sampled_from([" ", " and "]))
def test_a_number_in_lakhs_and_crores_is_that_number(number: int, joint: str) -> None:
    """Also where thousands count crores: "eleven thousand two hundred crore"."""
    assert parse_number(spelled_in_crores(number, joint)) == number


@given(
    st.integers(1, 10**9),
    st.sampled_from([" ", " and "]),
    st.sampled_from(["dollars", "yen", "euros"]),
)
def test_commas_between_the_groups_of_a_price_in_words_say_nothing(
    number: int, joint: str, money: str
) -> None:
    """The money behind it shows that "two thousand, forty yen" is no list."""
    (found,) = find_amounts(f"{spelled(number, joint, ', ')} {money}")
    assert found.value == number


@given(st.integers(2, 19))
def test_a_part_of_a_scale_that_comes_out_even_is_a_whole_number(top: int) -> None:
    """Thirds never end; two thirds of a dozen are eight all the same."""
    (found,) = find_amounts(f"{spelled(top, ' ')} thirds of a dozen")
    assert found.value == top * 4


@given(st.integers(2, 20), st.sampled_from(sorted(_PARTS)), st.integers(1, 999))
def test_a_mixed_fraction_in_words_is_its_sum(
    top: int, bottom: int, whole: int
) -> None:
    """Parts below one are added to what stands before "and"."""
    if top < bottom:
        (found,) = find_amounts(
            f"{spelled(whole, ' ')} and {spelled(top, ' ')} {_PARTS[bottom]}s"
        )
        assert found.value is not None
        assert abs(Fraction(found.value) - whole - Fraction(top, bottom)) < Fraction(
            1, 10**25
        )


@given(st.integers(1, 100), st.sampled_from(["percent", "km", "dollars"]))
def test_a_margin_has_no_sign(size: int, unit: str) -> None:
    (found,) = find_amounts(f"plus or minus {size} {unit}")
    assert found.value == size


_texts = st.one_of(
    st.text(max_size=80),
    st.text(alphabet="0123456789.,'-+/:$ keandhlf½", max_size=40),
    st.lists(_PIECES, max_size=14).map(" ".join),
    st.lists(_PIECES).map("".join),
)


@given(_texts)
def test_no_text_breaks_the_reader_and_every_span_points_at_its_text(text: str) -> None:
    """In order, without overlaps, inside the sentence."""
    end = 0
    for found in find_amounts(text):
        assert end <= found.start < found.end <= len(text)
        assert text[found.start : found.end] == found.text
        assert (found.value is None) == (len(found.readings) > 1)
        end = found.end


_HOSTILE = [
    "9", "1,", "123 ", "one hundred ", "one and ", "five-", "5 dollars ", "- ", "half a ", "1 over ", "1/2 ", "twenty ",
    "5 (", "2^", "between 5 and ", "% ", "one hundred fifths ", "15 dollars 5 ", "$", "a thousand ", "zero ", "dozen ",
    "five (5) ", "half a hundred ", "room 5b ", "hundred percent ", "3-1/2 ", "& ", "point oh ", "5, 6 and 7 % ",
    "two thousand, ", "one thousand two crore ", "hundred-", "0.5 of a ", "plus or minus ", "5 ", "$5, ", "5' ",
    "at 5 ", "in 5 ", "1h", "the 3rd and ", "next ", "week on ", "3 to ", "New York time ", "May 5 ", "the day after ",
]  # fmt: skip


@pytest.mark.parametrize("piece", _HOSTILE)
@pytest.mark.parametrize("read", [find_amounts, find_moments, find_durations])
def test_hostile_text_takes_steps_in_proportion_to_its_length(
    read: Callable[[str], object], piece: str
) -> None:
    """Twice the text is at most twice the work, and a tenth for luck."""
    read(piece * 100)
    assert steps(read, piece * 300) <= 2.2 * steps(read, piece * 150) + 200


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
def test_sums_and_products_keep_their_laws(
    first: Amount, second: Amount, third: Amount
) -> None:
    """Nothing is rounded, so the order of a sum or a product of two cannot matter."""
    assert first + second == second + first
    assert (first + second) + third == first + (second + third)
    assert first * second == second * first
    assert first - first == 0
    assert 0 - (0 - first) == first


@given(amounts, amounts.filter(bool))
def test_quotient_and_remainder_make_the_dividend(
    first: Amount, second: Amount
) -> None:
    """Floor division goes down, as for whole numbers of Python."""
    whole = first // second
    rest = first % second
    assert whole * second + rest == first
    assert rest == 0 or (rest < 0) == (second < 0)
    assert abs(rest) < abs(second)


@given(st.integers(-(10**12), 10**12), st.integers(-(10**6), 10**6).filter(bool))
def test_whole_amounts_divide_like_whole_numbers(first: int, second: int) -> None:
    """`//` and `%` agree with int."""
    assert (Amount(first) // second, Amount(first) % second) == (
        first // second,
        first % second,
    )


@given(amounts, units)
def test_equal_amounts_hash_alike(amount: Amount, unit: str | None) -> None:
    """An amount finds itself and its plain number in a dictionary."""
    assert hash(Amount(amount.value, unit)) == hash(
        Amount(Decimal(f"{amount.value:f}"), unit)
    )
    assert {amount: 1}[amount.value] == 1


@given(near_numbers, units, near_numbers, units)
def test_amounts_are_in_the_order_of_their_values(
    first: Decimal, first_unit: str | None, second: Decimal, second_unit: str | None
) -> None:
    """An amount without unit is compared by its value alone, and equal only to one without unit."""
    left = Amount(first, first_unit)
    right = Amount(second, second_unit)
    is_same = first == second and first_unit == second_unit
    assert (left == right, left != right) == (is_same, not is_same)
    assert not is_same or hash(left) == hash(right)
    for compare in (operator.lt, operator.le, operator.gt, operator.ge):
        if first_unit and second_unit and first_unit != second_unit:
            with pytest.raises(UnitMismatch):
                compare(left, right)
        else:
            assert compare(left, right) == compare(first, second)
        assert compare(left, second) == compare(first, second)
        assert compare(first, right) == compare(first, second)
