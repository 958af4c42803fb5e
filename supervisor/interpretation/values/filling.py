"""The fields of one task filled from one sentence, with what each value rests on and what is in doubt."""

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from quantities.units import CURRENCIES
from supervisor.interpretation.questions import ask_for, ask_in_currency, ask_which_value
from supervisor.interpretation.values.absence import nothing_said
from supervisor.interpretation.values.alike import alike, may_answer
from supervisor.interpretation.values.amounts import (
    Claim,
    Doubt,
    claim_amounts,
    is_allowed,
    is_year,
    value_in,
)
from supervisor.interpretation.values.counting import with_people
from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.examples import patterned
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.leaving_and_joining import is_changed
from supervisor.interpretation.values.listed_texts import items_at, listed_text
from supervisor.interpretation.values.loose import asked_for, by_elimination, by_type
from supervisor.interpretation.values.marks import marks_in
from supervisor.interpretation.values.message_times import cut_times, is_time_of, leaves_day_out
from supervisor.interpretation.values.name_months import cut_months
from supervisor.interpretation.values.name_times import cut_days
from supervisor.interpretation.values.naming import numbered
from supervisor.interpretation.values.owned import is_whoever
from supervisor.interpretation.values.plain_values import (
    Reading,
    chosen,
    switched,
    switched_off,
    trailing,
    worded,
)
from supervisor.interpretation.values.rivals import settle_rivals
from supervisor.interpretation.values.said_names import doubt_names
from supervisor.interpretation.values.scene import Item, Scene
from supervisor.interpretation.values.short_days import take_short_days
from supervisor.interpretation.values.text_ends import before_amount
from supervisor.interpretation.values.times import dated
from supervisor.interpretation.values.unread import doubts_about_more_people, doubts_about_unread
from supervisor.interpretation.wishes.routing import Prepared

__all__ = ["Filled", "fill"]

#: Said to a question for a text, these are no text.
_NO_ANSWER = re.compile(
    r"(?:what|who|when|where|why|how|which|is|are|can|could|do|does|will)\b.*\?$"
    r"|(?:i (?:do not|don't) know|dunno|no|none|nobody|nothing|not sure|no idea|why|what|huh)\b[\s,.!?a-z]{0,12}$",
    re.IGNORECASE | re.DOTALL,
)
#: Words that choose the task behind which its text is looked for.
_MOST_NAMES = 4


def fill(scene: Scene, task: Prepared, asked: Sequence[FieldShape] = ()) -> Filled:
    """Return what *scene* says about *task*; a value without any cue may fill a field that was *asked* for."""
    cues = task.cues.find(scene.tokens)
    filled = Filled(is_certain=not scene.is_corrected)
    counting = [shape for shape in task.shape.fields if shape.counts]
    is_uncounted = False
    if counting:
        scene, is_uncounted = with_people(scene)
    scene = _fill_named(scene, task, cues, filled)
    zeros = {item.start for item in scene.items if item.found.value == 0}
    for reading in switched_off(scene, cues):
        is_amount = reading.field.is_numeric and not reading.field.is_list and reading.start in zeros
        if not filled.has(reading.field) and not is_amount:
            filled.put(reading, scene.text)
    _fill_amounts(scene, task, cues, filled, asked)
    for reading in nothing_said(scene, cues):
        if not filled.has(reading.field) and is_allowed(reading.field, Decimal(0)):
            filled.put(reading, scene.text)
    for shape in counting:
        # A number that nothing announces is no answer to who comes, where somebody was named.
        is_open = is_uncounted and (not filled.has(shape) or shape.name in filled.guessed)
        if is_open or any(is_changed(scene.text, one.start) for one in filled.spans if one.field == shape.name):
            filled.doubt(Doubt(shape, ask_for([shape])))
    more_people = doubts_about_more_people(scene, cues, task.shape.fields, filled)
    for doubt in (*doubts_about_unread(scene, cues, filled), *more_people):
        filled.doubt(doubt)
    _fill_plain(scene, task, cues, filled, asked)
    # the "3 weeks" that a duration took is no amount left over
    taken = [span for span in filled.spans if span.start < span.end]
    filled.loose = [
        item for item in filled.loose if not any(span.start <= item.start and item.end <= span.end for span in taken)
    ]
    if filled.loose:
        filled.is_certain = False
    return filled


def _fill_named(scene: Scene, task: Prepared, cues: tuple[Cue, ...], filled: Filled) -> Scene:
    """Fill what is told by its looks ("ORD-5567", "#4711", "4/6"); return *scene* without the amounts in there."""
    fields = task.shape.fields
    for reading in (*patterned(scene, fields), *marks_in(scene, fields), *numbered(scene, cues)):
        if isinstance(reading, Doubt):
            filled.doubt(reading)
        elif not filled.has(reading.field):
            filled.put(reading, scene.text)
    if not filled.spans:
        return scene
    free = [item for item in scene.items if not any(a.start < item.end and item.start < a.end for a in filled.spans)]
    return scene.with_items(tuple(free))


# -- amounts ------------------------------------------------------------------------------------------------------


def _fill_amounts(
    scene: Scene, task: Prepared, cues: tuple[Cue, ...], filled: Filled, asked: Sequence[FieldShape]
) -> None:
    open_fields = tuple(shape for shape in task.shape.fields if shape.is_numeric and not filled.has(shape))
    claims, loose, distances = claim_amounts(scene, cues, open_fields)
    claims += asked_for(scene, _open_of(task, filled, claims), loose, asked)
    loose = _unclaimed(loose, claims)
    claims += by_type(_open_of(task, filled, claims), loose)
    loose = _unclaimed(loose, claims)
    claims += by_elimination(scene, task, _open_of(task, filled, claims), claims, loose, cues)
    loose = _unclaimed(loose, claims)
    _keep(scene, claims, filled)
    _doubt_currencies(claims, filled)
    settle_rivals(scene, cues, claims, loose, distances, filled)
    _empty_lists(scene, cues, open_fields, filled)
    filled.loose = [item for item in loose if not is_year(item, scene)]
    for claim in claims:
        if claim.distance is None:
            filled.guess(claim.field.name)


def _keep(scene: Scene, claims: list[Claim], filled: Filled) -> None:
    for claim in sorted(claims, key=lambda claim: claim.item.start):
        shape, found = claim.field, claim.item.found
        value = value_in(shape, claim.item, scene)
        if isinstance(value, Doubt):
            filled.doubt(value)
            continue
        if shape.is_list:
            filled.values.setdefault(shape.name, []).append(value)
        else:
            filled.values[shape.name] = value
        filled.point(shape.name, found.start, found.end, scene.text)
        if claim.item.base is not None and shape.kind != "percent":
            filled.point(shape.name, claim.item.base.start, claim.item.base.end, scene.text)
            filled.computed[shape.name] = f"{found.text} of {claim.item.base.text}"
        if not claim.item.is_exact:
            filled.is_certain = False
    for doubt in filled.doubts:
        filled.values.pop(doubt.field.name, None)


def _doubt_currencies(claims: list[Claim], filled: Filled) -> None:
    """Doubt what is said in another currency than the rest: a field without a unit would drop both of them."""
    first: str | None = None
    for claim in sorted(claims, key=lambda claim: claim.item.start):
        currency = claim.item.found.unit
        if claim.field.unit is not None or currency not in CURRENCIES:
            continue
        first = first or currency
        if currency != first:
            filled.doubt(Doubt(claim.field, ask_in_currency(claim.field, first)))


def _open_of(task: Prepared, filled: Filled, claims: list[Claim]) -> list[FieldShape]:
    claimed = {claim.field.name for claim in claims}
    return [s for s in task.shape.fields if s.is_numeric and s.name not in claimed and not filled.has(s)]


def _unclaimed(loose: list[Item], claims: list[Claim]) -> list[Item]:
    return [item for item in loose if not any(claim.item is item for claim in claims)]


def _empty_lists(scene: Scene, cues: tuple[Cue, ...], fields: tuple[FieldShape, ...], filled: Filled) -> None:
    """Read `[]` as the empty list of the field named just before it, or of the only list field."""
    for start in scene.empty_brackets:
        place = scene.index_at(start)
        lists = [shape for shape in fields if shape.is_list and not filled.has(shape)]
        named = [shape for shape in lists if any(c.field is shape and 0 <= place - c.end <= 2 for c in cues)]
        for shape in named or (lists if len(lists) == 1 else []):
            filled.put(Reading(shape, [], start, start + 2), scene.text)


# -- everything else ----------------------------------------------------------------------------------------------


def _fill_plain(
    scene: Scene, task: Prepared, cues: tuple[Cue, ...], filled: Filled, asked: Sequence[FieldShape]
) -> None:
    taken: set[int] = set()
    #: One moment tells a day and a time: each may take its own of it.
    shared: dict[str, set[int]] = {"date": set(), "time": set()}
    for shape in task.shape.fields:
        if shape.is_numeric or filled.has(shape):
            continue
        others = taken.union(
            *(starts for kind, starts in shared.items() if kind == shape.kind or shape.kind not in shared)
        )
        readings = _read_plain(scene, task, shape, cues, others, filled, is_asked=shape in asked)
        if isinstance(readings, Doubt):
            # its moment is nobody else's
            taken.update(others.difference(*shared.values()))
            filled.doubt(readings)
            continue
        _keep_plain(shape, readings, scene, filled)
        shared.get(shape.kind, taken).update(reading.start for reading in readings)
    _fill_last_text(scene, task, cues, filled, asked)
    cut_times(scene, task, cues, filled)
    cut_days(scene, task, filled)
    take_short_days(scene, task, filled)
    cut_months(scene, task, filled)
    doubt_names(scene, task, filled)
    if leaves_day_out(scene, task, filled):
        filled.is_certain = False


def _read_plain(
    scene: Scene,
    task: Prepared,
    shape: FieldShape,
    cues: tuple[Cue, ...],
    taken: set[int],
    filled: Filled,
    *,
    is_asked: bool,
) -> list[Reading] | Doubt:
    if shape.kind == "choice":
        return chosen(scene, shape, cues)
    if shape.kind == "boolean":
        reading = switched(scene, shape, cues, is_asked=is_asked)
        return [reading] if reading else []
    if shape.kind in {"date", "moment", "when", "time", "duration"}:
        return dated(scene, shape, taken, cues, scene.now)
    if shape.kind == "text" and not shape.is_list:
        reading = _without_amounts(worded(scene, shape, cues, taken), scene, filled)
        return alike([reading], scene) if reading and not is_time_of(reading, task) else []
    if shape.kind == "text":
        return alike(listed_text(scene, shape, cues, taken, task.names), scene)
    return []


def _without_amounts(reading: Reading | None, scene: Scene, filled: Filled) -> Reading | None:
    """Return *reading* without the amount of another field that follows its name ("send Anna 50 euros")."""
    if reading is None:
        return None
    starts = [
        span.start for span in filled.spans if reading.start <= span.start < reading.end and span.end > span.start
    ]
    end = before_amount(scene.text, reading.start, min(starts)) if starts else None
    if end is None and starts:
        # "Requiem for a Dream 4 stars"
        behind = [item.start for item in scene.items if item.start in starts and item.end == reading.end]
        end = reading.start + len(scene.text[reading.start : min(behind)].rstrip(" ,:(")) if behind else None
    if end is None or any(one.start == reading.start for one in scene.quoted):
        return reading
    return replace(reading, value=scene.text[reading.start : end], end=end) if end > reading.start else None


def _keep_plain(shape: FieldShape, readings: list[Reading], scene: Scene, filled: Filled) -> None:
    if not readings:
        return
    if shape.is_list:
        for reading in readings:
            filled.point(shape.name, reading.start, reading.end, scene.text)
        filled.values[shape.name] = [reading.value for reading in readings]
    elif len(readings) > 1:
        filled.doubt(Doubt(shape, ask_which_value(shape, [reading.value for reading in readings])))
    else:
        filled.put(readings[0], scene.text)


def _fill_last_text(
    scene: Scene, task: Prepared, cues: tuple[Cue, ...], filled: Filled, asked: Sequence[FieldShape]
) -> None:
    """Give the one text still needed what follows the words that chose the task, or a plain answer to its question."""
    needed = [s for s in task.shape.required if not filled.has(s) and (not asked or s in asked)]
    if len(needed) != 1 or needed[0].kind != "text":
        return
    if needed[0].is_list:
        if needed[0] in asked and not _NO_ANSWER.match(scene.text.strip()):
            _keep_plain(needed[0], items_at(scene, needed[0], 0, task.names), scene, filled)
        return
    if needed[0] in asked:
        text = scene.text.strip()
        start = scene.text.find(text)
        is_none = _NO_ANSWER.match(text) is not None or is_whoever(text)
        if text and not filled.values and not is_none and may_answer(needed[0], text):
            filled.put(Reading(needed[0], text, start, start + len(text)), scene.text)
        return
    after = [place for place, token in enumerate(scene.tokens) if token.stem in task.names]
    # "Rate Dune 4 stars": where nothing follows the last of these words, what follows the one before it.
    for place in reversed(after[-_MOST_NAMES:]):
        reading = _without_amounts(trailing(scene, needed[0], place, cues), scene, filled)
        if (
            place != after[-1]
            and reading is not None
            and any(reading.start <= scene.tokens[one].start < reading.end for one in after)
        ):
            return
        if reading is not None and alike([reading], scene) == [reading]:
            filled.put(reading, scene.text)
            return
