"""The period that a question asks about ("last year", "in May 2025", "two weeks ago"), and the question without it.

What falls into it is raised by the search, and nothing is left out for it.
"""

import re
from calendar import monthrange
from datetime import date, datetime, timedelta
from typing import NamedTuple

from tasklore.contracts.quantities.times import find_moments

__all__ = ["AskedPeriod", "period_of"]

_MONTHS = (
    "january february march april may june july august september october november december".split()  # noqa: SIM905
)
_SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
_YEAR = r"(?P<year>(?:19|20)\d\d)"
_MONTH = rf"(?P<month>{'|'.join(_MONTHS)})"
_SEASON = rf"(?P<season>{'|'.join(_SEASONS)})"
_OF_YEAR = rf"(?:,?\s+(?:of\s+)?(?:{_YEAR}|(?P<of>last|this)\s+year))?"
_PATTERNS = tuple(
    re.compile(rf"\b{pattern}\b", re.IGNORECASE)
    for pattern in (
        rf"(?:back\s+)?(?:in|during)\s+(?:the\s+)?(?:{_MONTH}|{_SEASON}){_OF_YEAR}",
        rf"(?P<which>last|this|past)\s+(?:{_MONTH}|{_SEASON})",
        rf"(?:{_MONTH}|{_SEASON})\s+{_YEAR}",
        rf"(?:back\s+)?(?:in|during)\s+{_YEAR}",
        r"(?P<which>last|this|past)\s+(?P<unit>year|month|week)",
    )
)
#: Days around a day that is reckoned from today: nobody counts exactly.
_AROUND = {"week": 3, "month": 10, "year": 45}


class AskedPeriod(NamedTuple):
    """The first and the last day, and the question without the words that name them."""

    first: date
    last: date
    question: str


def period_of(question: str, now: datetime) -> AskedPeriod | None:
    """Return the one period that *question* names, reckoned from *now*; None where it names none, or several."""
    moments = find_moments(question, now, lean="past")
    if len(moments) == 1 and moments[0].value is not None:
        found = moments[0]
        value = moments[0].value
        day = value.date() if isinstance(value, datetime) else value
        unit = next((unit for unit in _AROUND if unit in found.text.casefold()), "")
        if day == now.date():
            # "Where do I work now?" asks how it is, not what was said today.
            return None
        around = timedelta(days=_AROUND.get(unit, 0) if found.is_offset else 0)
        return AskedPeriod(
            day - around, day + around, _without(question, found.start, found.end)
        )
    match = next(
        (
            match
            for pattern in _PATTERNS
            if (match := pattern.search(question)) is not None
        ),
        None,
    )
    if match is None:
        return None
    first, last = _days_of(
        {name: (part or "").casefold() for name, part in match.groupdict().items()},
        now.date(),
    )
    return AskedPeriod(first, last, _without(question, *match.span()))


def _days_of(parts: dict[str, str], today: date) -> tuple[date, date]:
    year = parts.get("year")
    of = parts.get("of")
    which = parts.get("which")
    season = _SEASONS.get(parts.get("season", ""))
    month = _MONTHS.index(parts["month"]) + 1 if parts.get("month") else season
    if month is None:
        return (
            (date(int(year), 1, 1), date(int(year), 12, 31))
            if year
            else _unit_before(parts.get("unit") or "year", which == "this", today)
        )
    begin = date(int(year) if year else today.year - (of == "last"), month, 1)
    if not (year or of) and begin > today:
        begin = begin.replace(year=begin.year - 1)
    return begin, _end_of(begin, 1 if season is None else 3)


def _unit_before(unit: str, is_this: bool, today: date) -> tuple[date, date]:
    if unit == "week":
        monday = today - timedelta(days=today.weekday() + (0 if is_this else 7))
        return monday, monday + timedelta(days=6)
    if unit == "month":
        begin = today.replace(day=1)
        begin = begin if is_this else (begin - timedelta(days=1)).replace(day=1)
        return begin, _end_of(begin, 1)
    year = today.year - (not is_this)
    return date(year, 1, 1), date(year, 12, 31)


def _end_of(begin: date, months: int) -> date:
    month = (begin.month + months - 2) % 12 + 1
    year = begin.year + (begin.month + months - 2) // 12
    return date(year, month, monthrange(year, month)[1])


def _without(question: str, start: int, end: int) -> str:
    return f"{question[:start]} {question[end:]}"
