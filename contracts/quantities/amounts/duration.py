"""Lengths of time: exact seconds, and calendar months kept apart because a month has no fixed length.

JSON schema: `{"type": "string", "format": "duration", "keeps_months": true}`. A `timedelta` has no such mark: it takes
a month for 30 days, which is another question.
"""

from collections.abc import Callable, Mapping
from datetime import timedelta
from decimal import Decimal
from fractions import Fraction
from functools import total_ordering
from typing import Final, Self

from tasklore.contracts.quantities.amounts.frozen import Scaled
from tasklore.contracts.quantities.amounts.spellings import (
    EXACT,
    LONGEST,
    WIDE,
    canonical,
    kept,
    plain,
    shown,
    worth,
)
from tasklore.contracts.quantities.errors import (
    AmbiguousAmount,
    InvalidAmount,
    UnitMismatch,
)
from tasklore.contracts.quantities.times.durations import AMBIGUOUS, parse_duration
from tasklore.contracts.quantities.times.words import SHORT_UNITS, UNITS

__all__ = ["Duration"]

_MINUTE = Decimal(60)
_HOUR = Decimal(3600)
_DAY = Decimal(86_400)
_YEAR: Final = Decimal(12)
#: Days that a calendar month has at least and at most; between them no order is certain.
_SHORTEST = 28 * _DAY
_LONGEST_MONTH = 31 * _DAY
_MICROSECOND = Decimal("0.000001")
#: Characters of a text that can be one length of time.
_LONGEST_TEXT: Final = 1000
_NONE = Decimal(0)


@total_ordering
class Duration(Scaled):
    """A length of time: `Duration("90 minutes")`, `Duration("1.5 hours")` and `Duration("PT1H30M")` are equal.

    A day is 24 hours and a week 7 days; a year is 12 months, and a month is never a number of days. *months* and
    *seconds* are exact Decimals of one sign. Adds and subtracts durations, multiplies by int and Decimal; a float or a
    bool is a TypeError.
    """

    __slots__ = ("months", "seconds")

    _format = "duration"
    _described = "A length of time: ISO 8601 such as 'PT1H30M' or 'P3M', or a wording such as '90 minutes'."
    _marks = {"keeps_months": True}  # noqa: RUF012 - a ClassVar of the base

    months: Decimal
    seconds: Decimal

    def __init__(self, value: object, unit: str | None = None) -> None:
        """Read *value* (wording, ISO 8601, timedelta, Duration or `{"value", "unit"}`); a bare number only with *unit*.

        Raises:
            InvalidAmount: no length of time, or one that is not exact ("a third of a month").
            AmbiguousAmount: the number has two readings.
        """
        months, seconds = _take(value, unit)
        object.__setattr__(self, "months", months)
        object.__setattr__(self, "seconds", seconds)

    @classmethod
    def read(cls, raw: object, *, unit: str | None = None) -> Self:
        """Return *raw* as a field that declares *unit* takes it: a bare number counts that unit."""
        return cls(raw, unit)

    def __reduce__(self) -> tuple[Callable[..., "Duration"], tuple[Decimal, Decimal]]:
        return _make, (self.months, self.seconds)

    def to_timedelta(self) -> timedelta:
        """Return the same length as a timedelta.

        Raises:
            InvalidAmount: it holds months, is finer than microseconds, or longer than a timedelta.
        """
        micros = (
            EXACT.divide(self.seconds, _MICROSECOND)
            if not self.months
            else _MICROSECOND
        )
        if micros != micros.to_integral_value():
            raise InvalidAmount(
                f"{self} is not a fixed number of microseconds; send days, hours, "
                "minutes or seconds"
            )
        try:
            return timedelta(microseconds=int(micros))
        except OverflowError as error:
            raise InvalidAmount(
                f"{self} is longer than a timedelta holds; send a shorter time"
            ) from error

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Duration):
            return self.months == other.months and self.seconds == other.seconds
        if isinstance(other, timedelta):
            return not self.months and self.seconds == _of_timedelta(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash((self.months, self.seconds))

    def __lt__(self, other: "Duration | timedelta") -> bool:
        operand = _operand(other)
        return NotImplemented if operand is None else _order(self, operand) < 0

    def __add__(self, other: "Duration | timedelta") -> "Duration":
        operand = _operand(other)
        if operand is None:
            return NotImplemented
        return _result(
            EXACT.add(self.months, operand.months),
            EXACT.add(self.seconds, operand.seconds),
        )

    __radd__ = __add__

    def __sub__(self, other: "Duration | timedelta") -> "Duration":
        operand = _operand(other)
        return NotImplemented if operand is None else self + -operand

    def __rsub__(self, other: timedelta) -> "Duration":
        operand = _operand(other)
        return NotImplemented if operand is None else operand + -self

    def _each(self, change: Callable[[Decimal], Decimal]) -> "Duration":
        return _result(change(self.months), change(self.seconds))

    def __bool__(self) -> bool:
        return bool(self.months or self.seconds)

    def __str__(self) -> str:
        """Return the one ISO 8601 spelling: years and months, days, hours, minutes, seconds; "PT0S" for none."""
        sign = "-" if self.months < 0 or self.seconds < 0 else ""
        years, months = _split(self.months.copy_abs(), _YEAR)
        days, rest = _split(self.seconds.copy_abs(), _DAY)
        hours, rest = _split(rest, _HOUR)
        minutes, seconds = _split(rest, _MINUTE)
        date = _spell((years, "Y"), (months, "M"), (days, "D"))
        clock = _spell((hours, "H"), (minutes, "M"), (seconds, "S"))
        if not date and not clock:
            return "PT0S"
        return f"{sign}P{date}T{clock}" if clock else f"{sign}P{date}"

    def __repr__(self) -> str:
        return f"Duration({str(self)!r})"


def _make(months: Decimal, seconds: Decimal) -> Duration:
    """Make a duration of parts that are known to be sound."""
    duration = object.__new__(Duration)
    object.__setattr__(duration, "months", months)
    object.__setattr__(duration, "seconds", seconds)
    return duration


def _result(months: Decimal, seconds: Decimal) -> Duration:
    if (months < 0 < seconds) or (seconds < 0 < months):
        raise InvalidAmount(
            f"{canonical(months)} months and {canonical(seconds)} seconds point apart; keep one of them"
        )
    return _make(kept(months, months), kept(seconds, seconds))


def _take(raw: object, unit: str | None) -> tuple[Decimal, Decimal]:
    if isinstance(raw, Duration):
        return raw.months, raw.seconds
    if isinstance(raw, timedelta):
        return _NONE, _of_timedelta(raw)
    if isinstance(raw, str):
        return _of_text(raw, unit)
    if isinstance(raw, Mapping):
        if raw.keys() != {"value", "unit"} or not isinstance(raw["unit"], str):
            raise InvalidAmount(
                f"{shown(raw)} is not a valid duration; send 'PT90M' or {{\"value\": "
                '90, "unit": "minute"}'
            )
        value = raw["value"]
        return (
            _of_text(value, raw["unit"])
            if isinstance(value, str)
            else _count(value, raw["unit"], raw)
        )
    return _count(raw, unit, raw)


def _of_text(text: str, unit: str | None) -> tuple[Decimal, Decimal]:
    if len(text) > _LONGEST_TEXT:
        raise InvalidAmount(
            f"{shown(text)} is too long for a length of time; send it alone"
        )
    bare = text.strip()
    sign = -1 if bare[:1] in {"-", "\u2212"} else 1
    length = parse_duration(bare[1:] if sign < 0 else bare)
    if length is not None:
        months = _exact(length.months * sign, text)
        seconds = _exact(length.seconds * sign, text)
        return months, seconds
    try:
        number, meant = worth(text)
    except InvalidAmount:
        number = None
        meant = None
    if ambiguous := _ambiguous(bare):
        raise ambiguous
    if number is None or meant is not None:
        raise InvalidAmount(
            f"{shown(text)} is not a valid duration; send ISO 8601 such as 'PT1H30M', "
            "or '90 minutes'"
        )
    return _count(number, unit, text)


def _ambiguous(text: str) -> AmbiguousAmount | None:
    """Return what is wrong with "1.500 hours", None for what is no length however its point is read."""
    number, _, rest = text.partition(" ")
    if (
        not AMBIGUOUS.fullmatch(number)
        or parse_duration(f"{number.replace('.', '')} {rest}") is None
    ):
        return None
    return AmbiguousAmount(
        text,
        [f"{canonical(Decimal(number))} {rest}", f"{number.replace('.', '')} {rest}"],
    )


def _count(number: object, unit: str | None, raw: object) -> tuple[Decimal, Decimal]:
    if isinstance(number, bool) or not isinstance(number, (int, float, Decimal)):
        raise InvalidAmount(
            f"{shown(raw)} is not a valid duration; send ISO 8601 such as 'PT1H30M', or "
            "'90 minutes'"
        )
    if unit is None:
        raise InvalidAmount(
            f"{shown(raw)} is a number without a unit of time; say which, as '90 minutes' or 'PT90M'"
        )
    name = unit.strip().lower()
    counted = UNITS.get(name) or SHORT_UNITS.get(name)
    if counted is None:
        raise InvalidAmount(
            f"{shown(unit)} is not a unit of time; use 'second', 'minute', 'hour', "
            "'day', 'month' or 'year'"
        )
    value = Fraction(plain(number))
    return _exact(value * counted.months, raw), _exact(value * counted.seconds, raw)


def _exact(value: Fraction, raw: object) -> Decimal:
    """Return *value* as a decimal; refuse one that does not end."""
    if max(value.numerator.bit_length(), value.denominator.bit_length()) <= 8 * LONGEST:
        decimal = WIDE.divide(Decimal(value.numerator), Decimal(value.denominator))
        if Fraction(decimal) == value:
            return kept(decimal, raw)
    raise InvalidAmount(
        f"{shown(raw)} cannot be kept exactly; send whole units of time"
    )


def _of_timedelta(span: timedelta) -> Decimal:
    micros = Decimal(span // timedelta(microseconds=1))
    return kept(EXACT.multiply(micros, _MICROSECOND), micros)


def _operand(raw: object) -> Duration | None:
    if isinstance(raw, Duration):
        return raw
    return Duration(raw) if isinstance(raw, timedelta) else None


def _order(left: Duration, right: Duration) -> int:
    """Return which of the two is longer as -1, 0 or 1; refuse when only a calendar could tell."""
    months = EXACT.subtract(left.months, right.months)
    seconds = EXACT.subtract(left.seconds, right.seconds)
    least, most = sorted(
        (EXACT.multiply(months, _SHORTEST), EXACT.multiply(months, _LONGEST_MONTH))
    )
    if EXACT.add(least, seconds) > 0:
        return 1
    if EXACT.add(most, seconds) < 0:
        return -1
    if not months and not seconds:
        return 0
    raise UnitMismatch(
        f"cannot compare {left} and {right}: a month has no fixed length; send both in days or in months"
    )


def _split(value: Decimal, size: Decimal) -> tuple[Decimal, Decimal]:
    """Return the number of whole *size* in *value*, which is not negative, and the rest."""
    return WIDE.divmod(value, size)


def _spell(*parts: tuple[Decimal, str]) -> str:
    return "".join(f"{canonical(value)}{letter}" for value, letter in parts if value)
