"""Which of some phrases a text says, and which it says as a fact: not asked, denied or supposed.

A phrase is whole words, in any case, and its last word may be a plural or a possessive; other forms are listed by
whoever lists phrases.
"""

import re
from collections.abc import Iterable
from functools import lru_cache

#: Words that take back what follows them, or only suppose it, when they stand among the last words before it.
_DOUBTS = frozenset(
    {"not", "never", "no", "nor", "without", "cannot", "if", "unless", "whether"}
    | {"would", "could", "might", "may", "will", "shall", "should", "suppose", "imagine", "nearly", "almost"}
)
_DOUBT_WORDS = 4
#: What ends a clause: a doubt before it says nothing of what follows.
_CLAUSE_END = re.compile(r"[.,;:!?\u2026\u2014\"\u201c\u201d]")
_SENTENCE_END = re.compile(r"[.!?\u2026]")
_WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)?")


def says_any(phrases: Iterable[str], text: str) -> bool:
    """Tell whether *text* says one of *phrases*."""
    return _pattern(tuple(phrases)).search(text) is not None


def affirmed(phrases: Iterable[str], text: str) -> re.Match[str] | None:
    """Return where the sentence *text* says one of *phrases* as a fact, the first place that it does."""
    found = _pattern(tuple(phrases)).finditer(text)
    return next((one for one in found if not (_is_doubted(text[: one.start()]) or _is_asked(text[one.end() :]))), None)


def one_line(text: str, limit: int) -> str:
    """Return *text* as one line, cut behind a word when it is longer than *limit* characters."""
    line = " ".join(text.split())
    if len(line) <= limit:
        return line
    kept, blank, _ = line[:limit].rpartition(" ")
    return f"{(kept if blank else line[: limit - 1]).rstrip(' ,;:.-')}\u2026"


def _is_asked(after: str) -> bool:
    end = _SENTENCE_END.search(after)
    return end is not None and end[0] == "?"


def _is_doubted(before: str) -> bool:
    clause = _CLAUSE_END.split(before)[-1]
    words = [word.casefold().replace("\u2019", "'") for word in _WORD.findall(clause)[-_DOUBT_WORDS:]]
    return any(word in _DOUBTS or word.endswith(("n't", "'ll", "'d")) for word in words)


@lru_cache(1_000)
def _pattern(phrases: tuple[str, ...]) -> re.Pattern[str]:
    """Return what finds any of *phrases*, whatever its blanks and apostrophes, and the longest where several begin."""
    shapes = [r"\s+".join(map(_shape, phrase.split())) for phrase in sorted(phrases, key=len, reverse=True)]
    spelled = "|".join(filter(None, shapes)) or r"(?!)"
    return re.compile(rf"(?<!\w)(?:{spelled})(?:['\u2019]s|s['\u2019]|s|es)?(?!\w)", re.IGNORECASE)


def _shape(word: str) -> str:
    return re.escape(word).replace("'", "['\u2018\u2019]")
