"""Numbers as people read them."""

import pytest

from tasklore.render.words import count_of, duration


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [(999, "999 ms"), (1_000, "1.0 s"), (59_999, "59.9 s"), (3_599_999, "59 min 59 s"), (11_040_000, "3 h 04 min")],
)
def test_a_duration_is_precise_enough_to_compare_phases(milliseconds: int, text: str) -> None:
    """And never says 60 of a unit."""
    assert duration(milliseconds) == text


@pytest.mark.parametrize(("count", "text"), [(1, "1 entry"), (0, "0 entries"), (1_200, "1,200 entries")])
def test_a_count_has_its_noun_in_singular_or_plural(count: int, text: str) -> None:
    """As people write it."""
    assert count_of(count, "entry") == text
