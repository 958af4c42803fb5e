"""Tolerances: how far a value may be from another one, each kind of value in its own terms.

| a field of | declares | and compares |
|---|---|---|
| `Amount`, `Decimal`, `int`, `float` | a number in its unit ("250"), or a share of what is asked ("1%") | as it is |
| `Percent` | percent points: "0.5", "0.5%" and "0.5 points" are one tolerance | points |
| `Quantity` | a quantity of its dimension ("500 m"), or a share; a number counts its unit | in the base unit |
| `Duration` | days, hours, ... or months ("10 minutes", "2 months"), or a share | only what has the same rest |
| `Moment` | days, hours, ... ("1 hour") | days with days, local times with such, instants with instants |

A share of a temperature or of a moment means nothing and is refused.
"""

import decimal
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from tasklore.contracts.errors import InvalidAmount
from tasklore.contracts.quantities.amounts import canonical
from tasklore.contracts.quantities.amounts.spellings import LONGEST, WIDE
from tasklore.contracts.quantities.units import base_code

#: Holds the difference of any two amounts, and a share of one, without rounding; what it cannot hold is never near.
EXACT = decimal.Context(
    prec=WIDE.prec, traps=[decimal.Inexact, decimal.InvalidOperation, decimal.Overflow]
)

_HUNDRED: Final = Decimal(100)
_LONGEST_TEXT = 32
#: A dimension without a zero that people mean: nobody wants one percent of 20 degrees.
WITHOUT_ZERO = "temperature"
#: What time is counted in: the two cannot be converted.
SECONDS = "s"
MONTHS = "mo"
_POINTS = ("percent points", "percentage points", "points", "point")


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a remembered value may be from the asked one: *amount* in *unit*, or percent of the asked value.

    *unit* is the base unit of a quantity, "s" or "mo" of time, empty for what has one unit anyway. *told* is the
    tolerance as a card and a person are told it. Of zero a percentage is nothing: then only the same value is served.
    """

    amount: Decimal
    is_percent: bool = False
    unit: str = ""
    told: str = ""

    def reach(self, asked: Decimal) -> Decimal:
        """Return the largest distance from *asked* that is still near."""
        if not self.is_percent:
            return self.amount
        return EXACT.divide(EXACT.multiply(asked.copy_abs(), self.amount), _HUNDRED)

    def __str__(self) -> str:
        return self.told


def read_tolerance(
    raw: object, kind: type = Decimal, unit: str | None = None
) -> Tolerance:
    """Return the tolerance that *raw* declares for a field of *kind* that counts in *unit*.

    Raises:
        TypeError: it is not in the terms of *kind*, not finite, not above zero, or a percentage of 100 or more. The
            message says what to write.
    """
    read = _READERS.get(kind.__name__, _of_number)
    if isinstance(raw, bool | float):
        raise TypeError(f"a tolerance is exact: write {_EXAMPLES[read]}, not {raw!r}")
    try:
        tolerance = read(raw, unit)
    except InvalidAmount as error:
        raise TypeError(
            f"a tolerance of a {kind.__name__} is such as {_EXAMPLES[read]}: {error}"
        ) from error
    if (
        not tolerance.amount.is_finite()
        or tolerance.amount <= 0
        or abs(tolerance.amount.adjusted()) > LONGEST
    ):
        raise TypeError(
            f"a tolerance is finite and above zero, such as {_EXAMPLES[read]}; not {raw!r}"
        )
    if tolerance.is_percent and tolerance.amount >= _HUNDRED:
        raise TypeError(
            f"a tolerance of {tolerance} would take anything for near; keep below 100%"
        )
    return tolerance


def _plain(raw: object) -> Decimal | None:
    """Return *raw* as a number, None when it is none; NaN is one."""
    text = str(raw).strip() if isinstance(raw, str | int | Decimal) else ""
    if not text.isascii() or len(text) > _LONGEST_TEXT:
        return None
    try:
        number = Decimal(text)
    except decimal.InvalidOperation:
        return None
    return None if number.is_snan() else number


def _share(raw: object) -> Tolerance | None:
    """Return the tolerance in percent of the asked value, None when *raw* is no percentage."""
    text = (
        str(raw).strip()
        if isinstance(raw, str) or type(raw).__name__ == "Percent"
        else ""
    )
    number = _plain(text.removesuffix("%").rstrip()) if text.endswith("%") else None
    return (
        None
        if number is None
        else Tolerance(number, is_percent=True, told=f"{_told(number)}%")
    )


def _told(number: Decimal) -> str:
    return canonical(number) if number.is_finite() else str(number)


def _of_number(raw: object, unit: str | None) -> Tolerance:  # noqa: ARG001 - it counts the field's unit anyway
    number = _plain(raw)
    if (found := _share(raw)) is None and number is None:
        raise TypeError(
            f"a tolerance is a number above zero or a percentage, such as {_IN_NUMBERS}; not {raw!r}"
        )
    return found or Tolerance(number or Decimal(0), told=_told(number or Decimal(0)))


def _of_percent(raw: object, unit: str | None) -> Tolerance:  # noqa: ARG001 - as above
    text = str(raw).strip()
    for ending in ("%", *_POINTS):
        text = text.removesuffix(ending).rstrip()
    number = _plain(text)
    if number is None:
        raise TypeError(
            f"a tolerance of a percentage counts percent points, such as {_IN_POINTS}; not {raw!r}"
        )
    return Tolerance(number, told=f"{_told(number)} point{'' if number == 1 else 's'}")


def _of_quantity(raw: object, unit: str | None) -> Tolerance:
    from tasklore.contracts.quantities.amounts import (
        Quantity,  # loaded by whoever declares one
    )

    is_temperature = unit is not None and Quantity(0, unit).dimension == WITHOUT_ZERO
    if (found := _share(raw)) is not None:
        if is_temperature:
            raise TypeError(
                f"{raw} of a temperature depends on where its scale begins; write such as '2 {unit}'"
            )
        return found
    # What lies between two temperatures is not converted as a temperature is: there is no zero of a scale in it.
    read = Quantity(raw, None if is_temperature and _plain(raw) is None else unit)
    if is_temperature and read.dimension != WITHOUT_ZERO:
        raise TypeError(
            f"{read} is a {read.dimension} where a temperature is expected; write such as '2 {unit}'"
        )
    worth, dimension = read.base
    zero, _ = Quantity(0, read.unit).base
    return Tolerance(
        EXACT.subtract(worth, zero), unit=base_code(dimension), told=str(read)
    )


def _of_duration(raw: object, unit: str | None) -> Tolerance:
    from tasklore.contracts.quantities.amounts import (
        Duration,  # loaded by whoever declares one
    )

    if (found := _share(raw)) is not None:
        return found
    read = Duration.read(raw, unit=unit)
    if read.months and read.seconds:
        raise TypeError(
            f"{read} mixes months, which have no fixed length, with days or hours; write one of them"
        )
    if read.months:
        return Tolerance(read.months, unit=MONTHS, told=str(read))
    return Tolerance(read.seconds, unit=SECONDS, told=str(read))


def _of_moment(raw: object, unit: str | None) -> Tolerance:
    if _share(raw) is not None:
        raise TypeError(
            f"{raw} of a moment means nothing; write a length of time, such as {_IN_HOURS}"
        )
    found = _of_duration(raw, unit)
    if found.unit == MONTHS:
        raise TypeError(
            f"{found} has no fixed length; write days or hours, such as {_IN_HOURS}"
        )
    return found


_IN_NUMBERS = "250, '0.5' or '1%'"
_IN_POINTS = "2, '0.5' or '0.5 points'"
_IN_HOURS = "'1 hour' or '3 days'"
_Reader = Callable[[object, str | None], Tolerance]
#: By the name of the type: most agents never load these types.
_READERS: Final[dict[str, _Reader]] = {
    "Percent": _of_percent,
    "Quantity": _of_quantity,
    "Duration": _of_duration,
    "Moment": _of_moment,
}
_EXAMPLES: Final[dict[_Reader, str]] = {
    _of_number: _IN_NUMBERS,
    _of_percent: _IN_POINTS,
    _of_quantity: "'500 m' or '1%'",
    _of_duration: "'10 minutes', '2 months' or '5%'",
    _of_moment: _IN_HOURS,
}
