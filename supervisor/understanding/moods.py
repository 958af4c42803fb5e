"""The mood of a sentence: whether it asks, denies, imagines or reports. A card's examples are the measure of it."""

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, pairwise

from tasklore.supervisor.understanding.utterance import (
    Token,
    tells_of_past,
    tokens_of,
    word_set,
)

_ASKING = word_set(
    "what what's how who who's which when where where's why is are was were does has"
)
_ASKING_PAIRS = frozenset(
    (one, other)
    for one in ("do", "did", "have")
    for other in ("you", "we", "i", "they")
)
_WONDERING = frozenset(
    {
        ("should", "i"),
        ("should", "we"),
        *((one, "if") for one in ("know", "see", "ask", "wonder", "wondering", "sure")),
    }
)
#: What somebody tells of a thing begins so: "the pizza has 2 funghi on it".
_HAVING = word_set("has have had")
_MOST_SUBJECT = 3
#: Said of what did not happen, or may happen.
_UNREAL = word_set(
    "might maybe never won't wouldn't didn't doesn't don't haven't hasn't isn't wasn't cannot can't imagine suppose"
    " pretend"
)
#: Whoever a sentence is about that begins with it is nobody who asks.
_OTHERS = word_set("she he they")
_HELPERS = word_set("did do does have has will would should could can")

_DEFINITE = word_set("the my our your this that")


@lru_cache(maxsize=4096)
def words_of(examples: tuple[str, ...]) -> frozenset[str]:
    """Return the words of *examples* as they are spelled there, in small letters."""
    return frozenset(one.text for example in examples for one in tokens_of(example))


@lru_cache(maxsize=4096)
def moods_of(examples: tuple[str, ...]) -> frozenset[str]:
    """Return the moods that one of *examples* is in: those that a request for their task may be in."""
    return frozenset(
        chain.from_iterable(moods_in(tokens_of(example)) for example in examples)
    )


def moods_in(tokens: Sequence[Token]) -> frozenset[str]:
    """Return the moods of *tokens*: asking or imagining without a request ("Is it free? Then book it"), and telling."""
    said = [token.text for token in tokens] or [""]
    asks = (
        len(said) > 1 and said[0] in _ASKING and {"?", ".", "!"}.isdisjoint(said[:-1])
    )
    asks |= "whether" in said or tuple(said[:2]) in _ASKING_PAIRS
    asks |= not _WONDERING.isdisjoint(pairwise(said))
    imagines = (
        said[0] in {"if", "no"}
        or not _UNREAL.isdisjoint(said)
        or {"would", "have"} <= set(said)
    )
    imagines |= any(
        before in _HELPERS and after == "not" for before, after in pairwise(said)
    )
    tells = tells_of_past(tokens) or tells_of_past(tokens[1:2])
    tells |= said[0] in _OTHERS
    tells |= said[0] in _DEFINITE and not _HAVING.isdisjoint(
        said[1 : 1 + _MOST_SUBJECT]
    )
    moods = {"asking": asks or imagines, "telling": tells}
    return frozenset(mood for mood, is_there in moods.items() if is_there)
