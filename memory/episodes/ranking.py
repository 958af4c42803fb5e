"""BM25: how well texts answer a query by the words they have in common. Pure."""

import math
from collections import Counter
from collections.abc import Sequence

from memory.episodes.words import words_of

__all__ = ["rank", "rank_words"]

#: How much a word counts that comes again in one text, and how much a text's length takes from it.
SATURATION, LENGTH_SHARE = 1.2, 0.6


def rank(query: str, texts: Sequence[str]) -> list[float]:
    """Return the BM25 score of each of *texts* for *query*: 0.0 where they have no word in common."""
    return rank_words(set(words_of(query)), [words_of(text) for text in texts])


def rank_words(wanted: set[str], texts: Sequence[Sequence[str]]) -> list[float]:
    """Return what `rank` does for words: those of a query, and those of each text."""
    if not wanted or not texts:
        return [0.0] * len(texts)
    documents = [Counter(text) for text in texts]
    lengths = [document.total() for document in documents]
    usual = max(1.0, sum(lengths) / len(lengths))
    holders = Counter(word for document in documents for word in wanted & document.keys())
    weights = {word: math.log(1 + (len(texts) - count + 0.5) / (count + 0.5)) for word, count in holders.items()}
    lengthened = [SATURATION * (1 - LENGTH_SHARE + LENGTH_SHARE * length / usual) for length in lengths]
    return [
        # in any order of the set, so that every process ranks alike
        math.fsum(
            weights[word] * (document[word] * (SATURATION + 1) / (document[word] + length))
            for word in wanted & document.keys()
        )
        for document, length in zip(documents, lengthened, strict=True)
    ]
