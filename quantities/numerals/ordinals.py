"""Places in an order: "first", "the 21st", "two hundredth", "last", "next to last", "the previous one"."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from quantities.numerals import words
from quantities.numerals.grammar import Grammar
from quantities.numerals.token import Token
from quantities.numerals.tokens import fold, tokens_of

RelativeTo = Literal["start", "current", "end"]


@dataclass(frozen=True, slots=True)
class Ordinal:
    """A place in an order: from the *start* counted from 1, from the *current* one and the *end* as an offset.

    "third" is 3 from the start, "next" +1 from the current one, "last" 0 and "next to last" -1 from the end.
    """

    place: int
    relative_to: RelativeTo
    start: int
    end: int
    text: str


#: Words before an ordinal that can belong to it ("nine hundred ninety-nine thousand nine hundred ninety-").
_MOST_TOKENS = 40
_MISSPELLED = {"nineth": "ninth", "twelth": "twelfth", "fourtieth": "fortieth", "eigth": "eighth", "fith": "fifth"}
#: Words that make a part of the ordinal after them.
_ONE_OF = frozenset({"a", "an", "one"})
#: Marks inside an ordinal in words, and what joins its last word: "two hundred and tenth", "twenty-first".
_INSIDE, _BEFORE_LAST_WORD = frozenset("-,"), frozenset({"-", "and"})
_DIGITS = re.compile(r"(?<![\w.,/:-])(\d{1,15})(?:st|nd|rd|th)(?!\w)", re.IGNORECASE)
_BEFORE_LAST = (
    r"penultimate|(?:next|second|2nd)[ -](?:to|from)[ -](?:the[ -])?last|(?:the )?one before (?:the )?last(?: one)?"
)
#: Ways to count from the end and from where one stands.
_WAYS: tuple[tuple[str, int, RelativeTo], ...] = (
    (r"antepenultimate|third[ -](?:to|from)[ -](?:the[ -])?last", -2, "end"),
    (_BEFORE_LAST, -1, "end"),
    (r"previous(?: one)?|preceding(?: one)?|prior one", -1, "current"),
    (r"next(?: one)?|following one", 1, "current"),
    (r"current(?: one)?|present one", 0, "current"),
    (r"last(?: one)?", 0, "end"),
)
_PATTERNS = tuple(re.compile(rf"(?<!\w)(?:{pattern})(?!\w)", re.IGNORECASE) for pattern, _, _ in _WAYS)


def find_ordinals(text: str) -> tuple[Ordinal, ...]:
    """Return the ordinals in *text*, in order; "a hundredth" and "three fifths" are fractions and no places."""
    folded = fold(text)
    found = [*_relative(folded), *_digits(folded), *_spelled(folded)]
    return tuple(_apart(sorted(found, key=lambda one: (one.start, -one.end)), text))


def _apart(ordinals: list[Ordinal], text: str) -> Iterator[Ordinal]:
    end = 0
    for one in ordinals:
        if one.start >= end:
            end = one.end
            yield Ordinal(one.place, one.relative_to, one.start, one.end, text[one.start : one.end])


def _relative(text: str) -> Iterator[Ordinal]:
    for pattern, (_, place, relative_to) in zip(_PATTERNS, _WAYS, strict=True):
        for match in pattern.finditer(text):
            yield Ordinal(place, relative_to, match.start(), match.end(), match.group())


def _digits(text: str) -> Iterator[Ordinal]:
    for match in _DIGITS.finditer(text):
        yield Ordinal(int(match.group(1)), "start", match.start(), match.end(), match.group())


def _spelled(text: str) -> Iterator[Ordinal]:
    tokens = tokens_of(text)
    for index, token in enumerate(tokens):
        part = words.ORDINAL_PARTS.get(_MISSPELLED.get(token.text, token.text)) if token.kind == "word" else None
        if part is None:
            continue
        first, worth = _with_words_before(text, tokens, index, part)
        if worth and not (part == 2 and _is_time(tokens, first)):
            yield Ordinal(worth, "start", tokens[first].start, token.end, "")


def _with_words_before(text: str, tokens: list[Token], index: int, part: int) -> tuple[int, int]:
    """Return where the ordinal begins and its value, 0 for the name of a fraction ("a hundredth")."""
    first = index
    while first > max(0, index - _MOST_TOKENS) and (
        tokens[first - 1].text in words.WORTH or tokens[first - 1].text in _INSIDE
    ):
        first -= 1
    for start in range(first, index):
        stop = index - (tokens[index - 1].text in _BEFORE_LAST_WORD)
        # "two thousand, fifth" is one place, "twenty, fifth" are two numbers
        stop -= tokens[stop - 1].text == "," and tokens[stop - 2].text in words.SCALES
        before_it = tokens[start:stop]
        if not before_it or before_it[-1].text == "," or tokens[start].text not in words.WORTH:
            continue
        before_it = [token for token in before_it if token.text != ","]
        reading = Grammar(text, before_it).cardinal(0)
        if reading is None or reading.end != len(before_it):
            continue
        before = int(reading.value)
        if part >= words.ROUND and before > 1:
            # "a five hundredth" is one part of five hundred
            is_one_part = start > 0 and tokens[start - 1].text in _ONE_OF
            return start, 0 if is_one_part else _multiplied(before, part)
        if part < words.ROUND and before > 1 and before % (10 if part < 10 else words.ROUND) == 0:
            return start, before + part
    is_fraction = part >= words.ROUND and index > 0 and tokens[index - 1].text in _ONE_OF
    return index, 0 if is_fraction else part


def _multiplied(before: int, part: int) -> int:
    """Return "two million three hundred thousandth" as 2,300,000: only what is below the part counts it."""
    counted = before % part
    return before - counted + counted * part if counted else before * part


def _is_time(tokens: list[Token], index: int) -> bool:
    """True for the second of "a second" and "per second"."""
    return index > 0 and tokens[index - 1].text in {"a", "per", "one", "each", "every"}
