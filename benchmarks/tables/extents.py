"""Tables of durations."""

import json
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.tables.scores import Case, Score, Values, judged, timed, values_of
from tasklore.contracts.quantities.times import FoundDuration, find_durations

SOURCES = {"durations": "microsoft/Recognizers-Text (MIT)"}
#: The share that has to be right, of the tables of which one is asked.
ASKED = {"durations": 0.8}
_MONTH_S = 30 * 86_400
_YEAR_S = 365 * 86_400


def measured(folder: Path) -> Iterator[tuple[str, Score]]:
    """Yield the title of each table and our score."""
    yield (
        "durations",
        _score(folder / "recognizers_duration.json", _seconds, _durations),
    )


def _score(
    file: Path, expected: Callable[[Any], Values], read: Callable[[str], Values]
) -> Score:
    cases = [
        Case(row["input"], expected(row)) for row in json.loads(file.read_text("utf-8"))
    ]
    return judged(cases, *timed(read, [case.text for case in cases]))


def _seconds(row: dict[str, Any]) -> Values:
    return values_of(
        result["FutureResolution"]["duration"] for result in row["results"]
    )


def _durations(text: str) -> Values:
    return values_of(_as_the_table(found) for found in find_durations(text))


def _as_the_table(found: FoundDuration) -> object:
    """Return the seconds of a length by the table's convention, which is not ours: 30 days a month, 365 a year."""
    in_years = "month" not in found.text.lower()
    months = found.length.months * (Fraction(_YEAR_S, 12) if in_years else _MONTH_S)
    return float(found.length.seconds + months)
