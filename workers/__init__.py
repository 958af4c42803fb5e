"""Who answers: the agent API, the host that runs an agent, and the kit that tests it.

Here belong declaring, loading and running agents; what they remember lies in `memory`, who asks them in `supervisor`.
"""

from typing import TYPE_CHECKING, Any

from contracts.admission.waits import Approval
from contracts.errors import GiveUp, RetryLater
from contracts.parameters.model import Field, Parameters
from quantities import amounts
from quantities.amounts import Amount
from workers.agent import Agent
from workers.context.context import Context
from workers.listening.context import ListenContext
from workers.listening.values import (
    FactBatch,
    PendingFact,
    Ruling,
    TurnBatch,
    TurnFacts,
)
from workers.middleware import Middleware

if TYPE_CHECKING:
    from quantities.amounts import Duration, Moment, Percent, Quantity

__all__ = [
    "Agent",
    "Amount",
    "Approval",
    "Context",
    "Duration",
    "FactBatch",
    "Field",
    "GiveUp",
    "ListenContext",
    "Middleware",
    "Moment",
    "Parameters",
    "PendingFact",
    "Percent",
    "Quantity",
    "RetryLater",
    "Ruling",
    "TurnBatch",
    "TurnFacts",
]

_LATE = frozenset({"Duration", "Moment", "Percent", "Quantity"})


def __getattr__(name: str) -> Any:
    # loaded when an agent first names one: most have none
    if name in _LATE:
        return getattr(amounts, name)
    msg = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(msg)
