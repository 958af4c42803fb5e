"""Tables that are folded to the width of a terminal."""

import pytest

from tasklore.commands.render.tables import (
    find_widths,
    fold_cell,
    places_of,
    table_lines,
)

COLUMNS = ("ID", "TEXT", "N")
ROWS = [("0199a1b2", "the quick brown fox jumps over", "12")]


@pytest.mark.parametrize("width", [80, 44, 40, 30, 28])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    widths = find_widths(COLUMNS, ROWS, ("ID", "N"), width)
    assert widths is not None
    lines = list(table_lines(COLUMNS, ROWS, widths, ("N",)))
    assert max(map(places_of, lines)) <= width
    assert lines[1].startswith("0199a1b2")
    words = " ".join(line[10 : 10 + widths[1]].strip() for line in lines[1:])
    assert words.split() == ROWS[0][1].split()


def test_ids_that_leave_no_room_fold_nothing() -> None:
    assert find_widths(COLUMNS, ROWS, ("ID", "N"), 20) is None


def test_the_widest_column_gives_way_first() -> None:
    rows = [("a" * 20, "b" * 60)]
    assert find_widths(("A", "B"), rows, (), 52) == [20, 30]


@pytest.mark.parametrize(
    ("text", "places"),
    [("abc", 3), ("数据", 4), ("e\u0301", 1), ("👍", 2), ("a\u200db", 2)],
)
def test_places_are_those_of_a_terminal(text: str, places: int) -> None:
    assert places_of(text) == places


def test_a_word_longer_than_a_line_is_broken() -> None:
    assert fold_cell("aaaa bbbbbbbbbbbb", 5) == ["aaaa", "bbbbb", "bbbbb", "bb"]
    assert fold_cell("数据数据", 3) == ["数", "据", "数", "据"]
