"""Whole numbers in words and digits with their scales: "3 hundred and 21", "five lakh two thousand", "-1.5 million".

Every function takes the place of a token and returns a value with the place after it, or None when nothing fits there.
"""

import unicodedata
from fractions import Fraction
from typing import NamedTuple

from tasklore.contracts.quantities.numerals import words
from tasklore.contracts.quantities.numerals.digit_runs import DecimalMark, pieces_of
from tasklore.contracts.quantities.sentence import Sentence
from tasklore.contracts.quantities.units import (
    NAMES,
    SYMBOLS,
    currency_code,
    means_metres,
    speaks_of_extent,
    unit_named,
)

#: Scale words in a row that still make sense ("three lakh crore"), and zeros before a digit ("zero zero seven").
_MOST_SCALES = 3
_MOST_ZEROS = 4
_DIGITS_AFTER_POINT = 60
#: Letters of a unit in the plural; shorter ones ("ms", "us") are symbols and other words.
_SHORTEST_PLURAL = 4
_SIGNS = SYMBOLS.keys() - {"%"}
_SPOKEN_ZERO = frozenset({"oh", "o"})


class WholeReading(NamedTuple):
    """A value that ends before token *end*; *scale* is the last one named in it, 1 for none."""

    value: Fraction | int
    end: int
    scale: int = 1


class NumberPart(NamedTuple):
    """What one scale counts: "three hundred" in "three hundred million", the scale included in its *value*."""

    value: Fraction | int
    end: int
    scale: int
    is_final: bool
    has_hundred: bool


class Numbers:
    """Reads the numbers of one sentence; *mark* is the decimal mark of its writer, None when that is not known."""

    def __init__(self, sentence: Sentence, mark: DecimalMark | None = None) -> None:
        self.sentence = sentence
        self.mark = mark
        #: The place of digits beside a unit, of which "12,50" is one number and no list of two.
        self.measured = -1
        self._is_about_extent: bool | None = None

    def digits(self, place: int) -> Fraction | int | None:
        """Return the one value of the digits at *place*, None when they have several or are none."""
        token = self.sentence.token(place)
        if token is None or token.kind != "number":
            return None
        pieces = pieces_of(token.text, self.mark, place == self.measured)
        if len(pieces) != 1 or len(pieces[0].readings) != 1:
            return None
        value = pieces[0].readings[0]
        return int(value) if token.text.isdigit() else Fraction(value)

    def scale(self, place: int) -> WholeReading | None:
        """Read a scale word ("million", "k" after digits, "dozen") as its factor."""
        sentence = self.sentence
        long_place = sentence.after_hyphen(place)
        word = sentence.word(long_place)
        if (factor := words.SCALES.get(word) or words.DOZENS.get(word)) is not None:
            return WholeReading(factor, long_place + 1)
        word = sentence.word(place)
        factor = words.SHORT_SCALES.get(word)
        if factor is None or (
            word in words.UNSURE_SCALES and not self._is_scale(word, place)
        ):
            return None
        return WholeReading(factor, place + 1)

    def _is_scale(self, word: str, place: int) -> bool:
        """True for an "M", for what counts money, and for the "m" of "5m" that is no metre."""
        sentence = self.sentence
        if sentence.kind(place + 1) == "number" and sentence.is_glued(place + 1):
            return False
        first = sentence.tokens[place - 1]
        last = sentence.tokens[place]
        if sentence.text[last.start : last.end].isupper() or self.is_money(place + 1):
            return True
        is_price = (
            sentence.symbol(place - 2) in _SIGNS
            or currency_code(sentence.word(place - 2)) is not None
        )
        if is_price or word != "m" or not last.is_glued:
            return word != "mm" and (is_price or last.is_glued)
        if self._is_about_extent is None:
            self._is_about_extent = speaks_of_extent(sentence.text)
        return not (
            self._is_about_extent or means_metres(sentence.text, first.start, last.end)
        )

    def is_money(self, place: int) -> bool:
        """True when the word or sign at *place* names money."""
        word = self.sentence.word(place)
        unit = NAMES.get(word) or (
            SYMBOLS.get(self.sentence.symbol(place))
            if self.sentence.is_glued(place)
            else None
        )
        return (unit is not None and unit.is_currency) or currency_code(
            word
        ) is not None

    def below_hundred(self, place: int) -> WholeReading | None:
        """Read "seven", "seventeen", "seventy-seven", "zero seven"; also "one twenty two", the spoken 122."""
        sentence = self.sentence
        word = sentence.word(place)
        if tens := words.TENS.get(word):
            after = sentence.after_hyphen(place + 1)
            unit = words.UNITS.get(sentence.word(after), 0)
            return (
                WholeReading(tens + unit, after + 1)
                if unit
                else WholeReading(tens, place + 1)
            )
        if teen := words.TEENS.get(word):
            return WholeReading(teen, place + 1)
        unit_or_none = words.UNITS.get(word)
        if unit_or_none is None:
            return None
        place += 1
        if unit_or_none == 0:
            first = place
            while sentence.word(place) == "zero" and place < first + _MOST_ZEROS:
                place += 1
            following = words.UNITS.get(sentence.word(place))
            return (
                WholeReading(following, place + 1)
                if following
                else WholeReading(0, first)
            )
        if (
            sentence.word(place) in words.TENS
            and (rest := self.below_hundred(place))
            and rest.end > place + 1
        ):
            return WholeReading(unit_or_none * 100 + rest.value, rest.end)
        return WholeReading(unit_or_none, place)

    def _leaf(self, place: int, *, is_first: bool) -> WholeReading | None:
        sentence = self.sentence
        if sentence.kind(place) == "number":
            value = self.digits(place)
            after = place + 1
            if value is None or not (
                is_first
                or self.scale(after)
                or sentence.word(sentence.after_hyphen(after)) in words.HUNDREDS
            ):
                return None
            return WholeReading(value, after)
        word = sentence.word(place)
        if word in words.ARTICLES:
            following = sentence.word(place + 1)
            if following == "couple":
                return WholeReading(2, place + 2 + (sentence.word(place + 2) == "of"))
            is_counted = following in words.OPENING_SCALES or following in words.DOZENS
            return WholeReading(1, place + 1) if is_counted else None
        if (
            is_first
            and (word in words.OPENING_SCALES or word == "dozen")
            and self._opens(place, word)
        ):
            return WholeReading(1, place)
        return self.below_hundred(place)

    def _opens(self, place: int, word: str) -> bool:
        """True for the scale of "thousand nine hundred", "hundred and five", "dozen eggs" and a lone "million"."""
        sentence = self.sentence
        before = sentence.word(place - 1)
        following = sentence.word(place + 1)
        is_joined = sentence.symbol(place - 1) == "-" and sentence.is_glued(place)
        is_loose = (
            before in words.BEFORE_LOOSE_SCALE
            or before in words.TENS
            or before == "ten"
            or is_joined
        )
        if is_loose or (word == "dozen" and before in {"the", *words.ARTICLES}):
            return False
        if word == "dozen":
            return following not in {"", "of", "and", "or", "is", "was"}
        worth = words.SCALES.get(word, 100)
        is_larger = words.SCALES.get(following, 0) > worth
        if len(sentence.tokens) == 1 or is_larger or self._is_several(place + 1):
            return True
        return (
            self.below_hundred(sentence.after_and(place + 1) or place + 1) is not None
        )

    def _is_several(self, place: int) -> bool:
        """True for what "hundred percent" and "thousand dollars" count; a "million dollar question" counts nothing."""
        word = self.sentence.word(place)
        if self.sentence.symbol(place) == "%" or word in {"percent", "pct"}:
            return True
        return (
            len(word) >= _SHORTEST_PLURAL
            and word.endswith("s")
            and unit_named(word) is not None
        )

    def _hundreds(
        self, place: int, *, is_first: bool
    ) -> tuple[WholeReading, bool] | None:
        leaf = self._leaf(place, is_first=is_first)
        if leaf is None:
            return None
        sentence = self.sentence
        after = sentence.after_hyphen(leaf.end)
        if sentence.word(after) not in words.HUNDREDS or leaf.value >= 100:
            return leaf, False
        if leaf.value and leaf.value % 10 == 0 and sentence.word(leaf.end - 1):
            # English has fifteen hundred but no sixty hundred
            return None
        value = leaf.value * 100
        end = after + 1
        after_and = sentence.after_and(end)
        rest = self.below_hundred(after_and or sentence.after_hyphen(end))
        if (
            rest is None
            and after_and
            and (whole := sentence.whole(after_and)) is not None
            and 0 < whole < 100
        ):
            rest = WholeReading(whole, after_and + 1)
        is_whole = (
            rest is not None
            and rest.value < 100
            and sentence.word(rest.end) not in words.HUNDREDS
        )
        if rest is None or not is_whole or (after_and and self._counts_parts(rest)):
            return WholeReading(value, end), True
        return WholeReading(value + rest.value, rest.end), True

    def _counts_parts(self, rest: WholeReading) -> bool:
        """True for the "one half" in "two hundred and one half" and the "three quarters" of them."""
        word = self.sentence.word(self.sentence.after_hyphen(rest.end))
        return (
            word in words.PART
            if rest.value == 1
            else rest.value < words.PARTS.get(word, 0)
        )

    def _part(self, place: int, *, is_first: bool = False) -> NumberPart | None:
        found = self._hundreds(place, is_first=is_first)
        if found is None:
            return None
        (value, end, _), has_hundred = found
        if decimals := self.decimals(end):
            value = value + decimals.value
            end = decimals.end
        elif (after_and := self.sentence.after_and(end)) and value < 1000:
            half = self.part_of_one(after_and)
            if half and self.scale(half.end):
                value = value + half.value
                end = half.end
        product = 1
        is_final = False
        for _ in range(_MOST_SCALES):
            scale = self.scale(end)
            if scale is None or is_final:
                break
            is_final = self.sentence.word(scale.end - 1) in words.SHORT_SCALES
            product = product * int(scale.value)
            end = scale.end
        return NumberPart(
            value * product,
            end=end,
            scale=product,
            is_final=is_final,
            has_hundred=has_hundred,
        )

    def cardinal(self, place: int) -> WholeReading | None:
        """Read a number in words and digits with its scales and additions."""
        if bare := self.decimals(place):
            return bare
        part = self._part(place, is_first=True)
        if part is None:
            return None
        total = part.value
        end = part.end
        limit = part.scale
        while limit > 1 and not part.is_final:
            if (raised := self._raise(end, total, limit)) is not None:
                part = raised
                total = part.value
                end = part.end
                limit = part.scale
                continue
            addition = self._addition(end, limit)
            if addition is None:
                break
            part = addition
            total = total + part.value
            end = part.end
            limit = part.scale
        if limit > 1 and not part.is_final and (decimals := self.decimals(end)):
            return WholeReading(total + decimals.value, decimals.end, limit)
        return WholeReading(total, end, 1 if part.is_final else limit)

    def _raise(
        self, place: int, total: Fraction | int, limit: int
    ) -> NumberPart | None:
        """Read the rest of "eleven thousand three hundred crore": a larger scale counts all that was said before it."""
        part = (
            self._part(place)
            if self.sentence.word(place) in words.OPENING_WORDS
            else None
        )
        if part is None or part.is_final or part.scale <= limit:
            return None
        name = self.sentence.word(part.end - 1)
        scale = words.SCALES.get(name, part.scale)
        count = part.value / Fraction(scale)
        # "five thousand two million" are two numbers, "five thousand two crore" is how budgets are told
        is_told = name in words.INDIAN or part.has_hundred
        if count >= limit or total >= scale or not is_told:
            return None
        return part._replace(value=(total + count) * scale, scale=scale)

    def _addition(self, place: int, limit: int) -> NumberPart | None:
        """Read how a scaled number goes on: "and twelve", ", five hundred", "and three quarters million"."""
        sentence = self.sentence
        after_and = sentence.after_and(place)
        has_comma = sentence.symbol(place) == ","
        start = after_and or (place + 1 if has_comma else sentence.after_hyphen(place))
        if after_and and (fraction := self.part_of_one(start)):
            scale = self.scale(fraction.end)
            if scale and fraction.value * scale.value < limit:
                return NumberPart(
                    fraction.value * scale.value,
                    end=scale.end,
                    scale=int(scale.value),
                    is_final=True,
                    has_hundred=False,
                )
            return None
        part = self._part(start)
        if (
            part is None
            or part.value >= limit
            or part.scale >= limit
            or (after_and and self._counts_part(part))
        ):
            return None
        # "seventy-five thousand, five hundred" is one number, "two thousand, three of which" are two
        is_price = self.is_money(part.end) or self.is_money(part.end + 1)
        is_list = sentence.kind(start) != "word" or not (
            part.has_hundred or part.scale > 1 or is_price
        )
        return None if has_comma and is_list else part

    def _counts_part(self, part: NumberPart) -> bool:
        return part.scale == 1 and self._counts_parts(
            WholeReading(part.value, part.end)
        )

    def decimals(self, place: int) -> WholeReading | None:
        """Read "point two five", "point 25" and "point twenty five" as a fraction."""
        sentence = self.sentence
        if sentence.word(place) != "point":
            return None
        token = sentence.token(place + 1)
        if token and token.kind == "number" and token.text.isdigit():
            return WholeReading(Fraction(f"0.{token.text}"), place + 2)
        digits = ""
        end = place + 1
        while len(digits) < _DIGITS_AFTER_POINT:
            word = sentence.word(end)
            unit = 0 if word in _SPOKEN_ZERO else words.UNITS.get(word)
            if unit is None:
                break
            digits = f"{digits}{unit}"
            end = end + 1
        if not digits and (spoken := self.below_hundred(end)):
            digits = str(spoken.value)
            end = spoken.end
        return WholeReading(Fraction(f"0.{digits}"), end) if digits else None

    def part_of_one(self, place: int) -> WholeReading | None:
        """Read "half", "a half", "one third", "three quarters", "1/2", "½"."""
        sentence = self.sentence
        if sentence.kind(place) == "fraction":
            value = fraction_of(sentence.tokens[place].text)
            return WholeReading(value, place + 1) if value is not None else None
        word = sentence.word(place)
        if word == "half":
            return WholeReading(Fraction(1, 2), place + 1)
        after = sentence.after_hyphen(place + 1)
        if word in words.ARTICLES or word == "one":
            if parts := words.PART.get(sentence.word(after)):
                return WholeReading(Fraction(1, parts), after + 1)
            return self._compound_part(after)
        several = self.below_hundred(place)
        if several is None:
            return None
        after = sentence.after_hyphen(several.end)
        name = sentence.word(after)
        # "three quarter million"
        is_quarter = name == "quarter" and several.value == 3
        named = words.PART[name] if is_quarter else words.PARTS.get(name)
        return (
            WholeReading(Fraction(several.value, named), after + 1) if named else None
        )

    def _compound_part(self, place: int) -> WholeReading | None:
        """Read the "twenty-fifth" of "one twenty-fifth"."""
        tens = words.TENS.get(self.sentence.word(place))
        unit = self.sentence.after_hyphen(place + 1)
        rest = words.ORDINALS.get(self.sentence.word(unit), words.ROUND)
        is_part = tens is not None and unit > place + 1 and rest < 10
        return (
            WholeReading(Fraction(1, tens + rest), unit + 1)
            if tens and is_part
            else None
        )


def fraction_of(written: str) -> Fraction | None:
    """Return what "3/4" and "¾" are worth; None for a date, a name or a division by zero ("24/7", "01/02")."""
    value = _VULGAR.get(written)
    if value is not None:
        return value
    top, _, bottom = written.rstrip("thsrnd").partition("/")
    is_none = (top[0] == "0" != top) or bottom[0] == "0" or written == "24/7"
    return None if is_none else Fraction(int(top), int(bottom))


#: "½" and its like; no other character of Unicode has a denominator above ten.
_VULGAR = {
    sign: Fraction(unicodedata.numeric(sign)).limit_denominator(10)
    for sign in "½⅓⅔¼¾⅕⅖⅗⅘⅙⅚⅐⅛⅜⅝⅞⅑⅒"
}
