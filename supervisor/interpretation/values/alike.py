"""Texts held against the looks of their field: what is unlike its examples is asked for, unless it is quoted."""

import re
from dataclasses import replace

from supervisor.interpretation.questions import ask_for
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.looks import looks_of, resembles
from supervisor.interpretation.values.plain_values import Reading
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.values.worth import Doubt

#: "Flight number LH 12".
_HEAD = re.compile(r"(?:number|no\.?|nr\.?|code|id|ref(?:erence)?)\s*[:#]?\s*(?=\w)", re.IGNORECASE)
#: Behind a code something else begins.
_TAIL = re.compile(r",?\s+(?:with|for|on|at|of|from|to|in|by|under|via|is|was|has|which|that|please)\b", re.IGNORECASE)
#: Of several nobody knows which is meant.
_OR = re.compile(r"\b(?:or|not|no|instead|rather)\b", re.IGNORECASE)


def alike(readings: list[Reading], scene: Scene) -> list[Reading] | Doubt:
    """Return *readings* where each looks like the examples of its field, or stands in quotation marks.

    What was meant for the field and is unlike them, such as a code of another make, is asked about; what has neither a
    digit nor the signs of an address was not meant for it.
    """
    readings = [_trimmed(one, scene) for one in readings]
    unlike = [one for one in readings if not _may_be(one, scene)]
    if not unlike:
        return readings
    is_meant = any(letter.isdigit() or letter in "@/" for one in unlike for letter in one.value)
    return Doubt(unlike[0].field, ask_for([unlike[0].field])) if is_meant or len(readings) > 1 else []


def may_answer(field: FieldShape, text: str) -> bool:
    """Return whether *text* is an answer to the question for *field*: a number alone may stand for "LH 1023" then."""
    bare = text.strip(" .,!?")
    if resembles(field, bare):
        return True
    looks = looks_of(field) if field.pattern is None else None
    return looks is not None and looks.form is None and bare.isalnum() and any(map(str.isdigit, bare))


def _may_be(reading: Reading, scene: Scene) -> bool:
    is_quoted = any(one.start <= reading.start < one.end for one in scene.quoted)
    return is_quoted or not isinstance(reading.value, str) or resembles(reading.field, reading.value)


def _trimmed(reading: Reading, scene: Scene) -> Reading:
    """Return *reading* without words around what looks like the examples: "lh 12" of "number lh 12 with my sister"."""
    if _may_be(reading, scene):
        return reading
    head = _HEAD.match(reading.value)
    first = head.end() if head else 0
    tail = _TAIL.search(reading.value, first)
    end = tail.start() if tail else len(reading.value)
    code = reading.value[first:end]
    if not code or not resembles(reading.field, code) or _OR.search(reading.value, end):
        return reading
    return replace(reading, value=code, start=reading.start + first, end=reading.start + end)
