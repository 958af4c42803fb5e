"""Places in an order: counted from the start, from the end and from the current one."""

import pytest

from quantities.numerals import find_ordinals


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("the third page", [(3, "start")]),
        ("on the 22nd of May", [(22, "start")]),
        ("the forty-third and the 5th", [(43, "start"), (5, "start")]),
        ("three hundred sixty-fifth", [(365, "start")]),
        ("six hundredth", [(600, "start")]),
        ("two hundred and tenth", [(210, "start")]),
        ("four thousand, two hundred fifth", [(4205, "start")]),
        ("two million three hundred thousandth", [(2_300_000, "start")]),
        ("one trillion two hundred billionth", [(1_200_000_000_000, "start")]),
        ("the second and third", [(2, "start"), (3, "start")]),
        ("twenty, fifth", [(5, "start")]),
        ("open the last file", [(0, "end")]),
        ("the next to last line", [(-1, "end")]),
        ("the one before the last", [(-1, "end")]),
        ("go to the next one", [(1, "current")]),
        ("the previous one", [(-1, "current")]),
        ("keep the current page", [(0, "current")]),
        ("a hundredth of it", []),
        ("three fifths", []),
        ("wait a second", []),
        ("lasting nextdoor", []),
    ],
)
def test_a_place_in_an_order_is_found(text: str, wanted: list[tuple[int, str]]) -> None:
    """Digits, words and relative places; names of fractions and of time are none."""
    found = find_ordinals(text)
    assert [(one.place, one.relative_to) for one in found] == wanted
    assert all(text[one.start : one.end] == one.text for one in found)
