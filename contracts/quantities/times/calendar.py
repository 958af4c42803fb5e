"""Arithmetic on days of the calendar: months later, weeks, quarters; weeks begin on Monday, as ISO 8601 has it."""

import calendar
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Literal, NamedTuple

#: Which way a day without a year is looked for: "future" takes the next one to come, "past" the latest one gone.
Lean = Literal["past", "future"]
Grain = Literal[
    "day", "week", "weekend", "month", "quarter", "year", "decade", "century"
]

#: Years around now in which a day is looked for: 29 February can be eight years away.
_REACH = 9
_MONTHS_OF = {"month": 1, "quarter": 3, "year": 12, "decade": 120, "century": 1200}


class Period(NamedTuple):
    """The days from *start* to *end*, both of them in it."""

    start: date
    end: date


def shifted(day: date, months: int) -> date:
    """Return *day* that many months on; past the end of a month, its last day (31 January and a month: 28 February).

    Raises:
        OverflowError: the year is not between 1 and 9999.
    """
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    if not 1 <= year <= 9999:
        raise OverflowError(
            f"{day} and {months} months is outside the years of the calendar"
        )
    return date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))


def day_of(year: int, month: int, day: int) -> date | None:
    """Return the day, None when the calendar has no such day."""
    try:
        return date(year, month, day)
    except (ValueError, OverflowError):
        return None


def nearest(today: date, month: int, day: int, lean: Lean) -> date | None:
    """Return the day of a *month* without a year that is nearest to *today* on the side that *lean* says."""
    step = 1 if lean == "future" else -1
    for years in range(_REACH):
        found = day_of(today.year + step * years, month, day)
        if found is not None and (
            found >= today if lean == "future" else found <= today
        ):
            return found
    return None


def around(day: date, grain: Grain, steps: int = 0) -> Period:
    """Return the week, month, quarter, ... that holds *day*, or the one that many *steps* on.

    The weekend of a day is that of its week.

    Raises:
        OverflowError: it lies outside the years 1 to 9999.
    """
    if grain == "day":
        return Period(day + timedelta(days=steps), day + timedelta(days=steps))
    if grain in {"week", "weekend"}:
        monday = day + timedelta(days=7 * steps - day.weekday())
        return (
            _days(monday, 6)
            if grain == "week"
            else _days(monday + timedelta(days=5), 1)
        )
    months = _MONTHS_OF[grain]
    count = (day.year * 12 + day.month - 1) // months * months
    first = shifted(
        date(day.year, day.month, 1),
        count - (day.year * 12 + day.month - 1) + months * steps,
    )
    last = shifted(first, months - 1)
    return Period(
        first, last.replace(day=calendar.monthrange(last.year, last.month)[1])
    )


def _days(first: date, more: int) -> Period:
    return Period(first, first + timedelta(days=more))


def weekdays_meant(
    today: date, weekday: int, step: int | None, lean: Lean
) -> Iterator[date]:
    """Yield the days that a weekday can mean; *step* is that of "next" (1), "this" (0) or "last" (-1), None unsaid.

    Two are yielded where people differ: a bare "friday" on a Friday, and "next friday" while this week's is to come.
    """
    ahead = (weekday - today.weekday()) % 7
    if step is None:
        days = ahead if lean == "future" else -((7 - ahead) % 7)
        yield today + timedelta(days=days)
        if days == 0:
            yield today + timedelta(days=7 if lean == "future" else -7)
    elif step == 0:
        yield today + timedelta(days=ahead)
    else:
        days = (ahead or 7) if step > 0 else (ahead - 7)
        nearest_one = today + timedelta(days=days)
        yield nearest_one
        if around(nearest_one, "week") == around(today, "week"):
            yield nearest_one + timedelta(days=7 * step)
