"""Tables of ranges, ordinals, durations and periods."""

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

from benchmarks.tables.scores import Case, Score, Values, judged, timed, values_of
from quantities.numerals import Ordinal, find_ordinals, find_ranges
from quantities.times import FoundDuration, find_durations, find_periods

_RECOGNIZERS = "microsoft/Recognizers-Text (MIT)"
_HINDSIGHT = "vectorize-io/hindsight (MIT)"
SOURCES = {
    "ranges": _RECOGNIZERS,
    "ordinals": _RECOGNIZERS,
    "durations": _RECOGNIZERS,
    "periods, eight languages": _HINDSIGHT,
}
#: The share that has to be right, of the tables of which one is asked.
ASKED = {"durations": 0.8}
#: Between the moment and the words of a row.
_BETWEEN = "\x1f"
_MONTH_S, _YEAR_S = 30 * 86_400, 365 * 86_400


def measured(folder: Path) -> Iterator[tuple[str, Score]]:
    """Yield the title of each table and our score."""
    yield "ranges", _score(folder / "recognizers_numberrange.json", _resolved, _ranges)
    yield "ordinals", _score(folder / "recognizers_ordinal.json", _resolved, _ordinals)
    yield "durations", _score(folder / "recognizers_duration.json", _seconds, _durations)
    yield "periods, eight languages", _periods(folder / "time_phrases.json")


def _score(file: Path, expected: Callable[[Any], Values], read: Callable[[str], Values]) -> Score:
    cases = [Case(row["input"], expected(row)) for row in json.loads(file.read_text("utf-8"))]
    return judged(cases, *timed(read, [case.text for case in cases]))


def _resolved(row: dict[str, Any]) -> Values:
    return values_of(result["value"] for result in row["results"])


def _seconds(row: dict[str, Any]) -> Values:
    return values_of(result["FutureResolution"]["duration"] for result in row["results"])


def _ranges(text: str) -> Values:
    return values_of(str(found) for found in find_ranges(text))


def _ordinals(text: str) -> Values:
    return values_of(_place(found) for found in find_ordinals(text))


def _place(found: Ordinal) -> str:
    """Return a place as the table writes it: "3", and "end-1" for the next to last."""
    return str(found.place) if found.relative_to == "start" else f"{found.relative_to}{found.place:+}"


def _durations(text: str) -> Values:
    return values_of(_as_the_table(found) for found in find_durations(text))


def _as_the_table(found: FoundDuration) -> object:
    """Return the seconds of a length by the table's convention, which is not ours: 30 days a month, 365 a year."""
    in_years = "month" not in found.text.lower()
    months = found.length.months * (Fraction(_YEAR_S, 12) if in_years else _MONTH_S)
    return float(found.length.seconds + months)


def _periods(file: Path) -> Score:
    """Compare the first period of each text with the table's range, as two moments."""
    rows = json.loads(file.read_text("utf-8"))
    cases = [Case(row["at_and_text"], values_of(row["range"] or ())) for row in rows]
    return judged(cases, *timed(_period, [case.text for case in cases]))


def _period(at_and_text: str) -> Values:
    at, _, text = at_and_text.partition(_BETWEEN)
    found = find_periods(text, datetime.fromisoformat(at))
    if not found:
        return frozenset()
    period = found[0].period
    return frozenset({f"{period.start}T00:00:00", f"{period.end}T23:59:59.999999"})
