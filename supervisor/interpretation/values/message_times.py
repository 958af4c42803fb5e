"""Times beside texts: a message without the time that another field holds, and what is a time and no name."""

from contracts.times import stretches
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.plain_values import Reading, is_free
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.values.text_ends import without_lead
from supervisor.interpretation.wishes.routing import Prepared


def cut_times(scene: Scene, task: Prepared, filled: Filled) -> None:
    """Take off a message the time at its end that another field holds: "call mum *tomorrow*", to be reminded then."""
    timed = {shape.name for shape in task.shape.fields if shape.kind in {"date", "moment", "when"}}
    times = [span for span in filled.spans if span.field in timed and span.turn_id is None]
    for shape in task.shape.fields if times else ():
        said = filled.values.get(shape.name)
        span = next((one for one in filled.spans if one.field == shape.name), None)
        if span is None or not isinstance(said, str) or said != scene.text[span.start : span.end] or not is_free(shape):
            continue
        ends = [one.start for one in times if span.start < one.start and one.end == span.end]
        end = without_lead(scene.text, span.start, min(ends)) if ends else None
        if end is not None and end > span.start and not any(one.start <= span.start < one.end for one in scene.quoted):
            filled.spans.remove(span)
            filled.point(shape.name, span.start, end, scene.text)
            filled.values[shape.name] = scene.text[span.start : end]


def is_time_of(reading: Reading, task: Prepared) -> bool:
    """True for the "8pm" of "at 8pm", which is no name where *task* has a field for it."""
    is_timed = any(shape.kind in {"date", "moment", "when", "time"} for shape in task.shape.fields)
    text = reading.value
    return is_timed and isinstance(text, str) and text[:1].isdigit() and stretches(text) == ((0, len(text)),)
