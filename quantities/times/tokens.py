"""A sentence cut into words, numbers and the written forms of dates and clocks, in time linear in its length."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal, NamedTuple

Kind = Literal["iso", "length", "date", "clock", "fraction", "number", "word", "symbol", "other"]

_TOKEN = re.compile(
    r"""
    (?P<other>  https?://\S++ | www\.\S++ )
  | (?P<iso>    (?<! [\w-] ) \d{4}-\d{2}-\d{2} (?: (?: [Tt] | \x20 (?= \d\d:\d\d (?! \d ) ) ) \d{2}:\d{2}
                (?: :\d{2} (?: [.,]\d++ )? )? (?: \x20? [Zz] \b | [+-]\d{2} (?: :?\d{2} )? )? )? (?! [\d-] ) )
  | (?P<length> (?<! \w ) P (?= \d | T\d ) (?: \d++ (?: [.,]\d++ )? [YMWD] )*+
                (?: T (?: \d++ (?: [.,]\d++ )? [HMS] )++ )? (?! \w ) )
  | (?P<date>   (?<! [\w./-] ) (?: \d{4} (?P<mark> [/.] ) \d{1,2} (?P=mark) \d{1,2}
                | \d{1,2} (?P<between> [/.-] ) \d{1,2} (?P=between) (?: \d{4} | \d{2} ) ) (?! [\d/-] | \.\d ) )
  | (?P<clock>  (?<! [\w:.] ) \d{1,2} : \d{2} (?: :\d{2} (?: \.\d++ )? )? (?! [\d:] ) )
  | (?P<fraction> (?<! [\w/.] ) \d{1,3} / \d{1,3} (?! [\w/] ) )
  | (?P<number> \d{1,3} (?: ,\d{3} )++ (?: \.\d++ )? (?! [\d,] ) | \d++ (?: \.\d++ | ,\d{1,2} (?! [\d,] ) )? )
  | (?P<part>   [½¼¾⅓⅔⅕⅛] )
  | (?P<word>   [^\W\d_]++ (?: ' [^\W\d_]++ )*+ )
  | (?P<symbol> [^\w\s] | _ | \n )
    """,
    re.VERBOSE,
)
_NON_ASCII = re.compile(r"[^\x00-\x7f]")
_FOLDED = {"\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u2019": "'", "\u2212": "-", "\u2013": "-", "\u2014": "-"}


class Token(NamedTuple):
    """A piece of the sentence: *text* in small letters and its place; *is_glued* to the piece before it."""

    kind: Kind
    text: str
    start: int
    end: int
    is_glued: bool


class Sentence(NamedTuple):
    """A text and its tokens; places outside it read as nothing."""

    text: str
    tokens: Sequence[Token]

    def token(self, place: int) -> Token | None:
        """Return the token at *place*, None outside the sentence."""
        return self.tokens[place] if 0 <= place < len(self.tokens) else None

    def word(self, place: int) -> str:
        """Return the word at *place*, "" when there is none."""
        if not 0 <= place < len(self.tokens):
            return ""
        token = self.tokens[place]
        return token.text if token.kind == "word" else ""

    def symbol(self, place: int) -> str:
        """Return the mark at *place*, "" when there is none."""
        if not 0 <= place < len(self.tokens):
            return ""
        token = self.tokens[place]
        return token.text if token.kind == "symbol" else ""

    def kind(self, place: int) -> str:
        """Return the kind of the token at *place*, "" outside the sentence."""
        return self.tokens[place].kind if 0 <= place < len(self.tokens) else ""

    def is_glued(self, place: int) -> bool:
        """True when nothing stands between the token at *place* and the one before it."""
        return 0 < place < len(self.tokens) and self.tokens[place].is_glued

    def after_hyphen(self, place: int) -> int:
        """Return the place after a hyphen at *place* that joins two words, else *place*."""
        joins = self.symbol(place) == "-" and self.is_glued(place) and self.is_glued(place + 1)
        return place + 1 if joins else place

    def whole(self, place: int) -> int | None:
        """Return the whole number in digits at *place*, None when there is none of at most four digits."""
        if self.kind(place) != "number":
            return None
        text = self.tokens[place].text
        return int(text) if text.isdigit() and len(text) <= 4 else None

    def cut(self, first: int, end: int) -> tuple[int, int, str]:
        """Return where the tokens from *first* to before *end* stand, and their text."""
        start, stop = self.tokens[first].start, self.tokens[end - 1].end
        return start, stop, self.text[start:stop]


def sentence_of(text: str) -> Sentence:
    """Return *text* cut up; digits of any script read as ASCII, and every character keeps its place."""
    folded = fold(text)
    tokens: list[Token] = []
    last = -1
    for match in _TOKEN.finditer(folded):
        kind, (start, end) = match.lastgroup, match.span()
        written = match.group()
        if kind == "part":
            kind = "symbol"
        elif kind == "word":
            written = written.lower()
            # "may's" and "yesterday's" are the day
            if len(written) > 2 and written.endswith("'s"):
                written = written[:-2]
        tokens.append(Token(kind, written, start, end, start == last))  # type: ignore[arg-type]  # names of groups
        last = end
    return Sentence(text, tokens)


def fold(text: str) -> str:
    """Return *text* with any script's digits, spaces and dashes in ASCII, every character in its old place."""
    return text if text.isascii() else _NON_ASCII.sub(_fold, text)


def _fold(match: re.Match[str]) -> str:
    character = match.group()
    digit = unicodedata.decimal(character, None)
    return _FOLDED.get(character, character) if digit is None else str(int(digit))
