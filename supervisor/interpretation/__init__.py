"""From plain words to a task with exact parameters, generic over the cards' JSON schemas, never written for one agent.

Here belongs what reads sentences and conversations; sending tasks, storing turns and wording reports do not.
"""

from supervisor.interpretation.llm import LlmInterpreter, make_interpreter
from supervisor.understanding.outcome import (
    Ambiguous,
    Interpretation,
    Interpreter,
    Missing,
    Several,
    Single,
    Span,
    Understood,
    Unfitting,
)
from supervisor.interpretation.rules import RuleInterpreter

__all__ = [
    "Ambiguous",
    "Interpretation",
    "Interpreter",
    "LlmInterpreter",
    "Missing",
    "RuleInterpreter",
    "Several",
    "Single",
    "Span",
    "Understood",
    "Unfitting",
    "make_interpreter",
]
