"""Exact values with a meaning: one value for every spelling of it, and never a float inside.

Durations, moments, money, percentages and quantities are loaded when they are first named: most agents have none.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from tasklore.contracts.quantities.amounts.amount import Amount, wire_form
from tasklore.contracts.quantities.amounts.spellings import canonical

if TYPE_CHECKING:
    from tasklore.contracts.quantities.amounts.duration import Duration
    from tasklore.contracts.quantities.amounts.moment import Moment
    from tasklore.contracts.quantities.amounts.money import Money
    from tasklore.contracts.quantities.amounts.percent import Percent
    from tasklore.contracts.quantities.amounts.quantity import Quantity

__all__ = [
    "Amount",
    "Duration",
    "Moment",
    "Money",
    "Percent",
    "Quantity",
    "canonical",
    "wire_form",
]

_LATE = {
    "Duration": "duration",
    "Moment": "moment",
    "Money": "money",
    "Percent": "percent",
    "Quantity": "quantity",
}


def __getattr__(name: str) -> Any:
    if name not in _LATE:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_LATE[name]}"), name)
