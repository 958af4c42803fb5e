"""Who answers: the agent API, the host that runs an agent, and the kit that tests it.

Here belong declaring, loading and running agents; what they remember lies in `memory`, who asks them in `supervisor`.
"""

from typing import TYPE_CHECKING, Any

from tasklore.contracts.admission.waits import Approval
from tasklore.contracts.errors import GiveUp, RetryLater
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities import amounts
from tasklore.contracts.quantities.amounts import Amount
from tasklore.workers.agent import Agent
from tasklore.workers.context.context import Context
from tasklore.workers.listening.context import ListenContext
from tasklore.workers.listening.values import (
    FactBatch,
    PendingFact,
    Ruling,
    TurnBatch,
    TurnFacts,
)
from tasklore.workers.middleware import Middleware

if TYPE_CHECKING:
    from tasklore.contracts.quantities.amounts import (
        Duration,
        Moment,
        Percent,
        Quantity,
    )

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
