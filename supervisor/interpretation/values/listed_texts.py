"""Texts that commas and "and" tell apart, for a field that holds several: "add milk, eggs and bread to the list"."""

import re
from collections.abc import Collection

from supervisor.interpretation.values.afterthoughts import without_politeness
from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.joined_names import rejoined
from supervisor.interpretation.values.plain_values import Reading
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.words import stems_of, word_set

#: What ends the list; a new line does not where a bullet begins the next one.
_END = re.compile(r"[.!?;](?=\s|$)|\n\s*\n|(?<=\S)\n(?!\s*[-*\u2022])")
_BULLET = re.compile(r"\s*\n\s*[-*\u2022]\s*")
#: "To the shopping list": where they are put, and none of them.
_WHERE = re.compile(
    r"\s+(?:to|on|onto|in|into|from|off)\s+(?:(?:my|the|our|this|that)\s+)?([\w' -]{1,40})$", re.IGNORECASE
)
_PLACE_FIRST = re.compile(
    r"(?:to|on|onto|in|into)\s+(?:(?:my|the|our|this|that)\s+)?([\w' -]{1,40}?)\s*:", re.IGNORECASE
)
_PLACES = word_set("list cart basket order board queue playlist album group team trolley bag")
_LEAD = re.compile(
    r"(?:[\s:,-]|\b(?:the|some|a|an|these|following|items?|things?|both|also|please|are|is)\b(?=[\s:]))*", re.IGNORECASE
)
_ARTICLE = re.compile(r"(?:and\s+|&\s+|also\s+|plus\s+)*(?:(?:some|the|a|an|my)\s+)?", re.IGNORECASE)
_COMMA = re.compile(r"\s*,\s*")
_AND = re.compile(r"\s+(?:and|&|plus)\s+", re.IGNORECASE)
#: What is taken back or left out has to be asked about.
_TAKEN_BACK = re.compile(
    r"\b(?:no|not|don't|except|without|instead|rather|actually|sorry|wait|or|nothing|but)\b", re.IGNORECASE
)
#: Characters of one text, of all, and how many texts there may be.
_LONGEST, _LONGEST_ALL, _MOST = 80, 2_000, 64


def listed_text(
    scene: Scene, shape: FieldShape, cues: tuple[Cue, ...], taken: set[int], names: Collection[str]
) -> list[Reading]:
    """Return each quotation, for a list of texts whose cue stands before them, or what commas and "and" tell apart."""
    first = min((scene.tokens[cue.first].start for cue in cues if cue.field is shape), default=None)
    if first is None:
        return []
    quotations = [
        Reading(shape, quoted.text, quoted.start, quoted.end)
        for quoted in scene.quoted
        if quoted.start > first and quoted.start not in taken
    ]
    if quotations or scene.quoted:
        return quotations
    own = min((cue for cue in cues if cue.field is shape), key=lambda cue: cue.first)
    ends = [scene.tokens[cue.first].start for cue in cues if cue.field is not shape and cue.first >= own.end]
    return items_at(scene, shape, scene.tokens[own.end - 1].end, names, min(ends, default=None))


def items_at(
    scene: Scene, field: FieldShape, start: int, names: Collection[str], until: int | None = None
) -> list[Reading]:
    """Return the texts that are told apart from *start* on; none where it is not plain what they are.

    *names* are the stems of what the task is about: "to the shopping list" is no text of it. The list ends before
    *until*, where something else is announced.
    """
    text = scene.text
    end = min(until if until is not None else len(text), start + _LONGEST_ALL)
    start = _LEAD.match(text, start, end).end()  # type: ignore[union-attr]  # it matches nothing as well
    if (place := _PLACE_FIRST.match(text, start, end)) and any(
        one in names or one in _PLACES for one in stems_of(place[1])
    ):
        start = _LEAD.match(text, place.end(), end).end()  # type: ignore[union-attr]
    if match := _END.search(text, start, end):
        end = match.start()
    end = without_politeness(text, start, end)
    where = _WHERE.search(text, start, end)
    if where and any(one in names or one in _PLACES for one in stems_of(where[1])):
        end = without_politeness(text, start, where.start())
    if start >= end or _TAKEN_BACK.search(text, start, end):
        return []
    found = [_trimmed(field, text, *place) for place in _places(text, start, end, field)]
    readings = [one for one in found if one is not None]
    return readings if len(readings) == len(found) <= _MOST else []


def _places(text: str, start: int, end: int, field: FieldShape) -> list[tuple[int, int]]:
    """Return where the texts stand: an "and" parts only the last of several, "mac and cheese, and milk" is two."""
    parts = _split(_BULLET, text, start, end)
    if len(parts) > 1:
        return parts
    parts = _split(_COMMA, text, start, end)
    first, last = parts[-1]
    if len(parts) > 1 and re.match(r"(?:and|&|plus)\s", text[first:last], re.IGNORECASE):
        return parts
    pieces = rejoined(text, _split(_AND, text, first, last), field)
    if len(parts) > 1 and len(pieces) > 2:
        pieces = [(first, pieces[-2][1]), pieces[-1]]
    return [*parts[:-1], *pieces]


def _split(border: re.Pattern[str], text: str, start: int, end: int) -> list[tuple[int, int]]:
    places = []
    for match in border.finditer(text, start, end):
        places.append((start, match.start()))
        start = match.end()
    return [*places, (start, end)]


def _trimmed(field: FieldShape, text: str, start: int, end: int) -> Reading | None:
    """Return the text at `text[start:end]` without its article; None for nothing, or for what is a sentence."""
    start = min(_ARTICLE.match(text, start, end).end(), end)  # type: ignore[union-attr]  # it matches nothing as well
    value = text[start:end].strip()
    if not value or len(value) > _LONGEST or not value[0].isalnum():
        return None
    return Reading(field, value, start, start + len(value))
