"""Quantities: a Decimal with an optional unit, one value for every spelling of it and never a float inside."""

import decimal
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Self, TypeVar

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, SerializationInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from tasklore.contracts.quantities.amounts import spellings
from tasklore.contracts.quantities.amounts.frozen import Frozen, refusal
from tasklore.contracts.quantities.amounts.spellings import (
    EXACT,
    JSON_DIGITS,
    LONGEST,
    QUOTIENT,
    WIDE,
    canonical,
    fitted,
    kept,
    plain,
    shown,
)
from tasklore.contracts.quantities.errors import InvalidAmount, UnitMismatch
from tasklore.contracts.quantities.units import Unit, is_counted

__all__ = ["RESULT", "Amount", "wire_form"]

#: The context of a serializer that writes a result: there each field has one JSON type, whatever its value.
RESULT = {"form": "result"}
_ROUNDED = decimal.Context(prec=JSON_DIGITS, rounding=ROUND_HALF_EVEN)

_SMALLEST = Decimal(f"1E-{LONGEST}")
_ONE = Decimal(1)

_A = TypeVar("_A", bound="Amount")


class Amount(Frozen):
    """An exact quantity: `Amount("50k")`, `Amount(50_000)` and `Amount("$50,000.00")` hold the same value.

    Calculates with Amount, int and Decimal; a float or a bool is a TypeError, two different units are a UnitMismatch.
    A unitless operand takes the unit of the other, also to be compared by its value, though the two are not equal; a
    quotient of one unit has none. Quotients keep 34 digits.
    """

    __slots__ = ("unit", "value")

    value: Decimal
    unit: str | None

    def __init__(self, value: object, unit: str | None = None) -> None:
        """Read *value* (int, Decimal, Amount, float, wording or `{"value", "unit"}`), as *unit* when one is given.

        Raises:
            InvalidAmount: no finite number, or more digits than are kept exactly.
            AmbiguousAmount: a wording with two readings.
            UnitMismatch: *value* names another unit than *unit*.
        """
        number, meant = _take(spellings.in_metres(value, unit))
        if unit is not None:
            number, meant = fitted(value, number, meant, spellings.declared_unit(unit))
        _set_value(self, number)
        _set_unit(self, meant.code if meant else None)

    @classmethod
    def read(
        cls, raw: object, *, unit: str | None = None, any_currency: bool = False
    ) -> Self:
        """Return *raw* as a field that declares *unit* takes it.

        Without a declared unit what is counted ("3 cups") is dropped, with *any_currency* a currency too, and any
        other unit is refused; with one, a bare number is taken as that unit, cents become parts of it and "$" any
        dollar. Raises as the constructor does.
        """
        number, meant = _take(spellings.in_metres(raw, unit))
        if unit is not None:
            number, meant = fitted(raw, number, meant, spellings.declared_unit(unit))
        elif (
            meant is None
            or is_counted(meant.code)
            or (any_currency and meant.is_currency)
        ):
            meant = None
        else:
            raise UnitMismatch(
                f"{shown(raw)} is in {meant.code} where a plain number is expected; send it without a unit"
            )
        return _make(cls, number, meant.code if meant else None)

    def __reduce__(
        self,
    ) -> tuple[Callable[..., "Amount"], tuple[type["Amount"], Decimal, str | None]]:
        return _make, (type(self), self.value, self.unit)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Amount):
            return self.value == other.value and self.unit == other.unit
        if isinstance(other, (int, Decimal)) and not isinstance(other, bool):
            return self.unit is None and self.value == other
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.value) if self.unit is None else hash((self.value, self.unit))

    def __lt__(self, other: "Amount | int | Decimal") -> bool:
        operand = _comparable(self, other)
        return NotImplemented if operand is None else self.value < operand.value

    def __le__(self, other: "Amount | int | Decimal") -> bool:
        operand = _comparable(self, other)
        return NotImplemented if operand is None else self.value <= operand.value

    def __gt__(self, other: "Amount | int | Decimal") -> bool:
        operand = _comparable(self, other)
        return NotImplemented if operand is None else self.value > operand.value

    def __ge__(self, other: "Amount | int | Decimal") -> bool:
        operand = _comparable(self, other)
        return NotImplemented if operand is None else self.value >= operand.value

    def __add__(self, other: "Amount | int | Decimal") -> "Amount":
        return _combine(_add, self, other)

    __radd__ = __add__

    def __sub__(self, other: "Amount | int | Decimal") -> "Amount":
        return _combine(_subtract, self, other)

    def __rsub__(self, other: int | Decimal) -> "Amount":
        return _combine(_subtract, other, self)

    def __mul__(self, other: "Amount | int | Decimal") -> "Amount":
        return _combine(_multiply, self, other)

    __rmul__ = __mul__

    def __truediv__(self, other: "Amount | int | Decimal") -> "Amount":
        return _combine(_divide, self, other)

    def __rtruediv__(self, other: int | Decimal) -> "Amount":
        return _combine(_divide, other, self)

    def __floordiv__(self, other: "Amount | int | Decimal") -> "Amount":
        return _combine(_floor, self, other)

    def __rfloordiv__(self, other: int | Decimal) -> "Amount":
        return _combine(_floor, other, self)

    def __mod__(self, other: "Amount | int | Decimal") -> "Amount":
        return _combine(_remainder, self, other)

    def __rmod__(self, other: int | Decimal) -> "Amount":
        return _combine(_remainder, other, self)

    def __pow__(self, other: "Amount | int | Decimal") -> "Amount":
        return _combine(_power, self, other)

    def __rpow__(self, other: int | Decimal) -> "Amount":
        return _combine(_power, other, self)

    def __neg__(self) -> "Amount":
        return _result(EXACT.minus(self.value), self.unit)

    def __pos__(self) -> "Amount":
        return self

    def __abs__(self) -> "Amount":
        return _result(EXACT.abs(self.value), self.unit)

    def __round__(self, ndigits: int = 0) -> "Amount":
        """Return the amount to *ndigits* decimals, halves to the even neighbour; the unit stays."""
        return _result(
            self.value.quantize(_ONE.scaleb(-ndigits), ROUND_HALF_EVEN, WIDE), self.unit
        )

    def __floor__(self) -> int:
        return int(self.value.to_integral_value(ROUND_FLOOR))

    def __ceil__(self) -> int:
        return int(self.value.to_integral_value(ROUND_CEILING))

    def __int__(self) -> int:
        return int(self.value)

    def __float__(self) -> float:
        return float(self.value)

    def __bool__(self) -> bool:
        return bool(self.value)

    def __str__(self) -> str:
        return (
            canonical(self.value)
            if self.unit is None
            else f"{canonical(self.value)} {self.unit}"
        )

    def __repr__(self) -> str:
        spelled = canonical(self.value)
        return (
            f"Amount({spelled!r})"
            if self.unit is None
            else f"Amount({spelled!r}, {self.unit!r})"
        )

    def __format__(self, spec: str) -> str:
        """Format as text without *spec*, else the bare number by it (`f"{amount:,.2f}"`)."""
        return format(self.value, spec) if spec else str(self)

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Accept every wording, write the shape of the wire in JSON and the Amount itself in Python."""
        return core_schema.no_info_plain_validator_function(
            _validate,
            serialization=core_schema.plain_serializer_function_ser_schema(
                _write, info_arg=True, when_used="json"
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe the three shapes of the wire so that a form or a model fills one of them; a result has two."""
        number_or_text: list[JsonSchemaValue] = [{"type": "number"}, {"type": "string"}]
        described = {
            "type": "object",
            "properties": {
                "value": {"anyOf": number_or_text},
                "unit": {"type": "string"},
            },
            "required": ["value"],
            "additionalProperties": False,
        }
        if handler.mode == "serialization":
            number = {"type": "number"}
            described |= {
                "properties": {"value": number, "unit": {"type": "string"}},
                "required": ["value", "unit"],
            }
            return {
                "anyOf": [number, described],
                "description": "A quantity: a number, with its unit if it has one.",
            }
        text = "A quantity: a number, a wording such as '50k' or '$50,000.00', or a value with its unit ('USD', 'km')."
        return {"anyOf": [*number_or_text, described], "description": text}


def wire_form(amount: Amount) -> int | float | str | dict[str, int | float | str]:
    """Return *amount* as JSON carries it: a number up to 15 digits, else text, and an object when it has a unit."""
    value = amount.value
    number: int | float | str
    if len(value.normalize(WIDE).as_tuple().digits) > JSON_DIGITS:
        number = canonical(value)
    else:
        number = int(value) if value == value.to_integral_value() else float(value)
    return number if amount.unit is None else {"value": number, "unit": amount.unit}


def _write(
    amount: Amount, info: SerializationInfo
) -> int | float | str | dict[str, int | float | str]:
    """Return the form of the wire; in a result every number is one in JSON, rounded to 15 digits unless it is whole."""
    if info.context is not RESULT:
        return wire_form(amount)
    value = amount.value
    number = (
        int(value)
        if value == value.to_integral_value()
        else float(_ROUNDED.plus(value))
    )
    return number if amount.unit is None else {"value": number, "unit": amount.unit}


_set_value: Callable[[Amount, Decimal], None] = Amount.__dict__["value"].__set__
_set_unit: Callable[[Amount, str | None], None] = Amount.__dict__["unit"].__set__


def _make(cls: type[_A], value: Decimal, unit: str | None) -> _A:
    """Make an amount of parts that are known to be sound."""
    amount = object.__new__(cls)
    _set_value(amount, value)
    _set_unit(amount, unit)
    return amount


@lru_cache(1024)
def _whole(number: int) -> Amount:
    """Return *number*, of exactly that type, as an amount; one of many that are asked for again and never change."""
    return _make(Amount, Decimal(number), None)


def _validate(raw: object) -> Amount:
    kind = type(raw)
    if kind is Amount:
        return raw  # type: ignore[return-value]  # narrowed by the exact type, which costs half of isinstance
    if kind is int and -spellings.LARGEST_INT <= raw <= spellings.LARGEST_INT:  # type: ignore[operator]  # the same
        return _whole(raw)
    try:
        return Amount(raw)
    except InvalidAmount as error:
        raise refusal(error) from error


def _take(raw: object) -> tuple[Decimal, Unit | None]:
    if isinstance(raw, Amount):
        return raw.value, Unit(raw.unit) if raw.unit else None
    return spellings.worth(raw)


def _operand(raw: object) -> Amount | None:
    """Return *raw* as an amount to calculate with; None for a float, a bool and everything else."""
    if isinstance(raw, Amount):
        return raw
    if type(raw) is int and -spellings.LARGEST_INT <= raw <= spellings.LARGEST_INT:
        return _whole(raw)
    if isinstance(raw, (int, Decimal)) and not isinstance(raw, bool):
        return _make(Amount, plain(raw), None)
    return None


def _comparable(left: Amount, right: object) -> Amount | None:
    """Return *right* as an amount that *left* may be compared with, None for what is none."""
    operand = right if type(right) is Amount else _operand(right)
    if operand is not None:
        _common_unit("compare", left, operand)
    return operand


def _combine(
    operation: Callable[[Amount, Amount], Amount], left: object, right: object
) -> Amount:
    # Of the exact type, which costs half of a call.
    first = left if type(left) is Amount else _operand(left)
    second = right if type(right) is Amount else _operand(right)
    if first is None or second is None:
        return NotImplemented  # type: ignore[no-any-return]  # what every binary operator may return
    try:
        return operation(first, second)
    except (decimal.InvalidOperation, decimal.Overflow) as error:
        raise InvalidAmount(
            f"{first} and {second} give no amount below 1e{LONGEST}; check the numbers"
        ) from error


def _result(value: Decimal, unit: str | None) -> Amount:
    if spellings.is_kept(value):
        return _make(Amount, value, unit)
    if int(value.as_tuple().exponent) < -LONGEST:
        value = value.quantize(_SMALLEST, context=WIDE)
    return _make(Amount, kept(value, value), unit)


def _common_unit(verb: str, left: Amount, right: Amount) -> str | None:
    if left.unit and right.unit and left.unit != right.unit:
        raise UnitMismatch(
            f"cannot {verb} {left} and {right}; convert one to the unit of the other first"
        )
    return left.unit or right.unit


def _nonzero(divisor: Amount) -> None:
    if not divisor:
        raise ZeroDivisionError("an amount cannot be divided by zero")


def _add(left: Amount, right: Amount) -> Amount:
    return _result(EXACT.add(left.value, right.value), _common_unit("add", left, right))


def _subtract(left: Amount, right: Amount) -> Amount:
    return _result(
        EXACT.subtract(left.value, right.value), _common_unit("subtract", left, right)
    )


def _multiply(left: Amount, right: Amount) -> Amount:
    if left.unit and right.unit:
        raise UnitMismatch(
            f"cannot multiply {left} by {right}; one of them must be a plain number"
        )
    return _result(EXACT.multiply(left.value, right.value), left.unit or right.unit)


def _divide(left: Amount, right: Amount) -> Amount:
    unit = _common_unit("divide", left, right)
    _nonzero(right)
    return _result(
        QUOTIENT.divide(left.value, right.value),
        None if left.unit and right.unit else unit,
    )


def _divide_whole(left: Amount, right: Amount) -> tuple[Decimal, Decimal, str | None]:
    """Return quotient, rest and the unit that both share; whole numbers of Python go down, and so do amounts."""
    unit = _common_unit("divide", left, right)
    _nonzero(right)
    whole, rest = WIDE.divmod(left.value, right.value)
    if rest and (rest < 0) != (right.value < 0):
        whole = WIDE.subtract(whole, _ONE)
        rest = WIDE.add(rest, right.value)
    return whole, rest, unit


def _floor(left: Amount, right: Amount) -> Amount:
    whole, _, unit = _divide_whole(left, right)
    return _result(whole, None if left.unit and right.unit else unit)


def _remainder(left: Amount, right: Amount) -> Amount:
    _, rest, unit = _divide_whole(left, right)
    return _result(EXACT.plus(rest), unit)


def _power(left: Amount, right: Amount) -> Amount:
    if left.unit or right.unit:
        raise UnitMismatch(
            f"cannot raise {left} to the power of {right}; take plain numbers"
        )
    return (
        _result(QUOTIENT.power(left.value, right.value), None)
        if right
        else _make(Amount, _ONE, None)
    )
