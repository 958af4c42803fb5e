"""Marks out of so many in one piece: the 4 and the 6 of "4/6", which elsewhere are two thirds."""

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal

from supervisor.interpretation.values.fields import FieldShape, Side
from supervisor.interpretation.values.plain_values import Reading
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.values.worth import is_allowed

_SLASHED = re.compile(r"(?<![\w/.,-])(\d{1,4})\s?/\s?(\d{1,4})(?![\w/-]|[.,]\d)")
_OUT_OF = ("out", "of")


def marks_in(scene: Scene, fields: Sequence[FieldShape]) -> Iterator[Reading]:
    """Yield what "4/6" says when a field is "{} out of", or can be at most 6, and of another one that is "out of {}".

    Nothing where there are several, or where a value would not be allowed.
    """
    matches = list(_SLASHED.finditer(scene.text)) if "/" in scene.text else []
    if len(matches) != 1:
        return
    match = matches[0]
    mark, most = Decimal(match.group(1)), Decimal(match.group(2))
    whole = [field for field in fields if field.kind in {"integer", "amount"} and not field.is_list and not field.unit]
    marked = [field for field in whole if _says_out_of(field, "left")] or [one for one in whole if one.most == most]
    if len(marked) != 1 or mark > most or not is_allowed(marked[0], mark):
        return
    yield Reading(marked[0], int(mark), match.start(1), match.end(1))
    best = [field for field in whole if _says_out_of(field, "right")]
    if len(best) == 1 and is_allowed(best[0], most):
        yield Reading(best[0], int(most), match.start(2), match.end(2))


def _says_out_of(field: FieldShape, side: Side) -> bool:
    return any(phrase.stems == _OUT_OF and phrase.side == side for phrase in field.phrases)
