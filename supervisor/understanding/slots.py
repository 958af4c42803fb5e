"""Which value of an utterance each slot of a task gets."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from supervisor.understanding.outcome import Span

if TYPE_CHECKING:
    from supervisor.understanding.routing import Task
    from supervisor.understanding.schema import Slot
    from supervisor.understanding.utterance import Utterance


@dataclass
class Filled:
    """What an utterance says of one task: *values* by slot with the *spans* they stand at.

    *questions* holds what has to be asked about a slot that was said in two ways, or wrongly. *left* is the words that
    no slot took and that must not be dropped, as start and end.
    """

    values: dict[str, Any] = field(default_factory=dict)
    spans: list[Span] = field(default_factory=list)
    questions: dict[str, str] = field(default_factory=dict)
    left: list[tuple[int, int]] = field(default_factory=list)
    guessed: set[str] = field(default_factory=set)
    computed: Mapping[str, str] = field(default_factory=dict)


def fill(utterance: "Utterance", task: "Task", asked: Sequence["Slot"] = ()) -> Filled:
    """Return what *utterance* says of *task*; *asked* are the slots that a question before it was about."""
    raise NotImplementedError
