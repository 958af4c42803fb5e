"""Amounts that are found in a sentence."""

from dataclasses import dataclass
from decimal import Context, Decimal, Inexact
from fractions import Fraction
from typing import Literal

from tasklore.contracts.quantities.units import CURRENCIES

#: Whatever the caller's thread rounds to, values stay exact: 60 digits times any scale.
CALCULATION = Context(prec=240)
_ONE = Decimal(1)
_EXACT = Context(prec=240, traps=[Inexact])
#: Digits kept of a fraction that does not end (1/3).
_QUOTIENT = Context(prec=34)


def plain(value: Decimal | Fraction | int) -> Decimal:
    """Return *value* without trailing zeros after the point and without an exponent; 34 digits where it never ends."""
    if isinstance(value, Fraction):
        top = Decimal(value.numerator)
        bottom = Decimal(value.denominator)
        try:
            value = _EXACT.divide(top, bottom)
        except Inexact:
            value = _QUOTIENT.divide(top, bottom)
    elif isinstance(value, int):
        return Decimal(value)
    value = value.normalize(_EXACT) if value else Decimal(0)
    return (
        value.quantize(_ONE, context=_EXACT)
        if 0 < int(value.as_tuple().exponent) <= 120
        else value
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAmount:
    """One amount of a sentence, `sentence[start:end]` being *text*.

    *value* is None when the text has two *readings*. *unit* is an ISO currency code, "%" or a unit such as "km"; cents
    are already turned into their currency, and *said* and *said_unit* keep what was worded ("470 pence": 470 and
    "pence" where value and unit are 4.70 and GBP). *also* lists the other units that the wording can mean ("$").
    """

    value: Decimal | None
    unit: str | None
    start: int
    end: int
    text: str
    readings: tuple[Decimal, ...]
    also: tuple[str, ...] = ()
    said: Decimal | None = None
    said_unit: str = ""

    @property
    def kind(self) -> Literal["number", "money", "percent", "measure"]:
        """The unit, currency or thing that it is an amount of."""
        if self.unit is None:
            return "number"
        return (
            "percent"
            if self.unit == "%"
            else "money"
            if self.unit in CURRENCIES
            else "measure"
        )

    @property
    def is_vague(self) -> bool:
        """True for "a couple", whose value is a custom: confirm it before acting on it."""
        return "couple" in self.text.lower()
