"""Agents in a world: each hears messages, sees its surroundings, and decides its next action.

Rules decide without a model, and instead of one whose proposal is not possible. Worlds with actions and senses of
their own make an agent with `decision_agent`; this one is started with `tasklore worker workers.agents.decision`.
"""

from workers.agents.decision.answer import Wish
from workers.agents.decision.decide import EARLIER, RULES, Decision, decision_agent
from workers.agents.decision.moment import Bounds, Moment, NewMessage
from workers.agents.decision.policy import Choice, Policy, by_rules
from workers.agents.decision.skills import SKILLS, Refusal, Skill

__all__ = [
    "EARLIER",
    "RULES",
    "SKILLS",
    "Bounds",
    "Choice",
    "Decision",
    "Moment",
    "NewMessage",
    "Policy",
    "Refusal",
    "Skill",
    "Wish",
    "agent",
    "by_rules",
    "decision_agent",
]

agent = decision_agent()
