"""How far apart two values are: each kind of value as a number that a tolerance can be put to, and back.

Exact values are compared; how near two values have to be is said by `tasklore.contracts.parameters.tolerances`.
"""

from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Context, Decimal
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from tasklore.contracts.parameters.questions import spell_field
from tasklore.contracts.parameters.tolerances import (
    EXACT,
    MONTHS,
    WITHOUT_ZERO,
    Tolerance,
)
from tasklore.contracts.quantities.amounts import Amount, canonical
from tasklore.contracts.quantities.amounts.spellings import LONGEST
from tasklore.contracts.quantities.units import base_code

if TYPE_CHECKING:
    from tasklore.contracts.quantities.amounts import Duration, Moment, Quantity

#: The worth of a quantity is kept to 30 digits, less the zeros at their end: one of this many digits may be rounded,
#: and at a border has the benefit of that doubt, which is a share of it.
_ROUNDED = 25
_DOUBT: Final = Decimal("1E-28")
_NONE: Final = Decimal(0)
_SURE = Context(prec=28)
_DAY: Final = Decimal(86_400)
_MICROSECOND: Final = Decimal("0.000001")
_FIRST: Final = datetime.combine(date.min, time.min)


class MeasuredValue(NamedTuple):
    """A value as a number: near to it are those alone that have the same *rest*.

    *spell* gives the spelling in a key of the value that has another number there, *is_possible* whether there is one.
    *doubt* is the share of the number by which it may be rounded, which nothing but a quantity is.
    """

    number: Decimal
    rest: str
    spell: Callable[[Decimal], str]
    is_possible: Callable[[Decimal], bool] | None = None
    doubt: Decimal = _NONE


def measured(value: Any, spelled: str, tolerance: Tolerance) -> MeasuredValue | None:
    """Return *value*, *spelled* so in its key, as a number that *tolerance* can be put to.

    None when it has no neighbours: it is left out, of another dimension or kind of time than the tolerance, or larger
    than an amount can be.
    """
    measure = _MEASURES.get(type(value).__name__)
    found = (
        measure(value, tolerance)
        if measure is not None
        else _measured_number(value, spelled)
    )
    return (
        found if found is not None and abs(found.number.adjusted()) <= LONGEST else None
    )


def _measured_number(value: object, spelled: str) -> MeasuredValue | None:
    number = _decimal(value)
    if number is None or abs(number.adjusted()) > LONGEST:
        return None
    unit = spelled.removeprefix(canonical(number))
    return MeasuredValue(
        number,
        unit,
        partial(_spelled, "", unit),
        _is_whole if isinstance(value, int) else None,
    )


def _decimal(value: object) -> Decimal | None:
    if isinstance(value, Amount):
        return value.value
    if isinstance(value, float):
        return Decimal(repr(value))
    return (
        Decimal(value)
        if isinstance(value, int | Decimal) and not isinstance(value, bool)
        else None
    )


def _spelled(before: str, after: str, number: Decimal) -> str:
    return before + canonical(number) + after


def _is_whole(number: Decimal) -> bool:
    return number == number.to_integral_value()


def _measured_percent(value: Any, tolerance: Tolerance) -> MeasuredValue | None:  # noqa: ARG001 - all of them are points
    return _measured_number(value.value, spell_field("", value))


def _measured_quantity(value: "Quantity", tolerance: Tolerance) -> MeasuredValue | None:
    number, dimension = value.base
    unit = base_code(dimension)
    if dimension == WITHOUT_ZERO if tolerance.is_percent else unit != tolerance.unit:
        return None
    digits = max(len(one.as_tuple().digits) for one in (number, tolerance.amount))
    after = spell_field("", value).removeprefix(canonical(number))
    # Below zero is where whoever asks stands: of a temperature, not where its dimension begins.
    return MeasuredValue(
        number,
        sign_of(value.value) + after,
        partial(_spelled, "", after),
        doubt=_DOUBT if digits >= _ROUNDED else _NONE,
    )


def _measured_duration(value: "Duration", tolerance: Tolerance) -> MeasuredValue | None:
    months = value.months
    seconds = value.seconds
    counts_months = tolerance.unit == MONTHS or (
        tolerance.is_percent and not seconds and bool(months)
    )
    number, other = (months, seconds) if counts_months else (seconds, months)
    # A share of what has both is a share of neither; and nothing is near to none of it.
    if not number or (tolerance.is_percent and other):
        return None
    before = f"{canonical(months)}mo" if months and not counts_months else ""
    after = (
        f"mo{canonical(seconds)}s"
        if counts_months and seconds
        else "mo"
        if counts_months
        else "s"
    )
    return MeasuredValue(number, f"{before}{after}", partial(_spelled, before, after))


def _measured_moment(value: "Moment", tolerance: Tolerance) -> MeasuredValue | None:  # noqa: ARG001 - all of it is seconds
    number = _since_the_first(value.value)

    def spell(other: Decimal) -> str:
        return spell_field("", _moment_at(value, other))

    def is_possible(other: Decimal) -> bool:
        step = _DAY if value.is_day else _MICROSECOND
        return 0 < other <= _LAST and not other % step

    return MeasuredValue(number, f"at{_clock(value.value)}", spell, is_possible)


#: By the name of the type, as in `tasklore.contracts.parameters.tolerances`.
_MEASURES: Final[dict[str, Callable[[Any, Tolerance], MeasuredValue | None]]] = {
    "Percent": _measured_percent,
    "Quantity": _measured_quantity,
    "Duration": _measured_duration,
    "Moment": _measured_moment,
}


def sign_of(number: Decimal) -> str:
    """Return "-", "0" or "+": a question about a debt is never answered with that of a credit, nor with nothing's."""
    return "0" if not number else "-" if number < 0 else "+"


def moved(asked: Any, number: Decimal, tolerance: Tolerance) -> object:
    """Return the value that is *number* where *asked* is measured, of the same type and in the unit of *asked*."""
    kind = type(asked).__name__
    if isinstance(asked, Amount):
        return Amount(number, asked.unit)
    if kind == "Quantity":
        return _quantity_at(asked, number)
    if kind == "Duration":
        return _duration_at(asked, number, tolerance)
    moved_to: object = (
        _moment_at(asked, number) if kind == "Moment" else type(asked)(number)
    )
    return moved_to


def distance_between(asked: Any, other: Any) -> tuple[Decimal, str]:
    """Return how far two values lie apart: as a number, and as text in the terms of their type.

    A quantity in the unit of *asked*, time in seconds, or in months where only these differ. The text of none is "0".
    """
    kind = type(asked).__name__
    if kind == "Quantity":
        number = _SURE.subtract(asked.value, other.value).copy_abs().normalize(_SURE)
        text = f"{canonical(number)} {asked.unit}"
    elif kind in {"Duration", "Moment"}:
        length = abs(asked - other)
        number = length.months or length.seconds
        text = str(length)
    elif kind == "Percent":
        number = EXACT.subtract(asked.value, other.value).copy_abs()
        text = f"{canonical(number)} point{'' if number == 1 else 's'}"
    else:
        number = EXACT.subtract(
            _decimal(asked) or Decimal(0), _decimal(other) or Decimal(0)
        ).copy_abs()
        text = canonical(number)
    return number, text if number else "0"


def _quantity_at(asked: "Quantity", number: Decimal) -> "Quantity":
    exact = type(asked)(number, base_code(asked.base[1]))
    told = exact.to(asked.unit)
    # Without the trifle that converting there and back leaves, where it is the same quantity without it.
    tidy = type(asked)(_SURE.plus(told.value).normalize(_SURE), asked.unit)
    return next((one for one in (tidy, told) if one == exact), exact)


def _duration_at(
    asked: "Duration", number: Decimal, tolerance: Tolerance
) -> "Duration":
    counts_months = tolerance.unit == MONTHS or (
        tolerance.is_percent and bool(asked.months)
    )
    there = asked.months if counts_months else asked.seconds
    step = {
        "value": EXACT.subtract(number, there),
        "unit": "month" if counts_months else "second",
    }
    return asked + type(asked)(step)


def _moment_at(asked: "Moment", number: Decimal) -> "Moment":
    there = _FIRST + timedelta(microseconds=int(EXACT.divide(number, _MICROSECOND)))
    if asked.is_day:
        return type(asked)(there.date())
    return type(asked)(there.replace(tzinfo=UTC) if _clock(asked.value) else there)


def _clock(value: date | datetime) -> str:
    """Return "" for a local time, "UTC" for an instant, "day" for neither."""
    if not isinstance(value, datetime):
        return "day"
    return "UTC" if value.tzinfo is not None else ""


def _since_the_first(value: date | datetime) -> Decimal:
    """Return the seconds since the calendar began."""
    if not isinstance(value, datetime):
        value = datetime.combine(value, time.min)
    elif value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    return EXACT.multiply(
        Decimal((value - _FIRST) // timedelta(microseconds=1)), _MICROSECOND
    )


_LAST: Final = _since_the_first(datetime.combine(date.max, time.max))
