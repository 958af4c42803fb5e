"""Values that are no amounts: choices, yes and no and text, as far as rules can read them; dates are in `times`."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from supervisor.interpretation.values.afterthoughts import before_next, without_faces
from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.owned import is_name_of_somebody, owner_before
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.values.text_ends import end_of, meant_instead
from supervisor.interpretation.words import LIGHT, stems_of, word_set

#: Words that turn the field named after them off ("no history", "without any tip").
NEGATIONS = frozenset({"no", "without", "zero", "empty", "not", "don't", "excluding", "minus", "never", "non"})
_NOTHING = frozenset({"none", "nothing", "empty", "nil", "null", "no", "off", "false", "unknown", "blank"})
_YES = frozenset({"yes", "yeah", "yep", "true", "on", "sure", "ok", "okay", "please", "correct"})
_NO = frozenset({"no", "nope", "false", "off", "not", "don't", "never"})
#: Words between a negation and what it negates ("no *past spending* history").
_NEGATION_REACH = 2
#: Words between the name of a field and "none" that are passed over.
_MOST_LIGHT = 12
_ANNOUNCE = frozenset({":", "=", "is", "are", "was", "as", "called", "named", '"', "'", "\u201c", "-"})
#: In capitals, in the middle of a sentence, they begin a name: "The Ivy", "Now You See Me".
_OF_NAMES = word_set("the a an my our now you we he she they there all some up out this that it")
#: A verb follows their "to".
_BEFORE_VERB = word_set(
    "want wants wanted need needs like love going gonna forget remember able willing ready hoping hope wish have trying"
    " try plan planning supposed happy order"
)
#: Verbs that no name begins with, and no place is called by.
DEEDS = word_set(
    "get buy bring call come fetch take make send pick tell ask give pay put let have do be go meet remember feed wash"
)
_BEFORE_DEED = frozenset({"to", "please", "pls"})
_SUBJECTS = frozenset({"i", "i'm", "i've", "i'd", "we", "we've", "he", "she", "they"})
#: Words of a text that are looked at; each costs a look at what follows.
_MOST_CUES = 32
#: What a field is called that holds what anybody may say.
_FREE = frozenset(stems_of("message text note body content reason description comment memo reminder todo task words"))
#: The full stop of "Dr. Smith", "St. Gallen" and "no. 4" ends nothing.
_SHORTENED = (
    r"(?<!\bDr)(?<!\bMr)(?<!\bMrs)(?<!\bMs)(?<!\bSt)(?<!\bMt)(?<!\bFt)(?<!\bProf)(?<!\b[A-Z])\."
    r"(?<!\b[Nn]o\.(?=\s\d))(?=\s+\S)"
)
#: Who or what was meant has to be asked: these are no names.
_WHOEVER = frozenset({"him", "her", "it", "them", "me", "us", "someone", "somebody", "anyone", "anybody", "something"})
_CLAUSE_END = re.compile(rf"{_SHORTENED}|\.(?=\s*$)|[!?;\n](?=\s|$)|,(?=\s)|\s(?:and|with|but)\s+(?=$)")
#: Words and marks that are taken off the end of a text, each at the cost of a look at all of it.
_MOST_TRAILING = 4
#: Characters at the end of a text in which they stand.
_TAIL = 80
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
        elif field.is_nullable and not field.is_required and not _denies_day(scene, field, cue):
            yield Reading(field, None, start, end)


def _denies_day(scene: Scene, field: FieldShape, cue: Cue) -> bool:
    """True for "not on Friday but on Saturday", which denies one day and not all of them."""
    end = scene.tokens[cue.end - 1].end
    return field.is_timed and any(end <= start <= end + len(" the ") for start, _ in scene.times)


def _negation_before(scene: Scene, cue: Cue) -> int | None:
    for place in range(cue.first - 1, max(cue.first - 2 - _NEGATION_REACH, -1), -1):
        token = scene.tokens[place]
        if token.text in NEGATIONS:
            return place
        if not token.is_word or token.text[0].isdigit():
            return None
    return None


def _nothing_after(scene: Scene, cue: Cue) -> int | None:
    place, furthest = cue.end, min(cue.end + _MOST_LIGHT, len(scene.tokens))
    while place < furthest and (scene.tokens[place].text in LIGHT or scene.tokens[place].text in {":", "="}):
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
    own = _announcing(scene, field, [cue for cue in cues if cue.field is field][:_MOST_CUES])
    free = [quoted for quoted in scene.quoted if quoted.start not in taken]
    # "From Oslo, no wait, from Bergen": the last one that takes back what was said is meant.
    own = [cue for cue in own[1:] if _takes_back(scene, cue)][-1:] or own
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
            if reading and reading.value.isdigit() and cue is not own[-1]:
                # "at 8 at Nobu"
                continue
            if reading and not (begins_freely and _begins_with_cue(scene, reading, cues)):
                return reading
    if len(free) == 1:
        return Reading(field, free[0].text, free[0].start, free[0].end, is_sure=not own)
    return None


def _takes_back(scene: Scene, cue: Cue) -> bool:
    start = scene.tokens[cue.first].start
    return _TAKES_BACK.search(scene.text, max(start - _TAKES_BACK_REACH, 0), start) is not None


def _announcing(scene: Scene, field: FieldShape, own: list[Cue]) -> list[Cue]:
    """Return *own* without the "to" of "I want to send Anna 20", where a verb follows; a message may begin with one."""
    is_message = is_free(field)
    verbs = [cue for cue in own if _is_infinitive(scene, cue, is_message=is_message)]
    others = [cue for cue in own if cue not in verbs]
    return [*others, *verbs] if is_message else others


def _is_infinitive(scene: Scene, cue: Cue, *, is_message: bool) -> bool:
    is_to = cue.end - cue.first == 1 and scene.tokens[cue.first].text == "to"
    if not is_to or not cue.first:
        return False
    return scene.tokens[cue.first - 1].text in _BEFORE_VERB or (not is_message and _begins_deed(scene, cue.end))


def _begins_deed(scene: Scene, place: int) -> bool:
    """True for the "get" of "to get milk" at *place*, in small letters and with something behind it."""
    if place + 1 >= len(scene.tokens) or not scene.tokens[place + 1].is_word:
        return False
    return scene.tokens[place].text in DEEDS and scene.text[scene.tokens[place].start].islower()


def is_free(field: FieldShape) -> bool:
    """True for a text that may say anything, such as a message."""
    return not _FREE.isdisjoint(stem for phrase in field.phrases for stem in phrase.stems)


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
    r"[\s,.;:()!?\u2013\u2014-]*\b(?:(?:oh,? )?(?:no(?:,|\.|,? (?:wait|sorry|i mean))|wait,|sorry,)(?: i mean(?:t)?)?"
    r"|i mean(?:t)?|or rather|(?:actually,? )?make (?:it|that)|actually,?(?=\s+(?-i:[A-Z])[\w'-]*\W*$))[\s,:]+(?=\w)",
    re.IGNORECASE,
)


#: Behind a value that is taken back, where no mark parts them: "Lima no sorry in Cusco".
_NO_SORRY = re.compile(r"\s(?:oh,? )?no,? (?:wait|sorry|i mean)\b", re.IGNORECASE)
#: Right before the words that announce the one that is meant.
_TAKES_BACK = re.compile(r"\b(?:no|sorry|wait|i mean|i meant|rather|oops)[\s,]{1,3}$", re.IGNORECASE)
#: Characters that the longest of them takes.
_TAKES_BACK_REACH = 12
_SAYING = word_set("saying says say reading reads stating")


def trailing(scene: Scene, field: FieldShape, after: int, cues: tuple[Cue, ...]) -> Reading | None:
    """Return what follows token *after*, the last word that chose the task ("greet *Ada*")."""
    place = after + 1
    while place < len(scene.tokens) and scene.tokens[place].text in LIGHT:
        if scene.tokens[place].text in _SUBJECTS:
            # "Because of the weather I spent 42k" goes on with something else.
            return None
        place += 1
    reading = _following(scene, field, after + 1, cues)
    if reading is None or _begins_with_cue(scene, reading, cues):
        return None
    return Reading(field, reading.value, reading.start, reading.end, is_sure=False)


def _begins_words(scene: Scene, field: FieldShape, place: int) -> bool:
    """True behind "saying": there even "the" is a word of the message."""
    said = scene.tokens[place - 1].text if 0 < place < len(scene.tokens) else ""
    following = scene.tokens[place] if place < len(scene.tokens) else None
    is_word = following is not None and following.is_word and following.text != "that"
    return said in _SAYING and is_word and is_free(field)


def _past_light(scene: Scene, place: int, *, is_message: bool) -> int:
    """Return the token at which a text may begin; past the last one where something is joined instead ("and 9").

    A message may begin with what is done: the "get" of "to get milk".
    """
    tokens = scene.tokens
    while place < len(tokens) and (tokens[place].text in LIGHT or tokens[place].text in _ANNOUNCE):
        is_deed = is_message and place > 0 and tokens[place - 1].text in _BEFORE_DEED and _begins_deed(scene, place)
        if is_deed or _is_article_of_name(scene, place):
            break
        place += 1
    is_joined = place < len(tokens) and tokens[place].text in {"and", "or", "but"}
    return len(tokens) if is_joined and scene.text[tokens[place].start].islower() else place


def _is_article_of_name(scene: Scene, place: int) -> bool:
    """True for the first word of "at The Ivy", in the middle of a sentence that is not all in capitals."""
    tokens, text = scene.tokens, scene.text
    if not place or place + 1 >= len(tokens) or tokens[place].text not in _OF_NAMES:
        return False
    said, following, before = (text[tokens[one].start : tokens[one].end] for one in (place, place + 1, place - 1))
    return said[0].isupper() and (said == "A" or not said.isupper()) and following[0].isupper() and before.islower()


def _following(
    scene: Scene, field: FieldShape, place: int, cues: tuple[Cue, ...], corrections: int = _MOST_CORRECTIONS
) -> Reading | None:
    tokens = scene.tokens
    place = _past_light(scene, place, is_message=is_free(field)) if not _begins_words(scene, field, place) else place
    if place >= len(tokens):
        return None
    start = tokens[place].start
    ends = [tokens[cue.first].start for cue in cues if cue.field is not field and cue.first > place]
    end = min([len(scene.text), *ends])
    if match := _CLAUSE_END.search(scene.text, start, end):
        end = match.start()
    if corrections and (instead := meant_instead(scene.text, start, end)) is not None:
        return _following(scene, field, scene.index_at(instead), cues, corrections - 1)
    is_message, is_cut = is_free(field), end in ends
    if not is_message and (match := _NO_SORRY.search(scene.text, start, end)):
        end = match.start()
    end = end_of(scene.text, start, end, is_free=is_message)
    corrected = _TAKEN_BACK.match(scene.text, end) if corrections else None
    # "Is it raining in Oslo? I mean the weather" takes back no name.
    if corrected and "?" in corrected[0] and scene.text[corrected.end()].islower():
        corrected = None
    # "Send 50 to Anna, no wait, 60" takes back the amount, "hi, no wait, to Bob" the name.
    elsewhere = {item.start for item in scene.items} | {
        scene.tokens[c.first].start for c in cues if c.field is not field
    }
    if corrected and corrected.end() not in elsewhere:
        return _following(scene, field, scene.index_at(corrected.end()), cues, corrections - 1)
    reading = _ended(scene, field, start, end, is_joined=bool(ends), is_cut=is_cut)
    owner = owner_before(scene, place, reading.end) if reading is not None else None
    if reading is None or owner is None:
        return reading
    if is_name_of_somebody(field):
        return None
    return Reading(field, scene.text[owner : reading.end], owner, reading.end)


def _ended(scene: Scene, field: FieldShape, start: int, end: int, *, is_joined: bool, is_cut: bool) -> Reading | None:
    """Return the text from *start* on without what its end trails; *is_cut* where the words of another field follow."""
    value = scene.text[start : without_faces(scene.text, start, end)]
    for _ in range(_MOST_TRAILING):
        value = value[:-_TAIL] + _TRAILING.sub("", value[-_TAIL:])
    if is_cut and not is_free(field):
        value = scene.text[start : before_next(scene.text, start, start + len(value))]
    elif is_joined and value.lower().endswith((" and", " with", " but")):
        value = value.rsplit(None, 1)[0]
    if not value or not value[0].isalnum() or value.lower() in _WHOEVER:
        return None
    return Reading(field, value, start, start + len(value))
