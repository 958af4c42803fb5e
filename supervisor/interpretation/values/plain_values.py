"""Values that are no amounts: choices, yes and no and text, as far as rules can read them; dates are in `times`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.values.text_ends import end_of, meant_instead
from supervisor.interpretation.words import LIGHT, stems_of

#: Words that turn the field named after them off ("no history", "without any tip").
NEGATIONS = frozenset({"no", "without", "zero", "empty", "not", "don't", "excluding", "minus", "never", "non"})
_NOTHING = frozenset({"none", "nothing", "empty", "nil", "null", "no", "off", "false", "unknown", "blank"})
_YES = frozenset({"yes", "yeah", "yep", "true", "on", "sure", "ok", "okay", "please", "correct"})
_NO = frozenset({"no", "nope", "false", "off", "not", "don't", "never"})
#: Words between a negation and what it negates ("no *past spending* history").
_NEGATION_REACH = 2
_ANNOUNCE = frozenset({":", "=", "is", "are", "was", "as", "called", "named", '"', "'", "\u201c", "-"})
_SUBJECTS = frozenset({"i", "i'm", "i've", "i'd", "we", "we've", "he", "she", "they"})
#: Words of a text that are looked at; each costs a look at what follows.
_MOST_CUES = 32
#: What a field is called that holds what anybody may say.
_FREE = frozenset(stems_of("message text note body content reason description comment memo reminder todo task words"))
#: The full stop of "Dr. Smith" and "St. Gallen" ends nothing.
_SHORTENED = r"(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bSt)(?<!\bMt)(?<!\bFt)(?<!\bProf)(?<!\b[A-Z])\.(?=\s+\S)"
_CLAUSE_END = re.compile(rf"{_SHORTENED}|\.(?=\s*$)|[!?;\n](?=\s|$)|,(?=\s)|\s(?:and|with|but)\s+(?=$)")
#: Words and marks that are taken off the end of a text, each at the cost of a look at all of it.
_MOST_TRAILING = 4
_TRAILING = re.compile(r"[\s.,;:!?]+$|\s+(?:please|and|but|or|plus)$", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Reading:
    """A *value* for *field* and the characters it was read from; `is_sure` is False when a rule of thumb chose it."""

    field: FieldShape
    value: Any
    start: int
    end: int
    is_sure: bool = True


def switched_off(scene: Scene, cues: tuple[Cue, ...]) -> Iterator[Reading]:
    """Yield what is said to be absent: an empty list, None or False, for the fields that can be so."""
    for cue in cues:
        field = cue.field
        negation, nothing = _negation_before(scene, cue), _nothing_after(scene, cue)
        if negation is None and nothing is None:
            continue
        first = cue.first if negation is None else negation
        start, end = scene.tokens[first].start, scene.tokens[(nothing or cue.end) - 1].end
        if field.is_list:
            yield Reading(field, [], start, end)
        elif field.kind == "boolean":
            yield Reading(field, False, start, end)
        elif field.is_nullable and not field.is_required:
            yield Reading(field, None, start, end)


def _negation_before(scene: Scene, cue: Cue) -> int | None:
    for place in range(cue.first - 1, max(cue.first - 2 - _NEGATION_REACH, -1), -1):
        token = scene.tokens[place]
        if token.text in NEGATIONS:
            return place
        if not token.is_word or token.text[0].isdigit():
            return None
    return None


def _nothing_after(scene: Scene, cue: Cue) -> int | None:
    place = cue.end
    while place < len(scene.tokens) and (scene.tokens[place].text in LIGHT or scene.tokens[place].text in {":", "="}):
        place += 1
    is_said = place < len(scene.tokens) and scene.tokens[place].text in _NOTHING
    # "history, no limit": the "no" belongs to what follows.
    follows = place + 1 < len(scene.tokens) and scene.tokens[place + 1].is_word and scene.tokens[place].text == "no"
    return place + 1 if is_said and not follows else None


def chosen(scene: Scene, field: FieldShape, cues: tuple[Cue, ...]) -> list[Reading]:
    """Return the choices of *field* that the sentence names, in its order; several for one value means doubt."""
    found: list[Reading] = []
    said = {token.stem for token in scene.tokens}
    for value in field.choices:
        stems = stems_of(str(value))
        for place in range(len(scene.tokens) - len(stems) + 1) if stems and stems[0] in said else ():
            if tuple(token.stem for token in scene.tokens[place : place + len(stems)]) == stems:
                end = place + len(stems)
                found.append(Reading(field, value, scene.tokens[place].start, scene.tokens[end - 1].end))
                break
    found.sort(key=lambda reading: reading.start)
    longest = [one for one in found if not any(_contains(other, one) for other in found)]
    if field.is_list or len(longest) < 2:
        return longest
    near = [one for one in longest if any(_touches(scene, cue, one) for cue in cues if cue.field is field)]
    return near if len(near) == 1 else longest


def _contains(longer: Reading, one: Reading) -> bool:
    return longer.start <= one.start and one.end <= longer.end and longer.end - longer.start > one.end - one.start


def _touches(scene: Scene, cue: Cue, reading: Reading) -> bool:
    start, end = scene.tokens[cue.first].start, scene.tokens[cue.end - 1].end
    between = scene.text[end : reading.start] if end <= reading.start else scene.text[reading.end : start]
    return all(word in LIGHT or word in _ANNOUNCE for word in between.lower().split())


def switched(scene: Scene, field: FieldShape, cues: tuple[Cue, ...], *, is_asked: bool) -> Reading | None:
    """Return True or False for a boolean *field*: named means True; a bare yes or no counts only when asked for."""
    for cue in cues:
        if cue.field is field:
            after = scene.tokens[cue.end : cue.end + 3]
            word = next((token for token in after if token.text not in LIGHT and token.text not in {":", "="}), None)
            is_denied = word is not None and word.text in _NO
            end = word.end if word is not None and word.text in _NO | _YES else scene.tokens[cue.end - 1].end
            return Reading(field, not is_denied, scene.tokens[cue.first].start, end)
    for token in scene.tokens if is_asked else ():
        if token.text in _YES or token.text in _NO:
            return Reading(field, token.text in _YES, token.start, token.end)
    return None


def worded(scene: Scene, field: FieldShape, cues: tuple[Cue, ...], taken: set[int]) -> Reading | None:
    """Return the text of *field*: what is quoted nearest to its cue, or what follows the cue."""
    own = [cue for cue in cues if cue.field is field][:_MOST_CUES]
    free = [quoted for quoted in scene.quoted if quoted.start not in taken]
    for cue in own:
        after = scene.tokens[cue.end - 1].end
        near = [quoted for quoted in free if quoted.start >= after]
        if near:
            return Reading(field, near[0].text, near[0].start, near[0].end)
    # "Don't forget to send 50 to Ada": what another field's words begin is this one's text only when nothing else is.
    for begins_freely in (True, False):
        for cue in own:
            if _leads_to(scene, cue, own):
                continue
            reading = _following(scene, field, cue.end, cues)
            if reading and not (begins_freely and _begins_with_cue(scene, reading, cues)):
                return reading
    if len(free) == 1:
        return Reading(field, free[0].text, free[0].start, free[0].end, is_sure=not own)
    return None


def _leads_to(scene: Scene, cue: Cue, own: list[Cue]) -> bool:
    """True for the "rate" of "rate the book 1984", which another name of the same field follows."""
    place = cue.end
    while place < len(scene.tokens) and scene.tokens[place].text in LIGHT:
        place += 1
    return any(other.first == place and other.end < len(scene.tokens) for other in own)


def _begins_with_cue(scene: Scene, reading: Reading, cues: tuple[Cue, ...]) -> bool:
    return any(cue.field is not reading.field and scene.tokens[cue.first].start == reading.start for cue in cues)


#: Times that somebody takes back a text in one sentence; each costs a look at what follows.
_MOST_CORRECTIONS = 8
#: After a text, these words take it back: what follows them is meant ("greet Bob, no, Ada").
_TAKEN_BACK = re.compile(
    r"[\s,.;:()!\u2013\u2014-]*\b(?:(?:oh,? )?(?:no(?:,|\.|,? (?:wait|sorry|i mean))|wait,|sorry,)(?: i mean(?:t)?)?"
    r"|i mean(?:t)?|or rather|make (?:it|that))[\s,:]+(?=\w)",
    re.IGNORECASE,
)


def trailing(scene: Scene, field: FieldShape, after: int, cues: tuple[Cue, ...]) -> Reading | None:
    """Return what follows token *after*, the last word that chose the task ("greet *Ada*")."""
    place = after + 1
    while place < len(scene.tokens) and scene.tokens[place].text in LIGHT:
        if scene.tokens[place].text in _SUBJECTS:
            # "Because of the weather I spent 42k" goes on with something else.
            return None
        place += 1
    reading = _following(scene, field, after + 1, cues)
    return Reading(field, reading.value, reading.start, reading.end, is_sure=False) if reading else None


def _following(
    scene: Scene, field: FieldShape, place: int, cues: tuple[Cue, ...], corrections: int = _MOST_CORRECTIONS
) -> Reading | None:
    tokens = scene.tokens
    while place < len(tokens) and (tokens[place].text in LIGHT or tokens[place].text in _ANNOUNCE):
        place += 1
    if place >= len(tokens):
        return None
    start = tokens[place].start
    ends = [tokens[cue.first].start for cue in cues if cue.field is not field and cue.first > place]
    end = min([len(scene.text), *ends])
    if match := _CLAUSE_END.search(scene.text, start, end):
        end = match.start()
    if corrections and (instead := meant_instead(scene.text, start, end)) is not None:
        return _following(scene, field, scene.index_at(instead), cues, corrections - 1)
    is_free = not _FREE.isdisjoint(stem for phrase in field.phrases for stem in phrase.stems)
    end = end_of(scene.text, start, end, is_free=is_free)
    if corrections and (corrected := _TAKEN_BACK.match(scene.text, end)):
        return _following(scene, field, scene.index_at(corrected.end()), cues, corrections - 1)
    value = scene.text[start:end]
    for _ in range(_MOST_TRAILING):
        value = _TRAILING.sub("", value)
    if ends and value.lower().endswith((" and", " with", " but")):
        value = value.rsplit(None, 1)[0]
    return Reading(field, value, start, start + len(value)) if value and value[0].isalnum() else None
