"""Grounding: whether what a language model quotes stands in the text it was shown, and which numbers stand there.

Form alone, in any language: letters and spacing are evened out, digits of every script are digits. What words mean is
no question here. Pure; for every reader that lets a model propose values, facts or findings.
"""

import re
import unicodedata
from collections.abc import Iterator
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from tasklore.contracts.quantities.numerals import find_amounts

__all__ = ["Number", "Passage", "fold_digits", "locate", "numbers_in", "quotations_in"]

#: Characters of a quotation; a longer one is the whole text handed back, which shows nothing.
LONGEST_QUOTATION = 2_000
#: One sign for each kind of mark that is typed in several ways.
_MARKS = str.maketrans(
    dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc\u00b4`", "'")
    | dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb\u300c\u300d\u300e\u300f", '"')
    | dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-")
)
#: Alphabets whose words stand apart: half a word of theirs is no quotation of it.
_SPACED = ("LATIN", "GREEK", "CYRILLIC", "ARMENIAN", "GEORGIAN")
#: Separators inside a number that other scripts have signs of their own for.
_SEPARATORS = str.maketrans(
    {"\u066b": ".", "\u066c": ",", "\uff0e": ".", "\u2019": "'"}
)
_DIGITS = re.compile(
    r"\d{1,3}(?:[., '\u00a0\u202f]\d{3})+(?:[.,]\d{1,20})?(?!\d)|\d{1,40}(?:[.,]\d{1,20})?"
)
#: What a number in digits is multiplied by when the word stands behind it; where "mil" is a million, that is the other
#: of two readings.
_SCALES = {
    word: factor
    for factor, words in {
        10: "十",
        100: "百 백",
        1_000: "千 천 mil mila mille tausend tsd tys tysiące tysięcy bin тысяч тысячи тыс ألف الف آلاف हजार हज़ार",
        10_000: "万 萬 만",
        100_000: "लाख",
        1_000_000: "million millions mio millionen millones millón milioni milhões milyon миллионов млн مليون ملايين",
        10_000_000: "करोड़",
        100_000_000: "亿 億 억",
        1_000_000_000: "milliarden mrd milliards miliardi миллиардов млрд مليار",
    }.items()
    for word in words.split()
}
_SCALE = re.compile(
    r"\s?("
    + "|".join(sorted(_SCALES, key=len, reverse=True))
    + r")(?:(?<=[^\x00-\u02ff\u0400-\u04ff])|\b)",
    re.IGNORECASE,
)
#: A letter and a hyphen before digits make a name of them: "L-2041".
_JOINED = re.compile(r"[^\W\d_][-_/]$")
_QUOTED = re.compile(
    r"\"([^\"\n]+)\"|\u201c([^\u201d\u201c\n]+)[\u201d\u201c]|\u201e([^\u201c\u201d\n]+)[\u201c\u201d]"
    r"|\u00ab([^\u00bb\n]+)\u00bb|\u00bb([^\u00ab\n]+)\u00ab|\u300c([^\u300d\n]+)\u300d|\u300e([^\u300f\n]+)\u300f"
    r"|\u300a([^\u300b\n]+)\u300b|(?<!\w)['\u2018]([^'\u2019\n]+)['\u2019](?!\w)"
)


class Passage(NamedTuple):
    """The characters `text[start:end]`."""

    start: int
    end: int

    def overlaps(self, start: int, end: int) -> bool:
        """Return whether it has a character in common with these."""
        return self.start < end and start < self.end


class Number(NamedTuple):
    """A number in digits at `text[start:end]`: its possible values, scale words behind it applied.

    `is_plain` is False where letters are joined to it, so that it may be part of a name ("12b", "L-20").
    """

    start: int
    end: int
    readings: tuple[Decimal, ...]
    is_plain: bool
    is_scaled: bool


def locate(quotation: str, text: str) -> Iterator[Passage]:
    """Yield where *quotation* stands in *text*, never cutting a word or a number in two."""
    wanted = _even(quotation).text.strip(" \"'")
    if not wanted or len(quotation) > LONGEST_QUOTATION:
        return
    evened = _even(text)
    start = evened.text.find(wanted)
    while start >= 0:
        end = start + len(wanted)
        if not _cuts(evened.text, start) and not _cuts(evened.text, end):
            yield Passage(evened.places[start], evened.places[end - 1] + 1)
        start = evened.text.find(wanted, start + 1)


def fold_digits(text: str) -> str:
    """Return *text* with the digits of every script as 0 to 9, each character in its place."""
    if text.isascii():
        return text
    return "".join(_digit(sign) for sign in text.translate(_SEPARATORS))


def numbers_in(text: str) -> tuple[Number, ...]:
    """Return every number that is written in digits, of any script."""
    text = fold_digits(text)
    return tuple(_number(text, match) for match in _DIGITS.finditer(text))


def quotations_in(text: str) -> tuple[Passage, ...]:
    """Return what stands between quotation marks, of any kind, and has a letter or a digit."""
    places = (
        Passage(*match.span(match.lastindex or 0)) for match in _QUOTED.finditer(text)
    )
    return tuple(
        place
        for place in places
        if any(sign.isalnum() for sign in text[place.start : place.end])
    )


class _Evened(NamedTuple):
    """A text whose letters, marks and spacing are evened out; *places* says where each character came from."""

    text: str
    places: tuple[int, ...]


@lru_cache(maxsize=64)
def _even(text: str) -> _Evened:
    signs: list[str] = []
    places: list[int] = []
    for place, sign in enumerate(text):
        if sign.isspace():
            if signs and signs[-1] != " ":
                signs.append(" ")
                places.append(place)
            continue
        if unicodedata.category(sign) == "Cf":
            continue
        folded = (
            unicodedata.normalize("NFKD", _digit(sign)).casefold().translate(_MARKS)
        )
        signs.extend(folded)
        places.extend([place] * len(folded))
    return _Evened("".join(signs), tuple(places))


def _digit(sign: str) -> str:
    value = unicodedata.decimal(sign, None)
    return sign if value is None else str(value)


def _cuts(text: str, place: int) -> bool:
    """Return whether a word or a number goes on across *place*."""
    if not 0 < place < len(text):
        return False
    before = text[place - 1]
    after = text[place]
    if after.isdigit() and before in ".,":
        return place > 1 and text[place - 2].isdigit()
    if before.isdigit() and after in ".,":
        return place + 1 < len(text) and text[place + 1].isdigit()
    if before.isdigit() and after.isdigit():
        return True
    if unicodedata.combining(after):
        return True
    return _is_spaced(before) and _is_spaced(after)


def _is_spaced(sign: str) -> bool:
    """Return whether *sign* is a letter or digit of a word that stands apart."""
    return (sign.isascii() and sign.isalnum()) or (
        sign.isalpha() and unicodedata.name(sign, "").startswith(_SPACED)
    )


def _number(text: str, match: re.Match[str]) -> Number:
    start, end = match.span()
    readings: tuple[Decimal, ...] = next(
        (one.readings for one in find_amounts(match.group())), ()
    )
    factor = 1
    while (scale := _SCALE.match(text, end)) is not None:
        factor = factor * _SCALES[scale[1].casefold()]
        end = scale.end()
    joined = (text[start - 1] if start else " ") + (
        text[end] if end < len(text) else " "
    )
    is_name = _JOINED.search(text, max(start - 2, 0), start) is not None
    is_plain = not is_name and not any(_is_spaced(sign) for sign in joined)
    return Number(
        start,
        end=end,
        readings=tuple(one * factor for one in readings),
        is_plain=is_plain,
        is_scaled=factor > 1,
    )
