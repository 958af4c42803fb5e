"""Percentages, counted in percent points.

JSON schema: `{"type": "string", "format": "percent"}`; on the wire a text such as "20%".
"""

from collections.abc import Callable
from decimal import Decimal
from functools import total_ordering
from typing import Self

from tasklore.contracts.quantities.amounts.amount import Amount
from tasklore.contracts.quantities.amounts.frozen import Scaled
from tasklore.contracts.quantities.amounts.spellings import (
    EXACT,
    kept,
    shown,
    unmistakable,
    worth,
)
from tasklore.contracts.quantities.errors import UnitMismatch

__all__ = ["Percent"]

_UNIT = "%"
_HUNDREDTH = Decimal("0.01")


@total_ordering
class Percent(Scaled):
    """A percentage: `Percent("20%")`, `Percent("twenty per cent")` and `Percent(20)` are equal.

    A bare number counts percent points, so 0.2 is a fifth of one percent and never 20 %. Adds and subtracts
    percentages, multiplies by int and Decimal; a float or a bool is a TypeError.
    """

    __slots__ = ("value",)

    _format = "percent"
    _described = "A percentage: '20%', 'twenty per cent', or a number of percent points; 0.2 is not 20%."

    value: Decimal

    def __init__(self, value: object) -> None:
        """Read *value* (number of percent points, wording, Percent or `{"value", "unit": "%"}`).

        Raises:
            InvalidAmount: no finite number, or more digits than are kept exactly.
            AmbiguousAmount: a wording with two readings.
            UnitMismatch: *value* is money or a measure.
        """
        if isinstance(value, Percent):
            number = value.value
        else:
            number, meant = (
                (value.value, value.unit)
                if isinstance(value, Amount)
                else _worth(value)
            )
            if meant not in (None, _UNIT):
                raise UnitMismatch(
                    f"{shown(value)} is in {meant} where a percentage is expected; send it as '20%'"
                )
        object.__setattr__(self, "value", number)

    @classmethod
    def read(cls, raw: object, *, unit: str | None = None) -> Self:
        """Return *raw* as a field takes it; *unit* can be nothing but "%".

        Raises:
            UnitMismatch: the field declares another unit.
        """
        if unit not in (None, _UNIT):
            raise UnitMismatch(f"a percentage has no unit {unit!r}; leave it out")
        return cls(raw)

    @property
    def fraction(self) -> Decimal:
        """The share of one: 0.2 of 20 %."""
        return EXACT.multiply(self.value, _HUNDREDTH)

    def of(self, amount: Amount | int | Decimal) -> Amount:
        """Return this share of *amount*, in its unit: 20 % of 50 USD are 10 USD."""
        whole = amount if isinstance(amount, Amount) else Amount(amount)
        return whole * self.fraction

    def __reduce__(self) -> tuple[Callable[..., "Percent"], tuple[Decimal]]:
        return type(self), (self.value,)

    def __eq__(self, other: object) -> bool:
        return (
            self.value == other.value if isinstance(other, Percent) else NotImplemented
        )

    def __hash__(self) -> int:
        return hash((self.value, _UNIT))

    def __lt__(self, other: "Percent") -> bool:
        return (
            self.value < other.value if isinstance(other, Percent) else NotImplemented
        )

    def __add__(self, other: "Percent") -> "Percent":
        return (
            _result(EXACT.add(self.value, other.value))
            if isinstance(other, Percent)
            else NotImplemented
        )

    def __sub__(self, other: "Percent") -> "Percent":
        return (
            _result(EXACT.subtract(self.value, other.value))
            if isinstance(other, Percent)
            else NotImplemented
        )

    def _each(self, change: Callable[[Decimal], Decimal]) -> "Percent":
        return _result(change(self.value))

    def __bool__(self) -> bool:
        return bool(self.value)

    def __str__(self) -> str:
        return f"{unmistakable(self.value)}{_UNIT}"

    def __repr__(self) -> str:
        return f"Percent({str(self)!r})"


def _worth(raw: object) -> tuple[Decimal, str | None]:
    number, meant = worth(raw)
    return number, meant.code if meant else None


def _result(value: Decimal) -> Percent:
    return Percent(kept(value, value))
