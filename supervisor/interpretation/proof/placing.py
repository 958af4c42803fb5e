"""Whether nothing but a model's word says which field an amount is for.

That an amount stands in the sentence is proven by its characters; whose it is, only by the words around it, or by there
being nothing else that it could be confused with. Where neither is so, the person is asked.
"""

from collections.abc import Sequence

from contracts.units import CURRENCIES
from supervisor.interpretation.proof.evidence import Proven, Used
from supervisor.interpretation.values.amounts import is_year
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.routing import Prepared
from supervisor.interpretation.words import tokens_of


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
