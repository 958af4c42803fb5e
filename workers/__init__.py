"""Who answers: what somebody writes an agent with, the host that runs it, and the kit that tests it.

Here belong declaring, loading and running agents; what they remember lies in `memory`, who asks them in `supervisor`.
"""

from contracts.amounts import Amount
from contracts.errors import GiveUp, RetryLater
from contracts.parameters import Field, Parameters
from workers.agent import Agent
from workers.context import Context
from workers.listening.context import ListenContext
from workers.listening.values import FactBatch, PendingFact, Ruling

__all__ = [
    "Agent",
    "Amount",
    "Context",
    "FactBatch",
    "Field",
    "GiveUp",
    "ListenContext",
    "Parameters",
    "PendingFact",
    "RetryLater",
    "Ruling",
]
