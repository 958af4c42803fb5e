"""Several days or times where a task has room for one: "on Friday and Saturday" is a task each.

A moment is never part of a longer name, so what joins two of them asks for both; what has no joint is asked about.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from supervisor.understanding.outcome import Ambiguous, Missing, Single, Span, Understood
from supervisor.interpretation.questions import ask_which_value
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.name_times import NUMBERS_BEFORE
from supervisor.interpretation.values.scene import Scene, scene_of
from supervisor.interpretation.values.times import ask_instead, said_for
from supervisor.interpretation.wishes.routing import Prepared

_JOINT = re.compile(
    r"\s*(?:[,;&+/]|\b(?:and|plus|as well as|then|also)\b)(?:\s*(?:[,&]|\b(?:and|also|then|again|too)\b))*"
    r"(?:\s*\b(?:on|at|in|for|by|the|this|next|around|about)\b)*\s*",
    re.IGNORECASE,
)
#: "Between Friday and Sunday" is one stretch of time.
_BETWEEN = re.compile(r"\b(?:between|from)\s+(?:the\s+|on\s+)?$", re.IGNORECASE)
#: Characters before a day that may say so.
_REACH = 24
_NUMBER = re.compile(r"\b(?:[12]?\d|3[01])(?:st|nd|rd|th)?\b", re.IGNORECASE)
_NUMBERS_BEHIND = re.compile(
    r"(?:\s*(?:,|,?\s*\band\b|&|\+|/)\s*(?:(?:on|the)\s+){0,2}(?:[12]?\d|3[01])(?:(?:st|nd|rd|th)\b|(?=\s*(?:[.,;!?]|and\b|&|$)))){1,4}",
    re.IGNORECASE,
)
#: The day after another, which has no name of its own.
_DAY_AFTER = re.compile(r"\bthe\s+(?:(?:next|following)\s+day|day\s+after)\b", re.IGNORECASE)
#: Characters of a day in ISO 8601, and what follows where no time was said.
_DAY, _NO_TIME = 10, "T00:00:00"
#: Days of one list: more is no sentence.
_MOST = 16
#: A reading of a task, of which the parameters are known in part at least.
Known = Understood | Missing | Ambiguous


class Said(NamedTuple):
    """A day or time of the sentence; more than one of *values* means that it has two readings."""

    values: tuple[str, ...]
    start: int
    end: int


def for_each_day(found: Known, scene: Scene, task: Prepared) -> list[Single]:
    """Return *found*, of *task* and read from *scene*, for each day or time that it says for one; mostly as it is."""
    here = [span for span in found.spans if span.source is None]
    if not any(_is_timed(task, span) for span in here):
        return [found]
    for span in here:
        shape = task.shape.field(span.field)
        if shape is None or not _is_timed(task, span) or span.field not in _values(found):
            continue
        if not _may_be_several(scene, span):
            continue
        others = [one for one in here if one.field != span.field and not _is_beside(task.shape.field(one.field), shape)]
        told = tuple(map(Said._make, said_for(scene, shape)))
        numbers = (one for one in _numbers_beside(scene, shape, span, told) if not _is_among(one, told))
        said = [
            one
            for one in sorted((*told, *numbers), key=_start)
            if not any(other.start < one.end and one.start < other.end for other in others)
        ]
        at = next((place for place, one in enumerate(said) if one.start == span.start), None)
        if at is None or len({one.values for one in said}) < 2:
            continue
        first, last = _joined(scene.text, said, at)
        members = list({one.values: one for one in said[first : last + 1]}.values())
        if len(said) > last + 1 - first or not 1 < len(members) <= _MOST:
            # "Today I want a flight on Friday": what is said before all else says when it was said.
            begin = min((other.start for other in others), default=span.start)
            members = list({one.values: one for one in said if one.start >= min(begin, span.start)}.values())
            return [_asking(found, shape, members, scene.text)] if len(members) > 1 else [found]
        is_stretch = _BETWEEN.search(scene.text, max(members[0].start - _REACH, 0), members[0].start)
        if is_stretch or any(len(one.values) != 1 for one in members):
            return [_asking(found, shape, members, scene.text)]
        return [_on(found, scene, task, span, one) for one in _at_last_time(members)]
    return [found]


def _is_among(said: Said, others: Sequence[Said]) -> bool:
    return any(other.start < said.end and said.start < other.end for other in others)


def _start(said: Said) -> int:
    return said.start


def _may_be_several(scene: Scene, span: Span) -> bool:
    """Return whether another day may be told beside the one at *span*: a cheap first look."""
    if scene.impossible or _DAY_AFTER.search(scene.text, span.end) is not None:
        return True
    if len(scene.times) > 1 or any(start < span.start or span.end < end for start, end in scene.times):
        return True
    return NUMBERS_BEFORE.search(scene.text, 0, span.start) is not None or (
        _NUMBERS_BEHIND.match(scene.text, span.end) is not None
    )


def _numbers_beside(scene: Scene, shape: FieldShape, span: Span, told: Sequence[Said]) -> Iterator[Said]:
    """Yield the 27th of "on 27 and 28 November" and the 28th of "the 27th and the 28th": days without a month."""
    if len(_NUMBER.findall(span.text)) != 1:
        return
    here = next((one.values for one in told if one.start == span.start), ())
    alone = [values for values, _, _ in said_for(scene_of(f"on {span.text}", now=scene.now), shape)]
    before = NUMBERS_BEFORE.search(scene.text, max(span.start - _REACH, 0), span.start)
    behind = _NUMBERS_BEHIND.match(scene.text, span.end)
    for match in (before, behind):
        for number in _NUMBER.finditer(scene.text, *match.span()) if match else ():
            if alone != [here] and len(here) == 1:
                # its month is the one said further on: "the 27th, 28 and 30th of January"
                day = int(number.group().rstrip("stndrhSTNDRH"))
                yield Said((f"{here[0][:8]}{day:02}{here[0][10:]}",), *number.span())
                continue
            text = _NUMBER.sub(number.group(), f"on {span.text}")
            told_of = said_for(scene_of(text, now=scene.now), shape)
            if len(told_of) == 1:
                yield Said(told_of[0][0], *number.span())


def _is_timed(task: Prepared, span: Span) -> bool:
    shape = task.shape.field(span.field)
    return shape is not None and shape.is_timed and not shape.is_list


def _is_beside(other: FieldShape | None, shape: FieldShape) -> bool:
    """True for the time of day beside a day: both may be told by one moment."""
    return other is not None and other.is_timed and other.kind != shape.kind


def _joined(text: str, said: Sequence[Said], at: int) -> tuple[int, int]:
    """Return the first and the last of *said* that are joined to the one *at*."""
    first = last = at
    while first > 0 and _JOINT.fullmatch(text, said[first - 1].end, said[first].start):
        first -= 1
    while last + 1 < len(said) and _JOINT.fullmatch(text, said[last].end, said[last + 1].start):
        last += 1
    return first, last


def _at_last_time(members: Sequence[Said]) -> list[Said]:
    """Return *members*, days without a time at the one that the last says: "on friday and saturday at 9am"."""
    last = members[-1].values[0]
    time = last[_DAY:]
    is_timed = "T" in time and not time.endswith(("Z", _NO_TIME)) and "+" not in time and "-" not in time
    if not is_timed or any(one.values[0][_DAY:] not in {"", _NO_TIME} for one in members[:-1]):
        return list(members)
    return [one._replace(values=(one.values[0][:_DAY] + time,)) for one in members]


def _on(found: Known, scene: Scene, task: Prepared, span: Span, said: Said) -> Known:
    """Return *found* with the day or time *said* for the one at *span*, and what else the same moment tells."""
    values, spans = _values(found), found.spans
    for shape in task.shape.fields:
        own = next((one for one in found.spans if one.field == shape.name and one.source is None), None)
        if own is None or not shape.is_timed or own.start != span.start:
            continue
        told = said if shape.name == span.field else _at(said, scene, shape)
        if told is None or len(told.values) != 1:
            continue
        values = {**values, shape.name: told.values[0]}
        moved = replace(own, start=told.start, end=told.end, text=scene.text[told.start : told.end])
        spans = tuple(moved if one is own else one for one in spans)
    if isinstance(found, Understood):
        return replace(found, task=found.task.model_copy(update={"parameters": values}), spans=spans)
    return replace(found, known=values, spans=spans)


def _at(said: Said, scene: Scene, shape: FieldShape) -> Said | None:
    return next((one for one in map(Said._make, said_for(scene, shape)) if one.start == said.start), None)


def _asking(found: Known, shape: FieldShape, members: Sequence[Said], text: str) -> Single:
    """Return *found* without the day, as the question which of *members* is meant."""
    values = {name: value for name, value in _values(found).items() if name != shape.name}
    spans = tuple(span for span in found.spans if span.field != shape.name)
    wrong = next((one for one in members if not one.values), None)
    if wrong is None:
        question = ask_which_value(shape, list(dict.fromkeys(value for one in members for value in one.values)))
    else:
        question = ask_instead(shape, text[wrong.start : wrong.end])
    if isinstance(found, Understood):
        return Ambiguous(question, found.agent_id, found.task.name, values, (shape.name,), spans)
    missing = (*found.missing, shape.name)
    return replace(found, question=f"{question} {found.question}", known=values, missing=missing, spans=spans)


def _values(found: Known) -> dict[str, object]:
    return dict(found.task.parameters if isinstance(found, Understood) else found.known)
