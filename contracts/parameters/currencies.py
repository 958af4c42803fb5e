"""The currencies in parameters as they are sent: two of them never meet in one task without a rate."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tasklore.contracts.errors import InvalidAmount
from tasklore.contracts.quantities.amounts.spellings import worth
from tasklore.contracts.quantities.units import CURRENCIES

#: The field that says which currency the amounts beside it are in.
FIELD = "currency"


def problem_of_currencies(
    values: Iterable[tuple[str, Any]], currency: object
) -> str | None:
    """Return the fault of the currencies that *values* name, None when they are one.

    Args:
        values: name, and value as it was sent, of each field that takes amounts without a declared unit.
        currency: the value of the field for the currency, None where the class has none.
    """
    named: dict[str, frozenset[str]] = {}
    for name, value in values:
        for codes in _codes_in(value):
            named[name] = named.get(name, codes) & codes
    said = [
        f"{name} in {'/'.join(sorted(codes)) or 'several'}"
        for name, codes in named.items()
    ]
    common = frozenset.intersection(*named.values()) if named else None
    if common is not None and not common:
        return f"amounts in two currencies ({', '.join(said)}); send all in one"
    if common and isinstance(currency, str) and currency in CURRENCIES:
        return (
            None
            if currency in common
            else f"{FIELD} is {currency}, and there is {said[0]}; send one of the two"
        )
    return None


def _codes_in(value: Any) -> Iterator[frozenset[str]]:
    """Yield the codes that each wording of money in *value* can mean."""
    if isinstance(value, list | tuple):
        for one in value:
            yield from _codes_in(one)
    elif isinstance(value, str | Mapping):
        try:
            unit = worth(value)[1]
        except InvalidAmount:
            return
        if unit is not None and unit.is_currency:
            yield frozenset({unit.code, *unit.also})
