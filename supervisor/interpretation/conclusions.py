"""What the filled fields of a task come to: understood, or a question about what is lacking or in doubt."""

from collections.abc import Sequence
from typing import Any

from contracts.messages import TaskCall
from supervisor.understanding.outcome import Ambiguous, Missing, Understood
from supervisor.interpretation.questions import ask_for
from supervisor.interpretation.values.amounts import Doubt
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.filling import Filled
from supervisor.interpretation.wishes.routing import Prepared


def lacking(task: Prepared, filled: Filled) -> list[FieldShape]:
    """Return the required fields that nothing was said about."""
    return [shape for shape in task.shape.required if not filled.has(shape)]


def conclude(task: Prepared, filled: Filled, problems: Sequence[Doubt] = ()) -> Understood | Missing | Ambiguous:
    """Return what *filled* comes to; *problems* are doubts that the conversation could not settle."""
    agent_id, name = task.offer.agent.agent_id, task.offer.task.name
    # Declared order, so that the same question always looks the same.
    known: dict[str, Any] = {s.name: filled.values[s.name] for s in task.shape.fields if s.name in filled.values}
    spans = tuple(filled.spans)
    doubts = [*filled.doubts, *(problem for problem in problems if not filled.has(problem.field))]
    doubted = [doubt.field for doubt in doubts]
    absent = [shape for shape in lacking(task, filled) if shape not in doubted]
    if filled.unplaced is not None:
        return Ambiguous(filled.unplaced, agent_id, name, known, tuple(shape.name for shape in absent), spans)
    if not doubts and not absent:
        call = TaskCall(name=name, parameters=known)
        computed = {name: words for name, words in filled.computed.items() if name in known}
        return Understood(agent_id, call, spans, filled.is_certain, frozenset(filled.guessed), computed)
    question = " ".join([*(doubt.question for doubt in doubts), *([ask_for(absent)] if absent else [])])
    missing = tuple(shape.name for shape in task.shape.fields if shape in doubted or shape in absent)
    if filled.doubts and not absent:
        return Ambiguous(question, agent_id, name, known, missing, spans)
    names = frozenset(shape.name for shape in doubted)
    return Missing(agent_id, name, known, missing, question, spans, names)
