"""Words into parameters, on public tables: `python -m benchmarks.understanding --data FOLDER`.

The folder holds the files that `benchmarks.tables` names; none is part of Tasklore. Ours stands beside
recognizers-text, quantulum3, text2num, word2number and number-parser, each asked what it is for, in one run on the same
sentences. Accuracy is the share of sentences whose *set of values* is exactly right. Ends with 1 when an asked figure
is missed.
"""

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.processes import NotMeasuredError
from benchmarks.tables import extents, peers, questions, routes, slots
from benchmarks.tables.amounts import AMOUNT_TABLES, OURS
from benchmarks.tables.scores import Case, Score, judged, timed

_SYSTEMS = (
    "recognizers-text",
    "quantulum3",
    "text2num",
    "word2number",
    "number-parser",
)


@dataclass(frozen=True)
class Line:
    """One table: what was asked of it, our score, and the others' by name; *source* tells whose table it is."""

    title: str
    source: str
    asked: float | None
    ours: Score
    theirs: dict[str, Score] = field(default_factory=dict)

    @property
    def is_missed(self) -> bool:
        """True when less was right than was asked."""
        return self.asked is not None and self.ours.share < self.asked


def main() -> None:
    """Measure, print the tables and every miss."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.understanding", description=__doc__
    )
    parser.add_argument(
        "--data", type=Path, required=True, help="folder with the tables"
    )
    parser.add_argument(
        "--no-peers", action="store_true", help="ours alone: nothing is installed"
    )
    parser.add_argument(
        "--misses",
        type=int,
        default=None,
        help="at most so many misses a table; all unless given",
    )
    options = parser.parse_args()
    if not options.data.is_dir():
        parser.error(
            f"--data {options.data} is no folder; give the one that holds the tables"
        )
    console = Console(width=None if Console().is_terminal else 200)
    lines = list(_measured(options.data, is_alone=options.no_peers, console=console))
    console.print(_accuracy(lines), _speed(lines))
    for line in lines:
        _tell_misses(line, options.misses, console)
    sys.exit(1 if any(line.is_missed for line in lines) else 0)


def _measured(folder: Path, *, is_alone: bool, console: Console) -> Iterator[Line]:
    cases = {
        table.title: (table.question, table.cases(folder)) for table in AMOUNT_TABLES
    }
    theirs = {} if is_alone else _peers(cases, console)
    for table in AMOUNT_TABLES:
        others = {
            system: scores[table.title]
            for system, scores in theirs.items()
            if table.title in scores
        }
        yield Line(
            table.title,
            table.source,
            table.asked,
            _ours(table.question, cases[table.title][1]),
            others,
        )
    for name, score in extents.measured(folder):
        yield Line(name, extents.SOURCES[name], extents.ASKED.get(name), score)
    for name, asked, score in slots.measured(folder):
        yield Line(name, slots.SOURCES[name], asked, score)
    routed = routes.measured(folder)
    yield Line("routing, 15 agents", routes.SOURCE, 0.88, routed.chosen)
    yield Line("out of scope, abstained", routes.SOURCE, 0.85, routed.abstained)
    asked_of = questions.measured(folder)
    yield Line(
        "budget: pairs that are one question", questions.SOURCE, 1.0, asked_of.alike
    )
    yield Line(
        "budget: pairs with other numbers", questions.SOURCE, 1.0, asked_of.apart
    )
    keys = Score(len(asked_of.keys_ns), (), asked_of.keys_ns)
    yield Line("budget: key building", questions.SOURCE, None, keys)


def _ours(question: str, cases: list[Case]) -> Score:
    return judged(cases, *timed(OURS[question], [case.text for case in cases]))


def _peers(
    cases: dict[str, tuple[str, list[Case]]], console: Console
) -> dict[str, dict[str, Score]]:
    try:
        return peers.measured(cases)
    except NotMeasuredError as error:
        console.print(f"Without the other libraries: {error}", markup=False)
        return {}


def _accuracy(lines: list[Line]) -> Table:
    table = Table(title="Right, of all sentences", title_justify="left")
    for heading in ("table", "sentences", "asked", "ours", *_SYSTEMS, "source"):
        table.add_column(
            heading, justify="left" if heading in {"table", "source"} else "right"
        )
    for line in lines:
        asked = "" if line.asked is None else f"{line.asked:.0%}"
        ours = f"{line.ours.share:.1%}{' missed' if line.is_missed else ''}"
        others = (
            f"{line.theirs[name].share:.1%}" if name in line.theirs else ""
            for name in _SYSTEMS
        )
        table.add_row(
            line.title, str(line.ours.cases), asked, ours, *others, line.source
        )
    return table


def _speed(lines: list[Line]) -> Table:
    table = Table(title="Microseconds a sentence: p50 / p99", title_justify="left")
    for heading in ("table", "ours", *_SYSTEMS):
        table.add_column(heading, justify="left" if heading == "table" else "right")
    for line in lines:
        others = (
            _time(line.theirs[name]) if name in line.theirs else "" for name in _SYSTEMS
        )
        table.add_row(line.title, _time(line.ours), *others)
    return table


def _time(score: Score) -> str:
    return f"{score.within_us(0.5):,.0f} / {score.within_us(0.99):,.0f}"


def _tell_misses(line: Line, most: int | None, console: Console) -> None:
    if not line.ours.misses:
        return
    console.print(
        f"\n{line.title}: {len(line.ours.misses)} of {line.ours.cases} wrong",
        style="bold",
        markup=False,
    )
    for miss in line.ours.misses[:most]:
        console.print(f"  {miss}", markup=False, highlight=False)


if __name__ == "__main__":
    main()
