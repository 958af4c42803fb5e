"""Amounts of parameters in another currency than their field declares: which may be, and who knows the rate."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.fields import FieldInfo
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import core_schema

from tasklore.contracts.parameters.annotations import leaf_types
from tasklore.contracts.quantities.amounts import Amount
from tasklore.contracts.quantities.amounts.spellings import declared_unit
from tasklore.contracts.quantities.units import CURRENCIES

if TYPE_CHECKING:
    from tasklore.contracts.quantities.amounts.rates import RateSource

#: What bounds a value, as pydantic keeps it.
_BOUNDS = ("gt", "ge", "lt", "le", "multiple_of")


@dataclass(frozen=True, slots=True)
class Conversion:
    """Stands on a field whose amounts may be in any currency: *find_rate* tells what they are worth in its own.

    Its card says `"converts": true`.
    """

    find_rate: "RateSource"

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        """Validate as the field without it: how a value is read is not pydantic's business."""
        return handler(source)

    def __get_pydantic_json_schema__(
        self, schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Tell whoever fills the field that other currencies are taken."""
        return handler(schema) | {"converts": True}


def conversion_of(field: FieldInfo) -> Conversion | None:
    """Return what converts the amounts of *field*, None where another currency is refused."""
    return next((one for one in field.metadata if isinstance(one, Conversion)), None)


def check_conversion(
    name: str, field: FieldInfo, conversion: Conversion, unit: str | None
) -> None:
    """Refuse a *conversion* of the field called *name* that cannot be made, or after which its bounds would not hold.

    Raises:
        TypeError: with what to declare.
    """
    if leaf_types(field.annotation) - {Amount, type(None)}:
        msg = f"{name} declares convert, which only an Amount, a list of such, or one of them or None may have"
        raise TypeError(msg)
    if unit is None or declared_unit(unit).code not in CURRENCIES:
        msg = f"{name} declares convert without the currency to convert to; add unit='EUR'"
        raise TypeError(msg)
    if not _is_async(conversion.find_rate):
        msg = (
            f"{name}: convert is no async function; write "
            "`async def find_rate(given: str, wanted: str) -> ExchangeRate`"
        )
        raise TypeError(msg)
    check_bounds(name, field)


def check_bounds(name: str, field: FieldInfo) -> None:
    """Refuse bounds of the field called *name* that mean another amount in each currency that it takes.

    Raises:
        TypeError: there is one besides zero.
    """
    bounds: Mapping[str, Any] = {
        word: getattr(one, word)
        for one in field.metadata
        for word in _BOUNDS
        if getattr(one, word, None) is not None
    }
    for word, bound in bounds.items():
        if bound != 0:
            msg = (
                f"{name} takes any currency, in each of which {word}={bound} is another amount; "
                "compare in the task, or declare Amount with Field(unit='EUR')"
            )
            raise TypeError(msg)


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object that is called is asked for its method
    )
