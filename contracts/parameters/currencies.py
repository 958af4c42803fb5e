"""The currencies in parameters as they are sent: two of them never meet in one task without a rate."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any

from tasklore.contracts.errors import InvalidAmount
from tasklore.contracts.quantities.amounts import Amount
from tasklore.contracts.quantities.amounts.money import currencies_meant
from tasklore.contracts.quantities.amounts.spellings import worth
from tasklore.contracts.quantities.units import CURRENCIES, Unit

#: Words in the name of a field for what is to come out, not for what was given.
_TARGETS = frozenset({"to", "into", "target", "destination"})


def names_currency(name: str, choices: Collection[Any]) -> bool:
    """Return whether the field *name*, one of *choices* if there are any, says which currency amounts are in.

    One that they are to be turned into does not.
    """
    words = name.lower().split("_")
    if not _TARGETS.isdisjoint(words):
        return False
    return are_currencies(choices) if choices else "currency" in words


def are_currencies(choices: Collection[Any]) -> bool:
    """Return whether there are *choices*, each of them the code of a currency."""
    return bool(choices) and all(
        isinstance(one, str) and one in CURRENCIES for one in choices
    )


def codes_named(currency: object) -> frozenset[str]:
    """Return the codes that a field for the currency can mean by "EUR" or "euros"; none by "points"."""
    code = currency.value if isinstance(currency, Enum) else currency
    return next(_codes_in(f"1 {code}"), frozenset())


def currency_of(units: Sequence[Unit], choices: Collection[Any] = ()) -> str | None:
    """Return the code of the one currency that money in *units* is in, as a field for it, one of *choices*, takes it.

    None for no money, and where several currencies fit: "80 kr", and "$5" where Australian and Canadian are the choice.
    """
    if not units:
        return None
    common = frozenset.intersection(
        *(frozenset({one.code, *one.also}) for one in units)
    )
    fitting = [
        code for code in choices or sorted(common & CURRENCIES) if code in common
    ]
    known = [
        codes[0] for one in units if len(codes := currencies_meant(one)) == 1 if codes[0] in fitting
    ]  # fmt: skip
    return fitting[0] if len(fitting) == 1 else next(iter(known), None)


def currency_said(values: Iterable[Any], choices: Collection[Any] = ()) -> str | None:
    """Return the currency that the wordings in *values* are in, as `currency_of` does of their units."""
    return currency_of([unit for one in values for unit in _units_in(one)], choices)


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
    """Yield the codes that each wording of money in *value* can mean, of "$5" all dollars."""
    return (frozenset({unit.code, *unit.also}) for unit in _units_in(value))


def _units_in(value: Any) -> Iterator[Unit]:
    """Yield the currency that each wording of money in *value* names."""
    if isinstance(value, list | tuple | set | frozenset):
        for one in value:
            yield from _units_in(one)
    elif (unit := _unit_of(value)) is not None and unit.is_currency:
        yield unit


def _unit_of(value: object) -> Unit | None:
    if isinstance(value, Amount):
        return Unit(value.unit) if value.unit else None
    if not isinstance(value, str | Mapping):
        return None
    try:
        return worth(value)[1]
    except InvalidAmount:
        return None
