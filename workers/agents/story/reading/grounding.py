"""Whether what a model wrote rests on what it was given: quotes, numbers and names are looked up, never believed."""

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from workers.agents.story.reading.phrases import one_line
from workers.agents.story.reading.prose import numbers_in, sentences, stands_in, words
from workers.agents.story.reading.relevance import content_of, stems_of

#: What is checked of one answer, whatever a model says: more than any section keeps.
MOST_CHECKED = 16
#: Texts whose words are kept: a response, which each proposal is held to, and what some agents show beside it.
_KEPT = 32
#: Characters of a quote, and words of the shortest one that proves something.
_LONGEST_QUOTE, _LEAST_QUOTED = 200, 2
#: Tags of one memory or thread.
_MOST_TAGS = 5
_TAG = re.compile(r"[^\W\d_](?:[^\W\d]|-){0,29}")


def quote_from(said: str, text: str) -> str | None:
    """Return *said* as one line; None when it does not stand in *text*, or is too long or short to prove anything."""
    quote = " ".join(said.split()).strip('"\u201c\u201d ')
    if len(quote) > _LONGEST_QUOTE or len(words(quote)) < _LEAST_QUOTED:
        return None
    return quote if stands_in(quote, text) else None


def line_from(said: str, sources: Sequence[str], names: Iterable[str], limit: int) -> str | None:
    """Return *said* as one line of at most *limit* characters, None when it says what nothing given to the model does.

    Every number and every name in it must stand in *sources* or be one of *names*, and a word that it is about must.
    """
    if not numbers_in(said) <= frozenset().union(*map(numbers_in, sources)):
        return None
    names = tuple(names)
    given = (*sources, "\n".join(names))
    if any(all(_bare(word) not in _words_of(text) for text in given) for word in _capitalised(said)):
        return None
    about = content_of(said, without=names).keys()
    return one_line(said, limit) if any(about & stems_of(source) for source in sources) else None


def tags_from(said: Iterable[str]) -> tuple[str, ...]:
    """Return those of *said* that are plain words, in small letters and once each, at most five."""
    plain = ("_".join(tag.casefold().split()) for tag in said)
    return tuple(dict.fromkeys(tag for tag in plain if _TAG.fullmatch(tag)))[:_MOST_TAGS]


@lru_cache(_KEPT)
def _words_of(text: str) -> frozenset[str]:
    return frozenset(map(_bare, set(words(text))))


def _capitalised(said: str) -> list[str]:
    """Return words with a capital letter that does not come from standing first in a sentence."""
    return [word for one in sentences(said) for word in words(one.text)[1:] if word[0].isupper() and _bare(word) != "i"]


def _bare(word: str) -> str:
    """Return *word* in small letters and without an ending such as 's or 'll."""
    return re.split("['\u2019]", word.casefold(), maxsplit=1)[0]
