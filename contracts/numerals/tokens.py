"""A sentence cut into words, numbers, fractions and symbols, in time linear in its length.

What looks like a number but is none (dates, times, addresses, identifiers, ordinals) leaves here as `other`.
"""

import re
import unicodedata
from collections.abc import Iterator
from decimal import Context, Decimal
from typing import Literal, NamedTuple

from contracts.numerals.digit_runs import LONGEST_RUN, DecimalMark, Piece, read_run
from contracts.numerals.words import SCALES, SHORT_SCALES
from contracts.units import GLUED_PREFIX, SYMBOLS, unit_named

Kind = Literal["word", "number", "fraction", "symbol", "other"]

#: Digits kept of a fraction that does not end (1/3).
FRACTIONS = Context(prec=34)


class Token(NamedTuple):
    """A piece of the sentence: *text* in small letters, its place, and what it reads as when it is a number."""

    kind: Kind
    text: str
    start: int
    end: int
    readings: tuple[Decimal, ...] = ()


_VULGAR = {sign: FRACTIONS.divide(Decimal(top), Decimal(bottom)) for sign, top, bottom in (
    ("½", 1, 2), ("⅓", 1, 3), ("⅔", 2, 3), ("¼", 1, 4), ("¾", 3, 4), ("⅕", 1, 5), ("⅖", 2, 5), ("⅗", 3, 5),
    ("⅘", 4, 5), ("⅙", 1, 6), ("⅚", 5, 6), ("⅐", 1, 7), ("⅛", 1, 8), ("⅜", 3, 8), ("⅝", 5, 8),
    ("⅞", 7, 8), ("⅑", 1, 9), ("⅒", 1, 10),
)}  # fmt: skip

_TOKEN = re.compile(
    rf"""
    (?P<other>
        https?://\S++ | www\.\S++
      | \d++ (?: : \d++ )++
      | \d++ - \d++ (?: - \d++ )++ (?: [Tt]\d[\d:.+Zz-]*+ )?
      | \d{{4}} - (?: 0[1-9] | 1[0-2] ) (?! [\d.,] )
      | \d++ / \d++ (?: / \d++ )++ )
  | (?P<fraction> \d++ / \d++ | [{"".join(_VULGAR)}] )
  | (?P<number> (?: \d++ (?: [.,'_] \d++ )*+ | \. \d++ ) (?P<power> [eE] [+-]? \d++ (?! \w ) )? )
  | (?P<prefix> (?<! \w ) (?: {GLUED_PREFIX} ) (?= \.?\d ) )
  | (?P<word> [^\W\d_] \w*+ (?: ' [^\W\d_]++ )? | _ \w*+ )
  | (?P<symbol> [^\w\x20] )
    """,
    re.VERBOSE,
)
_ENDS_IN_UNIT = re.compile(r"\d([^\W\d_]{1,9})$")
_NON_ASCII = re.compile(r"[^\x00-\x7f]")
_FOLDED = {
    "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u2007": " ", "\u2212": "-",
    "\u2019": "'", "\u066b": ".", "\u066c": ",",
    "\uff0c": ",", "\uff0e": ".", "\uff04": "$", "\uff05": "%", "\uff0d": "-", "\uffe5": "¥", "\uffe1": "£",
}  # fmt: skip


def fold(text: str) -> str:
    """Return *text* with any script's digits, spaces and separators in ASCII, every character in its old place."""
    return text if text.isascii() else _NON_ASCII.sub(_fold_character, text)


def _fold_character(match: re.Match[str]) -> str:
    character = match.group()
    digit = unicodedata.decimal(character, None)
    return _FOLDED.get(character, character) if digit is None else str(int(digit))


def tokens_of(text: str, decimal_mark: DecimalMark | None = None) -> list[Token]:
    """Return the tokens of *text*, which has been folded; spaces are left out, other white space is a symbol."""
    return list(_join_groups(_scan(text, decimal_mark)))


def _scan(text: str, mark: DecimalMark | None) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        kind, start, end = match.lastgroup, match.start(), match.end()
        written = match.group()
        if kind in {"word", "prefix"}:
            glued = start > 0 and text[start - 1].isdigit()
            known = not glued or _is_suffix(written)
            yield Token("word" if known else "other", written.lower().rstrip("."), start, end)
        elif kind == "symbol":
            yield Token("symbol", written, start, end)
        elif kind == "other" or _is_identifier(text, start, end):
            yield Token("other", written, start, end)
        elif kind == "fraction":
            yield _fraction(written, start, end)
        else:
            yield from _numbers(match, text, mark)


def _is_identifier(text: str, start: int, end: int) -> bool:
    """True for digits that belong to a name: "covid-19", "#7", "item.5", "2x", "50@home", "1^-2"."""
    before = text[start - 1] if start else " "
    if before in "#@^&" or (text[start] == "." and (before.isalnum() or before in "_.")):
        return True
    if before in "+-" and start > 1 and (text[start - 2].isalpha() or text[start - 2] in "_^"):
        return not _is_range(text[max(0, start - 12) : start - 1])
    after = text[end : end + 1]
    if after in {"@", "^", "_"}:
        return True
    return after.isalpha() and after not in _VULGAR and not _is_suffix(_glued_word(text, end))


def _is_range(before: str) -> bool:
    """True after the "5k" of "5k-7k"."""
    match = _ENDS_IN_UNIT.search(before)
    return match is not None and _is_suffix(match.group(1))


def _glued_word(text: str, place: int) -> str:
    match = _TOKEN.match(text, place)
    return match.group() if match else ""


def _is_suffix(word: str) -> bool:
    lower = word.lower()
    return lower == "c" or lower in SHORT_SCALES or lower in SCALES or unit_named(word) is not None


def _fraction(written: str, start: int, end: int) -> Token:
    value = _VULGAR.get(written)
    if value is None:
        top, _, bottom = written.partition("/")
        is_date = (top[0] == "0" != top) or bottom[0] == "0" or written == "24/7"
        if is_date or len(written) > LONGEST_RUN:
            return Token("other", written, start, end)
        value = FRACTIONS.divide(Decimal(top), Decimal(bottom))
    return Token("fraction", written, start, end, (value,))


def _numbers(match: re.Match[str], text: str, mark: DecimalMark | None) -> Iterator[Token]:
    start, end, power = match.start(), match.end(), match.group("power") or ""
    run = text[start : end - len(power)]
    pieces = read_run(run, mark, as_money=_touches_money(text, start, end))
    if power:
        pieces = _raise_last(pieces, power)
    if not pieces:
        yield Token("other", text[start:end], start, end)
    for piece in pieces:
        last = piece.end == len(run)
        stop = end if last else start + piece.end
        yield Token("number", text[start + piece.start : stop], start + piece.start, stop, piece.readings)


def _touches_money(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 2) : start].rstrip()[-1:], text[end : end + 2].lstrip()[:1]
    return any(sign in SYMBOLS and sign != "%" for sign in (before, after))


def _raise_last(pieces: tuple[Piece, ...], power: str) -> tuple[Piece, ...]:
    exponent = int(power[1:]) if len(power) <= 6 else LONGEST_RUN + 1
    if not pieces or abs(exponent) > LONGEST_RUN:
        return ()
    last = pieces[-1]
    # "1.500e3" is scientific, hence a decimal point
    return (*pieces[:-1], Piece(last.start, last.end, (last.readings[0].scaleb(exponent),)))


def _join_groups(tokens: Iterator[Token]) -> Iterator[Token]:
    """Join "50 000" and "1 234 567.5": one to three digits, then groups of three, one space apart."""
    waiting: list[Token] = []
    for token in tokens:
        if waiting and _continues(waiting[-1], token):
            waiting.append(token)
            continue
        yield from _flush(waiting)
        waiting = [token] if token.kind == "number" else []
        if not waiting:
            yield token
    yield from _flush(waiting)


def _continues(last: Token, token: Token) -> bool:
    return token.kind == "number" and token.start == last.end + 1 and last.text.isdigit()


def _flush(run: list[Token]) -> Iterator[Token]:
    first, groups = run[:1], run[1:]
    whole = [group.text.partition(".")[0] for group in groups]
    # "500 600 700" is a list, "500 000" and "5 600 700" are not
    is_list = first and len(first[0].text) == 3 and not any(digits[:1] == "0" for digits in whole)
    fits = (
        groups
        and not is_list
        and len(first[0].text) <= 3
        and first[0].text[0] != "0"
        and all(len(digits) == 3 for digits in whole)
    )
    if not fits or len(run) > LONGEST_RUN // 3 or "," in groups[-1].text or not whole[-1].isdigit():
        yield from run
        return
    written = "".join(token.text for token in run)
    yield Token("number", written, run[0].start, run[-1].end, (Decimal(written),))
