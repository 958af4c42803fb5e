"""Months behind the name of a place where a task takes a day: "Lima in May" is a city, and no single day."""

import re

from quantities.times.words import MONTHS
from supervisor.interpretation.questions import ask_for
from supervisor.interpretation.values.amounts import Doubt
from supervisor.interpretation.values.fields import DATED
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.said_names import cut_name, said_names
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.routing import Prepared

_IN_MONTH = re.compile(
    rf"[\s,]+(?P<month>(?:in|during)\s+(?:(?:early|late|mid|next|this|the|month|of)\s+)*(?:{'|'.join(MONTHS)})"
    r"(?:\s+\d{4})?)[\s.!?]*$",
    re.IGNORECASE,
)
#: Before a place; "the film April in May" has no such word.
_TO_PLACE = re.compile(r"\b(?:in|for|at|to|from|near|around)\s+$", re.IGNORECASE)
#: Characters of a name and the month behind it, and of the word before them.
_LONGEST, _LONGEST_LEAD = 160, 12


def cut_months(scene: Scene, task: Prepared, filled: Filled) -> None:
    """Take the month off each such name, and ask for the day that it is not."""
    fields = [shape for shape in task.shape.fields if shape.kind in DATED and not filled.has(shape)]
    if len(fields) != 1:
        return
    for shape, span in tuple(said_names(scene, task, filled)):
        match = _IN_MONTH.search(span.text) if len(span.text) <= _LONGEST and " " in span.text else None
        if match is None or not _TO_PLACE.search(scene.text, max(span.start - _LONGEST_LEAD, 0), span.start):
            continue
        cut_name(scene, shape, span, span.start + match.start(), filled)
        filled.doubt(Doubt(fields[0], f"{match['month']!r} is no single day. {ask_for(fields)}"))
        return
