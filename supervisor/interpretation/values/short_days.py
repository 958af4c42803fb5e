"""Days told by the first letters of their names at the end of a text: "ghent fri-sun" is a city, and when."""

import re

from supervisor.interpretation.questions import ask_for, ask_which_value
from supervisor.interpretation.values.amounts import Doubt
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.plain_values import Reading
from supervisor.interpretation.values.said_names import cut_name, said_names
from supervisor.interpretation.values.scene import Scene, scene_of
from supervisor.interpretation.values.times import said_for
from supervisor.interpretation.wishes.routing import Prepared

SHORT_DAYS = frozenset({"mon", "tue", "tues", "wed", "thu", "thur", "thurs", "fri", "sat", "sun"})
_DAY = r"(?:mon|tues?|wed|thu(?:rs?)?|fri|sat|sun)"
_AT_END = re.compile(
    rf"(?:^|[\s,]+)(?:(?:on|from|this|next|between)\s+)*(?P<days>{_DAY}\b"
    rf"(?:\s*(?:[-\u2013/,&+]|\b(?:to|till|until|through|thru|and|or)\b)?\s*(?:on\s+)?\b{_DAY}\b){{0,6}})[\s.!?]*$",
    re.IGNORECASE,
)
_EACH = re.compile(rf"\b{_DAY}\b", re.IGNORECASE)
#: Words of their own, which may as well be what is asked about ("the sun in Ghent").
_OTHER_WORDS = frozenset({"sun", "sat"})
#: Characters of a name and the days behind it.
_LONGEST = 160


def take_short_days(scene: Scene, task: Prepared, filled: Filled) -> None:
    """Take such days off each name, and give them to the one field for a day, or ask about them."""
    fields = [shape for shape in task.shape.fields if shape.kind in {"date", "moment", "when"} and not shape.is_list]
    if len(fields) != 1:
        return
    told = next((one for one in filled.spans if one.field == fields[0].name), None)
    if told is None and filled.has(fields[0]):
        return
    for shape, span in said_names(scene, task, filled):
        match = _AT_END.search(span.text) if len(span.text) <= _LONGEST else None
        if match is None or _is_title(span.text, match):
            continue
        start, end = span.start + match.start("days"), span.start + match.end("days")
        others = () if told is None or start <= told.start < end else (filled.values[fields[0].name],)
        if others and _OTHER_WORDS.issuperset(_EACH.findall(match["days"])):
            # "the midnight sun on Friday"
            return
        cut_name(scene, shape, span, span.start + match.start(), filled)
        _tell(scene, fields[0], start, end, filled, others)
        return
    if told is not None:
        return
    match = _AT_END.search(scene.text, max(len(scene.text) - _LONGEST, 0))
    if match is None or "," not in match[0] or any(match.start("days") < span.end for span in filled.spans):
        return
    _tell(scene, fields[0], match.start("days"), match.end("days"), filled)


def _is_title(name: str, match: re.Match[str]) -> bool:
    """True for the "Sun" of "Midnight Sun" and a lone "Sun": in capitals one such word may be a name."""
    is_one = len(_EACH.findall(match["days"])) == 1
    return is_one and match["days"][0].isupper() and (not match.start() or name[0].isupper())


def _tell(
    scene: Scene, field: FieldShape, start: int, end: int, filled: Filled, others: tuple[object, ...] = ()
) -> None:
    """Fill *field* with the one day that is plainly told by the text from *start* to *end*; ask about more of them."""
    words = _EACH.findall(scene.text[start:end])
    values: list[object] = [*others]
    values += [
        value
        for word in words
        for told in said_for(scene_of(f"on {word}", now=scene.now), field)[:1]
        for value in told[0]
    ]
    if len(words) == 1 and len(values) == 1 and words[0].lower() not in _OTHER_WORDS:
        filled.put(Reading(field, values[0], start, end, is_sure=False), scene.text)
        return
    filled.doubt(Doubt(field, ask_which_value(field, values) if len(values) > 1 else ask_for([field])))
