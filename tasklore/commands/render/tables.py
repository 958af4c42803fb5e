"""Tables as lines of text, folded to a width that is counted in places of a terminal, not in letters."""

import unicodedata
from collections.abc import Iterator, Sequence

#: Places that a column is folded to at most: words of prose are shorter.
NARROWEST = 12
#: Spaces between two columns.
GAP = 2

Rows = Sequence[Sequence[str]]


def places_of(text: str) -> int:
    """Return how many places of a terminal *text* takes: two for a letter of Chinese, none for a mark on another."""
    if text.isascii():
        return len(text)
    return sum(_places_of_letter(letter) for letter in text)


def _places_of_letter(letter: str) -> int:
    if unicodedata.combining(letter) or unicodedata.category(letter) in ("Cf", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def fold_cell(text: str, width: int) -> list[str]:
    """Return *text* in lines of at most *width* places, between words where that is possible."""
    lines: list[str] = []
    for line in text.splitlines() or [""]:
        lines += _fold_line(line, width)
    return lines


def _fold_line(text: str, width: int) -> Iterator[str]:
    if places_of(text) <= width:
        yield text
        return
    line = ""
    for word in text.split():
        if line and places_of(line) + 1 + places_of(word) <= width:
            line = f"{line} {word}"
            continue
        if line:
            yield line
        *whole, line = _break_word(word, width)
        yield from whole
    yield line


def _break_word(word: str, width: int) -> list[str]:
    pieces = [""]
    taken = 0
    for letter in word:
        places = _places_of_letter(letter)
        if taken + places > width and pieces[-1]:
            pieces.append("")
            taken = 0
        pieces[-1] += letter
        taken += places
    return pieces


def find_widths(
    columns: Sequence[str], rows: Rows, unfolded: Sequence[str], width: int
) -> list[int] | None:
    """Return the widths of *columns*, the widest folded first; None when those *unfolded* leave others no room."""
    widths = [
        max(places_of(cell) for row in (columns, *rows) for cell in row[place].splitlines() or [""])
        for place in range(len(columns))
    ]  # fmt: skip
    least = [
        one if name in unfolded else min(one, NARROWEST)
        for name, one in zip(columns, widths, strict=True)
    ]
    room = width - GAP * (len(columns) - 1)
    if sum(least) > room:
        return None
    while sum(widths) > room:
        # The widest gives up what the next one has not, or what is too much.
        order = sorted(
            (one for one in range(len(widths)) if widths[one] > least[one]),
            key=lambda one: -widths[one],
        )
        widest = order[0]
        next_width = widths[order[1]] if len(order) > 1 else 0
        floor = max(least[widest], widths[widest] - (sum(widths) - room))
        widths[widest] = min(max(floor, next_width), widths[widest] - 1)
    return widths


def table_lines(
    columns: Sequence[str],
    rows: Rows,
    widths: Sequence[int],
    right: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the lines of a table, its head first; each row is as many lines as its longest cell."""
    for row in (columns, *rows):
        folds = [
            fold_cell(cell, width) for cell, width in zip(row, widths, strict=True)
        ]
        for number in range(max(map(len, folds), default=0)):
            cells = [
                _pad(
                    fold[number] if number < len(fold) else "",
                    width,
                    is_right=name in right,
                )
                for name, fold, width in zip(columns, folds, widths, strict=True)
            ]
            yield (" " * GAP).join(cells).rstrip()


def _pad(text: str, width: int, *, is_right: bool) -> str:
    space = " " * (width - places_of(text))
    return f"{space}{text}" if is_right else f"{text}{space}"
