"""Tables of records: each column has a title and a function that makes its cell."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, NamedTuple, TypeVar

from tasklore.commands.render.screen import print_table

T = TypeVar("T")


@dataclass(frozen=True)
class Column(Generic[T]):
    """One column: *right* aligns numbers, *whole* keeps ids in one piece, *optional* leaves it out when it is empty."""

    title: str
    cell: Callable[[T], str]
    right: bool = False
    whole: bool = False
    optional: bool = False


class Cells(NamedTuple):
    """A table as `print_table` and `rich_table` take it."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    right: Sequence[str]
    whole: Sequence[str]


def cells_of(columns: Sequence[Column[T]], records: Iterable[T]) -> Cells:
    """Return a row for each of *records*."""
    rows = [[column.cell(record) for column in columns] for record in records]
    kept = [
        place
        for place, one in enumerate(columns)
        if not one.optional or any(row[place] for row in rows)
    ]
    return Cells(
        [columns[place].title for place in kept],
        [[row[place] for place in kept] for row in rows],
        right=[columns[place].title for place in kept if columns[place].right],
        whole=[columns[place].title for place in kept if columns[place].whole],
    )


def print_records(columns: Sequence[Column[T]], records: Iterable[T]) -> None:
    """Write a row for each of *records* to stdout."""
    print_table(*cells_of(columns, records))
