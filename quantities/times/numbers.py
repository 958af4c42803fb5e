"""Counts of units of time: "3", "twenty-five", "two and a half", "half an", "a couple of"; no number of its own."""

import re
from fractions import Fraction
from typing import NamedTuple

from quantities.times.tokens import Sentence
from quantities.times.words import CARDINALS, ORDINAL_ENDINGS, ORDINALS, PARTS, SCALES, TENS, VULGAR

#: One point before three digits: decimals, or a group of thousands.
AMBIGUOUS = re.compile(r"[1-9]\d{0,2}\.\d{3}")
_DECIMAL_COMMA = re.compile(r",(\d{1,2})$")
_HALF, _QUARTER = PARTS["half"], PARTS["quarter"]
_MANY = {**SCALES, "dozen": 12, "hundred": 100}
#: Digits of the longest count that is read; more is no length of time.
_LONGEST = 40


class Count(NamedTuple):
    """A number that ends before token *end*; *in_digits* when it was written so."""

    value: Fraction
    end: int
    in_digits: bool = False


def count_at(sentence: Sentence, place: int) -> Count | None:
    """Return the count that starts at *place*, halves and articles included, or None."""
    token = sentence.token(place)
    if token is None or token.kind in {"iso", "length", "date", "clock", "other"}:
        return None
    if token.kind in {"number", "fraction", "symbol"}:
        return _with_half(sentence, _in_digits(sentence, place))
    if token.text in {"a", "an", "half", "couple", "quarter", "another"}:
        return _after_article(sentence, place)
    whole = cardinal_at(sentence, place)
    if whole and (parts := _parts(sentence, whole)):
        return parts
    if whole and sentence.word(whole.end) == "dozen":
        whole = Count(whole.value * 12, whole.end + 1)
    return _with_half(sentence, whole)


def _in_digits(sentence: Sentence, place: int) -> Count | None:
    token = sentence.tokens[place]
    if token.kind == "symbol":
        value = VULGAR.get(token.text)
        return None if value is None else Count(value, place + 1, in_digits=True)
    if len(token.text) > _LONGEST:
        return None
    if token.kind == "fraction":
        return _fraction(sentence, place, Fraction(0))
    if AMBIGUOUS.fullmatch(token.text):
        return None
    value = Fraction(_DECIMAL_COMMA.sub(r".\1", token.text).replace(",", ""))
    if sentence.kind(place + 1) == "fraction" and value.denominator == 1:
        return _fraction(sentence, place + 1, value)
    if sentence.is_glued(place + 1) and (part := VULGAR.get(sentence.symbol(place + 1))):
        return Count(value + part, place + 2, in_digits=True)
    if (scale := SCALES.get(sentence.word(place + 1))) is not None:
        return Count(value * scale, place + 2)
    return Count(value, place + 1, in_digits=True)


def _fraction(sentence: Sentence, place: int, whole: Fraction) -> Count | None:
    top, _, bottom = sentence.tokens[place].text.partition("/")
    part = Fraction(int(top), int(bottom)) if int(bottom) else None
    return None if part is None else Count(whole + part, place + 1, in_digits=True)


def _with_half(sentence: Sentence, count: Count | None) -> Count | None:
    """Add the "and a half" of "two and a half hours"."""
    part = part_after_and(sentence, count.end) if count else None
    return Count(count.value + part.value, part.end, count.in_digits) if count and part else count


def part_after_and(sentence: Sentence, place: int) -> Count | None:
    """Return the part that "and a half", "and half", "and a quarter" or "and three quarters" adds, or None."""
    start = sentence.after_hyphen(place)
    if sentence.word(start) != "and":
        return None
    start = sentence.after_hyphen(start + 1)
    if sentence.word(start) in {"a", "an", "one"}:
        start = sentence.after_hyphen(start + 1)
    elif sentence.word(start) in {"two", "three"} and (part := PARTS.get(sentence.word(start + 1).removesuffix("s"))):
        return Count(part * CARDINALS[sentence.word(start)], start + 2)
    part = PARTS.get(sentence.word(start))
    if part is None or sentence.word(start + 1) in {"a", "an"}:
        return None
    return Count(part, start + 1)


def _after_article(sentence: Sentence, place: int) -> Count | None:
    """Read "a", "an", "half", "half an", "a quarter of an", "a couple of", "a hundred", "another two"."""
    word = sentence.word(place)
    if word == "another":
        more = cardinal_at(sentence, place + 1) or (
            _in_digits(sentence, place + 1) if sentence.kind(place + 1) == "number" else None
        )
        return more or Count(Fraction(1), place + 1)
    if word in {"a", "an"}:
        after = sentence.after_hyphen(place + 1)
        following = sentence.word(after)
        if following in {"couple", "half", "quarter", "third"}:
            return _after_article(sentence, after) if following != "third" else _part_of(sentence, after)
        if following in {"full", "whole", "entire", "further", "additional"}:
            return Count(Fraction(1), sentence.after_hyphen(after + 1))
        if following == "hundred" or following in SCALES:
            return Count(Fraction(SCALES.get(following, 100)), after + 1)
        return Count(Fraction(12), after + 1) if following == "dozen" else Count(Fraction(1), place + 1)
    if word == "couple":
        return Count(Fraction(2), place + 1 + (sentence.word(place + 1) == "of"))
    return _part_of(sentence, place)


def _part_of(sentence: Sentence, place: int) -> Count | None:
    value = PARTS[sentence.word(place)]
    after = sentence.after_hyphen(place + 1)
    if value == _HALF and (many := _many_at(sentence, after + (sentence.word(after) == "a"))):
        return Count(value * many.value, many.end)
    of = after + (sentence.word(after) == "of")
    if sentence.word(of) in {"a", "an", "one", "the"}:
        return Count(value, of + 1)
    is_whole = value == _HALF or (value == _QUARTER and sentence.word(after) in {"hour", "century"})
    return Count(value, after) if is_whole else None


def _many_at(sentence: Sentence, place: int) -> Count | None:
    """Read the "dozen" and the "million" of which there can be half a one."""
    many = _MANY.get(sentence.word(place))
    return Count(Fraction(many), place + 1) if many else None


def _parts(sentence: Sentence, whole: Count) -> Count | None:
    """Read the "three quarters of an" of an hour."""
    place = sentence.after_hyphen(whole.end)
    part = PARTS.get(sentence.word(place).removesuffix("s"))
    of = sentence.word(place + 1) == "of" and sentence.word(place + 2) in {"a", "an"}
    return Count(whole.value * part, place + 3) if part and of else None


def cardinal_at(sentence: Sentence, place: int) -> Count | None:
    """Return the whole number in words at *place* ("two thousand and five"), or None."""
    total, limit, end = 0, 10**12, place
    while (group := _below_thousand(sentence, end)) is not None:
        value, end = group
        after = sentence.after_hyphen(end)
        scale = SCALES.get(sentence.word(after), 1)
        if scale >= limit:
            break
        total, limit, end = total + value * scale, scale, after + 1 if scale > 1 else end
        if scale == 1:
            break
        follows = end + (sentence.word(end) == "and")
        end = follows if sentence.word(follows) in CARDINALS else end
    return None if end == place else Count(Fraction(total), end)


def _below_thousand(sentence: Sentence, place: int) -> tuple[int, int] | None:
    """Read "five", "twenty-five", "five hundred", "five hundred and twenty-five"."""
    if sentence.word(place) not in CARDINALS:
        return None
    value, end = _below_hundred(sentence, place)
    after = sentence.after_hyphen(end)
    if sentence.word(after) not in {"hundred", "hundreds"} or not value:
        return value, end
    value, end = value * 100, after + 1
    rest = end + (sentence.word(end) == "and")
    if sentence.word(rest) not in CARDINALS:
        return value, end
    more, end = _below_hundred(sentence, rest)
    return value + more, end


def _below_hundred(sentence: Sentence, place: int) -> tuple[int, int]:
    word = sentence.word(place)
    value, end = CARDINALS[word], place + 1
    unit = sentence.after_hyphen(end)
    if word in TENS and 0 < CARDINALS.get(sentence.word(unit), 0) < 10:
        return value + CARDINALS[sentence.word(unit)], unit + 1
    return value, end


def ordinal_at(sentence: Sentence, place: int) -> tuple[int, int] | None:
    """Return the ordinal at *place* ("5th", "fifth", "twenty-first") and the place after it, or None."""
    number = sentence.whole(place)
    if number is not None:
        is_ordinal = sentence.is_glued(place + 1) and sentence.word(place + 1) in ORDINAL_ENDINGS
        return (number, place + 2) if is_ordinal else None
    word = sentence.word(place)
    if word in TENS:
        unit = sentence.after_hyphen(place + 1)
        rest = ORDINALS.get(sentence.word(unit), 0)
        return (CARDINALS[word] + rest, unit + 1) if 0 < rest < 10 else None
    return (ORDINALS[word], place + 1) if word in ORDINALS else None
