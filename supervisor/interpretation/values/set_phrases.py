"""Set phrases for who comes, which no rule builds: "on my own", "both of us", "just the one", "my better half"."""

import re
from collections.abc import Sequence
from typing import NamedTuple

from supervisor.interpretation.values.people import PAIRED

_WHOLE = {
    ("me", ",", "myself", "and", "i"): (1, False), ("on", "my", "own"): (1, False), ("all", "by", "myself"): (1, False),
    ("alone",): (1, False), ("solo",): (1, False), ("both", "of", "us"): (2, True), ("us", "both"): (2, True),
    ("nobody", "but", "me"): (1, False), ("no", "one", "but", "me"): (1, False), ("by", "myself"): (1, False),
    ("mr", "and", "mrs"): (2, False), ("mr", "&", "mrs"): (2, False), ("we", "both"): (2, True),
    ("single", "diner"): (1, False), ("single", "person"): (1, False), ("just", "the", "one"): (1, True),
    ("only", "the", "one"): (1, True),
}  # fmt: skip
_LONGEST = max(map(len, _WHOLE))
_FIRST = frozenset(phrase[0] for phrase in _WHOLE)
#: A number that nothing parts from its people.
_GLUED = re.compile(r"(\d{1,3})(?:ppl|pax|people|persons?|adults?|kids?|guests?|pers)")
#: All that is said: "x4", "4x".
_TIMES_ALONE = re.compile(r"x?(\d{1,3})x?")
_ENDS = frozenset({"", ".", "!", "?", ",", "please", "for", "at", "on", "thanks"})


class SetPhrase(NamedTuple):
    """How many people the words up to token *end* are, and whether a number is among those words."""

    value: int
    end: int
    has_number: bool


def whole_party(words: Sequence[str], place: int) -> SetPhrase | None:
    """Return what a phrase for a whole party at *place* tells, None without one."""
    if words[place] not in _FIRST:
        return None
    for length in range(_LONGEST, 0, -1):
        said = tuple(words[place : place + length])
        found = _WHOLE.get(said) if len(said) == length else None
        after = words[place + length] if place + length < len(words) else ""
        if found is not None and (said[-1] != "one" or after in _ENDS):
            return SetPhrase(found[0], place + length, found[1])
    return None


def one_of_two_words(words: Sequence[str], place: int) -> SetPhrase | None:
    """Return who the two words at *place* tell together: the "better half" of "my better half"."""
    return SetPhrase(1, place + 2, has_number=False) if tuple(words[place : place + 2]) in PAIRED else None


def glued(words: Sequence[str], place: int) -> SetPhrase | None:
    """Return what the one word "2ppl" at *place* tells, None for any other."""
    match = _GLUED.fullmatch(words[place]) if place < len(words) else None
    if match is None and not place and not any(word[0].isalnum() and word not in _ENDS for word in words[1:]):
        match = _TIMES_ALONE.fullmatch(words[0])
    return SetPhrase(int(match[1]), place + 1, has_number=True) if match else None
