"""What values that travel as text have in common: they never change, and pydantic reads and writes them."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, ClassVar, NoReturn, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import PydanticCustomError, core_schema

from tasklore.contracts.quantities.amounts.spellings import EXACT, QUOTIENT, is_factor
from tasklore.contracts.quantities.errors import (
    AmbiguousAmount,
    InvalidAmount,
    UnitMismatch,
)


class Frozen:
    """Base of values that never change."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"{_kind_of(self)} cannot be changed; make a new one instead of setting {name!r}"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{_kind_of(self)} cannot be changed; {name!r} stays")


def _kind_of(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[0] in 'AEIOU' else 'a'} {name}"


class TextValue(Frozen):
    """Base of values that travel as text: read from every wording, written to JSON as its own text."""

    __slots__ = ()

    #: The `format` and the description of its JSON schema.
    _format: ClassVar[str]
    _described: ClassVar[str]
    #: What else it says, for who has the card alone.
    _marks: ClassVar[dict[str, Any]] = {}

    @classmethod
    def __get_pydantic_core_schema__(
        cls, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Accept every wording, write text in JSON and the value itself in Python."""
        return core_schema.no_info_plain_validator_function(
            lambda raw: _validate(cls, raw),
            serialization=core_schema.plain_serializer_function_ser_schema(
                str, when_used="json"
            ),
        )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Describe a text whose `format` names the type; `unit` beside it is the unit that the field declares."""
        return {
            "type": "string",
            "format": cls._format,
            "description": cls._described,
            **cls._marks,
        }


class Scaled(TextValue):
    """Base of values that are multiplied with and divided by int and Decimal; a float or a bool is a TypeError."""

    __slots__ = ()

    def _each(self, change: Callable[[Decimal], Decimal]) -> Self:
        """Return the value of which each number is changed so."""
        raise NotImplementedError

    def __mul__(self, factor: int | Decimal) -> Self:
        return (
            self._each(lambda part: EXACT.multiply(part, Decimal(factor)))
            if is_factor(factor)
            else NotImplemented
        )

    __rmul__ = __mul__

    def __truediv__(self, divisor: int | Decimal) -> Self:
        """Return the part of it, to 34 digits where it does not end."""
        if not is_factor(divisor):
            return NotImplemented
        if not divisor:
            raise ZeroDivisionError(f"{_kind_of(self)} cannot be divided by zero")
        return self._each(lambda part: QUOTIENT.divide(part, Decimal(divisor)))

    def __neg__(self) -> Self:
        return self._each(EXACT.minus)

    def __pos__(self) -> Self:
        return self

    def __abs__(self) -> Self:
        return self._each(EXACT.abs)


def _validate(cls: Callable[[Any], Any], raw: object) -> Any:
    if type(raw) is cls:
        return raw
    try:
        return cls(raw)
    except InvalidAmount as error:
        raise refusal(error) from error


def refusal(error: InvalidAmount) -> PydanticCustomError:
    """Return *error* as pydantic tells it of a field, with the readings of what has two."""
    context: dict[str, Any] = {"problem": str(error)}
    if isinstance(error, AmbiguousAmount):
        return PydanticCustomError(
            "ambiguous_amount",
            "{problem}",
            context | {"readings": list(error.readings)},
        )
    return PydanticCustomError(
        "unit_mismatch" if isinstance(error, UnitMismatch) else "invalid_amount",
        "{problem}",
        context,
    )
