"""Whole numbers below a thousand in words, what may open a larger one, and the digits behind a "point"."""

from decimal import Decimal

from quantities.numerals import words
from quantities.numerals.scales import Reading, Scales
from quantities.units import unit_named

_ONE = Decimal(1)
_MILLION = 10**6
_PERCENT = frozenset({"percent", "pct", "percentage"})
#: Letters of a unit in the plural; shorter ones ("ms", "us") are symbols and other words.
_SHORTEST_PLURAL = 4
#: Zeros in a row that may stand before a digit ("zero zero seven").
_MOST_ZEROS = 4
#: Words beside a bare "dozen" that counts what follows it, and those that leave it a noun.
_BEFORE_DOZEN = frozenset({
    "", "for", "about", "around", "than", "least", "most", "only", "just", "need", "want", "get", "buy", "order",
    "book", "add", "send", "take", "have", "has", "with", "to", "and", "or",
})  # fmt: skip
_AFTER_NO_DOZEN = frozenset({"", "of", "and", "or", "is", "was", "are", "were"})
#: What "hundred dollar" and "thousand yen" are said of: money in paper.
_PAPER = frozenset({"bill", "bills", "note", "notes", "banknote", "banknotes"})
_MANY = frozenset({"tens", "dozens", "hundreds", "thousands", "millions", "billions"})
#: The zero of "point oh five".
_SPOKEN_ZERO = frozenset({"oh", "o"})


class Hundreds(Scales):
    """Reads the smallest parts of which numbers are made; `quantities.numerals.grammar` puts them together."""

    def below_hundred(self, place: int) -> Reading | None:
        """Read "seven", "seventeen", "seventy-seven", "zero seven"; also "one twenty two", the spoken 122."""
        word = self.word(place)
        if tens := words.TENS.get(word):
            after = self.after_hyphen(place + 1)
            # "ninety - five" is how tokenised text writes "ninety-five"
            after += self.symbol(after) == "-" and self.word(after + 1) in words.UNITS
            unit = words.UNITS.get(self.word(after), 0)
            return Reading(Decimal(tens + unit), after + 1) if unit else Reading(Decimal(tens), place + 1)
        if teen := words.TEENS.get(word):
            return Reading(Decimal(teen), place + 1)
        if (unit_or_none := words.UNITS.get(word)) is None:
            return None
        return self._after_unit(unit_or_none, place + 1)

    def _after_unit(self, unit: int, place: int) -> Reading:
        if unit == 0:
            first = place
            while self.word(place) == "zero" and place < first + _MOST_ZEROS:
                place += 1
            following = words.UNITS.get(self.word(place))
            return Reading(Decimal(following), place + 1) if following else Reading(Decimal(0), first)
        if unit and self.word(place) in words.TENS:
            rest = self.below_hundred(place)
            if rest is not None and rest.end > place + 1:
                return Reading(unit * 100 + rest.value, rest.end)
        return Reading(Decimal(unit), place)

    def _opens_dozen(self, place: int) -> bool:
        """True for "dozen eggs" and "a table for dozen guests"; not for "baker's dozen" and "by the dozen"."""
        return self.word(place + 1) not in _AFTER_NO_DOZEN and self.word(place - 1) in _BEFORE_DOZEN

    def _leaf(self, place: int, *, is_first: bool) -> Reading | None:
        token = self.token(place)
        if token is None:
            return None
        if token.kind == "number":
            scaled = self.scale(place + 1) or self.word(self.after_hyphen(place + 1)) in words.HUNDREDS
            return Reading(token.readings[0], place + 1) if len(token.readings) == 1 and (is_first or scaled) else None
        if self.word(place) in words.ARTICLES:
            return self._after_article(place + 1)
        if is_first and self.word(place) in words.OPENING_SCALES and self._opens(place):
            return Reading(_ONE, place)
        if is_first and self.word(place) == "dozen" and self._opens_dozen(place):
            return Reading(_ONE, place)
        return self.below_hundred(place)

    def _opens(self, place: int) -> bool:
        """True for the scale of "thousand nine hundred", "hundred and five", "hundred million" and a lone "million"."""
        if self._is_loose(place) or self.word(place - 1) in words.TENS or self.word(place - 1) == "ten":
            # "sixty hundred" is no English, and its end alone would be another number
            return False
        following = self.word(place + 1)
        worth, next_worth = words.WORTH[self.word(place)], words.SCALES.get(following, 0)
        # "million million" is how people say a billion of old
        is_larger = next_worth > worth or (next_worth == worth >= _MILLION)
        is_alone = len(self.tokens) == 1
        if is_alone or is_larger or self._is_several(place + 1):
            return True
        return self.below_hundred(self.after_and(place + 1) or place + 1) is not None

    def _is_loose(self, place: int) -> bool:
        """True for the scale of "several hundred", "multi-million" and "tens of thousand": nobody knows the number."""
        before = self.word(place - 1)
        is_joined = self.symbol(place - 1) == "-" and self.is_glued(place) and self.word(place - 2) != ""
        is_of_many = before == "of" and self.word(place - 2) in _MANY
        return is_joined or is_of_many or before in words.BEFORE_LOOSE_SCALE

    def _is_several(self, place: int) -> bool:
        """True for what "hundred percent" and "thousand dollars" count; a "million dollar question" counts nothing."""
        word = self.word(place)
        if self.word(place + 1) in _PAPER and self._is_money_word(place):
            return True
        if self.symbol(place) == "%" or self._is_percent(place):
            return True
        return len(word) >= _SHORTEST_PLURAL and word.endswith("s") and unit_named(word) is not None

    def _after_article(self, place: int) -> Reading | None:
        following = self.word(place)
        if following == "couple":
            return Reading(Decimal(2), place + 1 + (self.word(place + 1) == "of"))
        if following in words.OPENING_SCALES or following in words.DOZENS or following in {"lac", "lkh"}:
            return Reading(_ONE, place)
        return None

    def _hundreds(self, place: int, *, is_first: bool) -> tuple[Reading, bool] | None:
        leaf = self._leaf(place, is_first=is_first)
        if leaf is None:
            return None
        after = self.after_hyphen(leaf.end)
        if self.word(after) not in words.HUNDREDS or leaf.value >= 100:
            return leaf, False
        if leaf.value and leaf.value % 10 == 0 and self.word(leaf.end - 1):
            # English has fifteen hundred but no sixty hundred
            return None
        value, end = leaf.value * 100, after + 1
        after_and = self.after_and(end)
        rest = self.below_hundred(after_and or self.after_hyphen(end))
        rest = rest or self._digits_below(end, after_and)
        if rest is None or rest.value >= 100 or self.word(rest.end) in words.HUNDREDS or self._is_part(rest, after_and):
            return Reading(value, end), True
        dozen = words.DOZENS.get(self.word(rest.end)) if after_and else None
        if dozen is not None:
            # a scale below a hundred counts what follows the "and" alone: "two hundred and three dozen" are 236
            return Reading(value + rest.value * dozen, rest.end + 1), True
        return Reading(value + rest.value, rest.end), True

    def _digits_below(self, end: int, after_and: int) -> Reading | None:
        """Read the 21 of "3 hundred and 21", and that of "3 hundred 21" where nothing follows it."""
        rest = self._small_digits(after_and or end)
        is_sure = after_and or (rest and self.token(rest.end) is None and self.tokens[end - 2].kind == "number")
        return rest if is_sure else None

    def _is_part(self, rest: Reading, after_and: int) -> bool:
        """True for the "one half" in "two hundred and one half" and the "three quarters" of them."""
        word = self.word(self.after_hyphen(rest.end))
        if rest.value == 1:
            return word in words.PART
        return after_and > 0 and rest.value < words.PARTS.get(word, 0)

    def _small_digits(self, place: int) -> Reading | None:
        token = self.token(place)
        if token and token.kind == "number" and token.text.isdigit() and token.text[0] != "0" and len(token.text) < 3:
            return Reading(token.readings[0], place + 1)
        return None

    def _decimals(self, place: int) -> Reading | None:
        """Read "point two five", "point 25" and "point twenty five" as what they add."""
        if self.word(place) != "point":
            return None
        token = self.token(place + 1)
        if token and token.kind == "number" and token.text.isdigit():
            return Reading(Decimal(f"0.{token.text}"), place + 2)
        digits, end = "", place + 1
        while (unit := self._digit(end)) is not None and len(digits) < 60:
            digits, end = f"{digits}{unit}", end + 1
        if not digits and (spoken := self.below_hundred(end)):
            digits, end = str(spoken.value), spoken.end
        return Reading(Decimal(f"0.{digits}"), end) if digits else None

    def _digit(self, place: int) -> int | None:
        """Return the digit behind a point that is said at *place*: "point oh five"."""
        word = self.word(place)
        return 0 if word in _SPOKEN_ZERO else words.UNITS.get(word)

    def _is_percent(self, place: int) -> bool:
        return self.word(place) in _PERCENT or (self.word(place), self.word(place + 1)) == ("per", "cent")
