"""What people see: tables, one-line messages on stderr, colours only on a terminal, a spinner when it takes long.

`rich` is imported only where a terminal is looked at; programs get plain aligned text or JSON.
"""

import contextlib
import json
import os
import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TextIO

from tasklore.commands.exits import Aborted
from tasklore.commands.render.tables import find_widths, table_lines

if TYPE_CHECKING:
    from rich.table import Table

#: Seconds after which a person wants to see that something is going on.
PATIENCE_S = 1.0

#: A command that is to be copied: in backquotes, or behind a colon to the end.
_COMMAND = re.compile(r"`[^`]*`|(?<=: )tasklore [a-z].*$")
#: Stands for a space that no line is broken at while text is folded: no text of ours has it.
HELD = "\ue000"

#: Kinds of characters that Python escapes and a terminal only places: spaces, breaks of lines, marks of writing.
_HARMLESS = frozenset({"Cf", "Zl", "Zp", "Zs"})
#: Marks that show what follows in another order than it stands in: a command would be copied as another one.
_REVERSING = "\u202d\u202e"

#: What JSON leaves as it is and a terminal obeys: controls above ASCII, and the marks above.
_STEERING = re.compile(f"[\x7f-\x9f{_REVERSING}]")

_STYLES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "cyan": "36",
}


def is_colourful(stream: TextIO) -> bool:
    """Return whether *stream* is a terminal that wants colours: `NO_COLOR` and `TERM=dumb` say no."""
    return (
        stream.isatty()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def styled(text: str, style: str, stream: TextIO | None = None) -> str:
    """Return *text* in *style* (bold, dim or a colour) when *stream* (None is stdout) shows it, else as it is."""
    if not text or not is_colourful(stream or sys.stdout):
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def printable(text: str) -> str:
    """Return *text* without what would steer a terminal: agents and models write it.

    Spaces of all kinds stay, and so do the marks that join emoji and turn writing from right to left.
    """
    return "".join(
        letter
        for letter in text
        if letter.isprintable()
        or letter in "\n\t"
        or (unicodedata.category(letter) in _HARMLESS and letter not in _REVERSING)
    )


def print_exactly(text: str) -> None:
    """Write *text* to stdout and end the line: byte for byte, but for what would steer a terminal where it is one."""
    if sys.stdout.isatty():
        print(printable(text), flush=True)
        return
    sys.stdout.flush()
    sys.stdout.buffer.write(f"{text}\n".encode())
    sys.stdout.buffer.flush()


def say(text: str) -> None:
    """Write one line for people to stderr, whatever stdout is used for; on a terminal it is folded between words."""
    print(_label(printable(text), "dim"), file=sys.stderr, flush=True)


def print_error(text: str) -> None:
    """Write an error to stderr in one line; on a terminal it is folded between words."""
    # A server's or a model's words may be in it.
    line = " ".join(printable(text).split())
    print(_label(line, "red"), file=sys.stderr, flush=True)


def _label(text: str, style: str) -> str:
    """Return *text* behind our name in *style*, folded to stderr's width."""
    label = "tasklore:"
    lines = (
        folded(f"{label} {text}", _width(sys.stderr))
        if sys.stderr.isatty()
        else f"{label} {text}"
    )
    return lines.replace(label, styled(label, style, sys.stderr), 1)


def _width(stream: TextIO) -> int:
    """Return how many characters stand in a line of *stream*; as good as endless for other streams."""
    return shutil.get_terminal_size().columns if stream.isatty() else sys.maxsize


def folded(text: str, width: int, indent: str = "", first: str | None = None) -> str:
    """Return *text* in lines of *width* behind *indent*, the first behind *first* when one is given.

    Words and commands are never broken, so that both can be copied, even when they are longer than a line.
    """
    start = indent if first is None else first
    # What holds its spaces together is no space for whoever folds, and of the same length.
    kept = _COMMAND.sub(lambda found: found[0].replace(" ", HELD), text)
    lines = textwrap.fill(
        kept,
        width,
        initial_indent=start,
        subsequent_indent=indent,
        break_on_hyphens=False,
        break_long_words=False,
    )
    return lines.replace(HELD, " ")


def print_json(value: Any) -> None:
    """Write *value* to stdout as indented JSON, in which what would steer a terminal is escaped."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    print(
        _STEERING.sub(lambda found: f"\\u{ord(found[0]):04x}", text),
        flush=True,
    )


def print_paragraph(text: str, indent: str = "", style: str = "") -> None:
    """Write *text* to stdout behind *indent* in *style*, folded between words on a terminal, as it stands elsewhere."""
    for line in text.splitlines():
        for one in folded(line, _width(sys.stdout), indent).splitlines() or [""]:
            print(styled(one, style) if style else one)


def print_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
) -> None:
    """Write the table of `lines_of_table` to stdout."""
    for line in lines_of_table(columns, rows, right, whole):
        print(line)


def lines_of_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
) -> Iterator[str]:
    """Yield the lines of a table; the columns named in *right* hold numbers and are aligned right.

    On a terminal a cell that does not fit is folded, those of the columns *whole* never: ids are there to be copied.
    Where that leaves no room for the others each row is several lines. Elsewhere every row is one line.
    """
    width = _width(sys.stdout)
    widths = find_widths(columns, rows, (*right, *whole), width)
    if widths is None and not whole:
        # Numbers may be folded where ids are not.
        widths = find_widths(columns, rows, (), width)
    if widths is None:
        yield from _rows_apart(columns, rows)
        return
    head, *lines = table_lines(columns, rows, widths, right)
    yield styled(head, "bold")
    yield from lines


def _rows_apart(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield each row as its first cell, and below it the others, each behind the name of its column."""
    for row in rows:
        yield styled(row[0], "bold")
        told = [
            f"{name.lower()}: {cell}"
            for name, cell in zip(columns[1:], row[1:], strict=True)
            if cell
        ]
        if told:
            yield folded(", ".join(told), _width(sys.stdout), "  ")


def rich_table(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Sequence[str] = (),
    whole: Sequence[str] = (),
) -> "Table":
    """Return the table that `print_table` writes to a terminal wide enough for it."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        is_number = name in right
        width = (
            max(len(row[columns.index(name)]) for row in (columns, *rows))
            if name in whole
            else None
        )
        table.add_column(
            name,
            justify="right" if is_number else "left",
            overflow="fold",
            no_wrap=is_number,
            min_width=width,
        )
    for row in rows:
        # Plain text: a remembered value may hold what would be markup.
        table.add_row(*(Text(cell) for cell in row))
    return table


@contextlib.asynccontextmanager
async def patience(doing: str) -> AsyncIterator[Callable[[], object]]:
    """Show a spinner with *doing* on stderr for as long as the block lasts, once it has lasted `PATIENCE_S`.

    Yield a function that ends it early.
    """
    if not sys.stderr.isatty():
        yield lambda: None
        return
    # Imported here: what only prints has no event loop, and does not pay for one.
    import asyncio

    spinner = asyncio.create_task(_spin(doing))
    try:
        yield spinner.cancel
    finally:
        spinner.cancel()
        await asyncio.gather(spinner, return_exceptions=True)


async def _spin(doing: str) -> None:
    import asyncio

    await asyncio.sleep(PATIENCE_S)
    from rich.console import Console

    with Console(stderr=True).status(doing):
        await asyncio.Event().wait()


def confirm(question: str, *, unasked: str, declined: str) -> None:
    """Return when the person at the terminal says yes to *question*.

    Raises:
        Aborted: with *unasked* where there is no terminal, with *declined* when the answer is no.
    """
    import typer

    if not sys.stdin.isatty():
        raise Aborted(unasked)
    if not typer.confirm(question, err=True):
        raise Aborted(declined)
