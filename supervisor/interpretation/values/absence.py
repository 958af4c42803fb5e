"""Where a sentence says that an amount is nothing: "nothing spent", "I haven't spent anything yet"."""

from collections.abc import Iterator

from supervisor.interpretation.values.cues import Cue
from supervisor.interpretation.values.plain_values import Reading
from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.words import word_set

_NOTHING = frozenset({"nothing", "nil", "zilch"})
_ANYTHING = frozenset({"anything", "cent", "penny", "dime"})
_NEITHER = word_set("not never haven't hasn't didn't don't doesn't hadn't")
#: What may stand between the field and "nothing", and between a negation and the field.
_BETWEEN = word_set("was is were has have been be yet so far absolutely exactly : = i we he she they")
_BETWEEN_ANY = word_set("yet really actually a single one on at of for so far")
#: Words looked at on either side of a cue.
_REACH = 4


def nothing_said(scene: Scene, cues: tuple[Cue, ...]) -> Iterator[Reading]:
    """Yield 0 for the amounts that are plainly said to be nothing; "no limit" is no such thing, and is asked about."""
    for cue in cues:
        if not cue.field.is_numeric or cue.field.is_list or cue.field.unit == "%" or cue.field.counts:
            continue
        stretch = _nothing_beside(scene, cue) or _not_anything(scene, cue)
        if stretch is not None:
            first, end = stretch
            yield Reading(cue.field, 0, scene.tokens[first].start, scene.tokens[end - 1].end)


def _nothing_beside(scene: Scene, cue: Cue) -> tuple[int, int] | None:
    words = [token.text for token in scene.tokens[cue.end : cue.end + _REACH]]
    for step, word in enumerate(words):
        if word in _NOTHING:
            return cue.first, cue.end + step + 1
        if word not in _BETWEEN:
            break
    for place in range(cue.first - 1, max(cue.first - 1 - _REACH, -1), -1):
        if scene.tokens[place].text in _NOTHING:
            return place, cue.end
        if scene.tokens[place].text not in _BETWEEN:
            break
    return None


def _not_anything(scene: Scene, cue: Cue) -> tuple[int, int] | None:
    """Return the tokens of "haven't spent anything"."""
    is_denied = any(token.text in _NEITHER for token in scene.tokens[max(cue.first - 2, 0) : cue.first])
    if not is_denied:
        return None
    for step, token in enumerate(scene.tokens[cue.end : cue.end + _REACH]):
        if token.text in _ANYTHING:
            return max(cue.first - 1, 0), cue.end + step + 1
        if token.text not in _BETWEEN_ANY:
            break
    return None
