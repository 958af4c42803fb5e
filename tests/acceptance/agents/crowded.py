"""The tree of tasks in a worker in which two may lend their slots, and no more."""

from tasklore.runtime.messaging import lent_slots
from tests.acceptance.agents.tree import agent

__all__ = ["agent"]

lent_slots.MOST_LENT = 2
