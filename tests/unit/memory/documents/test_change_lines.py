"""Changes of documents as lines for people: one an entry, whatever is stored."""

import pytest
from pydantic import JsonValue

from tasklore.memory.documents.change_lines import change_lines
from tasklore.memory.documents.changes import Change
from tasklore.memory.documents.paths import ABSENT, Found, parse

PASTA: JsonValue = {"item": "pasta", "display": "Pasta", "expiry": None}
EGGS: JsonValue = {"item": "eggs", "display": "Eggs"}


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (ABSENT, PASTA, ["+ food.likes: Pasta"]),
        (PASTA, EGGS, ["~ food.likes: Pasta -> Eggs"]),
        (
            PASTA,
            {**PASTA, "expiry": "2027-01-01"},
            ["~ food.likes: Pasta, expiry null -> 2027-01-01"],
        ),  # type: ignore[dict-item]
        ([PASTA], [EGGS, PASTA], ["+ food.likes[0]: Eggs"]),
        ([PASTA, EGGS], [], ["- food.likes[0]: Pasta", "- food.likes[1]: Eggs"]),
        (
            [PASTA],
            [{"item": "pasta", "display": "Noodles"}],
            ["~ food.likes[0]: Pasta -> Noodles (pasta)"],
        ),
        ([PASTA, EGGS], [EGGS, PASTA], ["~ food.likes: in another order"]),
        (["a", "a"], ["a"], ["- food.likes[1]: a"]),
        ({"a": [1]}, PASTA, ["- food.likes.a[0]: 1", "+ food.likes: Pasta"]),
        ("", "two\nlines \x1b[2J", ["~ food.likes: nothing -> two lines \x1b[2J"]),
    ],
)
def test_a_change_is_a_line_for_each_entry(
    before: Found, after: Found, lines: list[str]
) -> None:
    change = Change(parse("food.likes"), before, after)
    assert [str(line) for line in change_lines([change])] == lines
