"""Tables of numbers in sentences, and how Tasklore's normaliser reads them."""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

from benchmarks.tables.scores import AMBIGUOUS, Case, Values, spelled, values_of
from contracts.errors import AmbiguousAmount, InvalidAmount
from quantities.numerals import Found, find_money, find_numbers, find_percents, parse_number
from quantities.numerals import find_quantities as find_measures
from quantities.units import measure_named


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
        return [Case(row["input"], _expected(row)) for row in json.loads((folder / self.file).read_text("utf-8"))]


_RECOGNIZERS = "microsoft/Recognizers-Text (MIT)"
AMOUNT_TABLES = (
    AmountTable("numbers", "recognizers_number.json", "numbers", _RECOGNIZERS, 0.85),
    AmountTable("currency values", "recognizers_currency.json", "money", _RECOGNIZERS, 0.92),
    AmountTable("percents", "recognizers_percent.json", "percents", _RECOGNIZERS, 1.0),
    AmountTable("dimensions", "recognizers_dimension.json", "measures", _RECOGNIZERS, 0.85),
    AmountTable("ages", "recognizers_age.json", "ages", _RECOGNIZERS),
    AmountTable("numerals", "duckling_numerals.json", "whole", "facebook/duckling (BSD-3)", 0.92),
    AmountTable("text2num", "text2num.json", "one", "allo-media/text2num (MIT)", 1.0),
    AmountTable("wordings of 50,000", "fifty_thousand.json", "one", "own", 1.0),
)


def _expected(row: dict[str, Any]) -> Values:
    """Return the values of a row. What a table marks without a value ("the percentage") has none to be found."""
    if "results" in row:
        said = (result.get("value") for result in row["results"])
        return values_of(value.rstrip("%") for value in said if value not in {None, "null"})
    if row["value"] == AMBIGUOUS:
        return frozenset({AMBIGUOUS})
    return values_of([row["value"]])


def _said(found: Iterable[Found]) -> Values:
    """Return values as they were worded: "470 pence" is 470 there, and 4.70 pounds to us."""
    return values_of(one.said for one in found)


def _is_dimension(found: Found) -> bool:
    """False for times and temperatures, which these tables keep in tables of their own."""
    measure = measure_named(found.unit or "")
    return measure is None or measure.dimension not in {"time", "calendar", "temperature"}


def _whole(text: str) -> Values:
    """Return the one number that *text* is from its first character to its last; nothing when it is no number."""
    found = find_numbers(text)
    is_all = len(found) == 1 and found[0].text.removesuffix(" of") == text.strip().rstrip(" .,!?").removesuffix(" of")
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


#: The sentences are of English suites, and that is declared; the wordings of 50,000 are of nobody in particular.
_LOCALE = "en"
#: How the normaliser answers each question.
OURS: dict[str, Callable[[str], Values]] = {
    "numbers": lambda text: _said(find_numbers(text, locale=_LOCALE)),
    "money": lambda text: _said(find_money(text, locale=_LOCALE)),
    "percents": lambda text: _said(find_percents(text, locale=_LOCALE)),
    "measures": lambda text: _said(one for one in find_measures(text, locale=_LOCALE) if _is_dimension(one)),
    "ages": lambda text: _said(find_measures(text, locale=_LOCALE)),
    "whole": _whole,
    "one": _one,
}
