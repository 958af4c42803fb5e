"""Days and points in time, as exact as they were given: a date is no midnight, a time without an offset is local.

JSON schema: `{"type": "string", "format": "moment"}`, read by supervisors as a field of kind "when".
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from functools import total_ordering
from typing import Final, Self

from tasklore.contracts.quantities.amounts.duration import Duration
from tasklore.contracts.quantities.amounts.frozen import TextValue
from tasklore.contracts.quantities.amounts.spellings import shown
from tasklore.contracts.quantities.errors import (
    AmbiguousAmount,
    InvalidAmount,
    UnitMismatch,
)
from tasklore.contracts.quantities.times.calendar import Lean, shifted
from tasklore.contracts.quantities.times.moments import parse_moment

__all__ = ["Moment", "iso_text"]

#: Characters of a text that can be one moment.
_LONGEST_TEXT: Final = 200
_CURE: Final = "write it as ISO 8601 does, such as 2026-03-01T15:30"


@total_ordering
class Moment(TextValue):
    """A day or a point in time: `Moment("1 March 2026")` and `Moment("2026-03-01")` hold the same value.

    *value* is a date, a datetime without an offset (local, wherever it was said) or one with an offset. Equal instants
    are equal whatever their offsets; the three kinds are never equal to each other and have no order between them.
    """

    __slots__ = ("value",)

    _format = "moment"
    _described = "A day ('2026-03-01'), a local time ('2026-03-01T15:30') or an instant ('2026-03-01T15:30+01:00')."

    value: date | datetime

    def __init__(
        self,
        value: object,
        *,
        now: datetime | None = None,
        lean: Lean = "future",
        day_first: bool | None = None,
    ) -> None:
        """Read *value* (wording, ISO 8601, date, datetime or Moment).

        Args:
            value: what is read.
            now: what "tomorrow", "3 pm" and "5 May" are reckoned from; without it they are refused.
            lean: a day without a year or a weekday is the next one to come, or with "past" the latest one gone.
            day_first: what stands first in "01/03/2026" when that is known; without it that has two readings.

        Raises:
            InvalidAmount: no moment, several, or one that needs a *now*.
            AmbiguousAmount: a wording with two readings; `readings` holds them in ISO 8601.
        """
        object.__setattr__(self, "value", _take(value, now, lean, day_first))

    @classmethod
    def read(cls, raw: object, *, unit: str | None = None) -> Self:
        """Return *raw* as a field takes it.

        Raises:
            UnitMismatch: the field declares a unit.
        """
        if unit is not None:
            raise UnitMismatch(f"a moment has no unit {unit!r}; leave it out")
        return cls(raw)

    def __reduce__(self) -> tuple[Callable[..., "Moment"], tuple[date | datetime]]:
        return _make, (self.value,)

    @property
    def is_day(self) -> bool:
        """True for a date without a time."""
        return not isinstance(self.value, datetime)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Moment):
            return _kind(self) == _kind(other) and self.value == other.value
        if isinstance(other, date):
            return self == Moment(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.value)

    def __lt__(self, other: "Moment") -> bool:
        return self._order(other) < 0 if isinstance(other, Moment) else NotImplemented

    def __add__(self, other: Duration | timedelta) -> "Moment":
        """Return the moment that much later; months past the end of a month give its last day.

        Raises:
            InvalidAmount: hours on a date, parts of a month, or a year past 9999.
        """
        if not isinstance(other, (Duration, timedelta)):
            return NotImplemented
        return _make(_later(self.value, Duration(other)))

    def __sub__(self, other: "Moment | Duration | timedelta") -> "Moment | Duration":
        """Return the time between two moments, in days and seconds and never in months, or an earlier moment."""
        if isinstance(other, Moment):
            self._order(other)
            return Duration(self.value - other.value)
        return (
            self + -Duration(other)
            if isinstance(other, (Duration, timedelta))
            else NotImplemented
        )

    def _order(self, other: "Moment") -> int:
        if _kind(self) != _kind(other):
            raise UnitMismatch(
                f"{self} is {_kind(self)} and {other} is {_kind(other)}; make them alike to compare them"
            )
        return (self.value > other.value) - (self.value < other.value)

    def __str__(self) -> str:
        """Return the one ISO 8601 spelling; an instant is spelled in UTC ("2026-03-01T13:30:00Z")."""
        return iso_text(self.value)

    def __repr__(self) -> str:
        return f"Moment({str(self)!r})"


def iso_text(moment: date | datetime) -> str:
    """Return the one spelling of *moment*: equal instants share it, a day and its midnight do not."""
    if not isinstance(moment, datetime):
        return moment.isoformat()
    if moment.tzinfo is None:
        return moment.isoformat()
    return f"{_in_utc(moment).replace(tzinfo=None).isoformat()}Z"


def _kind(moment: Moment) -> str:
    if not isinstance(moment.value, datetime):
        return "a day"
    return "a local time" if moment.value.tzinfo is None else "an instant"


def _in_utc(moment: datetime) -> datetime:
    try:
        return moment.astimezone(UTC)
    except OverflowError as error:
        raise InvalidAmount(
            f"{moment.isoformat()} is past the calendar in UTC; send years 1 to 9999"
        ) from error


def _make(value: date | datetime) -> Moment:
    moment = object.__new__(Moment)
    object.__setattr__(moment, "value", value)
    return moment


def _take(
    raw: object, now: datetime | None, lean: Lean, day_first: bool | None
) -> date | datetime:
    if isinstance(raw, Moment):
        return raw.value
    if isinstance(raw, datetime):
        return _sound(raw)
    if isinstance(raw, date):
        return date(raw.year, raw.month, raw.day)
    if not isinstance(raw, str) or len(raw) > _LONGEST_TEXT:
        raise InvalidAmount(f"{shown(raw)} is not a valid date or time; {_CURE}")
    found = parse_moment(raw, now, lean=lean, day_first=day_first)
    if found is None:
        raise InvalidAmount(f"{shown(raw)} is not a single date or time; {_CURE}")
    if found.is_relative and now is None:
        raise InvalidAmount(
            f"{shown(raw)} is reckoned from a day that is not known here; {_CURE}"
        )
    if found.value is None:
        raise AmbiguousAmount(
            raw, [iso_text(reading) for reading in found.readings], _CURE
        )
    return _sound(found.value)


def _sound(value: date | datetime) -> date | datetime:
    """Return *value* with a fixed offset in place of a zone, and refuse what UTC cannot tell."""
    if not isinstance(value, datetime):
        return value
    offset = value.utcoffset()
    zone = None if offset is None else timezone(offset)
    plain = datetime.combine(
        date(value.year, value.month, value.day),
        value.timetz().replace(tzinfo=zone, fold=0),
    )
    if zone is not None:
        _in_utc(plain)
    return plain


def _later(value: date | datetime, length: Duration) -> date | datetime:
    if length.months != length.months.to_integral_value():
        raise InvalidAmount(
            f"{length} has parts of a month, which no calendar has; send days instead"
        )
    if not isinstance(value, datetime) and length.seconds % 86_400:
        raise InvalidAmount(
            f"{length} cannot be added to a day without a time; give {value} a time of day"
        )
    rest = Duration({"value": length.seconds, "unit": "second"}).to_timedelta()
    try:
        if not isinstance(value, datetime):
            return shifted(value, int(length.months)) + rest
        return _sound(
            datetime.combine(shifted(value.date(), int(length.months)), value.timetz())
            + rest
        )
    except OverflowError as error:
        raise InvalidAmount(
            f"{length} from {value} is past the calendar; keep to the years 1 to 9999"
        ) from error
