"""How words and digits make one number: "two and a half million", "3 hundred and 21", "three quarters of a lakh".

Every method takes the place of a token and returns a value with the place after it, or None when nothing fits there.
"""

import re
from collections.abc import Sequence
from decimal import Context, Decimal
from typing import NamedTuple

from quantities.numerals import fractions, words
from quantities.numerals.hundreds import Hundreds
from quantities.numerals.scales import Reading
from quantities.numerals.token import FRACTIONS, Token
from quantities.units import measure_after, unit_named

#: "two million and a half" is 2,500,000, "two hundred and a half" is 200.5.
_SCALED_HALF = Decimal(10**5)
_ONE, _THREE, _TEN, _THOUSAND = Decimal(1), Decimal(3), Decimal(10), Decimal(1000)
_GROUP = re.compile(r"[1-9]\d\d")
#: A digit less than quotients keep.
_PRODUCTS = Context(prec=33)
#: What is halved and no unit.
_HALVED = frozenset({"price", "percent", "percentage"})
_EXTENTS = frozenset({"length", "area", "volume"})
#: Denominators of what is written "3-1/2"; "" is that of "3-½".
_HYPHENATED_PARTS = frozenset({"", "2", "3", "4", "8", "16", "32", "64"})
#: Scale words in a row that still make sense ("three lakh crore").
_MOST_SCALES = 3


class _Part(NamedTuple):
    value: Decimal
    end: int
    scale: Decimal
    is_final: bool
    has_hundred: bool


class Grammar(Hundreds):
    """Reads numbers out of the tokens of one sentence."""

    def quantity(self, place: int) -> tuple[tuple[Decimal, ...], int] | None:
        """Return the readings of the number at *place* (two when ambiguous) and the place after it."""
        token = self.token(place)
        if token is None or token.kind in {"other", "symbol"}:
            return None
        if len(token.readings) > 1:
            return self._ambiguous(token, place)
        reading = self._mixed(place) if token.kind == "number" else self._spelled(place) or self._fraction_first(place)
        reading = reading or self.cardinal(place)
        is_part = reading and (0 < reading.value < 1 or self.word(reading.end - 1) in words.PARTS)
        if reading and is_part and self._ends_place(place, reading.end):
            return None
        if reading and is_part and self.word(reading.end) == "of":
            # "0.8 of a million", "9 tenths of a million"
            reading = self._scaled(reading)
        if reading is None and self.is_wide:
            reading = self._loose(place)
        return ((reading.value,), reading.end) if reading and not self._is_ordinal(place, reading.end) else None

    def _is_ordinal(self, start: int, end: int) -> bool:
        """True before the "first" of "twenty-first" or "fifth" of "one hundred fifth"; "twenty second" is a time."""
        last, place = self.word(end - 1), self.after_hyphen(end)
        if self.tokens[start].kind == "number":
            return False
        following = self.word(place)
        if words.ORDINAL_PARTS.get(following, 0) >= words.ROUND and last in words.WORTH:
            return True
        is_round = last in words.HUNDREDS or last in words.SCALES
        if is_round and self.symbol(place) == "," and self._is_last_ordinal(place + 1):
            return True
        if is_round and (after_and := self.after_and(end)) and self.word(after_and) in words.ORDINALS:
            return True
        is_open = last in words.TENS or is_round
        return is_open and following in words.ORDINALS and (place > end or following != "second")

    def _is_last_ordinal(self, place: int) -> bool:
        """True for the end of "four thousand, seventeenth"; "first" and "second" may begin what comes after 4000."""
        is_small = 2 < words.ORDINAL_PARTS.get(self.word(place), 0) < words.ROUND
        return is_small and not self.word(place + 1) and self.symbol(place + 1) != ","

    def _ends_place(self, start: int, end: int) -> bool:
        """True for the "one hundredth" of "twenty one thousand one hundredth", which is a place in an order."""
        before = self.word(start - 1) if start else ""
        is_number = before in words.WORTH and before not in words.ARTICLES and words.WORTH[before] != words.JOINS
        return is_number and words.ORDINAL_PARTS.get(self.word(end - 1), 0) >= words.ROUND

    def _spelled(self, place: int) -> Reading | None:
        """Read a fraction in words that more than a unit divides: "one hundred thirty fifths", "a twenty-first"."""
        if self.word(place) not in words.WORTH:
            return None
        fraction = fractions.spelled(self.tokens, place, self._whole)
        if fraction is None or not self._stands_alone(place, fraction.end):
            return None
        reading = Reading(*fraction)
        return self._scaled(reading) if self.word(reading.end) == "of" else reading

    def _whole(self, tokens: Sequence[Token]) -> Decimal | None:
        """Return the whole number that *tokens* are, all of them."""
        if len(tokens) == 1 and tokens[0].text in words.ARTICLES:
            return _ONE
        reading = Grammar(self.text, tokens).cardinal(0) if tokens else None
        return reading.value if reading and reading.end == len(tokens) else None

    def _loose(self, place: int) -> Reading | None:
        """Read "single", "a pair of", "a few" and a lone "none", which are numbers only in a table of numbers."""
        start = place + (self.word(place) in words.ARTICLES)
        is_of = self.word(start + 1) == "of"
        value = words.LOOSE_NUMBERS.get(self.word(start))
        if value is None and place == 0 and len(self.tokens) == start + 1 + is_of:
            value = words.LONE_NUMBERS.get(self.word(start))
        if value is None or (is_of and value == 0):
            return None
        if value == _THREE and (several := self._scaled(Reading(Decimal(value), start + 1))).end > start + 1:
            return several
        return Reading(Decimal(value), start + 1 + (is_of and value > 1))

    def _ambiguous(self, token: Token, place: int) -> tuple[tuple[Decimal, ...], int]:
        scale = self.scale(place + 1)
        if scale is None:
            return token.readings, place + 1
        # "1.500 million": nobody groups digits in front of a scale
        return (token.readings[0] * scale.value,), scale.end

    # -- whole numbers --------------------------------------------------------------------------------------------

    def _part(self, place: int, *, is_first: bool = False) -> _Part | None:
        found = self._hundreds(place, is_first=is_first)
        if found is None:
            return None
        (value, end), has_hundred = found
        if decimals := self._decimals(end):
            value, end = value + decimals.value, decimals.end
        elif (
            (after_and := self.after_and(end))
            and value < 1000
            and (half := self._fraction(after_and))
            and self.scale(half.end)
        ):
            value, end = value + half.value, half.end
        product, is_final = _ONE, False
        for _ in range(_MOST_SCALES):
            scale = self.scale(end)
            if scale is None or is_final:
                break
            is_final = self.word(scale.end - 1) in words.SHORT_SCALES
            product, end = product * scale.value, scale.end
        return _Part(value * product, end, product, is_final, has_hundred)

    def cardinal(self, place: int) -> Reading | None:
        """Read a whole number in words and digits with its scales, and what is added to it."""
        if bare := self._decimals(place):
            return bare
        part = self._part(place, is_first=True)
        if part is None:
            return None
        total, end, limit = part.value, part.end, part.scale
        has_commas = False
        while limit > 1 and not part.is_final:
            if (raised := self._raised(end, total, limit)) is not None:
                part = raised
                total, end, limit = part.value, part.end, part.scale
                continue
            addition = self._addition(end, limit, place, has_commas=has_commas)
            addition = addition or self._digits_added(end, limit, self.word(place - 1))
            if addition is None:
                break
            has_commas = has_commas or self.symbol(end) == ","
            part = addition
            total, end, limit = total + part.value, part.end, part.scale
        if part.is_final:
            return Reading(total, end)
        if limit > 1 and (decimals := self._decimals(end)):
            return Reading(total + decimals.value, decimals.end)
        return self._with_fraction(total, end, limit)

    def _raised(self, place: int, total: Decimal, limit: Decimal) -> _Part | None:
        """Read the rest of "eleven thousand three hundred crore": a larger scale counts all that was said before it."""
        has_comma = self.symbol(place) == ","
        part = self._part(place + has_comma) if self.word(place + has_comma) in words.WORTH else None
        if part is None or (has_comma and not part.has_hundred) or part.is_final or part.scale <= limit:
            return None
        scale = words.SCALES.get(self.word(part.end - 1), part.scale)
        count = part.value / scale
        # "five thousand two million" are two numbers, "five thousand two crore" is how budgets are told
        is_crore = scale == words.SCALES["crore"]
        if count >= limit or total >= scale or not (is_crore or (part.has_hundred and not has_comma)):
            return None
        return part._replace(value=(total + count) * scale, scale=scale)

    def _addition(self, place: int, limit: Decimal, first: int, *, has_commas: bool) -> _Part | None:
        """Read how a scaled number goes on: "and twelve", ", five hundred", "and three quarters million"."""
        after_and = self.after_and(place)
        has_comma = self.symbol(place) == ","
        start = after_and or (place + 1 if has_comma else self.after_hyphen(place))
        if after_and and (fraction := self._fraction(start)):
            scale = self.scale(fraction.end)
            if scale and fraction.value * scale.value < limit:
                return _Part(fraction.value * scale.value, scale.end, scale.value, is_final=True, has_hundred=False)
            return None
        part = self._part(start)
        if part is None or part.value >= limit or part.scale >= limit:
            return None
        # "seventy-five thousand, five hundred" is one number, "two thousand, three of which" are two
        is_counted = part.has_hundred or part.scale > 1
        is_list = self.tokens[start].kind != "word" or not (is_counted or self._is_last(part, first, has_commas))
        return None if has_comma and is_list else part

    def _is_last(self, part: _Part, first: int, has_commas: bool) -> bool:
        """True for the end of "a million, two hundred thousand, forty", of "two thousand, forty yen" and a lone sum."""
        is_money = self._is_money_word(part.end) or self._is_money_word(part.end + 1)
        is_whole = first <= 1 and part.end == self._count
        is_much = part.value >= _TEN
        return is_money or (is_much and (has_commas or is_whole)) or (has_commas and is_whole)

    def _digits_added(self, place: int, limit: Decimal, before: str) -> _Part | None:
        """Read the digits of "6 thousand and 5"; those of "between 6 thousand and 5" and "and 5 percent" are others."""
        start = self.after_and(place)
        digits = self._small_digits(start) if start and before != "between" else self._hundreds_in_digits(place)
        if digits is None or limit != _THOUSAND or self.token(digits.end) is not None:
            return None
        return _Part(digits.value, digits.end, _ONE, is_final=True, has_hundred=False)

    def _hundreds_in_digits(self, place: int) -> Reading | None:
        """Read the 500 of "20 thousand 500", which follows a number in digits."""
        token = self.token(place)
        if token is None or self.tokens[place - 2].kind != "number" or not _GROUP.fullmatch(token.text):
            return None
        return Reading(token.readings[0], place + 1)

    def _with_fraction(self, total: Decimal, end: int, limit: Decimal) -> Reading:
        after_and = self.after_and(end)
        if after_and and (part := self._fraction(after_and)) and self.word(part.end) != "of":
            is_scaled = limit >= _SCALED_HALF or limit in words.DOZENS.values()
            return Reading(total + part.value * (limit if is_scaled else 1), part.end)
        parts_place = self.after_dash(end)
        word = self.word(parts_place)
        # "3 quarters" are nine months as well
        if (parts := words.PARTS.get(word)) and (self.tokens[end - 1].kind == "word" or word not in words.QUARTERS):
            return Reading(FRACTIONS.divide(total, Decimal(parts)), parts_place + 1)
        if total == 1 and self.tokens[end - 1].text == "1" and self._is_one_part(end):
            return Reading(FRACTIONS.divide(_ONE, Decimal(words.PART[self.word(end)])), end + 1)
        return Reading(total, end)

    def _is_one_part(self, place: int) -> bool:
        """True for the "eighth" of "1 eighth" and "1 third of it"; "1 quarter" is a time, "1 fifth avenue" a place."""
        is_part = self.word(place) in words.PART and self.word(place) != "quarter"
        is_last = self.token(place + 1) is None or self.word(place + 1) == "of"
        return is_part and (is_last or self._is_measured(place))

    # -- fractions ------------------------------------------------------------------------------------------------

    def _fraction(self, place: int) -> Reading | None:
        """Read "half", "a half", "one third", "three quarters", "1/2", "½"."""
        token = self.token(place)
        if token and token.kind == "fraction":
            return Reading(token.readings[0], place + 1)
        word = self.word(place)
        if word == "half":
            return Reading(Decimal("0.5"), place + 1)
        part_place = place + 1 + (self.symbol(place + 1) == "-")
        if (word in words.ARTICLES or word == "one") and (parts := words.PART.get(self.word(part_place))):
            return Reading(FRACTIONS.divide(_ONE, Decimal(parts)), part_place + 1)
        several = self.below_hundred(place)
        if several is None:
            return None
        part_place = self.after_dash(several.end)
        parts = words.PARTS.get(self.word(part_place))
        is_quarter = several.value == _THREE and self.word(part_place) == "quarter"
        if is_quarter and (self.scale(part_place + 1) or self._is_measured(part_place)):
            parts = words.PART["quarter"]
        return Reading(FRACTIONS.divide(several.value, Decimal(parts)), part_place + 1) if parts else None

    def _fraction_first(self, place: int) -> Reading | None:
        """Read a number that opens with a fraction, and the scale that it is a part of: "half a lakh"."""
        fraction = self._fraction(place)
        if fraction is None and self.word(place) == "quarter":
            # a lone "quarter" is three months
            quarter = self._scaled(Reading(Decimal("0.25"), place + 1))
            return quarter if quarter.end > place + 1 or self._is_measured(place) else None
        if fraction is None:
            return None
        scaled = self._scaled(fraction)
        return scaled if scaled.end > fraction.end or self._stands_alone(place, fraction.end) else None

    def _scaled(self, fraction: Reading) -> Reading:
        # "half-a-million"
        place = self.after_hyphen(fraction.end)
        place += self.word(place) == "of"
        if self.word(place) in words.ARTICLES:
            place = self.after_hyphen(place + 1)
        hundred = self.word(place) in words.HUNDREDS
        scale = self.scale(place + hundred)
        if scale is None:
            return Reading(fraction.value * 100, place + 1) if hundred else fraction
        factor = scale.value * (100 if hundred else 1)
        # two thirds of a dozen are eight, although two thirds never end
        return Reading(_PRODUCTS.multiply(fraction.value, factor), scale.end)

    def _stands_alone(self, place: int, end: int) -> bool:
        """False for "half past ten", "the second half", "a third option" and the rate in "20k a quarter"."""
        word, before, after = self.word(place), self.word(place - 1), self.word(end)
        if "half" in (word, self.word(place + 1)):
            return before not in words.BEFORE_HALF and after not in words.AFTER_HALF and self._is_half_of_unit(end)
        if word in words.ARTICLES and not (self.is_wide and self.word(end - 1) != "quarter"):
            is_rate = place > 0 and self.tokens[place - 1].kind == "number"
            is_measured = self.word(end - 1) == "quarter" and self._is_measured(end - 1)
            return (after in {"", "of"} or is_measured) and not is_rate and before not in words.SHORT_SCALES
        return True

    def _is_half_of_unit(self, place: int) -> bool:
        """False before the hyphen of "half-hearted" and "half-brother"; a half-mile and a half-price are halves."""
        after = self.after_hyphen(place)
        if after > place and self.word(after) in words.ARTICLES:
            # "half-a-mile"
            after = self.after_hyphen(after + 1)
        word = self.word(after)
        return after == place or word in _HALVED or unit_named(word) is not None

    def _is_measured(self, place: int) -> bool:
        """True for the quarter of "quarter of a mile", "a quarter inch" and "a quarter percent"; not for a lone one."""
        following = self.after_hyphen(place + 1)
        is_of = self.word(place + 1) == "of"
        is_one = self.word(place + 2) in words.ARTICLES or self.word(place + 2) == "one"
        if self._is_percent(place + 2 + is_one if is_of else following):
            return True
        if self.word(place + 1) == "of" and self.word(place + 2) not in words.ARTICLES:
            return False
        if self._is_money_word(following) and self.word(place - 1) in words.ARTICLES:
            # "a quarter dollar"; "quarter dollars" are nobody's
            return not self.word(following).endswith("s")
        measure = measure_after(self.text, self.tokens[place].end)
        if measure is None or measure[0].dimension in {"time", "calendar"}:
            return False
        # "last quarter miles were ..." names several, "a quarter mile" and "three quarter inches" do not
        is_counted = self.word(place - 1) in words.WORTH or self.word(place + 1) == "of"
        return is_counted or (measure[0].dimension in _EXTENTS and self.text[measure[1] - 1] != "s")

    def _mixed(self, place: int) -> Reading | None:
        """Read "2 1/4", "2-1/4" and "2½", with a scale when there is one."""
        part_place = self.after_hyphen(place + 1)
        whole, part = self.token(place), self.token(part_place)
        if whole is None or part is None or whole.kind != "number" or part.kind != "fraction":
            return None
        if not whole.text.isdigit() or part.readings[0] >= 1:
            return None
        # carpenters and cooks write "3-1/2"; "5-1/20" can be a difference
        if part_place > place + 1 and part.text.partition("/")[2] not in _HYPHENATED_PARTS:
            return None
        mixed = Reading(whole.readings[0] + part.readings[0], part_place + 1)
        scale = self.scale(mixed.end)
        return Reading(mixed.value * scale.value, scale.end) if scale else mixed
