"""Durations and counts in words."""

import pytest

from tasklore.commands.render.words import count_of, duration


@pytest.mark.parametrize(
    ("milliseconds", "text"),
    [
        (999, "999 ms"),
        (1_000, "1.0 s"),
        (59_999, "59.9 s"),
        (3_599_999, "59 min 59 s"),
        (11_040_000, "3 h 04 min"),
    ],
)
def test_durations(milliseconds: int, text: str) -> None:
    assert duration(milliseconds) == text


@pytest.mark.parametrize(
    ("count", "text"), [(1, "1 entry"), (0, "0 entries"), (1_200, "1,200 entries")]
)
def test_counts(count: int, text: str) -> None:
    assert count_of(count, "entry") == text
