"""What the filled slots of a task come to: understood, or a question about what is lacking or in doubt.

Rules and model end here alike: neither starts a task over words that no slot took.
"""

from dataclasses import dataclass, field
from typing import Any

from contracts.messages import TaskCall
from supervisor.understanding.outcome import Clarification, Span, Understood
from supervisor.understanding.routing import Task
from supervisor.understanding.schema import Slot
from supervisor.understanding.wording import ask_for, ask_to_confirm, ask_to_leave_out, tell_useless

#: Words without a slot that a question names; they all are asked about.
_MOST_LEFT = 8


@dataclass
class Filled:
    """What an utterance says of one *task*: *values* by slot with the *spans* they stand at.

    *questions* holds what has to be asked about a slot that was said in two ways, or wrongly; *whose* asks which slot a
    value is for. *left* is the words that no slot took and that must not be dropped, as start and end. *faulty* names
    slots that were said and have to be said again. *unsure* says why a value is shown for a yes, and *notes* what such
    values rest on.
    """

    task: Task
    values: dict[str, Any] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    questions: dict[str, str] = field(default_factory=dict)
    whose: list[str] = field(default_factory=list)
    left: list[tuple[int, int]] = field(default_factory=list)
    guessed: set[str] = field(default_factory=set)
    computed: dict[str, str] = field(default_factory=dict)
    faulty: set[str] = field(default_factory=set)
    unsure: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

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
    filled: Filled, text: str, *, is_agreed: bool = False, is_doubted: bool = False
) -> Understood | Clarification:
    """Return what *filled*, read from *text*, comes to; what no slot took is asked about first.

    A task with effects is shown for a yes before it starts, unless that *is_agreed*; so is one that *is_doubted*, and
    one with a value that is *unsure*.
    """
    task, slots = filled.task, filled.task.schema.slots
    agent_id, name = task.key
    questions = [filled.questions[slot.name] for slot in slots if slot.name in filled.questions]
    absent = {slot.name for slot in slots if slot.name in filled.faulty or (slot.is_required and filled.is_open(slot))}
    if absent:
        # An answer to this question completes the task at once, so what is unsure is asked for as well.
        absent |= filled.unsure.keys()
    missing = tuple(slot.name for slot in slots if slot.name in absent or slot.name in filled.questions)
    # Declared order, so that the same question always looks the same.
    names = [slot.name for slot in slots if slot.name in filled.values and slot.name not in absent]
    known = {name: filled.values[name] for name in names}
    spans = tuple(span for span in filled.spans if span.field not in absent)
    left = [text[start:end] for start, end in filled.left[:_MOST_LEFT]]
    useless = tell_useless(left, task.offer.label) if left else ""
    parts = [*filled.whose, *questions]
    if absent and not filled.whose:
        parts.append(ask_for([slot for slot in slots if slot.name in absent]))
    if parts:
        return Clarification(" ".join(filter(None, [useless, *parts])), agent_id, name, known, missing, spans)
    if filled.unsure or is_doubted or (task.offer.task.confirm and not is_agreed):
        shown = [f"{ask_to_confirm(task.offer, known)}{_explain_unsure(filled)}", *filled.notes, useless]
        return Clarification(" ".join(filter(None, shown)), agent_id, name, known, (), spans)
    if left:
        return Clarification(ask_to_leave_out(left, task.offer.label), agent_id, name, known, (), spans)
    computed = {name: words for name, words in filled.computed.items() if name in known}
    return Understood(agent_id, TaskCall(name=name, parameters=known), spans, frozenset(filled.guessed), computed)


def _explain_unsure(filled: Filled) -> str:
    """Return why some values are shown: those that are not the person's own word, by name."""
    reasons: dict[str, list[str]] = {}
    for slot in filled.task.schema.slots:
        if slot.name in filled.unsure:
            reasons.setdefault(filled.unsure[slot.name], []).append(slot.label)
    return "".join(f" ({', '.join(labels)}: {why})" for why, labels in reasons.items())
