"""Tasklore: agent workers that remember.

What authors of agents and callers of them import is here, in `tasklore.testing` and in `tasklore.client`. The rooms
below (`tasklore.workers`, `tasklore.memory`, ...) are links to folders of the repository, and may change.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tasklore.contracts.admission.waits import Approval as Approval
    from tasklore.contracts.errors import GiveUp as GiveUp
    from tasklore.contracts.errors import RetryLater as RetryLater
    from tasklore.contracts.parameters.model import Field as Field
    from tasklore.contracts.parameters.model import Parameters as Parameters
    from tasklore.contracts.quantities.amounts import Amount as Amount
    from tasklore.contracts.quantities.amounts import Duration as Duration
    from tasklore.contracts.quantities.amounts import Moment as Moment
    from tasklore.contracts.quantities.amounts import Money as Money
    from tasklore.contracts.quantities.amounts import Percent as Percent
    from tasklore.contracts.quantities.amounts import Quantity as Quantity
    from tasklore.contracts.quantities.amounts.rates import (
        ExchangeRate as ExchangeRate,
    )
    from tasklore.workers.agent import Agent as Agent
    from tasklore.workers.context.context import Context as Context
    from tasklore.workers.listening.context import ListenContext as ListenContext
    from tasklore.workers.listening.values import FactBatch as FactBatch
    from tasklore.workers.listening.values import PendingFact as PendingFact
    from tasklore.workers.listening.values import Ruling as Ruling
    from tasklore.workers.listening.values import TurnBatch as TurnBatch
    from tasklore.workers.listening.values import TurnFacts as TurnFacts
    from tasklore.workers.middleware import Middleware as Middleware
    from tasklore.workers.task_options import TaskOptions as TaskOptions

#: The module below this package that defines each name; loaded when the name is first used, so that a command that
#: needs no agent does not pay for pydantic.
_DEFINED_IN = {
    "Agent": "workers.agent",
    "Amount": "contracts.quantities.amounts",
    "Approval": "contracts.admission.waits",
    "Context": "workers.context.context",
    "Duration": "contracts.quantities.amounts",
    "ExchangeRate": "contracts.quantities.amounts.rates",
    "FactBatch": "workers.listening.values",
    "Field": "contracts.parameters.model",
    "GiveUp": "contracts.errors",
    "ListenContext": "workers.listening.context",
    "Middleware": "workers.middleware",
    "Moment": "contracts.quantities.amounts",
    "Money": "contracts.quantities.amounts",
    "Parameters": "contracts.parameters.model",
    "PendingFact": "workers.listening.values",
    "Percent": "contracts.quantities.amounts",
    "Quantity": "contracts.quantities.amounts",
    "RetryLater": "contracts.errors",
    "Ruling": "workers.listening.values",
    "TaskOptions": "workers.task_options",
    "TurnBatch": "workers.listening.values",
    "TurnFacts": "workers.listening.values",
}

__all__ = sorted(_DEFINED_IN)

if not TYPE_CHECKING:  # a checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name in _DEFINED_IN:
            return getattr(import_module(f"{__name__}.{_DEFINED_IN[name]}"), name)
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
