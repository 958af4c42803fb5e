"""A sentence cut into words, numbers, fractions and symbols, in time linear in its length.

What looks like a number but is none (dates, times, addresses, identifiers, ordinals) leaves here as `other`.
"""

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal

from quantities.numerals.digit_runs import LONGEST_RUN, DecimalMark, Piece, read_run
from quantities.numerals.joining import join_groups, join_spaced
from quantities.numerals.token import FRACTIONS, Token
from quantities.numerals.words import CAPITAL_SCALES, HUNDREDS, SCALES, SHORT_SCALES
from quantities.units import DOLLAR_PREFIXES, GLUED_PREFIX, SYMBOLS, currency_code, unit_named
from quantities.units.codes import SCALED_CODES

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
  | (?P<fraction> \d++ / \d++ (?: (?: ths? | rds? | nds? ) \b )?+ | [{"".join(_VULGAR)}] )
  | (?P<number> (?: \d++ (?: (?: [.,_] | ' (?! \d{{1,2}} (?: [.]\d++ )?+ (?! \d ) ) ) \d++ )*+ | (?<! \. ) \. \d++ )
      (?P<power> [eE] [+-]? \d++ (?! \w ) )? (?P<raised> \^ [+-]? \d++ (?: \. \d++ )? (?! [\w^] ) )? )
  | (?P<prefix> (?<! \w ) (?= [A-Za-z]{{1,4}} \.? \.? \d ) (?: {GLUED_PREFIX} ) (?= \.?\d ) )
  | (?P<word> [^\W\d_] \w*+ (?: ' [^\W\d_]++ )? | _ \w*+ )
  | (?P<symbol> [^\w\x20] )
    """,
    re.VERBOSE,
)
#: Four numbers with points between them, as computers are addressed.
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
#: The last group of "1 234 567,89".
_LAST_GROUP = re.compile(r"\d{3},\d{1,2}")
#: Characters of "^-12.345"; what has more is no power that anybody means.
_LONGEST_POWER = 8
#: The code before "10,50", which is a price behind it; characters that hold it.
_CODE_BEFORE = re.compile(r"(?<![^\W_])[A-Za-z]{3}[ ]?\Z")
_CODE_ROOM = 5
_NEXT_WORD = re.compile(r"[ -]?([^\W\d_]{2,12})(?!\w)")
#: Only what stands one space apart may be groups of one number.
_GROUPED = re.compile(r"\d [.\d]")
#: Tokenised text keeps its marks apart: "59 . 2 %", "7 3 / 4 %", "$ 1 , 500".
_SPACED = re.compile(r"\d [.,/] \d")
#: What "75per cent" goes on with.
_CENT = re.compile(r"[ -]cents?(?!\w)")
_PENCE = re.compile(r"(?<![\d.,])\d{1,2}\Z")
#: "room 12B", "seat 14C" and "question 3b" are names; "flat 500k" has its price behind it.
_AFTER_PLACE = re.compile(
    r"(?<!\w)(?:room|flat|apartment|apt|suite|seat|gate|bay|platform|terminal|exit|stand|bus|tram|route|highway"
    r"|section|question|figure|fig|table|step|exercise|appendix|clause|article|paragraph|building|stairway)s?\.? ?\Z",
    re.IGNORECASE,
)
#: Characters of the longest of them with what may follow.
_LONGEST_PLACE = 14
_ENDS_IN_UNIT = re.compile(r"\d([^\W\d_]{1,9})$")
_NON_ASCII = re.compile(r"[^\x00-\x7f]")
#: The "x" of "10x12 feet", which is that of a name anywhere else ("4x4", "2x").
_SIDES = re.compile(
    r"(?<=\d)[xX](?=\d{1,5}(?:\.\d{1,3})?(?:[xX]\d{1,5}(?:\.\d{1,3})?)?"
    r"[ -]?(?:feet|foot|ft|inch(?:es)?|yards?|(?:kilo|centi|milli)?met(?:er|re)s?|[kcm]?m|pixels?|px)(?![\w^]))"
)
_FOLDED = {
    "\u00a0": " ", "\u2009": " ", "\u202f": " ", "\u2007": " ", "\u2212": "-",
    "\u2019": "'", "\u2044": "/", "\u2215": "/", "\u066b": ".", "\u066c": ",", "\u066a": "%", "\ufe6a": "%",
    "\uff0c": ",", "\uff0e": ".", "\uff04": "$", "\uff05": "%", "\uff0d": "-", "\uffe5": "¥", "\uffe1": "£",
}  # fmt: skip


def fold(text: str) -> str:
    """Return *text* with any script's digits, spaces and separators in ASCII, every character in its old place."""
    text = text if text.isascii() else _NON_ASCII.sub(_fold_character, text)
    return _SIDES.sub("\u00d7", text)


def _fold_character(match: re.Match[str]) -> str:
    character = match.group()
    digit = unicodedata.decimal(character, None)
    return _FOLDED.get(character, character) if digit is None else str(int(digit))


def tokens_of(text: str, decimal_mark: DecimalMark | None = None, *, is_wide: bool = False) -> list[Token]:
    """Return the tokens of *text*, which has been folded; spaces are left out, other white space is a symbol.

    A *wide* reading takes powers ("2^10") and the parts of an address ("10.0.0.1") for numbers.
    """
    scanned = _scan(text, decimal_mark, is_wide=is_wide)
    tokens = list(join_groups(scanned) if _GROUPED.search(text) else scanned)
    return join_spaced(tokens, text) if _SPACED.search(text) else tokens


def _scan(text: str, mark: DecimalMark | None, *, is_wide: bool) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        kind, start, end = match.lastgroup, match.start(), match.end()
        written = match.group()
        if kind in {"word", "prefix"}:
            glued = start > 0 and text[start - 1].isdigit()
            known = not glued or _is_suffix(written, is_wide=is_wide) or _is_coin(written, text, start)
            yield Token("word" if known else "other", written.lower().rstrip("."), start, end)
        elif kind == "symbol":
            yield Token("symbol", written, start, end)
        elif kind == "other" or _is_identifier(text, start, end, is_wide=is_wide):
            yield Token("other", written, start, end)
        elif kind == "fraction":
            yield _fraction(written, start, end)
        else:
            yield from _numbers(match, text, mark, is_wide=is_wide)


def _is_identifier(text: str, start: int, end: int, *, is_wide: bool) -> bool:
    """True for digits that belong to a name: "covid-19", "#7", "item.5", "2x", "50@home", "1^-2"."""
    before = text[start - 1] if start else " "
    if before in "#@^&" or (text[start] == "." and (before.isalnum() or before in "_.")):
        return True
    if before == "%" and text[max(0, start - 2)].isalpha():
        return True
    if before in "+-" and start > 1 and (text[start - 2].isalpha() or text[start - 2] in "_^"):
        return not _is_range(text[max(0, start - 12) : start - 1])
    after = text[end : end + 1]
    if after in {"@", "^", "_"}:
        return True
    if not after.isalpha() or after in _VULGAR:
        return False
    word = _glued_word(text, end)
    if len(word) == 1 and word not in "kKmM" and _AFTER_PLACE.search(text, max(0, start - _LONGEST_PLACE), start):
        return True
    return not _is_suffix(word, is_wide=is_wide) and not _is_coin(word, text, end)


def _is_coin(word: str, text: str, place: int) -> bool:
    """True for the *word* at *place* of "90us$", "75per cent", "50p"; 720p are more lines than a pound has pence."""
    if word == "pc" or (word == "per" and _CENT.match(text, place + len(word))):
        return True
    if word == "p":
        return _PENCE.search(text, max(0, place - 4), place) is not None
    return text.startswith("$", place + len(word)) and word.lower() in DOLLAR_PREFIXES


def _is_range(before: str) -> bool:
    """True after the "5k" of "5k-7k"."""
    match = _ENDS_IN_UNIT.search(before)
    return match is not None and _is_suffix(match.group(1), is_wide=False)


def _glued_word(text: str, place: int) -> str:
    match = _TOKEN.match(text, place)
    return match.group() if match else ""


def _is_suffix(word: str, *, is_wide: bool) -> bool:
    lower = word.lower()
    if (
        lower == "c"
        or lower in SHORT_SCALES
        or lower in SCALES
        or lower in HUNDREDS
        or (is_wide and word.isupper() and lower in CAPITAL_SCALES)
        or (lower == "f" and not is_wide)
    ):
        return True
    return word in SCALED_CODES or unit_named(word) is not None


def _fraction(written: str, start: int, end: int) -> Token:
    value = _VULGAR.get(written)
    if value is None:
        top, _, bottom = written.rstrip("thsrnd").partition("/")
        is_date = (top[0] == "0" != top) or bottom[0] == "0" or written == "24/7"
        if is_date or len(written) > LONGEST_RUN:
            return Token("other", written, start, end)
        value = FRACTIONS.divide(Decimal(top), Decimal(bottom))
    return Token("fraction", written, start, end, (value,))


def _numbers(match: re.Match[str], text: str, mark: DecimalMark | None, *, is_wide: bool) -> Iterator[Token]:
    start, end = match.start(), match.end()
    power, raised = match.group("power") or "", match.group("raised") or ""
    run = text[start : end - len(power) - len(raised)]
    has_unit = _touches_unit(text, start, end) or (_is_group(text, start) and _LAST_GROUP.fullmatch(run) is not None)
    pieces = read_run(run, mark, has_unit=has_unit)
    if power:
        pieces = _raise_last(pieces, power)
    if raised:
        pieces = _raised(pieces, raised) if is_wide else ()
    if not pieces and is_wide and _ADDRESS.fullmatch(text[start:end]):
        pieces = tuple(_address(run))
    if not pieces:
        yield Token("other", text[start:end], start, end)
    for piece in pieces:
        last = piece.end == len(run)
        stop = end if last else start + piece.end
        yield Token("number", text[start + piece.start : stop], start + piece.start, stop, piece.readings)


def _address(run: str) -> Iterator[Piece]:
    place = 0
    for part in run.split("."):
        yield Piece(place, place + len(part), (Decimal(part),))
        place += len(part) + 1


def _raised(pieces: tuple[Piece, ...], written: str) -> tuple[Piece, ...]:
    """Return the power of a single number, empty where it has no value of a sensible size."""
    exponent = Decimal(written[1:]) if len(written) <= _LONGEST_POWER else None
    if len(pieces) != 1 or exponent is None:
        return ()
    (piece,) = pieces
    try:
        value = FRACTIONS.power(piece.readings[0], exponent)
    except ArithmeticError:
        return ()
    # zero to the power of -1 is infinite, and no error
    is_sensible = value.is_finite() and abs(value.adjusted()) <= LONGEST_RUN
    return (Piece(piece.start, piece.end, (value,)),) if is_sensible else ()


def _touches_unit(text: str, start: int, end: int) -> bool:
    before, after = text[max(0, start - 2) : start].rstrip()[-1:], text[end : end + 2].lstrip()[:1]
    if (before in SYMBOLS and before != "%") or after in SYMBOLS:
        return True
    coded = _CODE_BEFORE.search(text, max(0, start - _CODE_ROOM), start) if before.isalpha() else None
    if coded and currency_code(coded.group().strip()):
        return True
    named = _NEXT_WORD.match(text, end)
    return named is not None and _is_suffix(named.group(1), is_wide=False)


def _is_group(text: str, start: int) -> bool:
    return start > 1 and text[start - 1] == " " and text[start - 2].isdigit()


def _raise_last(pieces: tuple[Piece, ...], power: str) -> tuple[Piece, ...]:
    exponent = int(power[1:]) if len(power) <= 6 else LONGEST_RUN + 1
    if not pieces or abs(exponent) > LONGEST_RUN:
        return ()
    last = pieces[-1]
    # "1.500e3" is scientific, hence a decimal point
    return (*pieces[:-1], Piece(last.start, last.end, (last.readings[0].scaleb(exponent),)))
