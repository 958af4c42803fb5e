"""Names without the days behind them that another field holds: "oslo *this friday*", "Bern *today and tomorrow*"."""

import re
from collections.abc import Sequence

from quantities.times import stretches
from quantities.times.impossible import impossible_times
from quantities.times.words import MONTHS
from supervisor.understanding.outcome import Span
from supervisor.interpretation.values.fields import DATED
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.plain_values import is_free
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.values.times import asked_instead
from supervisor.interpretation.wishes.routing import Prepared

#: Days, each of which stands as a digit, and what joins them.
_ONLY_DAYS = re.compile(
    r"0(?:\s*(?:[,&/-]|\b(?:and|or|plus|then|also|to|until|till|through|coming|going|back|return(?:ing)?)\b\s*)*\s*(?:\b(?:on|at|in|by|the|this|next)\s+)*0)*"
    r"(?:\s*(?:,|,?\s*\band\b|&)\s*(?:(?:on|the)\s+){0,2}"
    r"(?:(?:[12]?\d|3[01])(?:st|nd|rd|th)?|(?:next|following)(?:\s+day)?|day\s+after(?:\s+that)?)\b)*"
    r"(?:\s+(?:and|back|coming|returning|return|on|at)\b)*[\s.,!?]*",
    re.IGNORECASE,
)
_LEAD = re.compile(r"[\s,]+(?:(?:on|at|by|in|for|and|this|coming|next|early|late|from|between)\s+)*$", re.IGNORECASE)
#: The "27 and" of "on 27 and 28 November", days that share the month behind them.
NUMBERS_BEFORE = re.compile(
    r"(?:\b(?:[12]?\d|3[01])(?:st|nd|rd|th)?\s*(?:,|,?\s*\band\b|&|\+|/)\s*(?:the\s+)?){1,4}$", re.IGNORECASE
)
#: Days that share the month behind them: "the 3rd, 4th and 5th of January".
DAYS_OF_MONTH = re.compile(
    r"\b\d{1,2}(?:st|nd|rd|th)(?:\s?(?:,|,?\s?\b(?:and|or)\b|&)\s?(?:(?:on|the)\s){0,2}\d{1,2}(?:st|nd|rd|th)?){1,8}"
    rf"\s(?:of\s)?(?:{'|'.join(MONTHS)})\b",
    re.IGNORECASE,
)
#: Without it a number belongs to the name: "District 9 and 28 November".
_ON = re.compile(r"\b(?:on|by|from|between)\s+(?:the\s+)?$", re.IGNORECASE)
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
    timed = {shape.name for shape in task.shape.fields if shape.kind in DATED}
    days = [span.start for span in filled.spans if span.field in timed and span.turn_id is None]
    days += [start for start, _ in asked_instead(scene, (doubt.field for doubt in filled.doubts))]
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


def _before_days(text: str, span: Span, taken: list[int], times: Sequence[tuple[int, int]]) -> int | None:
    """Return where the name at *span* ends before days that lie in it, or None for "freaky friday".

    They are those that start at one of *taken*, and other *times*. A day that no field took is none where capitals
    make it a part of the name: "TGI Friday".
    """
    said = [start for start, _ in times if start in taken or text[start].islower() or text[start - 1 : start] != " "]
    start = min((one for one in (*taken, *said) if span.start < one < span.end), default=None)
    if start is None or span.end - span.start > _LONGEST or _IN_TITLE.search(text, span.start, start) is not None:
        return None
    if not is_only_days(text[start : span.end]):
        return None
    shared = NUMBERS_BEFORE.search(text, span.start, start)
    if shared is not None and _ON.search(text, span.start, shared.start()) is not None:
        start = shared.start()
    match = _LEAD.search(text, span.start, start)
    return match.start() if match else None


def is_only_days(text: str) -> bool:
    """True when *text*, behind an "on", is one day or time after another and nothing else."""
    return _ONLY_DAYS.fullmatch(_told_as_digits(f"on {text}")[3:]) is not None


def _told_as_digits(text: str) -> str:
    end, parts = 0, []
    wrong = [(one.start, one.end) for one in impossible_times(text)]
    for first, last in sorted((*stretches(text), *wrong)):
        parts += [text[end:first], "0"]
        end = last
    return "".join([*parts, text[end:]])
