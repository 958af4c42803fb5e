"""Amounts that were given in another currency than a task takes, converted before its function sees them."""

from collections.abc import Callable, Coroutine
from typing import Any

from pydantic import ValidationError

from tasklore.contracts.errors import GiveUp
from tasklore.contracts.faults import fault_of
from tasklore.contracts.parameters.model import Parameters
from tasklore.contracts.quantities.amounts import Amount
from tasklore.contracts.quantities.amounts.rates import (
    ConvertedAmount,
    ExchangeRate,
    RateSource,
)

#: Runs a step: its name, its function and that one's two arguments.
_Step = Callable[[str, RateSource, str, str], Coroutine[Any, Any, ExchangeRate]]


async def convert_amounts(
    parameters: Parameters, step: _Step
) -> tuple[Parameters, tuple[ConvertedAmount, ...]]:
    """Return *parameters* with amounts in the currencies that their fields declare, and those that were converted.

    One rate serves all amounts of a run between the same two currencies that one function converts.

    Raises:
        GiveUp: what a function returned is no rate.
        InvalidAmount: an amount has too many digits.
        Exception: whatever a function raises.
    """
    conversions = type(parameters).conversions()
    if not conversions:
        return parameters, ()
    rates: dict[tuple[RateSource, str, str], ExchangeRate] = {}
    done: list[ConvertedAmount] = []
    ready: dict[str, Any] = {}
    for name, (wanted, conversion) in conversions.items():
        value = vars(parameters)[name]
        converted: dict[Amount, ConvertedAmount] = {}
        for given in _amounts_in(value):
            if given.unit is None or given.unit == wanted or given in converted:
                continue
            key = (conversion.find_rate, given.unit, wanted)
            if key not in rates:
                rates[key] = await _find_rate(name, step, *key)
            converted[given] = ConvertedAmount(
                field=name,
                given=given,
                amount=rates[key].convert(given, wanted),
                rate=rates[key],
            )
        if converted:
            ready[name] = _replace(value, converted)
            done += converted.values()
    return Parameters.model_copy(parameters, update=ready), tuple(done)


async def _find_rate(
    field: str, step: _Step, find_rate: RateSource, given: str, wanted: str
) -> ExchangeRate:
    found = await step(f"rate {given} {wanted}", find_rate, given, wanted)
    try:
        # From the journal it comes as what the function is annotated with.
        return ExchangeRate.model_validate(found)
    except ValidationError as error:
        fault = fault_of(error.errors(include_url=False, include_context=False)[0])
        msg = f"convert of {field} returned no rate from {given} to {wanted}: {fault}; return an ExchangeRate"
        raise GiveUp(msg) from error


def _amounts_in(value: Any) -> list[Amount]:
    if isinstance(value, Amount):
        return [value]
    if isinstance(value, list | tuple | set | frozenset):
        return [one for item in value for one in _amounts_in(item)]
    return []


def _replace(value: Any, converted: dict[Amount, ConvertedAmount]) -> Any:
    if isinstance(value, Amount):
        return converted[value].amount if value in converted else value
    if isinstance(value, list | tuple | set | frozenset):
        return type(value)(_replace(item, converted) for item in value)
    return value
