"""Values that a task takes over from an earlier one of the conversation, each pointing to the words that ask for it."""

from collections.abc import Sequence

from supervisor.interpretation.earlier_tasks.references import Past
from supervisor.understanding.outcome import Span
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.wishes.routing import Prepared


def take(filled: Filled, past: Past, name: str, span: tuple[int, int], text: str) -> None:
    """Give the field *name* the value that it had in *past*, which the words at *span* of *text* ask for."""
    filled.values[name] = past.call.parameters[name]
    filled.spans.append(Span(name, *span, text[slice(*span)], past.turn.turn_id))


def inherit(
    filled: Filled,
    past: Past,
    task: Prepared,
    said: tuple[tuple[int, int], str] | None,
    but: Sequence[FieldShape] = (),
) -> None:
    """Fill what the sentence left out from *past*; *said* is the words that ask for it, None for an answer."""
    for shape in task.shape.fields:
        if shape.name in past.call.parameters and not filled.has(shape) and shape not in but:
            span, text = said or ((0, len(past.turn.text)), past.turn.text)
            take(filled, past, shape.name, span, text)
