"""BM25: how well texts answer a query by the words they have in common. Pure."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain

from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.episodes.words import index_words, words_of

__all__ = ["rank", "rank_items"]

#: How much a word counts that comes again in one text, and how much a text's length takes from it.
SATURATION = 1.2
LENGTH_SHARE = 0.6
#: A word tells nothing that more than so many places, and this share of them, are described by, such as "to".
_MANY = 4
_MANY_SHARE = 1 / 8
#: Words are akin that begin with as many letters alike, and this share of both: "allergic" and "allergies".
_ALIKE = 5
_ALIKE_SHARE = 0.7


def rank(
    query: str,
    texts: Sequence[str],
    *,
    read_words: Callable[[str], list[str]] = index_words,
) -> list[float]:
    """Return the BM25 score of each of *texts* for *query*: 0.0 where they have no word in common.

    *read_words* says what counts as one.
    """
    return _rank_words(set(read_words(query)), [read_words(text) for text in texts])


def rank_items(query: str, texts: Sequence[str], kinds: Kinds) -> list[float]:
    """Return what `rank` does for items of documents, each with its headings.

    Words count that tell the places of *kinds* apart, and words akin to those.
    """
    words = [words_of(text) for text in texts]
    return _rank_words(
        _telling_words(query, set(chain.from_iterable(words)), kinds), words
    )


def _rank_words(wanted: set[str], texts: Sequence[Sequence[str]]) -> list[float]:
    if not wanted or not texts:
        return [0.0] * len(texts)
    documents = [Counter(text) for text in texts]
    lengths = [document.total() for document in documents]
    usual = max(1.0, sum(lengths) / len(lengths))
    holders = Counter(
        word for document in documents for word in wanted & document.keys()
    )
    weights = {
        word: math.log(1 + (len(texts) - count + 0.5) / (count + 0.5))
        for word, count in holders.items()
    }
    lengthened = [
        SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / usual)
        for length in lengths
    ]
    return [
        # in any order of the set, so that every process ranks alike
        math.fsum(
            weights[word]
            * (document[word] * (SATURATION + 1) / (document[word] + length))
            for word in wanted & document.keys()
        )
        for document, length in zip(documents, lengthened, strict=True)
    ]


def _telling_words(query: str, held: set[str], kinds: Kinds) -> set[str]:
    """Return the words of *query* that tell items apart, and those *held* by items that are akin to one of them."""
    meanings = [
        set(words_of(place.meaning))
        for kind in kinds.by_id.values()
        for place in kind.places
    ]
    often = Counter(chain.from_iterable(meanings))
    most = max(_MANY, _MANY_SHARE * len(meanings))
    wanted = {word for word in words_of(query) if often[word] <= most}
    alike = {
        word[:_ALIKE]: {other for other in wanted if other.startswith(word[:_ALIKE])}
        for word in wanted
    }
    return wanted | {
        one
        for one in held
        for word in alike.get(one[:_ALIKE], ())
        if _is_akin(one, word)
    }


def _is_akin(one: str, other: str) -> bool:
    alike = max(_ALIKE, math.ceil(_ALIKE_SHARE * max(len(one), len(other))))
    return len(one) >= alike and one[:alike] == other[:alike]
