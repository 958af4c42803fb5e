"""The one table: rows of figures, printed for people and written as Markdown."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

HEADINGS = (
    "what",
    "tasks/s",
    "CPU us/task",
    "p50 ms",
    "p99 ms",
    "seconds",
    "compared",
    "how",
)


@dataclass(frozen=True)
class Row:
    """One line of the table; a figure that was not measured is None and shows as an empty cell.

    `compared` states ratios and what they are against; `how` the conditions, or why there is no figure.
    """

    what: str
    tasks_per_s: float | None = None
    cpu_us: float | None = None
    p50_ms: float | None = None
    p99_ms: float | None = None
    seconds: float | None = None
    compared: str = ""
    how: str = ""

    def cells(self) -> tuple[str, ...]:
        """Return the row as text, in the order of `HEADINGS`."""
        return (
            self.what,
            _number(self.tasks_per_s, 0),
            _number(self.cpu_us, 0),
            _number(self.p50_ms, 3),
            _number(self.p99_ms, 3),
            _number(self.seconds, 2),
            self.compared,
            self.how,
        )


def missing(what: str, reason: str) -> Row:
    """Return the row of something that could not be measured: it stays in the table and says why."""
    return Row(what, how=f"not measured: {reason}")


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def ratio(ours: float, theirs: float) -> str:
    """Return how many times *theirs* fits into *ours*, as `1.25x`."""
    return f"{ours / theirs:.2f}x" if theirs else "no ratio"


def percentile(values: Sequence[float], share: float) -> float:
    """Return the smallest of *values* that at least *share* (0 to 1) of them do not exceed."""
    if not values:
        raise ValueError("no values to take a percentile of")
    return sorted(values)[max(0, math.ceil(share * len(values)) - 1)]


def show(rows: Iterable[Row], caption: str, console: Console) -> None:
    """Print the table."""
    table = Table(caption=caption, caption_justify="left")
    for index, heading in enumerate(HEADINGS):
        is_text = index in (0, 6, 7)
        table.add_column(
            heading, justify="left" if is_text else "right", no_wrap=not is_text
        )
    for row in rows:
        table.add_row(*row.cells())
    console.print(table, markup=False)


def markdown(rows: Iterable[Row], caption: str) -> str:
    """Return the table as Markdown, the caption below it."""
    lines = [_line(HEADINGS), _line(["---", *["---:"] * 5, "---", "---"])]
    lines += [_line(row.cells()) for row in rows]
    return "\n".join([*lines, "", caption, ""])


def _line(cells: Iterable[str]) -> str:
    escaped = (cell.replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(escaped)} |"
