"""What a language model claims put to the proof, claim by claim, against everything that it may quote."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import structlog

from contracts.messages import ChatTurn
from quantities.numerals import DecimalMark
from supervisor.understanding.outcome import Span
from supervisor.interpretation.proof.claims import QuotedValue
from supervisor.interpretation.proof.earlier import prove_earlier, said_earlier
from supervisor.interpretation.proof.evidence import Proven, Source, Used, prove
from supervisor.interpretation.proof.placing import (
    amounts_left,
    is_announced,
    is_only_choice,
    is_only_home,
    is_only_the_wish,
    is_taken,
)
from supervisor.interpretation.proof.recollection import Recollection, prove_remembered
from supervisor.interpretation.values.amounts import Doubt
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.scene import scene_of
from supervisor.interpretation.wishes.routing import Prepared

log = structlog.get_logger(__name__)

#: Claims that are put to the proof for each field of a task: an honest model makes one, and each costs the loop time.
_MOST_CLAIMS = 4


@dataclass(frozen=True, slots=True)
class Sources:
    """What a model may quote: the sentence, what the person said before it, and what is remembered of them."""

    text: Source
    turns: tuple[Source, ...]
    memory: tuple[Source, ...]

    @classmethod
    def of(
        cls,
        text: str,
        turns: Sequence[ChatTurn],
        recollection: Recollection,
        *,
        user_id: str | None = None,
        decimal_mark: DecimalMark | None = None,
    ) -> "Sources":
        """Return the sources of *text*, which *user_id* says after *turns*, oldest first."""
        sentence = Source(scene_of(text, decimal_mark=decimal_mark))
        return cls(sentence, said_earlier(turns, user_id, decimal_mark), recollection.sources())

    def prove(self, task: Prepared, field: FieldShape, claimed: QuotedValue, used: Used) -> Proven | Doubt | None:
        """Return what *claimed* proves, where it says that it stands, or the question that it comes to."""
        said, quote = claimed.values, claimed.quote
        if claimed.remembered:
            return prove_remembered(task, field, said, quote, self.memory, used)
        if claimed.earlier:
            return prove_earlier(task, field, said, quote, self.text.scene, self.turns, used)
        return prove(field, said, quote, [self.text], used)


def add_proven(
    filled: Filled,
    task: Prepared,
    claimed: Sequence[QuotedValue],
    sources: Sources,
    *,
    elsewhere: Sequence[Span] | None = None,
) -> set[str]:
    """Put into *filled* what *claimed* proves about fields the rules left open or guessed; each amount serves once.

    Return the fields whose values stand in the sentence, but are theirs by nothing except the model's word. *elsewhere*
    are the spans of the other tasks that the sentence asks for, None when there are none: beside another task only a
    number is sure to be meant, and only where its quote names the field.
    """
    used: Used = {(span.source, span.start) for span in filled.spans if span.field not in filled.guessed}
    used.update((span.source, span.start) for span in elsewhere or ())
    open_before = [shape for shape in task.shape.fields if not filled.has(shape) or shape.name in filled.guessed]
    put: list[tuple[FieldShape, QuotedValue, Proven]] = []
    for shape, value in _in_turn(task, claimed):
        if filled.has(shape) and shape.name not in filled.guessed:
            continue
        if value.remembered and (filled.guessed or not shape.is_required):
            # A guess is no ground for another, and for a field that may be left out leaving it out says enough.
            continue
        proven = sources.prove(task, shape, value, used)
        if proven is None or (isinstance(proven, Proven) and _is_no_value(filled, task, shape, proven)):
            log.info("llm_value_dropped", agent=task.offer.agent.agent_id, task=task.offer.task.name)
        elif isinstance(proven, Doubt):
            filled.doubt(proven)
        else:
            _put(filled, shape, proven, used)
            if not value.remembered and not value.earlier:
                put.append((shape, value, proven))
    _drop_taken_guesses(filled)
    if elsewhere is not None:
        return {shape.name for shape, value, proven in put if not _is_named(task, shape, value, proven, sources)}
    return {
        shape.name
        for shape, value, proven in put
        if not _is_sure(task, shape, value, proven, open_before, sources, used)
    }


def _in_turn(task: Prepared, claimed: Sequence[QuotedValue]) -> Iterator[tuple[FieldShape, QuotedValue]]:
    """Yield the claims about fields of *task*: of what was said before what is remembered, whatever their order."""
    for value in sorted(claimed[: _MOST_CLAIMS * len(task.shape.fields)], key=lambda value: value.remembered):
        shape = task.shape.field(value.field)
        if shape is not None:
            yield shape, value


def _is_no_value(filled: Filled, task: Prepared, field: FieldShape, proven: Proven) -> bool:
    """Return whether the words that are *proven* for *field* belong to another one, or only say which task is meant."""
    return is_taken(filled, task, field, proven) or is_only_the_wish(task, field, proven)


def _put(filled: Filled, field: FieldShape, proven: Proven, used: Used) -> None:
    filled.values[field.name] = proven.value
    filled.guessed.discard(field.name)
    filled.spans = [span for span in filled.spans if span.field != field.name] + list(proven.spans)
    used.update((span.source, span.start) for span in proven.spans)


def _is_sure(
    task: Prepared,
    field: FieldShape,
    claimed: QuotedValue,
    proven: Proven,
    open_before: Sequence[FieldShape],
    sources: Sources,
    used: Used,
) -> bool:
    """Return whether more than the model's word says that *proven* is the value of *field*."""
    scene = sources.text.scene
    if proven.value == [] and field.is_list:
        return not amounts_left(field, scene, used)
    if not field.is_numeric:
        return is_only_home(task, field, claimed.quote, proven, open_before)
    return is_announced(task, field, claimed.quote, proven, scene) or is_only_choice(field, open_before, scene, used)


def _is_named(task: Prepared, field: FieldShape, claimed: QuotedValue, proven: Proven, sources: Sources) -> bool:
    return field.is_numeric and is_announced(task, field, claimed.quote, proven, sources.text.scene)


def _drop_taken_guesses(filled: Filled) -> None:
    """Take a guessed value back whose amount was proven to be another field's."""
    proven = {(span.source, span.start) for span in filled.spans if span.field not in filled.guessed}
    for name in list(filled.guessed):
        if any(span.field == name and (span.source, span.start) in proven for span in filled.spans):
            filled.drop(name)
