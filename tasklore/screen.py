"""What people see: tables, one-line messages on stderr, colours only on a terminal, a spinner when it takes long.

`rich` is imported only where a terminal is looked at; programs get plain aligned text or JSON.
"""

import asyncio
import contextlib
import json
import os
import shutil
import sys
import textwrap
from collections.abc import AsyncIterator, Sequence
from typing import Any, TextIO

#: Seconds after which a person wants to see that something is going on.
PATIENCE_S = 1.0

_STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def is_colourful(stream: TextIO) -> bool:
    """Return whether *stream* is a terminal that wants colours: `NO_COLOR` and `TERM=dumb` say no."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return *text* in *style* (bold, dim or a colour) when *stream* (None is stdout) shows it, else as it is."""
    if not text or not is_colourful(stream or sys.stdout):
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def printable(text: str) -> str:
    """Return *text* without what would steer a terminal: agents and models write it."""
    return "".join(letter for letter in text if letter.isprintable() or letter in "\n\t")


def say(text: str) -> None:
    """Write one line for people to stderr, whatever stdout is used for."""
    print(f"{styled('tasklore:', 'dim', sys.stderr)} {text}", file=sys.stderr, flush=True)


def complain(text: str) -> None:
    """Write an error to stderr in one line."""
    line = " ".join(text.split())
    print(f"{styled('tasklore:', 'red', sys.stderr)} {line}", file=sys.stderr, flush=True)


def print_json(value: Any) -> None:
    """Write *value* to stdout as indented JSON."""
    print(json.dumps(value, indent=2, ensure_ascii=False, default=str), flush=True)


def print_paragraph(text: str, indent: str = "") -> None:
    """Write *text* to stdout behind *indent*, folded between words on a terminal, in one line elsewhere."""
    width = shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
    for line in text.splitlines():
        print(textwrap.fill(line, width, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False))


def print_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str] = ()) -> None:
    """Write a table to stdout; the columns named in *right* hold numbers and are aligned right.

    On a terminal a cell that does not fit is folded; elsewhere every row is one line.
    """
    if sys.stdout.isatty():
        _print_rich_table(columns, rows, right)
        return
    widths = [max(len(line[index]) for line in (columns, *rows)) for index in range(len(columns))]
    for line in (columns, *rows):
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for name, cell, width in zip(columns, line, widths, strict=True)
        ]
        print("  ".join(cells).rstrip())


def _print_rich_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Sequence[str]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        is_number = name in right
        table.add_column(name, justify="right" if is_number else "left", overflow="fold", no_wrap=is_number)
    for row in rows:
        # Plain text: a remembered value may hold what would be markup.
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


@contextlib.asynccontextmanager
async def patience(doing: str) -> AsyncIterator[None]:
    """Show a spinner with *doing* on stderr for as long as the block lasts, once it has lasted `PATIENCE_S`."""
    if not sys.stderr.isatty():
        yield
        return
    spinner = asyncio.create_task(_spin(doing))
    try:
        yield
    finally:
        spinner.cancel()
        await asyncio.gather(spinner, return_exceptions=True)


async def _spin(doing: str) -> None:
    await asyncio.sleep(PATIENCE_S)
    from rich.console import Console

    with Console(stderr=True).status(doing):
        await asyncio.Event().wait()
