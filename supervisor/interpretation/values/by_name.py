"""People who are told by their names: "Dan and I", "Ana, Sue and me", "my friend Dan"."""

from collections.abc import Sequence
from typing import NamedTuple

from supervisor.interpretation.values.scene import Scene
from supervisor.interpretation.words import STOP, word_set

#: In capitals they begin a sentence, or are days, and no names.
_NO_NAMES = STOP | word_set(
    "monday tuesday wednesday thursday friday saturday sunday january february march april may june july august"
    " september october november december mon tue tues wed thu thurs fri sat sun tonight today tomorrow yesterday"
    " morning evening afternoon noon dinner lunch breakfast brunch supper table party reservation booking outside"
    " inside sorry sure great perfect actually well right wrong correct maybe probably just only thanks please both"
    " nobody myself family friends people yeah yep nope mr mrs it's that's we're there's can could would will book"
    " ms dr bring add"
)
#: What stands behind them is a place, or somebody spoken of.
_BEFORE_PLACE = frozenset({"at", "in", "to", "near", "from", "of", "the", "under", "by", "name", "is", "tell", "ask"})
_JOINS = frozenset({",", "and", "&", "+"})
_SELVES = frozenset({"me", "myself", "i"})
_MOST = 12


class Named(NamedTuple):
    """People told by name up to token *end*, with the speaker; *value* is None where the first may be no name."""

    value: int | None
    end: int


def is_name_at(scene: Scene, place: int) -> bool:
    """True for a word in capitals that is neither "I" nor the first of the sentence."""
    token = scene.tokens[place] if 0 < place < len(scene.tokens) else None
    return token is not None and scene.text[token.start].isupper() and token.end > token.start + 1


def after_name(scene: Scene, place: int) -> int:
    """Return the token after the "Dan" of "my friend Dan" at *place*, and *place* where no name stands."""
    is_name = is_name_at(scene, place) and scene.tokens[place].text not in _NO_NAMES
    return place + 1 if is_name else place


def named_with_self(scene: Scene, words: Sequence[str], place: int) -> Named | None:
    """Return how many the names from token *place* on are together with whoever speaks; None without both."""
    if not _is_somebody(scene, place) or (place and words[place - 1] in _BEFORE_PLACE):
        return None
    count, end, has_self = 1, place + 1, False
    while end < len(words) and words[end] in _JOINS and count < _MOST:
        after = end + 1 + (words[end] == "," and words[end + 1 : end + 2] == ["and"])
        is_self = after < len(words) and words[after] in _SELVES
        # "Bob, I need a table" speaks to Bob.
        if (is_self and words[after] == "i" and words[after - 1] == ",") or not (is_self or _is_somebody(scene, after)):
            break
        count, end, has_self = count + 1, after + 1, has_self or is_self
    if not has_self:
        return None
    return Named(count if words[place + 1] != "," or not _begins(words, place) else None, end)


def _begins(words: Sequence[str], place: int) -> bool:
    return place == 0 or words[place - 1] in {".", "!", "?", "\n", ":"}


def _is_somebody(scene: Scene, place: int) -> bool:
    token = scene.tokens[place] if place < len(scene.tokens) else None
    if token is None or not token.is_word or token.text in _NO_NAMES:
        return False
    return scene.text[token.start].isupper() and token.end > token.start + 1
