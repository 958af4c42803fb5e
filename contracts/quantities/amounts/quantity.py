"""Measured quantities: a Decimal with a unit that is no money, converted exactly within its dimension.

JSON schema: `{"type": "string", "format": "quantity"}`, with `"unit": "km"` beside it where the field declares one; on
the wire a text such as "5 km".
"""

import re
from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context, Decimal, Inexact
from fractions import Fraction
from functools import lru_cache, total_ordering
from typing import Final, Self

from tasklore.contracts.quantities.amounts import spellings
from tasklore.contracts.quantities.amounts.amount import Amount
from tasklore.contracts.quantities.amounts.frozen import Scaled
from tasklore.contracts.quantities.amounts.spellings import (
    EXACT,
    LONGEST,
    QUOTIENT,
    canonical,
    kept,
    shown,
    unmistakable,
)
from tasklore.contracts.quantities.errors import InvalidAmount, UnitMismatch
from tasklore.contracts.quantities.units import Measure, Unit, measure_named
from tasklore.contracts.quantities.units.catalogue import of_code

__all__ = ["Quantity"]

#: Quantities are told apart to 30 digits of their worth, four fewer than a conversion keeps: so "5 ft 2 in", which is
#: no decimal number of feet, is 1.5748 m and not a trifle more.
_SURE: Final = Context(prec=QUOTIENT.prec - 4, rounding=ROUND_HALF_EVEN)
_WRITTEN = re.compile(r"(-?\d{1,60}(?:\.\d{1,60})?) (\S.{0,31})")


@total_ordering
class Quantity(Scaled):
    """A measured quantity: `Quantity("5 km")`, `Quantity(5, "km")` and `Quantity("5000 metres")` are equal.

    Equal is what is worth the same in one dimension. Adds and subtracts what has the same dimension, in the unit of the
    left; multiplies and divides by int and Decimal; two dimensions are a UnitMismatch, a float or a bool a TypeError.
    """

    __slots__ = ("unit", "value")

    _format = "quantity"
    _described = "A measured quantity: a number with its unit, such as '5 km', '20 mg' or '5 ft 2 in'."

    value: Decimal
    unit: str

    def __init__(self, value: object, unit: str | None = None) -> None:
        """Read *value* (wording, Quantity, Amount or `{"value", "unit"}`), and convert it to *unit* when one is given.

        A bare number needs *unit*.

        Raises:
            InvalidAmount: no finite number, too many digits, or nobody says the unit.
            AmbiguousAmount: a wording with two readings.
            UnitMismatch: money, a percentage, a unit that is not known, or one of another dimension than *unit*.
        """
        target = _measure(unit) if unit is not None else None
        number, measure = _take(value, target)
        if target is not None and measure.code != target.code:
            number = _convert(value, number, measure, target)
            measure = target
        object.__setattr__(self, "value", number)
        object.__setattr__(self, "unit", measure.code)

    @classmethod
    def read(cls, raw: object, *, unit: str | None = None) -> Self:
        """Return *raw* as a field that declares *unit* takes it: a bare number counts it, another unit is converted."""
        return cls(raw, unit)

    def to(self, unit: str) -> "Quantity":
        """Return the same quantity in *unit*; exact, or 34 digits where the quotient does not end (an inch in feet).

        Raises:
            UnitMismatch: *unit* has another dimension, or one of the two comes in several sizes ("ton").
        """
        return Quantity(self, unit)

    @property
    def dimension(self) -> str:
        """Its dimension: "length", "weight", "speed", "volume/time"."""
        return _measure(self.unit).dimension

    @property
    def base(self) -> tuple[Decimal, str]:
        """Its value in the base unit of its dimension, to 30 digits, and that dimension.

        A unit of several sizes ("ton") is a dimension of its own.
        """
        measure = _measure(self.unit)
        return _worth_of(
            self.value, measure
        ), measure.code if measure.scale is None else measure.dimension

    def __reduce__(self) -> tuple[Callable[..., "Quantity"], tuple[Decimal, str]]:
        return type(self), (self.value, self.unit)

    def __eq__(self, other: object) -> bool:
        return (
            self.base == other.base if isinstance(other, Quantity) else NotImplemented
        )

    def __hash__(self) -> int:
        return hash(self.base)

    def __lt__(self, other: "Quantity") -> bool:
        return (
            _order(self, other) < 0 if isinstance(other, Quantity) else NotImplemented
        )

    def __add__(self, other: "Quantity") -> "Quantity":
        if not isinstance(other, Quantity):
            return NotImplemented
        return _result(self, EXACT.add(self.value, _addend(self, other)))

    def __sub__(self, other: "Quantity") -> "Quantity":
        if not isinstance(other, Quantity):
            return NotImplemented
        return _result(self, EXACT.subtract(self.value, _addend(self, other)))

    def _each(self, change: Callable[[Decimal], Decimal]) -> "Quantity":
        return _result(self, change(self.value))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __str__(self) -> str:
        return f"{unmistakable(self.value)} {self.unit}"

    def __repr__(self) -> str:
        return f"Quantity({canonical(self.value)!r}, {self.unit!r})"


def _take(raw: object, target: Measure | None) -> tuple[Decimal, Measure]:
    if isinstance(raw, Quantity):
        return raw.value, _measure(raw.unit)
    if isinstance(raw, Amount):
        number = raw.value
        meant = Unit(raw.unit) if raw.unit else None
    elif (
        isinstance(raw, str)
        and (written := _read_wire(raw))
        and (not target or written[1] == target)
    ):
        return written
    else:
        number, meant = spellings.worth(
            spellings.in_metres(raw, target.code if target else None)
        )
    if meant is None:
        if target is None:
            raise InvalidAmount(f"{shown(raw)} names no unit; say which, as '5 km'")
        return number, target
    measure = _choose_measure(meant, target)
    if measure is None:
        wanted = (
            f"send it in {target.code}" if target else "send a measure such as '5 km'"
        )
        raise UnitMismatch(
            f"{shown(raw)} is in {meant.code} where a measured quantity is expected; {wanted}"
        )
    return number, measure


def _read_wire(text: str) -> tuple[Decimal, Measure] | None:
    """Read the spelling of the wire, whose unit is a code ("5 K" are kelvins there, and five thousand elsewhere)."""
    written = _WRITTEN.fullmatch(text)
    exact = _of_code(written[2]) if written else None
    if not written or not exact or exact.code != written[2]:
        return None
    value = kept(Decimal(written[1]), text)
    # any other spelling is left to the normaliser, which asks about "1.234 km"
    return (value, exact) if unmistakable(value) == written[1] else None


def _choose_measure(meant: Unit, target: Measure | None) -> Measure | None:
    """Return the measure among what *meant* can mean that is of the dimension asked for, else the likeliest."""
    measures = [
        found for code in (meant.code, *meant.also) if (found := _of_code(code))
    ]
    if target in measures:
        return target
    wanted = [
        found for found in measures if target and found.dimension == target.dimension
    ]
    return next(iter(wanted), None) or next(iter(measures), None)


@lru_cache(1024)
def _of_code(code: str) -> Measure | None:
    return of_code(code) or measure_named(code)


def _measure(unit: str) -> Measure:
    found = _of_code(unit.strip()) if len(unit) <= LONGEST else None
    if found is None:
        raise UnitMismatch(
            f"{shown(unit)} is not a known unit of measure; use one such as 'km', or an "
            "Amount with this unit"
        )
    return found


def _exact_worth(value: Decimal, measure: Measure) -> Fraction:
    return (
        (Fraction(value) + Fraction(measure.shift))
        * Fraction(measure.scale or 1)
        / Fraction(measure.per)
    )


def _worth_of(value: Decimal, measure: Measure) -> Decimal:
    worth_of = _exact_worth(value, measure)
    return _SURE.divide(
        Decimal(worth_of.numerator), Decimal(worth_of.denominator)
    ).normalize(_SURE)


def _convert(
    raw: object, number: Decimal, measure: Measure, target: Measure
) -> Decimal:
    if measure.dimension != target.dimension:
        raise UnitMismatch(
            f"{shown(raw)} measures {measure.dimension} where {target.dimension} is expected; send it in {target.code}"
        )
    if measure.scale is None or target.scale is None:
        several = measure.code if measure.scale is None else target.code
        raise UnitMismatch(
            f"{shown(raw)} cannot be converted: {several!r} has several sizes; send it in {target.code}"
        )
    exact = _exact_worth(number, measure)
    if len(number.as_tuple().digits) >= _SURE.prec:
        # a quotient that was cut: its last digits are no part of the quantity
        exact = Fraction(_worth_of(number, measure))
    return kept(
        _to_decimal(
            exact * Fraction(target.per) / Fraction(target.scale)
            - Fraction(target.shift)
        ),
        raw,
    )


def _to_decimal(value: Fraction) -> Decimal:
    top = Decimal(value.numerator)
    bottom = Decimal(value.denominator)
    exact = EXACT.copy()
    exact.traps[Inexact] = True
    try:
        return exact.divide(top, bottom)
    except Inexact:
        return QUOTIENT.divide(top, bottom)


def _order(left: Quantity, right: Quantity) -> int:
    first = left.base
    second = right.base
    if first[1] != second[1]:
        raise UnitMismatch(
            f"cannot compare {left} and {right}; they measure {left.dimension} and {right.dimension}"
        )
    return (first[0] > second[0]) - (first[0] < second[0])


def _addend(left: Quantity, right: Quantity) -> Decimal:
    if _measure(left.unit).shift or _measure(right.unit).shift:
        raise UnitMismatch(
            f"cannot add {left} and {right}; the sum of two temperatures means nothing"
        )
    return right.to(left.unit).value


def _result(like: Quantity, value: Decimal) -> Quantity:
    return Quantity(kept(value, value), like.unit)
