"""Whether nothing but a model's word says which field a value is for.

That a value stands in the sentence is proven by its characters; whose it is, only by the words around it, or by there
being nothing else that it could be confused with. Where neither is so, the person is asked.
"""

from collections.abc import Sequence

from quantities.units import CURRENCIES
from supervisor.understanding.outcome import Span
from supervisor.interpretation.proof.evidence import Proven, Used
from supervisor.interpretation.values.amounts import is_year
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.routing import Prepared
from supervisor.interpretation.words import STOP, stems_of, tokens_of


def is_announced(task: Prepared, field: FieldShape, quote: str, proven: Proven, scene: Scene) -> bool:
    """Return whether the words of *quote* name *field* and no other, around *proven* and no other amount."""
    named = {cue.field.name for cue in task.cues.find(tokens_of(quote))}
    start = scene.text.find(quote)
    within = [item for item in scene.items if start <= item.found.start and item.found.end <= start + len(quote)]
    return named == {field.name} and len(within) == len(proven.spans)


def is_only_choice(field: FieldShape, open_before: Sequence[FieldShape], scene: Scene, used: Used) -> bool:
    """Return whether only *field* of *open_before* is needed, and no amount of the sentence is left but those *used*.

    A field that may be left out is never the only choice: leaving it out says enough.
    """
    needed = [shape for shape in open_before if shape.is_required and shape.is_numeric]
    return needed == [field] and not amounts_left(field, scene, used)


def amounts_left(field: FieldShape, scene: Scene, used: Used) -> bool:
    """Return whether the sentence has an amount that could be meant for *field*, but those *used*."""
    return any(
        (None, item.found.start) not in used
        and not is_year(item, scene)
        and (item.found.unit is None or item.found.unit in CURRENCIES or item.found.unit == field.unit)
        for item in scene.items
    )


def is_only_home(
    task: Prepared, field: FieldShape, quote: str, proven: Proven, open_before: Sequence[FieldShape]
) -> bool:
    """Return whether words or a choice, *proven*, can be meant for *field* alone of *open_before*.

    Who pays and who is paid are both names: that each was said does not show which is which. A field that may be left
    out has to be named in *quote*, as leaving it out says enough.
    """
    rivals = [shape for shape in open_before if shape is not field and _may_hold(shape, proven)]
    if field.is_required:
        return not any(shape.is_required for shape in rivals)
    return not rivals and {cue.field.name for cue in task.cues.find(tokens_of(quote))} == {field.name}


def is_taken(filled: Filled, task: Prepared, field: FieldShape, proven: Proven) -> bool:
    """Return whether words that are *proven* for *field* are another field's words already."""
    if field.kind != "text":
        return False
    texts = {shape.name for shape in task.shape.fields if shape.kind == "text"}
    theirs = [span for span in filled.spans if span.field != field.name and span.field not in filled.guessed]
    return any(_is_theirs(own, one, one.field in texts) for one in theirs for own in proven.spans)


def is_only_the_wish(task: Prepared, field: FieldShape, proven: Proven) -> bool:
    """Return whether words that are *proven* for *field* say nothing but which task is meant: "flight" is no place."""
    if field.kind != "text":
        return False
    wish = {stem for name in (task.offer.task.name, *task.offer.agent.keywords) for stem in stems_of(name)}
    said = [tokens_of(span.text) for span in proven.spans]
    return any(all(token.stem in wish or token.text in STOP for token in tokens) for tokens in said)


def _may_hold(field: FieldShape, proven: Proven) -> bool:
    values = proven.value if isinstance(proven.value, list) else [proven.value]
    if field.kind == "choice":
        return all(value in field.choices for value in values)
    return field.kind == "text" and all(isinstance(value, str) for value in values)


def _is_theirs(own: Span, other: Span, is_text: bool) -> bool:
    """Return whether *own* are words of *other*: a text may hold the hour that is another field's, but not be it."""
    if own.source != other.source:
        return False
    is_within = other.start <= own.start and own.end <= other.end
    return is_within or (is_text and own.start < other.end and other.start < own.end)
