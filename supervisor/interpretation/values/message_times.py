"""Times beside texts: a message without the time that other fields hold, and what is a time and no name."""

import re
from collections.abc import Iterator
from datetime import UTC, datetime

from quantities.times import find_moments, stretches
from supervisor.understanding.outcome import Span
from supervisor.interpretation.questions import ask_for
from supervisor.interpretation.values.amounts import Doubt
from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.fields import DATED, TIMED, FieldShape
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.name_times import is_only_days
from supervisor.interpretation.values.plain_values import Reading, is_free, worded
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.values.text_ends import without_lead
from supervisor.interpretation.values.times import asked_instead
from supervisor.interpretation.wishes.routing import Prepared

#: Kinds that hold the time of day of what was said.
_HOURS = TIMED - {"date"}
#: "At 5" may be in the morning or in the afternoon; "at 5 Main Street" is a place.
_BARE_HOUR = re.compile(r"\s*(?:1?\d|2[0-4])(?=\s*(?:[.,;!?]|$)|\s+(?:please|and|then|sharp|on|today|tonight)\b)")
#: Characters of days behind the first one of a message.
_MOST_DAYS = 120
_ANY_DAY = datetime(2020, 1, 1, tzinfo=UTC)


def cut_times(scene: Scene, task: Prepared, cues: tuple[Cue, ...], filled: Filled) -> None:
    """Take off a message the time at its end that other fields hold: "call mum *tomorrow*", to be reminded then.

    It goes only where all of it is held: of "tomorrow at 5pm" a day alone holds a part. What stands in quotation marks
    stays as it is, and so does "tickets for Friday", which says what is wanted.
    """
    for shape in task.shape.fields:
        span = _own_words(scene, shape, filled)
        if span is not None and _given_back(scene, shape, span, cues, filled):
            span = _own_words(scene, shape, filled)
        held = [(one.start, one.end) for one in _held_whole(task, filled)]
        held += asked_instead(scene, (doubt.field for doubt in filled.doubts))
        starts = [start for start, end in held if span and _is_at_end(scene.text, span, start, end)]
        end = without_lead(scene.text, span.start, min(starts)) if span and starts else None
        if span is not None and end is not None and end > span.start:
            _put(shape, span.start, end, scene, filled)


def _is_at_end(text: str, span: Span, start: int, end: int) -> bool:
    """True for the time at *start* to *end* at the end of *span*, or before other days there ("friday and sunday")."""
    if not span.start < start < span.end:
        return False
    is_short = span.end - end <= _MOST_DAYS
    return span.end <= end or (is_short and is_only_days(text[start : span.end]))


def _own_words(scene: Scene, shape: FieldShape, filled: Filled) -> Span | None:
    """Return where the message of *shape* stands as it was said, None for another field or one in quotation marks."""
    said = filled.values.get(shape.name)
    span = next((one for one in filled.spans if one.field == shape.name), None)
    if span is None or not isinstance(said, str) or said != scene.text[span.start : span.end] or not is_free(shape):
        return None
    return None if any(one.start <= span.start < one.end for one in scene.quoted) else span


def _held_whole(task: Prepared, filled: Filled) -> Iterator[Span]:
    """Yield the spans of times whose day and time of day, as far as they say them, some field holds."""
    kinds = {shape.name: shape.kind for shape in task.shape.fields if shape.is_timed}
    times = [span for span in filled.spans if span.field in kinds and span.turn_id is None]
    for span in times:
        held = {kinds[one.field] for one in times if (one.start, one.end) == (span.start, span.end)}
        moment = next(iter(find_moments(span.text, _ANY_DAY)), None)
        has_hour = moment is not None and any(isinstance(reading, datetime) for reading in moment.readings)
        if (moment is None or not moment.has_day or held & DATED) and (not has_hour or held & _HOURS):
            yield span


def _given_back(scene: Scene, shape: FieldShape, span: Span, cues: tuple[Cue, ...], filled: Filled) -> bool:
    """Give the message what was cut off it for a time that was none ("at 5 Main Street"), or ask about "at 5"."""
    behind = [cue for cue in cues if cue.field.is_timed and scene.tokens[cue.first].start >= span.end]
    cue = behind[0] if behind else None
    if cue is None or filled.has(cue.field) or scene.text[span.end : scene.tokens[cue.first].start].strip(" ,"):
        return False
    if _BARE_HOUR.match(scene.text, scene.tokens[cue.end - 1].end):
        filled.doubt(Doubt(cue.field, ask_for([cue.field])))
        return False
    reading = worded(scene, shape, tuple(one for one in cues if one.field is not cue.field), set())
    if reading is None or reading.start != span.start or reading.end <= span.end:
        return False
    _put(shape, reading.start, reading.end, scene, filled)
    return True


def _put(shape: FieldShape, start: int, end: int, scene: Scene, filled: Filled) -> None:
    filled.spans = [span for span in filled.spans if span.field != shape.name]
    filled.point(shape.name, start, end, scene.text)
    filled.values[shape.name] = scene.text[start:end]


def leaves_day_out(scene: Scene, task: Prepared, filled: Filled) -> bool:
    """True where a time of day was told and a day beside it, for which *task* has no field and no text has room."""
    kinds = {shape.kind for shape in task.shape.fields if shape.name in filled.values}
    if "time" not in kinds or any(shape.kind in DATED for shape in task.shape.fields):
        return False
    return any(not any(span.start < end and start < span.end for span in filled.spans) for start, end in scene.times)


def is_time_of(reading: Reading, task: Prepared) -> bool:
    """True for the "8pm" of "at 8pm", which is no name where *task* has a field for it."""
    is_timed = any(shape.is_timed for shape in task.shape.fields)
    text = reading.value
    return is_timed and isinstance(text, str) and text[:1].isdigit() and stretches(text) == ((0, len(text)),)
