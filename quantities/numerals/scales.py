"""A sentence as a row of tokens, and the scales ("million", "k", "dozen") that stand in it."""

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from quantities.numerals import words
from quantities.numerals.token import Token
from quantities.units import NAMES, SYMBOLS, currency_code, means_metres, speaks_of_extent

#: What a score counts.
_SCORE = Decimal(20)


class Reading(NamedTuple):
    """A value that ends before token *end*."""

    value: Decimal
    end: int


class Scales:
    """The tokens of one sentence by place, and what a scale word at a place multiplies by."""

    def __init__(self, text: str, tokens: Sequence[Token], *, is_wide: bool = False) -> None:
        self.text = text
        self.tokens = tokens
        self.is_wide = is_wide
        self._count = len(tokens)
        self._words = [token.text if token.kind == "word" else "" for token in tokens]
        self._symbols = [token.text if token.kind == "symbol" else "" for token in tokens]
        self._is_about_extent: bool | None = None

    def token(self, place: int) -> Token | None:
        """Return the token at *place*, None outside the sentence."""
        return self.tokens[place] if 0 <= place < self._count else None

    def word(self, place: int) -> str:
        """Return the word at *place* in small letters, "" when there is none."""
        return self._words[place] if 0 <= place < self._count else ""

    def symbol(self, place: int) -> str:
        """Return the symbol at *place*, "" when there is none."""
        return self._symbols[place] if 0 <= place < self._count else ""

    def is_glued(self, place: int) -> bool:
        """True when nothing stands between the token at *place* and the one before it."""
        return 0 < place < len(self.tokens) and self.tokens[place].start == self.tokens[place - 1].end

    def is_close(self, place: int) -> bool:
        """True when at most one character stands between the token at *place* and the one before it."""
        return 0 < place < len(self.tokens) and self.tokens[place].start <= self.tokens[place - 1].end + 1

    def after_hyphen(self, place: int) -> int:
        """Return the place after a hyphen that joins two words, *place* itself when there is none."""
        return place + 1 if self.symbol(place) == "-" and self.is_glued(place) and self.is_glued(place + 1) else place

    def after_dash(self, place: int) -> int:
        """Return the place after a hyphen that joins two words, be it the spaced one of tokenised text: "25 - cent"."""
        is_spaced = (
            self.symbol(place) == "-"
            and self.word(place + 1) != ""
            and 0 < place < self._count - 1
            and self.tokens[place].start == self.tokens[place - 1].end + 1
            and self.tokens[place + 1].start == self.tokens[place].end + 1
        )
        return place + 1 if is_spaced else self.after_hyphen(place)

    def after_and(self, place: int) -> int:
        """Return the place after an "and", hyphenated or not; 0 when there is none."""
        and_place = self.after_hyphen(place)
        if self.word(and_place) != "and" and self.symbol(and_place) != "&":
            return 0
        return self.after_hyphen(and_place + 1)

    def scale(self, place: int) -> Reading | None:
        """Read a scale word ("million", "k" after digits, "dozen") as its factor."""
        long_place = self.after_dash(place)
        word = self.word(long_place)
        if (factor := words.SCALES.get(word) or words.DOZENS.get(word)) is not None:
            return Reading(factor, long_place + 1)
        word = self.word(place)
        factor = words.SHORT_SCALES.get(word)
        if factor is None:
            return self._rare_scale(word, place)
        token = self.tokens[place]
        if word in words.UNSURE_SCALES:
            is_upper = self.text[token.start : token.end].isupper()
            if (
                not is_upper
                and not self._is_money_word(place + 1)
                and not (self.is_glued(place + 1) and self.symbol(place + 1) in SYMBOLS)
                and (
                    word == "mm"
                    or not self.is_glued(place)
                    or (word == "m" and not self._is_priced(place - 1) and (self.is_wide or self._is_metre(place)))
                )
            ):
                return None
        return Reading(factor, place + 1)

    def _is_money_word(self, place: int) -> bool:
        word = self.word(place)
        unit = NAMES.get(word)
        return (unit is not None and unit.is_currency) or currency_code(word) is not None

    def _rare_scale(self, word: str, place: int) -> Reading | None:
        """Read the crore of "three hundred Kr" (after digits it is a crown), and "15T" in a table of numbers."""
        if word == "kr":
            token = self.tokens[place]
            is_crore = self.word(place - 1) != "" and self.text[token.start : token.end] == "Kr"
            return Reading(words.SCALES["crore"], place + 1) if is_crore else None
        if word == "score":
            return Reading(_SCORE, place + 1) if self._is_twenty(place) else None
        if self.is_wide and (factor := words.CAPITAL_SCALES.get(word)):
            token = self.tokens[place]
            return Reading(factor, place + 1) if self.text[token.start : token.end].isupper() else None
        return None

    def _is_twenty(self, place: int) -> bool:
        """True for "four score and seven" and a lone "three score"; other scores are counted in a game."""
        if words.UNITS.get(self.word(place - 1), 0) < 2:
            return False
        is_alone = place == 1 and self._count == 2
        following = self.word(place + 2)
        is_sum = following in words.UNITS or following in words.TEENS
        return is_alone or (self.word(place + 1) == "and" and is_sum)

    def _is_priced(self, place: int) -> bool:
        """True for the 48 of "$48m": money stands before it."""
        before = self.token(place - 1)
        return before is not None and (before.text in SYMBOLS or currency_code(before.text) is not None)

    def _is_metre(self, place: int) -> bool:
        """True for the "m" of "1.8m tall", and of "48m" in a sentence about lengths."""
        if self._is_about_extent is None:
            self._is_about_extent = speaks_of_extent(self.text)
        return self._is_about_extent or means_metres(self.text, self.tokens[place - 1].start, self.tokens[place].end)
