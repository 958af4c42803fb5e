"""The table of promises: what was asked, what was measured, and whether it holds."""

from collections.abc import Iterable
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One promise under chaos; *asked* and *measured* are words for people, with their units."""

    asked: str
    measured: str
    passed: bool


def show(rows: Iterable[Row], caption: str, console: Console) -> None:
    """Print the table."""
    table = Table(caption=caption, caption_justify="left")
    table.add_column("asked", overflow="fold")
    table.add_column("measured", overflow="fold")
    table.add_column("passed", no_wrap=True)
    for row in rows:
        table.add_row(row.asked, row.measured, "yes" if row.passed else "NO")
    console.print(table, markup=False)
