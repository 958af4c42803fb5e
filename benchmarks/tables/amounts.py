"""Tables of numbers in sentences, and how Tasklore's normaliser reads them."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.tables.scores import AMBIGUOUS, Case, Values, spelled, values_of
from tasklore.contracts.errors import AmbiguousAmount, InvalidAmount
from tasklore.contracts.quantities.numerals import (
    FoundAmount,
    find_amounts,
    parse_number,
)
from tasklore.contracts.quantities.units import measure_named


@dataclass(frozen=True)
class AmountTable:
    """One file: *question* is what is asked of each sentence, *asked* the share that has to be right, None for none."""

    title: str
    file: str
    question: str
    source: str
    asked: float | None = None

    def cases(self, folder: Path) -> list[Case]:
        """Return the cases of the file in *folder*."""
        return [
            Case(row["input"], _expected(row))
            for row in json.loads((folder / self.file).read_text("utf-8"))
        ]


_RECOGNIZERS = "microsoft/Recognizers-Text (MIT)"
AMOUNT_TABLES = (
    AmountTable("numbers", "recognizers_number.json", "numbers", _RECOGNIZERS, 0.85),
    AmountTable(
        "currency values", "recognizers_currency.json", "money", _RECOGNIZERS, 0.92
    ),
    AmountTable("percents", "recognizers_percent.json", "percents", _RECOGNIZERS, 1.0),
    AmountTable(
        "dimensions", "recognizers_dimension.json", "measures", _RECOGNIZERS, 0.85
    ),
    AmountTable("ages", "recognizers_age.json", "ages", _RECOGNIZERS),
    AmountTable(
        "numerals", "duckling_numerals.json", "whole", "facebook/duckling (BSD-3)", 0.92
    ),
    AmountTable("text2num", "text2num.json", "one", "allo-media/text2num (MIT)", 1.0),
    AmountTable("wordings of 50,000", "fifty_thousand.json", "one", "own", 1.0),
)


def _expected(row: dict[str, Any]) -> Values:
    """Return the values of a row. What a table marks without a value ("the percentage") has none to be found."""
    if "results" in row:
        said = (result.get("value") for result in row["results"])
        return values_of(
            value.rstrip("%") for value in said if value not in {None, "null"}
        )
    if row["value"] == AMBIGUOUS:
        return frozenset({AMBIGUOUS})
    return values_of([row["value"]])


def _said(found: Iterable[FoundAmount]) -> Values:
    """Return values as they were worded: "470 pence" is 470 there, and 4.70 pounds to us."""
    return values_of(one.said for one in found)


def _is_dimension(found: FoundAmount) -> bool:
    """False for times and temperatures, which these tables keep in tables of their own."""
    measure = measure_named(found.unit or "")
    return measure is None or measure.dimension not in {
        "time",
        "calendar",
        "temperature",
    }


def _found(text: str, kind: str) -> list[FoundAmount]:
    """Return the amounts of one *kind*; the sentences are of English suites, and that is declared."""
    return [one for one in find_amounts(text, locale="en") if one.kind == kind]


def _numbers(text: str) -> Values:
    """Return the numbers of a text; digits glued to their measure ("29km") are none in these tables."""
    found = find_amounts(text, locale="en")
    return _said(
        one
        for one in found
        if one.kind != "measure" or " " in one.text or "-" in one.text
    )


def _whole(text: str) -> Values:
    """Return the one number that *text* is from its first character to its last; nothing when it is no number."""
    found = find_amounts(text)
    is_all = len(found) == 1 and found[0].text.removesuffix(
        " of"
    ) == text.strip().rstrip(" .,!?").removesuffix(" of")
    return _said(found) if is_all else frozenset()


def _one(text: str) -> Values:
    """Return what all of *text* is worth, nothing when it is refused."""
    try:
        value: Decimal = parse_number(text)
    except AmbiguousAmount:
        return frozenset({AMBIGUOUS})
    except InvalidAmount:
        return frozenset()
    return frozenset({spelled(value)})


#: How the reader of amounts answers each question.
OURS: dict[str, Callable[[str], Values]] = {
    "numbers": _numbers,
    "money": lambda text: _said(_found(text, "money")),
    "percents": lambda text: _said(_found(text, "percent")),
    "measures": lambda text: _said(filter(_is_dimension, _found(text, "measure"))),
    "ages": lambda text: _said(_found(text, "measure")),
    "whole": _whole,
    "one": _one,
}
