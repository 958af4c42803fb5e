"""Short answers to a question that offers things to choose from: "the second one", "both", "neither", "yes please".

They say which of the things is meant by where it stands in the question, and are the same whatever was offered.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from supervisor.interpretation.words import word_set

_PLACES = {
    "first": 0, "1st": 0, "former": 0, "second": 1, "2nd": 1, "third": 2, "3rd": 2, "fourth": 3, "4th": 3, "fifth": 4,
    "5th": 4, "last": -1, "latter": -1,
}  # fmt: skip
#: These are places only where no numbers are offered, or behind a word of `_NUMBERED`.
_DIGITS = {"1": 0, "one": 0, "2": 1, "two": 1, "3": 2, "three": 2, "4": 3, "four": 3, "5": 4}
_POINTING = word_set("the that this these those")
_NUMBERED = word_set("option choice answer reading")
_BOTH, _ALL = word_set("both"), word_set("all each everything")
_NONE = word_set("neither none no nope nah")
_YES = word_set("yes yeah yep yup ok okay sure correct right exactly absolutely definitely indeed")
_MOST = word_set("bigger biggest larger largest higher highest greater greatest later latest")
_LEAST = word_set("smaller smallest lower lowest lesser least earlier earliest sooner soonest")
#: What may stand beside the word that chooses: more words are a sentence of their own.
BESIDE = word_set(
    "the a i mean meant want take choose pick please would like it's that's it is was that this of them these those do"
    " go with for then thanks thank you one ones two three option choice answer reading number task agent question"
    " value above sorry well oh just i'd i'll let's think guess"
)
_WORDS = re.compile(r"[\w']+")


def words_in(text: str) -> list[str]:
    """Return the words of *text* in small letters."""
    return _WORDS.findall(text.lower().replace("\u2019", "'"))


def says_yes(text: str) -> bool:
    """Return whether *text* agrees, and says nothing else ("yes please", "that's right")."""
    words = words_in(text)
    return not _YES.isdisjoint(words) and _YES.union(BESIDE).issuperset(words)


def pick(text: str, count: int, *, may_be_digit: bool = False) -> tuple[int, ...] | None:
    """Return which of *count* things *text* picks, by their places from 0; empty for none of them.

    None when it picks nothing by place. A bare number picks where it *may_be_digit*. A yes picks the only one.
    """
    words = words_in(text)
    by_digit = may_be_digit or not _NUMBERED.isdisjoint(words)
    named = _places_in(words, _PLACES) or (_places_in(words, _DIGITS) if by_digit else [])
    known = BESIDE | _YES | _NONE | _PLACES.keys() | {"not", "and"} | (_DIGITS.keys() if by_digit else frozenset())
    others = [word for word in words if word not in known]
    if named and not others:
        return _at(words, named, count)
    if others and not (_BOTH | _ALL).issuperset(others):
        return None
    if others:
        return tuple(range(count)) if count > 1 and (count == 2 or not _BOTH.issuperset(others)) else None
    if not _NONE.isdisjoint(words) or ("not" in words and count == 1):
        return ()
    return (0,) if count == 1 and says_yes(text) else None


def pick_by_size(text: str, values: Sequence[Any]) -> int | None:
    """Return the place of the greatest or smallest of *values* where *text* says that ("the later one"), or None."""
    words = [word for word in words_in(text) if word not in BESIDE]
    if len(words) != 1 or words[0] not in _MOST | _LEAST:
        return None
    return values.index(max(values) if words[0] in _MOST else min(values))


def _places_in(words: Sequence[str], names: Mapping[str, int]) -> list[tuple[int, int]]:
    """Return where *words* name a place, and which; the "one" of "that one" is no number."""
    return [
        (at, names[word])
        for at, word in enumerate(words)
        if word in names and not (names is _DIGITS and at and words[at - 1] in _POINTING)
    ]


def _at(words: Sequence[str], named: Sequence[tuple[int, int]], count: int) -> tuple[int, ...] | None:
    """Return the places within *count* that are *named*; of two, the other than the one denied ("not the first")."""
    places = {place % count if place < 0 else place: "not" in words[max(at - 2, 0) : at] for at, place in named}
    if max(places) >= count:
        return None
    kept = tuple(sorted(place for place, is_denied in places.items() if not is_denied))
    if kept or count > 2 or len(places) == count == 2:
        return kept or None
    return tuple({0, 1} - places.keys()) if count == 2 else ()
