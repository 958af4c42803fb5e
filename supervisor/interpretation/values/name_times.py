"""Names without the days behind them that another field holds: "oslo *this friday*", "Bern *today and tomorrow*"."""

import re
from collections.abc import Sequence

from contracts.times import stretches
from supervisor.interpretation.outcome import Span
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.plain_values import is_free
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.wishes.routing import Prepared

_TIMED = frozenset({"date", "moment", "when"})
#: Days, each of which stands as a digit, and what joins them.
_ONLY_DAYS = re.compile(
    r"0(?:\s*(?:[,&/-]|\b(?:and|or|plus|then|also|to|until|till|through|coming|going|back|return(?:ing)?)\b\s*)*\s*(?:\b(?:on|at|in|by|the|this|next)\s+)*0)*(?:\s+(?:and|back|coming|returning|return|on|at)\b)*[\s.,!?]*",
    re.IGNORECASE,
)
_LEAD = re.compile(r"[\s,]+(?:(?:on|at|by|in|for|and|this|coming|next|early|late|from|between)\s+)*$", re.IGNORECASE)
#: Days that are titles with the word before them.
_IN_TITLE = re.compile(
    r"(?:^|\s)(?:black|good|freaky|ash|holy|easter|palm|super|cyber|boxing|casual|bloody|ruby|manic|blue|fat|shrove"
    r"|maundy|stormy|the|after|my|our|of|every)\s+$",
    re.IGNORECASE,
)
#: Characters of a name and the days behind it.
_LONGEST = 160


def cut_days(scene: Scene, task: Prepared, filled: Filled) -> None:
    """Take off each name the days at its end, one of which another field was filled with."""
    timed = {shape.name for shape in task.shape.fields if shape.kind in _TIMED}
    days = [span for span in filled.spans if span.field in timed and span.turn_id is None]
    for shape in task.shape.fields if days else ():
        said = filled.values.get(shape.name)
        span = next((one for one in filled.spans if one.field == shape.name), None)
        if shape.kind != "text" or span is None or not isinstance(said, str) or is_free(shape):
            continue
        if said != scene.text[span.start : span.end] or any(one.start <= span.start < one.end for one in scene.quoted):
            continue
        end = _before_days(scene.text, span, days, scene.times)
        if end is not None and end > span.start:
            filled.spans.remove(span)
            filled.point(shape.name, span.start, end, scene.text)
            filled.values[shape.name] = scene.text[span.start : end]


def _before_days(text: str, span: Span, days: list[Span], times: Sequence[tuple[int, int]]) -> int | None:
    """Return where the name at *span* ends before *days* that lie in it, or other *times*; None for "freaky friday".

    A day that no field took is none where capitals make it a part of the name: "TGI Friday".
    """
    taken = [one.start for one in days]
    said = [start for start, _ in times if start in taken or text[start].islower() or text[start - 1 : start] != " "]
    start = min((one for one in (*taken, *said) if span.start < one < span.end), default=None)
    if start is None or span.end - span.start > _LONGEST or _IN_TITLE.search(text, span.start, start) is not None:
        return None
    if _ONLY_DAYS.fullmatch(_told_as_digits(text[start : span.end])) is None:
        return None
    match = _LEAD.search(text, span.start, start)
    return match.start() if match else None


def _told_as_digits(text: str) -> str:
    end, parts = 0, []
    for first, last in stretches(text):
        parts += [text[end:first], "0"]
        end = last
    return "".join([*parts, text[end:]])
