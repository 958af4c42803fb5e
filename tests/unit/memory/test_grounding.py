"""Grounding: where a quotation stands, and which numbers stand there, in any script."""

# ruff: noqa: RUF001 - digits and marks of other scripts are what is tested

from decimal import Decimal

import pytest

from tasklore.memory.grounding import (
    LONGEST_QUOTATION,
    locate,
    numbers_in,
    quotations_in,
)


@pytest.mark.parametrize(
    ("quotation", "text", "found"),
    [
        ("Dune", "keep Dune for me", "Dune"),
        ("KEEP  dune", "keep\n Dune for me", "keep\n Dune"),
        ("L’Étranger", "put L'E\u0301tranger aside", "L'E\u0301tranger"),
        ("上海", "从上海运1500公斤到青岛", "上海"),
        ("٣٠٠ لتر", "اسقِ البستان ب ٣٠٠ لتر", "٣٠٠ لتر"),
        ("soft hyphen", "soft\u00ad hyphen", "soft\u00ad hyphen"),
        ("1.5", "from 1.5 to 2", "1.5"),
    ],
)
def test_a_quotation_is_found_with_letters_and_spacing_evened_out(
    quotation: str, text: str, found: str
) -> None:
    """Case, marks, spaces, composed letters and digits of any script make no difference to where it stands."""
    assert [text[place.start : place.end] for place in locate(quotation, text)] == [
        found
    ]


@pytest.mark.parametrize(
    ("quotation", "text"),
    [
        ("50", "limit 500"),
        ("5", "from 1.5 to 2"),
        ("50", "limit 50k"),
        ("part", "a party"),
        ("cafe", "a café"),
        ("", "anything"),
        ("two words", "two other words"),
        ("x" * (LONGEST_QUOTATION + 1), "x" * (LONGEST_QUOTATION + 1)),
    ],
)
def test_half_a_word_or_number_is_no_quotation_of_it(quotation: str, text: str) -> None:
    """Nor is nothing, nor a text of any length."""
    assert list(locate(quotation, text)) == []


def test_a_quotation_that_stands_twice_has_two_places() -> None:
    """In the order of the text."""
    assert [place.start for place in locate("ab", "ab cd AB")] == [0, 6]


@pytest.mark.parametrize(
    ("text", "readings"),
    [
        ("50万", ["500000"]),
        ("3千", ["3000"]),
        ("20 Tausend", ["20000"]),
        ("٣٫٥", ["3.5"]),
        ("५० हजार", ["50000"]),
        ("12３", ["123"]),
        ("1.500", ["1.5", "1500"]),
        ("1,234,567.5", ["1234567.5"]),
        ("20 000", ["20000"]),
    ],
)
def test_digits_of_every_script_are_read_with_the_scale_behind_them(
    text: str, readings: list[str]
) -> None:
    [number] = numbers_in(text)
    assert number.readings == tuple(map(Decimal, readings))
    assert number.end <= len(text)


@pytest.mark.parametrize(
    ("text", "is_plain"),
    [("3人", True), ("12b", False), ("L-2041", False), ("A4", False), ("-4", True)],
)
def test_digits_that_letters_are_joined_to_may_be_a_name(
    text: str, *, is_plain: bool
) -> None:
    """In scripts whose words stand apart."""
    assert [number.is_plain for number in numbers_in(text)] == [is_plain]


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        ('keep "Dune" please', ["Dune"]),
        ("„Der Zauberberg“ und »Momo«", ["Der Zauberberg", "Momo"]),
        ("«Bel-Ami», l'eau d'ici", ["Bel-Ami"]),
        ("'The Leopard', it's Ann's", ["The Leopard"]),
    ],
)
def test_quoted_texts_are_found_in_any_marks(text: str, inside: list[str]) -> None:
    """An apostrophe is none."""
    assert [text[place.start : place.end] for place in quotations_in(text)] == inside
