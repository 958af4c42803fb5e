"""A text as words with their places, quoted passages masked: every word points at the letters it was read from."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

#: Stands for every letter of a passage that is somebody else's; never part of a word.
MASK = "\x00"

_WORD = re.compile(
    rf"""
    {MASK}+
    | \n\s*
    | '[a-z]+\b
    | \d{{4}}-\d\d-\d\d\b
    | [^\W_]+ (?: [.,:]\d[^\W_]* )* (?: '[^\W_]+ )*
    | (?P<sign> [^\w\s] ) (?P=sign)*
    | _+
    """,
    re.VERBOSE | re.IGNORECASE,
)
_QUOTED = re.compile(
    r"""
    "[^"\n]*(?:"|$)
    | “[^”\n]*(?:”|$)
    | «[^»\n]*(?:»|$)
    | „[^“”\n]*(?:[“”]|$)
    | (?<!\w)'(?=\S)[^'\n]*'(?!\w)
    | ```.*?(?:```|\Z)
    | `[^`\n]*`
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
#: A line of a mail that is being answered, or of a table.
_ANSWERED = re.compile(r"^[ \t]*[>|][^\n]*", re.MULTILINE)
_APOSTROPHES = dict.fromkeys("\u2019\u02bc\u00b4\u2018", "'")


@dataclass(frozen=True, slots=True)
class Word:
    """One word: `text` as it is compared, `written` as it may be repeated, `start` and `end` in the text.

    A contraction is several words of one place.
    """

    text: str
    written: str
    start: int
    end: int


def folded(text: str) -> str:
    """Return *text* in small letters and plain apostrophes, every letter in its place."""
    if text.isascii():
        return text.lower()
    return "".join(_fold(sign) for sign in text)


def masked(text: str) -> str:
    """Return *text* with what is quoted, code, or a line of an answered mail masked, every letter in its place."""
    straight = text if text.isascii() else "".join(_APOSTROPHES.get(sign, sign) for sign in text)
    hidden = _ANSWERED.sub(_hide, straight)
    return _QUOTED.sub(_hide, hidden)


def words_of(text: str, contractions: Mapping[str, tuple[str, ...]]) -> Iterator[Word]:
    """Yield the words of *text*, which may be `masked`; signs, line ends and masks are words of their own."""
    small = folded(text)
    for match in _WORD.finditer(small):
        start, end = match.span()
        word, written = match[0], text[start:end]
        told = contractions.get(word)
        if told is not None:
            yield from (Word(part, _as_in(part, written), start, end) for part in told)
        elif not word[0].isalnum() and not word.startswith("'"):
            # A sign is the same however often it is repeated.
            yield Word(word[0], "" if word[0] == MASK else written, start, end)
        elif "'" in word and not word.startswith("'"):
            yield from _possessive(word, written, start)
        else:
            yield Word(word, written, start, end)


def written(words: Sequence[Word]) -> str:
    """Return *words* as text again, spaced as they were."""
    pieces: list[str] = []
    last: Word | None = None
    for word in words:
        is_glued = last is not None and word.start == last.end
        pieces.append(word.written if last is None or is_glued else f" {word.written}")
        last = word
    return "".join(pieces)


def span(words: Iterable[Word]) -> tuple[int, int]:
    """Return where the first of *words* begins and the last one ends."""
    listed = list(words)
    return min(word.start for word in listed), max(word.end for word in listed)


@lru_cache(maxsize=4096)
def _fold(sign: str) -> str:
    plain = _APOSTROPHES.get(sign) or unicodedata.normalize("NFKC", sign).lower()
    return plain if len(plain) == 1 else sign


def _hide(match: re.Match[str]) -> str:
    return "\n".join(MASK * len(line) for line in match[0].split("\n"))


def _as_in(part: str, written: str) -> str:
    """Return a part of a contraction with the capital it had."""
    return part[:1].upper() + part[1:] if written[:1].isupper() and written[:1].lower() == part[:1] else part


def _possessive(word: str, written: str, start: int) -> Iterator[Word]:
    stem, _, rest = word.partition("'")
    middle = start + len(stem)
    yield Word(stem, written[: len(stem)], start, middle)
    yield Word(f"'{rest}", written[len(stem) :], middle, start + len(word))
