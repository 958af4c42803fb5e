"""Agents in a world: each hears messages, sees its surroundings, and decides its next action.

Rules decide without a model, and instead of one whose proposal is not possible. Worlds with actions and senses of
their own make an agent with `decision_agent`; this one is started with `tasklore worker
tasklore.workers.agents.decision`.
"""

from tasklore.workers.agents.decision.answer import Wish
from tasklore.workers.agents.decision.decide import (
    EARLIER,
    RULES,
    Decision,
    decision_agent,
)
from tasklore.workers.agents.decision.moment import Bounds, Moment, NewMessage
from tasklore.workers.agents.decision.policy import ChosenAction, Policy, by_rules
from tasklore.workers.agents.decision.skills import SKILLS, ActionRefusal, Skill

__all__ = [
    "EARLIER",
    "RULES",
    "SKILLS",
    "ActionRefusal",
    "Bounds",
    "ChosenAction",
    "Decision",
    "Moment",
    "NewMessage",
    "Policy",
    "Skill",
    "Wish",
    "agent",
    "by_rules",
    "decision_agent",
]

agent = decision_agent()
