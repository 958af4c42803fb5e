"""What the filled slots of a task come to: understood, or a question about what is lacking or in doubt."""

from dataclasses import dataclass, field
from typing import Any

from contracts.messages import TaskCall
from supervisor.understanding.outcome import Ambiguous, Missing, Span, Understood
from supervisor.understanding.questions import ask_for, ask_to_confirm, ask_to_leave_out
from supervisor.understanding.routing import Task
from supervisor.understanding.schema import Slot
from supervisor.understanding.utterance import Utterance

#: Words without a slot that a question names; they all are asked about.
_MOST_LEFT = 8


@dataclass
class Filled:
    """What an utterance says of one task: *values* by slot with the *spans* they stand at.

    *questions* holds what has to be asked about a slot that was said in two ways, or wrongly; *whose* asks which slot a
    value is for. *left* is the words that no slot took and that must not be dropped, as start and end.
    """

    values: dict[str, Any] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    questions: dict[str, str] = field(default_factory=dict)
    whose: list[str] = field(default_factory=list)
    left: list[tuple[int, int]] = field(default_factory=list)
    guessed: set[str] = field(default_factory=set)
    computed: dict[str, str] = field(default_factory=dict)

    def is_open(self, slot: Slot) -> bool:
        """Return whether nothing was said of *slot*."""
        return slot.name not in self.values and slot.name not in self.questions

    def put(self, slot: Slot, value: Any, start: int, end: int, text: str) -> None:
        """Give *slot* its *value*, or one more when it takes a list; it stands at *start* to *end* of *text*."""
        self.values[slot.name] = [*self.values.get(slot.name, ()), value] if slot.is_list else value
        self.spans.append(Span(slot.name, start, end, text[start:end]))

    def holds(self, start: int, end: int) -> bool:
        """Return whether a value was taken from these characters, or from some of them."""
        return any(span.start < end and start < span.end for span in self.spans)


def conclude(
    task: Task, filled: Filled, utterance: Utterance, *, is_agreed: bool = False, is_doubted: bool = False
) -> Understood | Missing | Ambiguous:
    """Return what *filled*, read from *utterance*, comes to; what no slot took is asked about first.

    A task with effects is shown for a yes before it starts, unless that *is_agreed*; so is one that *is_doubted*.
    """
    agent_id, name = task.key
    # Declared order, so that the same question always looks the same.
    known: dict[str, Any] = {s.name: filled.values[s.name] for s in task.schema.slots if s.name in filled.values}
    doubted = [slot for slot in task.schema.slots if slot.name in filled.questions]
    absent = [slot for slot in task.schema.required if filled.is_open(slot)]
    spans = tuple(filled.spans)
    left = [utterance.text[start:end] for start, end in filled.left[:_MOST_LEFT]]
    if not (doubted or absent or filled.whose or left):
        if is_doubted or (task.offer.task.confirm and not is_agreed):
            return Ambiguous(ask_to_confirm(task.offer, known), agent_id, name, known, (), spans)
        computed = {name: words for name, words in filled.computed.items() if name in known}
        return Understood(agent_id, TaskCall(name=name, parameters=known), spans, frozenset(filled.guessed), computed)
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
