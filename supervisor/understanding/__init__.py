"""From an utterance to tasks with exact parameters, by the cards' JSON schemas and never for one agent.

Reading sentences and conversations belongs here; sending tasks, storing turns and wording reports do not. One utterance
goes from `model` to `rules`, and there through `utterance`, `clarification`, `routing`, `slots`, `conversation` and
`conclusion`; open questions go back to `model`, and through `prompt`, `answers` and `evidence` to `conclusion`.
"""

from tasklore.supervisor.understanding.model import LlmInterpreter, make_interpreter
from tasklore.supervisor.understanding.outcome import (
    Clarification,
    Interpretation,
    Interpreter,
    Several,
    Single,
    TextSpan,
    Understood,
    Unfitting,
)
from tasklore.supervisor.understanding.rules import RuleInterpreter

__all__ = [
    "Clarification",
    "Interpretation",
    "Interpreter",
    "LlmInterpreter",
    "RuleInterpreter",
    "Several",
    "Single",
    "TextSpan",
    "Understood",
    "Unfitting",
    "make_interpreter",
]
