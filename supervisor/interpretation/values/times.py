"""Dates, times and durations of a sentence as the fields of a task take them; what has two readings is asked about."""

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from contracts.errors import InvalidAmount
from quantities.amounts import Duration
from quantities.amounts.duration import of_length
from quantities.amounts.moment import iso_text
from quantities.times import FoundMoment, find_durations
from quantities.times.calendar import Lean
from supervisor.interpretation.questions import ask_for, ask_which_value
from supervisor.interpretation.values.amounts import Doubt
from supervisor.interpretation.values.corrections import is_correction, is_denied, replaces
from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.fields import DATED, FieldShape
from supervisor.interpretation.values.plain_values import Reading
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.words import word_set

#: Characters between a cue and the date that it announces.
_REACH = 40
_PREPOSITION = re.compile(r"\b(?:on|at|by|for|in|the)\s$", re.IGNORECASE)
_LONGEST_PREPOSITION = 5
_OR = re.compile(r"\s*,?\s*or(?:\s+(?:on|at|in|by|maybe|even))?\s*", re.IGNORECASE)
#: A cue behind its date is less sure than one before it, and one across a comma less than both.
_BEHIND_STEP, _MARK_STEP = 0.5, 10.0
#: Which times are counted from now is the same on any day.
_ANY_DAY = datetime(2020, 1, 1, tzinfo=UTC)
#: Cues and dates of one sentence that are weighed, each against each: what has more is no sentence.
_MOST_CUES, _MOST_SAID = 64, 64
#: The time of another place right behind a time of day, of which the zone was not read.
_ELSEWHERE = re.compile(
    r"[\s,(]+(?:in\s+)?(?:the\s+)?(?:[A-Z][\w'-]*(?:\s[A-Z][\w'-]*){0,3}|their|his|her|your)\s[Tt]ime\b(?!\s+(?:off|out))"
)
#: Between a day and its time of day.
_BESIDE = re.compile(r"[\s,]*(?:\b(?:on|at|of|by|from|the|in)\s+)*", re.IGNORECASE)
_PAST = word_set(
    "was were did had spent paid bought went got made happened ate sold sent received ordered used worked visited took"
    " gave met drove flew stayed charged cost ended started began since"
)
_FUTURE = word_set(
    "will shall going gonna want wants need needs book plan planning schedule remind can could should would might"
    " deliver until by let's please won't i'll we'll"
)


class _Said(NamedTuple):
    """Values that some characters of the sentence can mean for one field; *has_months* when one counts months.

    *has_day* is False for a time of day alone. Without values there is no such day or time, or no such zone.
    """

    values: tuple[str, ...]
    start: int
    end: int
    has_months: bool = False
    has_day: bool = True

    def is_doubtful(self, field: FieldShape) -> bool:
        """True when *field* cannot take it: two readings or none, or months in a field of fixed lengths."""
        return len(self.values) != 1 or (self.has_months and not field.keeps_months)


def dated(
    scene: Scene, field: FieldShape, taken: set[int], cues: tuple[Cue, ...], now: datetime | None = None
) -> list[Reading] | Doubt:
    """Return the dates, times or durations that the sentence gives *field*, or the doubt to ask about.

    Values are absolute: "tomorrow" is told as the day after *now* (the moment of the call when it is not given, told
    in UTC), so that what is remembered is remembered of one day. What stands at one of *taken* is another field's; what
    is asked about is added to them.
    """
    said = _durations(scene, taken) if field.kind == "duration" else _moments(scene, field, now or datetime.now(UTC))
    said = _standing(scene.text, said, may_be_either=field.kind != "duration" and not field.is_list)
    free = [one for one in said if one.start not in taken]
    if field.is_list:
        doubtful = next((one for one in free if one.is_doubtful(field)), None)
        return _doubt(scene, field, doubtful) if doubtful else [_reading(field, one) for one in free]
    owners = _owners(scene, cues, free, {field.kind} if field.kind in {"duration", "time"} else DATED)
    own = [one for one in free if owners.get(one.start) == field.name]
    open_to_all = [one for one in free if one.start not in owners]
    chosen = next((one for one in own or open_to_all if not one.values), next(iter(own or open_to_all), None))
    if chosen is None:
        return []
    if field.kind == "duration" and not own and len({one.values for one in open_to_all}) > 1:
        return Doubt(field, ask_which_value(field, [scene.text[one.start : one.end] for one in open_to_all]))
    if chosen.is_doubtful(field):
        taken.add(chosen.start)
        return _doubt(scene, field, chosen)
    if field.kind in {"moment", "when"} and (day := _day_apart(chosen, open_to_all)):
        taken.update((chosen.start, day.start))
        return Doubt(field, ask_which_value(field, [chosen.values[0], day.values[0][:10] + chosen.values[0][10:]]))
    return [_reading(field, chosen, is_sure=bool(own) or len(open_to_all) == 1)]


def _day_apart(chosen: _Said, others: Sequence[_Said]) -> _Said | None:
    """Return the one day that is said apart from the time of day *chosen*: "tomorrow" in "tomorrow call at 5pm"."""
    days = [one for one in others if one.has_day and len(one.values) == 1 and not one.values[0][10:].strip("T:0")]
    return days[0] if not chosen.has_day and len(days) == 1 and len(chosen.values[0]) > 10 else None


def said_for(scene: Scene, field: FieldShape) -> list[tuple[tuple[str, ...], int, int]]:
    """Return each day or time of the sentence as *field* writes it, with its place; no or several values are doubts."""
    said = _standing(scene.text, _moments(scene, field, scene.now or datetime.now(UTC)), may_be_either=True)
    return [(one.values, one.start, one.end) for one in said]


def asked_instead(scene: Scene, fields: Iterable[FieldShape]) -> list[tuple[int, int]]:
    """Return where a day or time stands that there is not, for which one of *fields* is asked."""
    timed = next((one for one in fields if one.is_timed), None) if scene.impossible else None
    return [(start, end) for values, start, end in said_for(scene, timed) if not values] if timed else []


def _standing(text: str, said: list[_Said], *, may_be_either: bool) -> list[_Said]:
    """Return *said* without what is denied or taken back; two with an "or" between them are one with both values."""
    kept: list[_Said] = []
    for one in said[:_MOST_SAID]:
        before = _PREPOSITION.search(text, max(one.start - _LONGEST_PREPOSITION, 0), one.start)
        if is_denied(text, before.start() if before else one.start):
            continue
        if kept and (is_correction(text[kept[-1].end : one.start]) or replaces(text, kept[-1], one)):
            kept.pop()
        elif kept and may_be_either and kept[-1].values and one.values and _OR.fullmatch(text, kept[-1].end, one.start):
            first = kept.pop()
            kept.append(_Said(tuple(dict.fromkeys((*first.values, *one.values))), first.start, one.end))
            continue
        kept.append(one)
    return kept


def _reading(field: FieldShape, said: _Said, *, is_sure: bool = True) -> Reading:
    return Reading(field, said.values[0], said.start, said.end, is_sure)


def _doubt(scene: Scene, field: FieldShape, said: _Said) -> Doubt:
    if not said.values:
        return Doubt(field, ask_instead(field, scene.text[said.start : said.end]))
    if len(said.values) > 1:
        question = ask_which_value(field, said.values)
    else:
        question = f"What is {field.label} in weeks or days ('90 days')? A month has no fixed length."
    return Doubt(field, f"{question} You wrote {scene.text[said.start : said.end]!r}.")


def ask_instead(field: FieldShape, said: str) -> str:
    """Return the question for *field*, of which a day, time or zone was *said* that there is not."""
    wrong = "The time zone is not known" if _ELSEWHERE.search(said) else "There is no such day or time"
    return f"{wrong}: {said!r}. {ask_for([field])}"


def _owners(scene: Scene, cues: tuple[Cue, ...], said: Sequence[_Said], kinds: Iterable[str]) -> dict[int, str]:
    """Return which field each date belongs to: of the cue nearest before it or right behind, each cue for one date."""
    pairs: list[tuple[float, int, int, str]] = []
    for cue in cues[:_MOST_CUES]:
        if cue.field.kind not in kinds:
            continue
        start, end = scene.tokens[cue.first].start, scene.tokens[cue.end - 1].end
        for one in said:
            if 0 <= one.start - end <= _REACH:
                pairs.append((_cost(scene.text[end : one.start]), one.start, start, cue.field.name))
            elif 0 <= start - one.end <= 1:
                pairs.append((_BEHIND_STEP + start - one.end, one.start, start, cue.field.name))
    owners: dict[int, str] = {}
    used: set[int] = set()
    for _, place, start, name in sorted(pairs):
        if place not in owners and start not in used:
            owners[place] = name
            used.add(start)
    return owners


def _cost(between: str) -> float:
    return len(between) + (_MARK_STEP if any(mark in between for mark in ",;.") else 0)


# -- moments ------------------------------------------------------------------------------------------------------


def _moments(scene: Scene, field: FieldShape, now: datetime) -> list[_Said]:
    """Return the moments of the sentence as *field* writes them; a text in quotation marks is no date."""
    words = {token.text for token in scene.tokens}
    is_past, is_future = not _PAST.isdisjoint(words), not _FUTURE.isdisjoint(words)
    said: dict[int, _Said] = {}
    leans: tuple[Lean, ...] = ("past", "future")
    for lean in leans:
        if lean == ("future" if is_past and not is_future else "past") and not (is_past and is_future):
            continue
        for found in scene.moments(now, lean):
            values = _values(field, found)
            if values and not _is_quoted(scene, found):
                known = said[found.start].values if found.start in said else ()
                said[found.start] = _Said(
                    tuple(dict.fromkeys((*known, *values))), found.start, found.end, has_day=found.has_day
                )
    told = [_in_known_zone(scene.text, said[start]) for start in sorted(said)]
    return _with_impossible(scene, field, told) if scene.impossible else told


def _in_known_zone(text: str, said: _Said) -> _Said:
    """Return *said* without values where the time of a place is meant that is in no zone known here: "Gotham time"."""
    match = _ELSEWHERE.match(text, said.end)
    is_timed = match is not None and any(len(value) != len("2026-01-01") for value in said.values)
    return said._replace(values=(), end=match.end()) if match and is_timed else said


def _with_impossible(scene: Scene, field: FieldShape, said: list[_Said]) -> list[_Said]:
    """Return *said* with what is no day or time and the time or day beside it: "on Nov 31 at 9am" is no today."""
    for wrong in scene.impossible:
        if field.kind == ("time" if wrong.is_day else "date"):
            continue
        start, end, rest = wrong.start, wrong.end, []
        for one in said:
            before, after = one.end <= start, one.start >= end
            gap = scene.text[one.end : start] if before else scene.text[end : one.start]
            if (before or after) and (one.has_day == wrong.is_day or not _BESIDE.fullmatch(gap)):
                rest.append(one)
            else:
                start, end = min(start, one.start), max(end, one.end)
        said = sorted([*rest, _Said((), start, end)], key=_place)
    return said


def _place(said: _Said) -> int:
    return said.start


def _is_quoted(scene: Scene, found: FoundMoment) -> bool:
    return any(
        one.start <= found.start and found.end <= one.end and one.text.strip() != found.text for one in scene.quoted
    )


def _values(field: FieldShape, found: FoundMoment) -> tuple[str, ...]:
    """Return the readings of *found* as *field* writes them; none when it is no value of that kind."""
    try:
        values = [_value(field, reading, has_day=found.has_day) for reading in found.readings]
    except InvalidAmount:
        return ()
    return tuple(dict.fromkeys(value for value in values if value is not None)) if None not in values else ()


def _value(field: FieldShape, reading: date | datetime, *, has_day: bool) -> str | None:
    if field.kind == "when":
        return iso_text(reading)
    if field.kind == "time":
        # what time of day an instant is depends on the zone
        is_local = isinstance(reading, datetime) and reading.tzinfo is None
        return reading.time().isoformat() if isinstance(reading, datetime) and is_local else None
    if field.kind == "date":
        if not isinstance(reading, datetime):
            return reading.isoformat()
        # whose day an instant is depends on the zone, and a time alone is none
        return reading.date().isoformat() if has_day and reading.tzinfo is None else None
    return reading.isoformat() if isinstance(reading, datetime) else f"{reading.isoformat()}T00:00:00"


# -- durations ----------------------------------------------------------------------------------------------------


def _durations(scene: Scene, taken: set[int]) -> list[_Said]:
    """Return the lengths of time of the sentence; "in 3 hours" only when none is said plainly, "3 days ago" never."""
    offsets = [one for one in scene.moments(_ANY_DAY, "future") if one.is_offset]
    plain: list[_Said] = []
    ahead: list[_Said] = []
    for found in find_durations(scene.text):
        around = next((one for one in offsets if one.start <= found.start < one.end), None)
        try:
            duration: Duration = of_length(found.length, found.text)
        except InvalidAmount:
            continue
        said = _Said((str(duration),), found.start, found.end, has_months=bool(duration.months))
        if around is None:
            plain.append(said)
        elif around.start not in taken and around.text.lower().startswith("in "):
            ahead.append(said)
    return plain or ahead
