"""What the next run of a pipeline may cost: a line for each phase, and one for all of them."""

from collections.abc import Iterator
from typing import Any

from tasklore.commands.render.screen import lines_of_table, printable
from tasklore.commands.render.words import count_of, money

_NUMBERS = ("TIMES", "MEAN", "LARGEST", "BY REPORTS")


def draw(view: dict[str, Any]) -> str:
    """Return the estimate *view* as a table, and below it what is not in it."""
    return "\n".join(_lines_of(view))


def _lines_of(view: dict[str, Any]) -> Iterator[str]:
    phases = view["phases"]
    rows = [
        [
            printable(one["phase"]),
            printable(one["task"]),
            _times(one),
            _dollars(one["mean_usd"]),
            _dollars(one["largest_usd"]),
            f"{one['runs']:,}",
        ]
        for one in phases
    ]
    mean = _dollars(view["mean_usd"])
    largest = _dollars(view["largest_usd"])
    rows.append(["in all", "", "", mean, largest, ""])
    yield from lines_of_table(("PHASE", "TASK", *_NUMBERS), rows, right=_NUMBERS)
    if unknown := sum(one["mean_usd"] is None for one in phases):
        why = "no run of that task asked a model of a known price lately"
        yield f"{count_of(unknown, 'phase')} without a known cost: {why}."
    if any(one["most"] is None for one in phases):
        yield "A list whose length is not known before counts as one item; retries are not counted."


def _times(phase: dict[str, Any]) -> str:
    if phase["most"] is None:
        return "for each item"
    if phase["fewest"] == phase["most"]:
        return f"{phase['fewest']:,}"
    return f"{phase['fewest']:,} to {phase['most']:,}"


def _dollars(usd: float | None) -> str:
    return "?" if usd is None else money(usd)
