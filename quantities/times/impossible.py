"""Days that no calendar has and times that no clock shows: "Nov 31", "2027-02-29", "the 32nd", "25:00", "13pm".

Those who look for moments find none there; who must not take another day for it asks here.
"""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from quantities.times.calendar import day_of
from quantities.times.words import MONTHS

#: A leap year: a day without a year is impossible only when no year has it.
_LEAP: Final = 2000
_MONTH: Final = rf"(?P<month>{'|'.join(sorted(MONTHS, key=len, reverse=True))})\b\.?"
_LEAD: Final = r"(?P<lead>\b(?:on|by|until|till|to|from|since|before|after)\s+(?:the\s+)?)?"
_YEAR: Final = r"(?:,?\s+(?:of\s+)?(?P<year>[12]\d{3})\b(?!\s*[%$€£]))?"
#: Behind the number there is no noun that it counts: "June 40 units".
_NO_NOUN: Final = (
    r"(?=\s*(?:[,;!?).]|$)|\s+(?:at|for|to|and|or|until|till|from|in|with|please|by|then|i|we|around|about)\b"
    r"|\s+\d{1,2}(?::\d\d|\s?[ap]\.?m\b)|\s+(?:noon|midday|midnight|morning|afternoon|evening)\b)"
)
_MONTH_DAY: Final = re.compile(
    rf"{_LEAD}\b{_MONTH}\s+(?:the\s+)?(?P<day>\d\d)(?P<th>st|nd|rd|th)?\b(?![.:,]\d|\s?[ap]m\b){_YEAR}{_NO_NOUN}",
    re.IGNORECASE,
)
_DAY_MONTH: Final = re.compile(
    rf"{_LEAD}(?<![\d.,:])\b(?P<day>\d\d)(?P<th>st|nd|rd|th)?(?:\s+(?:of\s+)?|-){_MONTH}"
    rf"(?:-(?P<dashed>\d{{4}})\b)?{_YEAR}{_NO_NOUN}",
    re.IGNORECASE,
)
_BARE_DAY: Final = re.compile(
    rf"(?:\A\s*|\b(?:on|by|until|till|from|since)\s+)(the\s+3[2-9](?:st|nd|rd|th))\b{_NO_NOUN}", re.IGNORECASE
)
_WRITTEN: Final = re.compile(
    r"(?<![\w./-])(?:(?P<year>\d{4})([/.-])(?P<month>\d\d)\2(?P<day>\d\d)"
    r"|(?P<one>\d\d?)([/.-])(?P<two>\d\d?)\6(?P<last>\d{4}))"
    r"(?:[Tt ](?P<hour>\d\d):(?P<minute>\d\d)(?::\d\d)?(?!\d))?(?![\d/-])"
)
_CLOCK: Final = re.compile(
    r"(?P<lead>(?:\b(?:at|by|from|until|till|before|after|around|about|to)\s+|@\s*))?(?<![\w.:,/-])"
    r"(?P<hour>\d\d?)(?::(?P<minute>\d\d))?(?![\d:.]\d)\s?(?P<half>[ap]\.?m\b|o'?clock\b)?(?!\w)",
    re.IGNORECASE,
)
#: Without these the patterns are not tried: the number of a day past 28, or a day written in digits.
_DAY_HINT: Final = re.compile(r"(?<![\d:])(?:29|[3-9]\d)(?![,.]?\d|[km%])|\d[/.-]\d")
#: And an hour past 12, the hour 0 or a minute past 59.
_CLOCK_HINT: Final = re.compile(
    r"(?:1[3-9]|[2-9]\d|\b00?)(?::\d\d)?\s?[ap]\.?m|(?:2[4-9]|[3-9]\d)(?::|\s?o'?clock)|:[6-9]\d", re.IGNORECASE
)
_LAST_HOUR: Final = 24
_HALF_HOURS: Final = 12
_MINUTES: Final = 60
#: Days of a month, one too many, by which a slip is told from a number beside a month ("June 45").
_SLIPS: Final = (30, 31)
#: Names of months that are other words too.
_UNSURE: Final = frozenset({"may", "march", "mar", "august", "dec", "sep", "jan", "jun", "oct"})


class Impossible(NamedTuple):
    """Characters *start* to *end* of a text that name a day, or else a time of day, that there is not."""

    start: int
    end: int
    is_day: bool


def impossible_times(text: str) -> tuple[Impossible, ...]:
    """Return the impossible days and times of day of *text* in order; most texts cost one quick look."""
    days = _days(text) if _DAY_HINT.search(text) else ()
    clocks = _clocks(text) if _CLOCK_HINT.search(text) else ()
    found: list[Impossible] = []
    for one in sorted((*days, *clocks)):
        if not found or one.start >= found[-1].end:
            found.append(one)
    return tuple(found)


def _days(text: str) -> Iterator[Impossible]:
    for match in _WRITTEN.finditer(text):
        if _is_no_written_day(match):
            yield Impossible(*match.span(), is_day=True)
    for pattern in (_MONTH_DAY, _DAY_MONTH):
        for match in pattern.finditer(text):
            if _is_no_day(match):
                yield Impossible(match.end("lead") if match["lead"] else match.start(), match.end(), is_day=True)
    for match in _BARE_DAY.finditer(text):
        yield Impossible(*match.span(1), is_day=True)


def _is_no_written_day(match: re.Match[str]) -> bool:
    if match["hour"] and (int(match["hour"]) >= _LAST_HOUR or int(match["minute"]) >= _MINUTES):
        return f"{match['hour']}:{match['minute']}" != "24:00"
    if match["year"]:
        return day_of(int(match["year"]), int(match["month"]), int(match["day"])) is None
    year, one, two = int(match["last"]), int(match["one"]), int(match["two"])
    return day_of(year, one, two) is None and day_of(year, two, one) is None


def _is_no_day(match: re.Match[str]) -> bool:
    groups = match.groupdict()
    year, day, month = groups["year"] or groups.get("dashed"), int(match["day"]), match["month"].lower()
    if day_of(int(year) if year else _LEAP, MONTHS[month], day) is not None:
        return False
    is_said = bool(match["lead"] or match["th"] or year)
    return is_said or (day in _SLIPS and month not in _UNSURE)


def _clocks(text: str) -> Iterator[Impossible]:
    for match in _CLOCK.finditer(text):
        if (match["minute"] or match["half"]) and _is_no_clock(match):
            yield Impossible(match.end("lead") if match["lead"] else match.start(), match.end(), is_day=False)


def _is_no_clock(match: re.Match[str]) -> bool:
    hour, minute, half = int(match["hour"]), int(match["minute"] or 0), (match["half"] or "").lower()
    if half[:1] == "o":
        return hour > _LAST_HOUR
    if half:
        # "14:30 pm" says no more than 14:30
        is_said_twice = half[0] == "p" and _HALF_HOURS < hour < _LAST_HOUR and match["minute"] is not None
        is_hour = hour <= _HALF_HOURS and not (hour == 0 and half[0] == "p")
        if hour > _LAST_HOUR and match["lead"] is None and match["minute"] is None:
            # "rent is 30 pm"
            return False
        return minute >= _MINUTES or not (is_hour or is_said_twice)
    is_no_time = hour > _LAST_HOUR or minute >= _MINUTES or (hour == _LAST_HOUR and minute > 0)
    return is_no_time and match["lead"] is not None
