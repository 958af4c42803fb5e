"""Texts that may say the same in other words, as a model of meaning sees them: proposed to a person, never acted on.

A model finds "jogs" and "goes running" alike, and "5 km" and "50 km" nearly so. Hence it only proposes, and only what
has the same numbers and signs. The model is `tasklore.memory.episodes.minilm`; without its weights
there is nothing to propose.
"""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from math import sqrt
from operator import mul

from tasklore.contracts.errors import ConfigurationError
from tasklore.contracts.extensions import Embedder
from tasklore.memory.documents.review import plain_form
from tasklore.memory.grounding import numbers_in

#: From which cosine on (-1 to 1) two texts are proposed. Of 21 pairs of short sentences that say the same in other
#: words 11 lie above it, and of 29 that differ in a word ("sheep cheese", "goat cheese": 0.845) none does: who looks
#: at proposals should not look in vain.
ALIKE_FROM = 0.85

_LETTERS = re.compile(r"\b[^\W\d_]\b|[+#%\u00b0]")
_SMALL = frozenset({"i", "a"})


def alike(
    texts: Sequence[str], embedder: Embedder, threshold: float = ALIKE_FROM
) -> tuple[tuple[int, int], ...]:
    """Return which of *texts* may say the same, as pairs of indices, smaller first; the most alike pair comes first.

    *threshold* is the cosine (-1 to 1) that a pair must reach. Left out are pairs that are equal anyway, and those that
    a number or a sign distinguishes.

    Raises:
        ConfigurationError: *embedder* returned another number of vectors, or vectors of several lengths.
    """
    if len(texts) < 2:
        return ()
    vectors = _directions(embedder.embed(texts), len(texts))
    near = [
        (-cosine, first, second)
        for first, second in combinations(range(len(texts)), 2)
        if (cosine := sum(map(mul, vectors[first], vectors[second]))) >= threshold
        and _may_be_proposed(texts[first], texts[second])
    ]
    return tuple((first, second) for _, first, second in sorted(near))


def _may_be_proposed(first: str, second: str) -> bool:
    """Return whether no number, letter or sign distinguishes *first* and *second*, and they are not equal anyway."""
    if plain_form(first) == plain_form(second):
        return False
    numbers = [
        [number.readings for number in numbers_in(text)] for text in (first, second)
    ]
    return numbers[0] == numbers[1] and _letters(first) == _letters(second)


def _letters(text: str) -> Counter[str]:
    """Return the single letters and signs of *text*, which tell hepatitis B from C, and C++ from C."""
    return Counter(
        part for part in _LETTERS.findall(text.casefold()) if part not in _SMALL
    )


def _directions(vectors: Sequence[Sequence[float]], expected: int) -> list[list[float]]:
    """Return *vectors* with the length one, so that a product is a cosine; one without a direction stays as it is."""
    if len(vectors) != expected or len({len(vector) for vector in vectors}) > 1:
        raise ConfigurationError(
            f"the embedder returned {len(vectors)} vectors for {expected} texts, or vectors of several lengths; "
            "it has to return one for each text, all of one length"
        )
    return [_direction(vector) for vector in vectors]


def _direction(vector: Sequence[float]) -> list[float]:
    length = sqrt(sum(part * part for part in vector))
    return [part / length for part in vector] if length else list(vector)
