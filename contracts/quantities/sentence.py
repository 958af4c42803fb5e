"""A text cut into words, numbers and the written forms of dates and clocks, in time linear in its length."""

import re
import unicodedata
from typing import Literal, NamedTuple

Kind = Literal[
    "iso", "length", "date", "clock", "other", "fraction", "number", "word", "symbol"
]

_TOKEN = re.compile(
    r"""
    (?P<url>    https?://\S++ | www\.\S++ )
  | (?P<iso>    (?<! [\w-] ) \d{4}-\d{2}-\d{2} (?: (?: [Tt] | \x20 (?= \d\d:\d\d (?! \d ) ) ) \d{2}:\d{2}
                (?: :\d{2} (?: [.,]\d++ )? )? (?: \x20? [Zz] \b | [+-]\d{2} (?: :?\d{2} )? )? )? (?! [\d-] ) )
  | (?P<length> (?<! \w ) P (?= \d | T\d ) (?: \d++ (?: [.,]\d++ )? [YMWD] )*+
                (?: T (?: \d++ (?: [.,]\d++ )? [HMS] )++ )? (?! \w ) )
  | (?P<date>   (?<! [\w./-] ) (?: \d{4} (?P<mark> [/.] ) \d{1,2} (?P=mark) \d{1,2}
                | \d{1,2} (?P<between> [/.-] ) \d{1,2} (?P=between) (?: \d{4} | \d{2} ) ) (?! [\d/-] | \.\d ) )
  | (?P<clock>  (?<! [\w:.] ) \d{1,2} : \d{2} (?: :\d{2} (?: \.\d++ )? )? (?! [\d:] ) )
  | (?P<other>  \d++ (?: : \d++ )++ | \d++ - \d++ (?: - \d++ )++ | \d{4} - (?: 0[1-9] | 1[0-2] ) (?! [\d.,] )
                | \d++ / \d++ (?: / \d++ )++ )
  | (?P<fraction> (?<! [\w/.] ) \d{1,15} / \d{1,15} (?: (?: th | rd | nd ) s? )?+ (?! [\w/] ) | [½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒] )
  | (?P<groups> (?<! [\w.,] ) (?<! \d\x20 ) [1-9]\d{0,2} (?: \x20 \d{3} (?! [\d:/] ) )++
                (?: \. \d++ | , \d{1,2} (?! \d ) )?+ (?! [.,]\d ) )
  | (?P<number> (?: \d++ (?: [.,_] \d++ | ' (?! \d{1,2} (?: \.\d++ )?+ (?! \d ) ) \d++ )*+ | (?<! [.\w] ) \. \d++ )
                (?: [eE] [+-]? \d++ (?! \w ) )?+ )
  | (?P<word>   [^\W\d_]++ (?: ' [^\W\d_]++ )*+ )
  | (?P<symbol> [^\w\x20] | _ )
    """,
    re.VERBOSE,
)
_NON_ASCII = re.compile(r"[^\x00-\x7f]")
_FOLDED = {
    "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u2007": " ", "\u2212": "-", "\u2013": "-", "\u2014": "-",
    "\u2019": "'", "\u2044": "/", "\u2215": "/", "\u066b": ".", "\u066c": ",", "\u066a": "%", "\ufe6a": "%",
    "\uff0c": ",", "\uff0e": ".", "\uff04": "$", "\uff05": "%", "\uff0d": "-", "\uffe5": "¥", "\uffe1": "£",
}  # fmt: skip
#: The "x" of "10x12 feet", which is part of a name anywhere else ("4x4", "2x").
_SIDES = re.compile(
    r"(?<=\d)[xX](?=\d{1,5}(?:\.\d{1,3})?(?:[xX]\d{1,5}(?:\.\d{1,3})?)?"
    r"[ -]?(?:feet|foot|ft|inch(?:es)?|yards?|(?:kilo|centi|milli)?met(?:er|re)s?|[kcm]?m|pixels?|px)(?![\w^]))"
)


class SentenceToken(NamedTuple):
    """A piece of a text: its words in small letters and its place; *is_glued* to the piece before it."""

    kind: Kind
    text: str
    start: int
    end: int
    is_glued: bool


class Sentence:
    """A text and its tokens; places outside it read as nothing.

    *text* has the digits of any script, spaces and dashes in ASCII, and every character in its old place; *written* is
    what it was.
    """

    __slots__ = ("_symbols", "_words", "text", "tokens", "written")

    def __init__(self, written: str) -> None:
        self.written = written
        self.text = fold(written)
        self.tokens = _tokens(self.text)
        self._words = [
            token.text if token.kind == "word" else "" for token in self.tokens
        ]
        self._symbols = [
            token.text if token.kind == "symbol" else "" for token in self.tokens
        ]

    def token(self, place: int) -> SentenceToken | None:
        """Return the token at *place*, None outside the sentence."""
        return self.tokens[place] if 0 <= place < len(self.tokens) else None

    def word(self, place: int) -> str:
        """Return the word at *place* in small letters, without its "'s"; "" when there is none."""
        return self._words[place] if 0 <= place < len(self._words) else ""

    def symbol(self, place: int) -> str:
        """Return the mark at *place*, "" when there is none."""
        return self._symbols[place] if 0 <= place < len(self._symbols) else ""

    def kind(self, place: int) -> str:
        """Return the kind of the token at *place*, "" outside the sentence."""
        return self.tokens[place].kind if 0 <= place < len(self.tokens) else ""

    def is_glued(self, place: int) -> bool:
        """True when nothing stands between the token at *place* and the one before it."""
        return 0 <= place < len(self.tokens) and self.tokens[place].is_glued

    def after_hyphen(self, place: int) -> int:
        """Return the place after a hyphen that joins two words, else *place*; "ninety - five" has one too."""
        if self.symbol(place) != "-" or not 0 < place < len(self.tokens) - 1:
            return place
        before, mark, after = self.tokens[place - 1 : place + 2]
        gap = mark.start - before.end
        is_joined = gap == after.start - mark.end and (
            gap == 0 or (gap == 1 and after.kind == "word")
        )
        return place + 1 if is_joined else place

    def after_and(self, place: int) -> int:
        """Return the place after an "and", hyphenated or not; 0 when there is none."""
        place = self.after_hyphen(place)
        return (
            self.after_hyphen(place + 1)
            if self.word(place) == "and" or self.symbol(place) == "&"
            else 0
        )

    def whole(self, place: int) -> int | None:
        """Return the whole number in digits at *place*, None when there is none of at most four digits."""
        token = self.token(place)
        is_short = (
            token is not None
            and token.kind == "number"
            and len(token.text) <= 4
            and token.text.isdigit()
        )
        return int(token.text) if token and is_short else None

    def cut(self, first: int, end: int) -> tuple[int, int, str]:
        """Return where the tokens from *first* to before *end* stand, and their text as it was written."""
        start = self.tokens[first].start
        stop = self.tokens[end - 1].end
        return start, stop, self.written[start:stop]


def _tokens(text: str) -> list[SentenceToken]:
    tokens: list[SentenceToken] = []
    last = -1
    for match in _TOKEN.finditer(text):
        kind = match.lastgroup
        start, end = match.span()
        written = match.group()
        if kind == "word":
            written = written.lower()
            if len(written) > 2 and written.endswith("'s"):
                written = written[:-2]
        elif kind == "groups":
            _add_groups(tokens, written, start, start == last)
            last = end
            continue
        elif kind == "url":
            kind = "other"
        token = SentenceToken(
            kind,  # type: ignore[arg-type]  # names of groups
            text=written,
            start=start,
            end=end,
            is_glued=start == last,
        )
        tokens.append(token)
        last = end
    return tokens


def _add_groups(
    tokens: list[SentenceToken], written: str, start: int, is_glued: bool
) -> None:
    """Add "50 000" as one number, and "500 600 700" as a list."""
    first, *groups = written.split(" ")
    if len(first) < 3 or any(group[0] == "0" for group in groups):
        joined = written.replace(" ", "").replace(",", ".")
        tokens.append(
            SentenceToken(
                "number",
                text=joined,
                start=start,
                end=start + len(written),
                is_glued=is_glued,
            )
        )
        return
    for part in (first, *groups):
        tokens.append(
            SentenceToken(
                "number",
                text=part,
                start=start,
                end=start + len(part),
                is_glued=is_glued,
            )
        )
        start = start + len(part) + 1
        is_glued = False


def fold(text: str) -> str:
    """Return *text* with any script's digits, spaces, dashes and separators in ASCII, each character in its place."""
    text = text if text.isascii() else _NON_ASCII.sub(_fold_character, text)
    return _SIDES.sub("\u00d7", text)


def _fold_character(match: re.Match[str]) -> str:
    character = match.group()
    digit = unicodedata.decimal(character, None)
    return _FOLDED.get(character, character) if digit is None else str(int(digit))
