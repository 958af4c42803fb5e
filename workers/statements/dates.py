"""Until when something holds, as people say it at the end of a sentence: "until Friday", "for two weeks"."""

import calendar
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from functools import cache
from pathlib import Path

from contracts.errors import InvalidAmount
from quantities.numerals import parse_number
from workers.statements.datafiles import read_tables, strings_at, words_at
from workers.statements.statement import Durability

#: Words of the longest end: "for the rest of the month", "until the 3rd of December 2026".
_LONGEST = 8
#: Days, weeks, months or years that are believed; more is no end that anybody means.
_MOST = 400

_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})")
_DAY = re.compile(r"(\d{1,2})(?:st|nd|rd|th)?")
_YEAR = re.compile(r"(?:19|20|21)\d{2}")


@dataclass(frozen=True, slots=True)
class End:
    """How something ends: on *expiry*, its last day, or (None) at some time nobody knows; *words* are how many tell it.

    `is_until` tells that it names an end or a length ("until Friday"), and not just a time ("this week").
    """

    words: int
    expiry: date | None
    durability: Durability
    is_until: bool = False


class Dates:
    """The words of `dates.toml`; make one with `load_dates`."""

    def __init__(self, folders: tuple[Path, ...]) -> None:
        table = read_tables(*folders)["dates"]
        self._until = _longest_first(strings_at(table, "until"))
        self._during = _longest_first(strings_at(table, "during"))
        self._this = _longest_first(strings_at(table, "this"))
        self._end_of = _longest_first(strings_at(table, "end_of"))
        self._end_of_next = frozenset(strings_at(table, "end_of_next"))
        self._next = frozenset(strings_at(table, "next"))
        self._on = _longest_first(strings_at(table, "on"))
        self._today = frozenset(strings_at(table, "today"))
        self._tomorrow = frozenset(strings_at(table, "tomorrow"))
        self._momentary = frozenset(strings_at(table, "momentary"))
        self._open = frozenset(strings_at(table, "open"))
        self._begun = frozenset(strings_at(table, "begun"))
        self._ago = frozenset(strings_at(table, "ago"))
        self._short = words_at(table, "short")
        self._weekdays = strings_at(table, "weekdays")
        self._months = strings_at(table, "months")
        self._units = {
            word: unit for unit in ("day", "week", "fortnight", "month", "year", "weekend")
            for word in strings_at(table, "units", unit)
        }  # fmt: skip
        ends = " ".join([*self._today, *self._tomorrow, *self._momentary, *self._open, *words_at(table, "named")])
        self._last_words = {*ends.split(), *self._short, *self._weekdays, *self._months, *self._units}
        self._named: Mapping[str, str] = words_at(table, "named")

    def end_of(self, words: Sequence[str], today: date) -> End | None:
        """Return the end that *words* close with, None when they close with none.

        A time of the day ("until 5") is none; neither is an end that nobody can name ("until my birthday").
        """
        if not words or (words[-1] not in self._last_words and not words[-1][0].isdigit()):
            return None
        for length in range(min(_LONGEST, len(words)), 0, -1):
            said = " ".join(words[-length:])
            if said in self._momentary:
                return End(length, None, "momentary")
            if said in self._open:
                return End(length, None, "short_term")
            last = self._last_day(said, today)
            if last is not None and last >= today:
                is_until = said not in self._today and any(
                    said.startswith(f"{marker} ") for marker in (*self._until, *self._during)
                )
                return End(length, last, "short_term", is_until)
        return None

    def begun(self, words: Sequence[str]) -> int:
        """Return how many words at the end of *words* say when it began: "in 2019", "two years ago"; 0 for none."""
        for length in range(min(_LONGEST, len(words) - 1), 1, -1):
            said = words[-length:]
            if said[-1] in self._ago and said[-2] in self._units and (length == 2 or _is_count(said[:-2])):
                return length
            named = self._short.get(said[-1], said[-1])
            is_time = named in self._months or named in self._weekdays or named in self._units or _YEAR.fullmatch(named)
            if is_time and " ".join(said[:-1]) in self._begun:
                return length
        return 0

    def _last_day(self, said: str, today: date) -> date | None:
        if said in self._today:
            return today
        for marker in self._until:
            if said.startswith(f"{marker} ") and (day := self._day(said.removeprefix(f"{marker} "), today)):
                return day
        for marker in self._during:
            if said.startswith(f"{marker} ") and (day := self._after(said.removeprefix(f"{marker} "), today)):
                return day
        for marker in self._this:
            unit = self._units.get(said.removeprefix(f"{marker} "))
            if said.startswith(f"{marker} ") and unit is not None:
                return _end_of(unit, today)
        return None

    def _day(self, said: str, today: date) -> date | None:
        """Return the day that *said* names: "friday", "3 december", "the end of next month"."""
        said = " ".join(word.strip(",") for word in said.split() if word != ",")
        if match := _ISO.fullmatch(said):
            return _date(int(match[1]), int(match[2]), int(match[3]))
        if said in self._today:
            return today
        if said in self._tomorrow:
            return today + timedelta(days=1)
        if said in self._named:
            month, day = self._named[said].split("-")
            return _coming(int(month), int(day), today)
        whole = self._whole(said, today)
        if whole is not None:
            return whole
        for marker in self._on:
            if said.startswith(f"{marker} ") and (day_ := self._day(said.removeprefix(f"{marker} "), today)):
                return day_
        return self._weekday(said, today) or self._month_day(said.split(), today)

    def _whole(self, said: str, today: date) -> date | None:
        """Return the end of the week, month or year that *said* speaks of, or the beginning of the next one."""
        head, _, last = said.rpartition(" ")
        unit = self._units.get(last)
        if unit == "weekend" and not head:
            return today + timedelta(days=(5 - today.weekday()) % 7)
        if unit is None or not head:
            return None
        following = _end_of(unit, today) + timedelta(days=1)
        if head in self._next:
            return following
        if head in self._end_of_next:
            return _end_of(unit, following)
        return _end_of(unit, today) if head in self._end_of else None

    def _weekday(self, said: str, today: date) -> date | None:
        name = self._short.get(said, said)
        if name not in self._weekdays:
            return None
        # Said on a Friday, "until Friday" is the next one.
        return today + timedelta(days=(self._weekdays.index(name) - today.weekday() - 1) % 7 + 1)

    def _month_day(self, words: list[str], today: date) -> date | None:
        """Return the day of "3 december", "december 3rd 2026", "december" or "15th"."""
        month = day = year = None
        for word in words:
            name = self._short.get(word, word)
            if name in self._months and month is None:
                month = self._months.index(name) + 1
            elif _YEAR.fullmatch(word) and year is None:
                year = int(word)
            elif (match := _DAY.fullmatch(word)) and day is None:
                day = int(match[1])
            elif word not in self._on:
                return None
        if month is None:
            return _coming_day(day, today) if day is not None and year is None and not words[-1].isdigit() else None
        if year is not None:
            return _date(year, month, day or 1)
        return _coming(month, day or 1, today)

    def _after(self, said: str, today: date) -> date | None:
        """Return the last day of a length of time that begins today: "two weeks"."""
        count, _, last = said.rpartition(" ")
        unit = self._units.get(last)
        number = 1 if not count or count in {"a", "an"} else _whole_number(count)
        if unit in (None, "weekend") or number is None:
            return None
        if unit == "month":
            return _months_later(today, number)
        if unit == "year":
            return _months_later(today, 12 * number)
        return today + timedelta(days=number * {"day": 1, "week": 7, "fortnight": 14}[unit or "day"])


@cache
def load_dates(*folders: Path) -> Dates:
    """Return the words for ends of the shipped files, and of *folders* over them.

    Raises:
        ConfigurationError: as in `read_tables`.
    """
    return Dates(folders)


def _longest_first(phrases: Sequence[str]) -> tuple[str, ...]:
    return tuple(sorted(phrases, key=lambda phrase: (-len(phrase), phrase)))


def _whole_number(said: str) -> int | None:
    try:
        value = parse_number(said)
    except InvalidAmount:
        return None
    return int(value) if value == value.to_integral_value() and 0 < value <= _MOST else None


def _is_count(words: Sequence[str]) -> bool:
    return (len(words) == 1 and words[0] in {"a", "an"}) or _whole_number(" ".join(words)) is not None


def _end_of(unit: str, today: date) -> date:
    if unit == "month":
        return today.replace(day=calendar.monthrange(today.year, today.month)[1])
    if unit == "year":
        return date(today.year, 12, 31)
    return today if unit == "day" else today + timedelta(days=6 - today.weekday())


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _coming(month: int, day: int, today: date) -> date | None:
    """Return the next such day, today included; the 29th of February may be four years away."""
    years = range(today.year, today.year + 9)
    days = (_date(year, month, day) for year in years)
    return next((one for one in days if one is not None and one >= today), None)


def _coming_day(day: int, today: date) -> date | None:
    for ahead in range(12):
        first = _months_later(today.replace(day=1), ahead)
        one = _date(first.year, first.month, day)
        if one is not None and one > today:
            return one
    return None


def _months_later(today: date, months: int) -> date:
    years, month = divmod(today.month - 1 + months, 12)
    year = today.year + years
    return date(year, month + 1, min(today.day, calendar.monthrange(year, month + 1)[1]))
