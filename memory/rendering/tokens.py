"""How many tokens a text is to a model: exactly, with the extra `tokens`, else estimated, never too low or about right.

All count as o200k_base does. Both estimates cut a text where that tokenizer cuts it, and know some of its tokens
(`known_tokens.txt`). Of a piece that is none of them `estimate` assumes the worst that can come of merging: neighbours
are merged for as long as two of them are a token together, so in the end no two neighbours are a token that we know.
`likely` takes what letters of its script usually are.
"""

import math
import re
import unicodedata
from collections.abc import Callable
from functools import cache, lru_cache
from importlib.resources import files

Count = Callable[[str], int]

#: Bytes of a token up to which it is asked whether it would have been merged; known words are hardly longer.
_LONGEST = 10
#: Pieces whose count is kept: the words of a story, a few megabytes.
_KEPT = 20_000
#: Tokens of a letter in a word that is no known token, by its script: fitted on chats, of which others are checked
#: (`tests/unit/memory/test_likely_tokens.py`).
_OF_LETTER = {
    "LATIN": 1.0,
    "CYRILLIC": 0.33,
    "GREEK": 0.5,
    "ARABIC": 0.41,
    "HEBREW": 0.5,
    "DEVANAGARI": 0.39,
    "THAI": 0.46,
    "HANGUL": 0.9,
}
#: The same of a Latin letter without marks, and of a letter of any other script.
_OF_PLAIN_LETTER = 0.29
_OF_OTHER_LETTER = 0.93
#: Tokens of a sign among others.
_OF_SIGN = 0.5
#: Tokens more for a sign that is newer than our tables: whether it is a letter decides how its neighbours are cut.
_NEW_SIGN = 2
#: Characters that the exact tokenizer is given at once; it refuses a million.
_AT_ONCE = 100_000

# One sign for all of a class: \x01 letters that have no case, \x02 marks, \t blanks, ! what is none of the others.
_CLASSES = {
    "Lu": "A",
    "Lt": "A",
    "Ll": "a",
    "Lm": "\x01",
    "Lo": "\x01",
    "Mn": "\x02",
    "Mc": "\x02",
    "Me": "\x02",
}
_CLASSES |= {"Nd": "0", "Nl": "0", "No": "0", "Zs": "\t", "Zl": "\t", "Zp": "\t"}
_TAIL = r"(?:'(?:[stmdSTMD]|[rR][eE]|[vV][eE]|[lL]{2}))?"
_LEAD = r"[^\r\nA-Za-z0-9\x01]?"
_PIECES = re.compile(
    rf"{_LEAD}[A-Z\x01\x02]*[a-z\x01\x02]+{_TAIL}|{_LEAD}[A-Z\x01\x02]+[a-z\x01\x02]*{_TAIL}"
    r"|[0-9]{1,3}| ?[^\sA-Za-z0-9\x01]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


class _Classes(dict[int, str]):
    """The class of each sign, found out when it is met for the first time; ASCII stands for itself."""

    def __missing__(self, code: int) -> str:
        if code < 0x80:
            known = "!" if code < 0x20 and not 9 <= code <= 13 else chr(code)
        else:
            known = (
                "\t"
                if code == 0x85
                else _CLASSES.get(unicodedata.category(chr(code)), "!")
            )
        # The long s counts as an s after an apostrophe.
        self[code] = known if code != 0x17F else "s"
        return self[code]


_CLASS_OF = _Classes()
#: How the list of known tokens shows blanks and ends of lines.
_SHOWN = str.maketrans("\u2423\u23ce", " \n")


def counter() -> Count:
    """Return what counts tokens: exactly when `bpe-openai` is installed (`pip install 'tasklore[tokens]'`)."""
    return exact() or estimate


@cache
def exact() -> Count | None:
    """Return what counts exactly as o200k_base does, None without the extra `tokens`."""
    try:
        import bpe_openai  # type: ignore[import-not-found, import-untyped, unused-ignore]  # an extra
    except ImportError:
        return None
    encode: Callable[[str], list[int]] = bpe_openai.get_encoding(
        "o200k_base"
    ).encode_ordinary

    def count(text: str) -> int:
        return sum(
            len(encode(text[at : at + _AT_ONCE]))
            for at in range(0, len(text), _AT_ONCE)
        )

    return count


def likely(text: str) -> int:
    """Return about how many tokens o200k_base makes of *text*: between a sixth too few and a third too many."""
    return math.ceil(
        sum(
            _likely_of(text[found.start() : found.end()])
            for found in _PIECES.finditer(text.translate(_CLASS_OF))
        )
    )


@lru_cache(_KEPT)
def _likely_of(piece: str) -> float:
    """Return about how many tokens *piece* is, at least one: a word that is known is one, others by their letters."""
    if piece.encode("utf-8", "replace") in known_tokens():
        return 1.0
    tokens = sum(map(_likely_of_sign, piece.strip()))
    return max(1.0, tokens)


@lru_cache(_KEPT)
def _likely_of_sign(sign: str) -> float:
    if sign.isascii():
        return _OF_PLAIN_LETTER if sign.isalpha() else _OF_SIGN
    if unicodedata.category(sign)[0] not in "LM":
        return 1.0
    script = unicodedata.name(sign, "").partition(" ")[0]
    return _OF_LETTER.get(script, _OF_OTHER_LETTER)


def estimate(text: str) -> int:
    """Return at least as many tokens as o200k_base makes of *text*: for English prose a quarter more."""
    if not text.isascii():
        # As the tokenizer reads it: pairs of surrogates are one sign, and half a pair is a replacement.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    total = 0
    new = 0
    for found in _PIECES.finditer(text.translate(_CLASS_OF)):
        piece = text[found.start() : found.end()]
        total += _at_most(piece.encode())
        if not piece.isascii():
            new += sum(unicodedata.category(sign) == "Cn" for sign in piece)
    return total + _NEW_SIGN * new


@lru_cache(_KEPT)
def _at_most(piece: bytes) -> int:
    """Return the most tokens that *piece* can be, over all ways to cut it that leave no known token in two."""
    known = known_tokens()
    if piece in known or piece.strip(b" ").isdigit():
        return 1 if piece in known else len(piece)
    # By the end of the last token, then by its length: how many tokens there are at most. 0 is any longer length.
    rows: list[list[int]] = [[0] + [-1] * _LONGEST]
    best_before = 0
    for end in range(1, len(piece) + 1):
        row = [-1] * (_LONGEST + 1)
        if end > _LONGEST:
            best_before = max(best_before, *rows[end - _LONGEST - 1])
            row[0] = best_before + 1
        for length in range(1, min(_LONGEST, end) + 1):
            row[length] = _most_before(
                piece, row=rows[end - length], end=end, length=length, known=known
            )
        rows.append(row)
    return max(rows[-1])


def _most_before(
    piece: bytes, row: list[int], end: int, length: int, known: frozenset[bytes]
) -> int:
    """Return how many tokens there are with one of *length* that ends at *end*; -1 when there can be none."""
    most = -1
    for before, count in enumerate(row):
        if count > most and (
            not before or piece[end - length - before : end] not in known
        ):
            most = count
    return most + 1 if most >= 0 else -1


@cache
def known_tokens() -> frozenset[bytes]:
    """Return tokens of o200k_base: those that `known_tokens.txt` lists, numbers of up to three digits, single bytes."""
    found = {
        str(number).zfill(digits).encode()
        for digits in (1, 2, 3)
        for number in range(10**digits)
    }
    found |= {bytes([code]) for code in range(256)}
    for line in (
        (files("tasklore.memory.rendering") / "known_tokens.txt")
        .read_text("utf-8")
        .splitlines()
    ):
        name, _, listed = line.partition(" ")
        what, _, form = name.partition("-")
        if what == "words":
            found |= {
                _spell(word, letter) for word in listed.split() for letter in form
            }
        elif what == "signs":
            found |= {sign.translate(_SHOWN).encode() for sign in listed.split()}
        elif what == "bytes":
            found |= {bytes.fromhex(form + second) for second in listed.split()}
    return frozenset(found)


def _spell(word: str, form: str) -> bytes:
    shown = word.capitalize() if form.isupper() else word
    return (f" {shown}" if form in "sS" else shown).encode()
