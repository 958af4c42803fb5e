"""What the filled slots of a task come to: understood, or a question about what is lacking or in doubt."""

from typing import Any

from contracts.messages import TaskCall
from supervisor.understanding.outcome import Ambiguous, Missing, Understood
from supervisor.understanding.questions import ask_for, ask_to_leave_out
from supervisor.understanding.routing import Task
from supervisor.understanding.slots import Filled
from supervisor.understanding.utterance import Utterance


def conclude(task: Task, filled: Filled, utterance: Utterance) -> Understood | Missing | Ambiguous:
    """Return what *filled*, read from *utterance*, comes to; what no slot took is asked about before anything starts."""
    agent_id, name = task.key
    # Declared order, so that the same question always looks the same.
    known: dict[str, Any] = {s.name: filled.values[s.name] for s in task.schema.slots if s.name in filled.values}
    doubted = [slot for slot in task.schema.slots if slot.name in filled.questions]
    absent = [slot for slot in task.schema.required if filled.is_open(slot)]
    spans = tuple(filled.spans)
    left = [utterance.text[start:end] for start, end in filled.left]
    if not (doubted or absent or filled.whose or left):
        computed = {name: words for name, words in filled.computed.items() if name in known}
        return Understood(
            agent_id, TaskCall(name=name, parameters=known), spans, True, frozenset(filled.guessed), computed
        )
    parts = list(filled.whose)
    parts += [filled.questions[slot.name] for slot in doubted]
    asks_anyway = bool(parts or absent)
    if absent and not filled.whose:
        parts.append(ask_for(absent))
    if left:
        said = ask_to_leave_out(left, task.offer.label)
        parts.insert(0, said) if not asks_anyway else parts.insert(0, said.removesuffix(" Shall I leave it out?"))
    question = " ".join(parts)
    missing = tuple(slot.name for slot in task.schema.slots if slot in doubted or slot in absent)
    if filled.whose or not absent:
        return Ambiguous(question, agent_id, name, known, missing, spans)
    return Missing(agent_id, name, known, missing, question, spans, frozenset(slot.name for slot in doubted))
