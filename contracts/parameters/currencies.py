"""The currencies in parameters as they are sent: two of them never meet in one task without a rate."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from enum import Enum
from typing import Any

from tasklore.contracts.errors import InvalidAmount
from tasklore.contracts.quantities.amounts import Amount
from tasklore.contracts.quantities.amounts.spellings import worth
from tasklore.contracts.quantities.units import CURRENCIES


def names_currency(name: str, choices: Collection[Any]) -> bool:
    """Return whether the field *name*, one of *choices* if there are any, says which currency amounts are in."""
    if choices:
        return all(isinstance(one, str) and one in CURRENCIES for one in choices)
    return "currency" in name.lower().split("_")


def codes_named(currency: object) -> frozenset[str]:
    """Return the codes that a field for the currency can mean by "EUR" or "euros"; none by "points"."""
    return _codes_of(f"1 {currency.value if isinstance(currency, Enum) else currency}")


def problem_of_currencies(
    values: Iterable[tuple[str, Any]], currencies: Mapping[str, Any]
) -> str | None:
    """Return the fault of the currencies that *values* name, None when they are one.

    Args:
        values: name, and value as it was sent, of each field that takes amounts in any currency.
        currencies: the value of each field that says a currency; empty where the class has none.
    """
    named: dict[str, frozenset[str]] = {}
    for name, value in values:
        for codes in _codes_in(value):
            named[name] = named.get(name, codes) & codes
    if not named:
        return None
    said = [
        f"{name} in {'/'.join(sorted(codes)) or 'several'}"
        for name, codes in named.items()
    ]
    common = frozenset.intersection(*named.values())
    if not common:
        return f"amounts in two currencies ({', '.join(said)}); send all in one"
    if not currencies:
        return None
    told = {name: value for name, value in currencies.items() if value is not None}
    if any(not common.isdisjoint(codes_named(value)) for value in told.values()):
        return None
    if not told:
        return f"{said[0]}, and {' and '.join(currencies)} is not given; send it too"
    others = " and ".join(f"{name} is {value}" for name, value in told.items())
    return f"{others}, and there is {said[0]}; send one of the two"


def _codes_in(value: Any) -> Iterator[frozenset[str]]:
    """Yield the codes that each wording of money in *value* can mean."""
    if isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from _codes_in(one)
    elif codes := _codes_of(value):
        yield codes


def _codes_of(value: object) -> frozenset[str]:
    """Return the codes that the currency of *value* can mean, of "$5" all dollars; none where it names none."""
    if isinstance(value, Amount):
        return CURRENCIES & {value.unit}
    if not isinstance(value, str | Mapping):
        return frozenset()
    try:
        unit = worth(value)[1]
    except InvalidAmount:
        return frozenset()
    return (
        frozenset({unit.code, *unit.also})
        if unit is not None and unit.is_currency
        else frozenset()
    )
