"""Fractions in words ("one hundred thirty fifths") and ratios ("1 out of twenty").

Where English leaves open which words count and which divide, the longest denominator that leaves a numerator wins:
"one hundred thirty fifths" is 100/35. After "and" the parts below one are added: "two hundred and fifty-four
hundredths" is 200.54, "one hundred and thirty fifths" is 130/5.
"""

from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import NamedTuple

from quantities.numerals import words
from quantities.numerals.token import FRACTIONS, Token

#: Words of a fraction that are looked at; a longer one is not said by anybody.
_MOST_WORDS = 24
#: From here on "two million and three fifths" means fifths of a million.
_SCALED = 10**5
_HUNDRED = 100
_TENS = frozenset(words.TENS.values())

#: Reads a whole number out of tokens, all of them; None when they are no number.
Whole = Callable[[Sequence[Token]], Decimal | None]


class Fraction(NamedTuple):
    """The value of a fraction and the place after its words."""

    value: Decimal
    end: int


class _Word(NamedTuple):
    """A word of the run: its worth and the place of its token."""

    worth: int
    place: int


def spelled(tokens: Sequence[Token], place: int, whole: Whole) -> Fraction | None:
    """Read the fraction in words that opens at *place*, None when no part ("fifths") ends the number there."""
    run, end = _run(tokens, place)
    part = _part(tokens[end].text) if run else None
    if part is None or _is_scaled(tokens, end + 1):
        return None
    start = next((index + 1 for index in range(len(run) - 1, -1, -1) if run[index].worth == words.JOINS), 0)
    last = run[start:]
    # the fifths of "two million and three fifths" are those of a million
    if not last or (start > 1 and run[start - 2].worth >= _SCALED):
        return None
    split = _hyphenated(tokens, last, end) if part > _HUNDRED else 0
    if not split and part >= _HUNDRED and tokens[end].text.endswith("s") and whole(tokens[last[0].place : end]):
        # "one hundred twenty five thousandths" are 0.125
        split = len(last)
    split = split or _split([word.worth for word in last], part, is_bound=_is_bound(tokens, end))
    if tokens[end].text in words.ORDINAL_PARTS and (split != 1 or last[0].worth != 1):
        return None
    middle = last[split].place if split < len(last) else end
    top = whole(_trimmed(tokens[last[0].place : middle]))
    below = whole(_trimmed(tokens[middle:end])) if middle < end else Decimal(0)
    if top is None or below is None:
        return None
    bottom = below * part if 0 < below < part >= _HUNDRED else below + part
    if not start:
        return Fraction(FRACTIONS.divide(top, bottom), end + 1)
    if top >= bottom:
        together = whole(_trimmed(tokens[run[0].place : middle]))
        return None if together is None else Fraction(FRACTIONS.divide(together, bottom), end + 1)
    before = whole(_trimmed(tokens[run[0].place : run[start - 1].place]))
    return None if before is None else Fraction(before + FRACTIONS.divide(top, bottom), end + 1)


def _is_scaled(tokens: Sequence[Token], place: int) -> bool:
    """True before the "million" of "three fifths million"."""
    text = tokens[place].text if place < len(tokens) else ""
    return text in words.SCALES or text in words.DOZENS


def _run(tokens: Sequence[Token], place: int) -> tuple[list[_Word], int]:
    """Return the number words from *place* on and the place of the part that ends them, 0 when none does."""
    run: list[_Word] = []
    is_hyphenated = False
    while place < len(tokens) and len(run) < _MOST_WORDS:
        kind, text = tokens[place][:2]
        if kind == "symbol" and text == "-" and run and not is_hyphenated:
            place, is_hyphenated = place + 1, True
            continue
        if kind != "word":
            break
        if (part := _part(text)) is not None:
            # "second" is a time and "first" an order, except in "twenty-second"
            return (run, place) if run and (part > 2 or _is_bound(tokens, place)) else ([], 0)
        worth = words.WORTH.get(text)
        if worth is None:
            break
        if is_hyphenated and text in words.UNITS and run[-1].worth in _TENS:
            run[-1] = _Word(run[-1].worth + worth, run[-1].place)
        else:
            run.append(_Word(worth, place))
        place, is_hyphenated = place + 1, False
    return [], 0


def _part(text: str) -> int | None:
    """Return how many parts "fifth" or "fifths" make of one, None for any other word."""
    return words.ORDINAL_PARTS.get(text) or words.ORDINAL_PARTS.get(text.removesuffix("s"))


def _is_bound(tokens: Sequence[Token], place: int) -> bool:
    """True for the "first" of "twenty-first": a hyphen without spaces makes them one word."""
    if place < 2 or tokens[place - 1].text != "-" or tokens[place - 2].text not in words.TENS:
        return False
    return tokens[place - 2].end == tokens[place - 1].start and tokens[place - 1].end == tokens[place].start


def _hyphenated(tokens: Sequence[Token], last: Sequence[_Word], end: int) -> int:
    """Return how many words stand before the hyphens of "two hundred-thousandths", 0 when nothing or all is joined."""
    joined = len(last)
    while joined and tokens[end - 1].text == "-" and tokens[end - 2].end + 1 == tokens[end].start:
        joined -= 1
        end = last[joined].place
    return joined if joined < len(last) else 0


def _trimmed(tokens: Sequence[Token]) -> Sequence[Token]:
    while tokens and tokens[-1].text == "-":
        tokens = tokens[:-1]
    return tokens


def _split(worths: list[int], part: int, *, is_bound: bool) -> int:
    """Return how many of the words before the part belong to the numerator; at least one does."""
    place, following, largest = len(worths) - 1, part, 1
    if is_bound:
        following, largest = worths[place] + part, worths[place]
        place -= 1
    while place >= 0:
        worth = worths[place]
        if following < _HUNDRED:
            if not _holds(worth, following) or worth < largest:
                return max(place + 1, 1)
            largest = worth
        elif worth >= following:
            return max(place + 1, 1)
        following = worth
        place -= 1
    for index in range(1, len(worths) - 1):
        if worths[index] >= _HUNDRED > worths[index + 1]:
            return index + 1
    return len(worths) - is_bound if len(worths) > 1 else 1


def _holds(worth: int, following: int) -> bool:
    """True when *following* can stand after *worth* in one number: "twenty" and "five", "thousand" and "thirty"."""
    return worth % (_HUNDRED if following > 10 else 10) == 0


def ratio_words(tokens: Sequence[Token], place: int) -> int:
    """Return how many words at *place* say "divided by": 1 for "over" and "in", 2 for "out of", else 0."""
    text = tokens[place].text if place < len(tokens) else ""
    if text in {"over", "in"}:
        return 1
    return 2 if text == "out" and place + 1 < len(tokens) and tokens[place + 1].text == "of" else 0


def ratio(top: Decimal, joint: str, bottom: Decimal) -> Decimal | None:
    """Return "1 over 3" as a number; "12 in six" and "12 out of 10" are two, since no part exceeds its whole."""
    if bottom <= 0 or top != top.to_integral_value() or bottom != bottom.to_integral_value():
        return None
    if joint != "over" and top >= bottom:
        return None
    return FRACTIONS.divide(top, bottom)
