"""The cheapest way to give each row a column of its own (the assignment problem, by the Hungarian method)."""

from collections.abc import Sequence

_FAR = float("inf")


def match_cheapest(costs: Sequence[Sequence[float]]) -> list[int]:
    """Return the column of each row so that the sum of costs is least; there must be at least as many columns as rows.

    Cubic in the number of rows: a sentence has a handful of amounts.
    """
    rows, columns = len(costs), len(costs[0]) if costs else 0
    row_price, column_price = [0.0] * (rows + 1), [0.0] * (columns + 1)
    owner = [0] * (columns + 1)
    for row in range(1, rows + 1):
        owner[0] = row
        _augment(costs, row_price, column_price, owner)
    taken = [0] * rows
    for column in range(1, columns + 1):
        if owner[column]:
            taken[owner[column] - 1] = column - 1
    return taken


def _augment(
    costs: Sequence[Sequence[float]], row_price: list[float], column_price: list[float], owner: list[int]
) -> None:
    """Find a place for the row in `owner[0]`, moving others along the cheapest path."""
    columns = len(owner) - 1
    slack, came_from, is_used = [_FAR] * (columns + 1), [0] * (columns + 1), [False] * (columns + 1)
    column = 0
    while True:
        is_used[column] = True
        row, delta, following = owner[column], _FAR, 0
        for other in range(1, columns + 1):
            if is_used[other]:
                continue
            reduced = costs[row - 1][other - 1] - row_price[row] - column_price[other]
            if reduced < slack[other]:
                slack[other], came_from[other] = reduced, column
            if slack[other] < delta:
                delta, following = slack[other], other
        for other in range(columns + 1):
            if is_used[other]:
                row_price[owner[other]] += delta
                column_price[other] -= delta
            else:
                slack[other] -= delta
        column = following
        if owner[column] == 0:
            break
    while column:
        owner[column] = owner[came_from[column]]
        column = came_from[column]
