"""The table of promises: what was asked, what was measured, and whether it holds."""

import argparse
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NoReturn

from rich.console import Console
from rich.table import Table


@dataclass(frozen=True)
class Row:
    """One promise under chaos; *asked* and *measured* are words for people, with their units."""

    asked: str
    measured: str
    passed: bool


def names_out_of(known: Sequence[str]) -> Callable[[str], tuple[str, ...]]:
    """Return what reads an option: a list of some of *known*, split by commas."""

    def read(text: str) -> tuple[str, ...]:
        names = tuple(name.strip() for name in text.split(",") if name.strip())
        unknown = [name for name in names if name not in known]
        if unknown or not names:
            raise argparse.ArgumentTypeError(
                f"{', '.join(unknown) or repr(text)} is none of {', '.join(known)}"
            )
        return names

    return read


def finish(
    rows: Sequence[Row], caption: str, *, is_sabotaged: bool = False
) -> NoReturn:
    """Print the table and exit: with 0 when every promise was kept, or when one was broken by sabotage."""
    # A log has no width of its own.
    console = Console() if sys.stdout.isatty() else Console(width=120)
    table = Table(caption=caption, caption_justify="left")
    table.add_column("asked", overflow="fold")
    table.add_column("measured", overflow="fold")
    table.add_column("passed", no_wrap=True)
    for row in rows:
        table.add_row(row.asked, row.measured, "yes" if row.passed else "NO")
    console.print(table, markup=False)
    is_kept = bool(rows) and all(row.passed for row in rows)
    sys.exit(0 if is_kept != is_sabotaged else 1)
