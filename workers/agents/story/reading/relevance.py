"""What two texts have in common: the words that carry what they are about, whatever their endings."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path

from workers.agents.story.reading.prose import words

_EVERYDAY = Path(__file__).with_name("everyday_words.txt")
#: Texts whose stems are kept: many things are held to the same few.
_KEPT = 32
#: Letters of the shortest word that is about something, and letters by which two forms of a word are the same.
_LEAST, _STEM = 4, 6


def content_of(text: str, *, without: Iterable[str] = ()) -> dict[str, str]:
    """Return the words that say what *text* is about, by stem, as they stand there first.

    Everyday words are left out, and those of the names *without*, which say who and not what.
    """
    left_out = _everyday() | {part.casefold() for name in without for part in words(name)}
    found: dict[str, str] = {}
    for word in words(text.replace("_", " ")):
        plain = word.casefold().replace("\u2019", "'").removesuffix("'s")
        if len(plain) >= _LEAST and plain not in left_out and not plain.isdigit():
            found.setdefault(plain[:_STEM], word.removesuffix("'s").removesuffix("\u2019s"))
    return found


@lru_cache(_KEPT)
def stems_of(text: str) -> frozenset[str]:
    """Return the stems of the words that say what *text* is about, names included, as `content_of` has them."""
    return frozenset(content_of(text))


def shared_by(told: Mapping[str, str], contents: Sequence[Mapping[str, str]]) -> list[list[str]]:
    """Return the stems that *told* has in common with each of *contents*: those first that the fewest of them have."""
    common = [[stem for stem in told if stem in content] for content in contents]
    often = Counter(chain.from_iterable(common))
    return [sorted(stems, key=lambda stem: often[stem]) for stems in common]


@cache
def _everyday() -> frozenset[str]:
    return frozenset(_EVERYDAY.read_text("utf-8").split())
