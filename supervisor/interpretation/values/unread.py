"""Fields that a sentence names beside a value which cannot be told: they are asked about, never left as they were."""

from collections.abc import Iterator, Sequence

from quantities.numerals import find_amounts
from supervisor.interpretation.questions import ask_for
from supervisor.interpretation.values.amounts import Doubt
from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.filled import Filled
from supervisor.interpretation.values.people import ADJECTIVES, ANYONE, RELATED
from supervisor.interpretation.values.scene import Scene

#: Between the names of two fields that share what is said ("both limit and spent to 10k").
_JOINING = frozenset({"and", "&", "/", "the", "my"})
_MOST_JOINING = 3
#: Between those who were counted and who comes along.
_ADDING = frozenset({"and", "&", "plus", "+"})
#: Between a field and its value.
_IS = frozenset({":", "=", "is", "are", "was", "were", "of"})
#: Characters of the digits that are looked at.
_LONGEST = 24
#: Cues looked at; what has more is no sentence.
_MOST_CUES = 64


def doubts_about_unread(scene: Scene, cues: tuple[Cue, ...], filled: Filled) -> Iterator[Doubt]:
    """Yield a doubt for each field without a value that "past: 1/2/3" or "both limit and spent to 10k" is about."""
    placed = {scene.index_at(item.start) for item in scene.items}
    for cue in cues[:_MOST_CUES]:
        field = cue.field
        if not field.is_numeric or filled.has(field):
            continue
        if _has_digits(scene, cue, placed) or (not field.is_list and _shares(scene, cue, cues, filled)):
            yield Doubt(field, ask_for([field]))


def doubts_about_more_people(
    scene: Scene, cues: tuple[Cue, ...], fields: Sequence[FieldShape], filled: Filled
) -> Iterator[Doubt]:
    """Yield a doubt for each whole number of *fields* to which somebody is added: "a table for my 3 sisters and me".

    A field that counts people adds them up itself; what a field is called by ("3 sisters" of `sisters`) is its own.
    """
    own = {(cue.field.name, place) for cue in cues for place in range(cue.first, cue.end)}
    ends = {span.field: span.end for span in filled.spans}
    for field in fields:
        if field.kind != "integer" or field.is_list or field.counts or field.name not in filled.values:
            continue
        if field.name not in ends:
            continue
        place = scene.index_at(ends[field.name])
        while place < len(scene.tokens) and scene.tokens[place].text in ADJECTIVES:
            place += 1
        if (field.name, place) not in own and (
            _adds_people(scene, place) or _comes_after_me(scene, field, filled, place)
        ):
            yield Doubt(field, ask_for([field]))


def _adds_people(scene: Scene, place: int) -> bool:
    """True for "sisters and me" and "friends and my wife" at *place*, not for "friends and I will pay"."""
    said = [token.text for token in scene.tokens[place : place + 4]]
    if len(said) < 3 or not (said[0] in RELATED or said[0] in ANYONE) or said[1] not in _ADDING:
        return False
    if said[2] == "my":
        return len(said) > 3 and said[3] in RELATED
    return said[2] in {"me", "myself"} or (said[2] == "i" and (len(said) == 3 or not said[3][0].isalnum()))


def _comes_after_me(scene: Scene, field: FieldShape, filled: Filled, place: int) -> bool:
    """True for the sisters at *place* in "me and my two sisters", who are not all that come."""
    if place >= len(scene.tokens) or not (scene.tokens[place].text in RELATED or scene.tokens[place].text in ANYONE):
        return False
    start = next(span.start for span in filled.spans if span.field == field.name)
    first = scene.index_at(start)
    said = [token.text for token in scene.tokens[max(first - 3, 0) : first] if token.text != "my"]
    return len(said) > 1 and said[-1] in _ADDING and said[-2] in {"me", "myself"}


def _has_digits(scene: Scene, cue: Cue, placed: set[int]) -> bool:
    """True when digits that are no amount follow *cue*, as its value would."""
    place = cue.end
    while place < len(scene.tokens) and scene.tokens[place].text in _IS:
        place += 1
    if place >= len(scene.tokens) or place in placed:
        return False
    token = scene.tokens[place]
    if not (token.text.isdigit() if place == cue.end else token.text[0].isdigit()):
        return False
    # What can be read was left out on purpose: it says a difference, or is taken back.
    return not find_amounts(scene.text[token.start : token.start + _LONGEST])


def _shares(scene: Scene, cue: Cue, cues: tuple[Cue, ...], filled: Filled) -> bool:
    """True when *cue* is joined to the next field, which has the one value that is said of both."""
    place = cue.end
    while place < len(scene.tokens) and place - cue.end < _MOST_JOINING and scene.tokens[place].text in _JOINING:
        place += 1
    joined = {token.text for token in scene.tokens[cue.end : place]}
    return not joined.isdisjoint({"and", "&", "/"}) and any(
        other.first == place and other.field is not cue.field and other.field.name in filled.values
        for other in cues[:_MOST_CUES]
    )
