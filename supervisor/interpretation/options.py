"""Answers that choose of what a question offered: which field an amount is for, which reading of a value is meant."""

import re
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from supervisor.interpretation.conclusions import conclude
from supervisor.interpretation.earlier_tasks.references import Past
from supervisor.interpretation.inheriting import inherit
from supervisor.interpretation.open_questions import Pending, asked_again
from supervisor.understanding.outcome import Missing, Single, Unfitting
from supervisor.interpretation.picks import BESIDE, pick, pick_by_size, says_yes, words_in
from supervisor.interpretation.questions import amount_asked, ask_for, values_asked
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.filling import fill
from supervisor.interpretation.values.scene import Scene, scene_of
from supervisor.interpretation.values.times import said_for
from supervisor.interpretation.wishes.routing import Prepared
from supervisor.interpretation.words import STOP, word_set

#: Completes an open question by a sentence that says what it asked for.
Answer = Callable[[Scene, Pending], Single | None]

_BEFORE_NOON, _AFTER_NOON = word_set("am morning"), word_set("pm afternoon evening night tonight")
_NOON = "12"
#: Where the time begins in "2027-03-04T09:00:00", and its month.
_TIME, _MONTH = 11, 5
_YEAR = re.compile(r"\d{4}")
_CANONICAL = re.compile(r"-?\d+(?:\.\d+)?")


def chosen_in(scene: Scene, pending: Pending, answer: Answer) -> Single | None:
    """Return the task of *pending* with what *scene* chooses; None when nothing was offered, or it says something else.

    None of what was offered is asked for openly; what chooses nothing ("yes") is asked again.
    """
    past, task, asked = pending
    if (amount := amount_asked(past.turn, task.shape)) is not None:
        return _placed(scene, pending, *amount, answer)
    offered = [(field, values) for field in asked if (values := values_asked(past.turn, field))]
    if len(offered) == 1:
        return _settled(scene, pending, *offered[0])
    # "The limit", and no amount: what is known already stays so.
    is_name = _named_fields(scene, task, task.shape.fields) is not None
    said = fill(scene, task, asked) if is_name else None
    return asked_again(pending) if said is not None and not (said.values or said.doubts or said.loose) else None


# -- which field an amount is for ---------------------------------------------------------------------------------


def _placed(
    scene: Scene, pending: Pending, amount: str, fields: tuple[FieldShape, ...], answer: Answer
) -> Single | None:
    """Return what comes of the task once *amount* is for those of *fields* that *scene* names."""
    past, task, _ = pending
    places = pick(scene.text, len(fields))
    if places is None and not scene.items:
        places = _named_fields(scene, task, fields)
    if places is None:
        return asked_again(pending) if says_yes(scene.text) else None
    chosen = tuple(fields[place] for place in places)
    if not chosen:
        return _asked_openly(past, task, [field for field in fields if field.is_required] or fields)
    said = ", ".join(f"{field.label} {amount}" for field in chosen)
    found = answer(scene_of(said, decimal_mark=scene.decimal_mark, now=scene.now), (past, task, chosen))
    if found is None or isinstance(found, Unfitting):
        return asked_again(pending)
    # The words that choose are all that the sentence has of the value.
    text = scene.text
    spans = [one if one.source else replace(one, start=0, end=len(text), text=text) for one in found.spans]
    return replace(found, spans=tuple(spans))


def _named_fields(scene: Scene, task: Prepared, fields: Sequence[FieldShape]) -> tuple[int, ...] | None:
    """Return which of *fields* are named by *scene*, which says nothing else; of two, not the one that it denies."""
    cues = [cue for cue in task.cues.find(scene.tokens) if cue.field in fields]
    cued = {place for cue in cues for place in range(cue.first, cue.end)}
    others = {one.text for place, one in enumerate(scene.tokens) if one.is_word and place not in cued}
    named = tuple(place for place, field in enumerate(fields) if any(cue.field is field for cue in cues))
    if not named or others - BESIDE - STOP:
        return None
    is_denied = "not" in others
    if not is_denied:
        return named
    return (1 - named[0],) if len(fields) == 2 and len(named) == 1 else None


# -- which reading of a value is meant ----------------------------------------------------------------------------


def _settled(scene: Scene, pending: Pending, field: FieldShape, written: tuple[str, ...]) -> Single | None:
    """Return the task with the one value of those *written* for *field* that *scene* means."""
    past, task, _ = pending
    values = [_read(scene, task, field, one) for one in written]
    if any(value is None for value in values):
        return None
    places = _meant(scene, field, written, values)
    if places is None:
        return asked_again(pending) if says_yes(scene.text) else None
    if not places:
        return _asked_openly(past, task, [field])
    if len(places) > 1 and not field.is_list:
        return asked_again(pending)
    chosen = [values[place] for place in places]
    filled = Filled(values={field.name: chosen if field.is_list else chosen[0]})
    filled.point(field.name, 0, len(scene.text), scene.text)
    inherit(filled, past, task, None)
    return conclude(task, filled)


def _read(scene: Scene, task: Prepared, field: FieldShape, written: str) -> Any:
    """Return what *written*, a value in a question of ours, is worth in *field*; None when that cannot be read back."""
    if field.kind == "text":
        return written
    if field.kind == "choice":
        return next((one for one in field.choices if str(one) == written), None)
    mark = "." if _CANONICAL.fullmatch(written) else scene.decimal_mark
    said = scene_of(f"{field.label} {written}", decimal_mark=mark, now=scene.now)
    value = fill(said, task, [field]).values.get(field.name)
    return value[0] if isinstance(value, list) and len(value) == 1 else value


def _meant(scene: Scene, field: FieldShape, written: Sequence[str], values: Sequence[Any]) -> tuple[int, ...] | None:
    if (named := _named_values(scene.text, written)) is not None:
        return named
    if (places := pick(scene.text, len(written))) is not None:
        return places
    place = None
    if field.is_numeric or field.is_timed:
        place = pick_by_size(scene.text, values)
    if place is None and field.is_timed:
        place = _by_part_of_moment(scene, field, values)
    return None if place is None else (place,)


def _named_values(text: str, written: Sequence[str]) -> tuple[int, ...] | None:
    """Return the one of *written* that stands in *text* with nothing else; of two, the other than "not 1500"."""
    found = [
        (place, match)
        for place, one in enumerate(written)
        if (match := re.search(rf"(?<![\w.,]){re.escape(one)}(?![\w]|[.,]\d)", text, re.IGNORECASE))
    ]
    if len(found) != 1:
        return None
    place, match = found[0]
    others = words_in(text[: match.start()] + " " + text[match.end() :])
    if set(others) - BESIDE - STOP:
        return None
    if "not" not in others:
        return (place,)
    return (1 - place,) if len(written) == 2 else None


def _by_part_of_moment(scene: Scene, field: FieldShape, values: Sequence[str]) -> int | None:
    """Return which of *values* has the day or the time that *scene* tells: "March 4", "the evening", "9pm"."""
    if (place := _by_half_of_day(scene.text, values)) is not None:
        return place
    said = [one for one, _, _ in said_for(scene, field)]
    if len(said) != 1 or field.kind == "time":
        return None
    has_year = _YEAR.search(scene.text) is not None
    fitting = [
        place for place, value in enumerate(values) if any(_is_part(one, value, has_year=has_year) for one in said[0])
    ]
    return fitting[0] if len(fitting) == 1 else None


def _by_half_of_day(text: str, values: Sequence[str]) -> int | None:
    words = set(words_in(text)) - BESIDE - STOP
    times = [value.rpartition("T")[2] for value in values]
    fitting = [place for place, time in enumerate(times) if words <= (_BEFORE_NOON if time < _NOON else _AFTER_NOON)]
    return fitting[0] if words and len(fitting) == 1 and all(":" in time for time in times) else None


def _is_part(said: str, value: str, *, has_year: bool) -> bool:
    """True for the day of *value* without its time, and for its time on another day."""
    is_day = said[_TIME:].strip("0:") == ""
    first = 0 if has_year else _MONTH
    return said[first:10] == value[first:10] if is_day else said[_TIME:] == value[_TIME:]


def _asked_openly(past: Past, task: Prepared, fields: Sequence[FieldShape]) -> Missing:
    """Return the question for *fields*, and whatever else lacks, without the values that were offered."""
    known = past.call.parameters
    wanted = [one for one in task.shape.fields if one in fields or (one.is_required and one.name not in known)]
    names = tuple(one.name for one in wanted)
    return Missing(past.offer.agent.agent_id, past.call.name, known, names, ask_for(wanted))
