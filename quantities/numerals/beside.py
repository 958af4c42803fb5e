"""The unit of a number, on either side; what is before one is read in `quantities.numerals.prefixes`."""

from dataclasses import dataclass
from decimal import Decimal

from quantities.numerals import words
from quantities.numerals.found import View
from quantities.numerals.grammar import Grammar
from quantities.numerals.prefixes import OPENING_NAMES, SIGN, Prefix, Prefixes
from quantities.units import SYMBOLS, Unit, measure_after, unit_of
from quantities.units.heat import degrees_after, speaks_of_heat

__all__ = ["OPENING_NAMES", "SIGN", "Beside", "Prefix", "Suffix"]

_ONE = Decimal(1)
#: What may be below zero.
_DEGREES = frozenset({"degree", "°C", "°F", "K"})
#: What stands for no cents: "50,-", "49.-".
_EVEN, _DASHES = frozenset(",."), frozenset("-\u2013\u2014")


@dataclass(frozen=True, slots=True)
class Suffix:
    """What stands after a number: its unit, the place after it, and the scale that follows the unit ("USD million")."""

    unit: Unit | None
    end: int
    scale: Decimal = _ONE
    said: str = ""
    is_glued: bool = False


class Beside(Prefixes):
    """Reads the units beside the numbers of one sentence."""

    def __init__(self, text: str, grammar: Grammar, view: View) -> None:
        super().__init__(text, grammar, view)
        self._heat: bool | None = None

    def suffix(self, end: int, before: Prefix) -> Suffix:
        """Return the unit after a number that ends before the token at *end*; it agrees with the one before it."""
        found = self._suffix(end, before)
        if self.grammar.word(found.end) != "below" or self.grammar.word(found.end + 1) != "zero":
            return found
        return self._below_zero(found) or found

    def _below_zero(self, found: Suffix) -> Suffix | None:
        """Read "10 degrees below zero" and "ten below zero celsius", of which "below zero" is behind *found*."""
        unit, end = found.unit, found.end + 2
        behind = self.unit_after(end)
        if behind.unit and behind.unit.code in _DEGREES and (unit is None or unit.code == "degree"):
            unit, end = behind.unit, behind.end
        is_heat = self.view is not View.NUMBERS and (unit is None or unit.code in _DEGREES)
        return Suffix(unit, end, -_ONE, found.said or behind.said) if is_heat else None

    def _suffix(self, end: int, before: Prefix) -> Suffix:
        if before.unit is not None and (scaled := self._money_scale(end, before)):
            return scaled
        found = self.unit_after(end)
        unit, after = found.unit, found.end
        if unit is None or (before.unit is not None and self._opens_next(end, after)):
            return Suffix(before.unit, end, said=before.said)
        if before.unit is not None:
            agreed = _agreed(before.unit, unit)
            return Suffix(agreed, after, said=before.said) if agreed else Suffix(before.unit, end, said=before.said)
        if unit.is_currency and self._opens_next(end, after) and self._belongs_to_next(end, after):
            return Suffix(None, end)
        scale = self.grammar.scale(after) if unit.is_currency and not self.grammar.is_glued(after) else None
        return Suffix(unit, scale.end, scale.value, found.said) if scale else found

    def _money_scale(self, end: int, before: Prefix) -> Suffix | None:
        """Read the "m" of "$ 5 m", which is metres after no sign of money."""
        factor = words.SHORT_SCALES.get(self.grammar.word(end)) if before.unit and before.unit.is_currency else None
        if factor is None or self.grammar.word(end - 1) in words.SHORT_SCALES:
            return None
        return Suffix(before.unit, end + 1, factor, before.said)

    def _opens_next(self, place: int, after: int) -> bool:
        """True when the unit at *place* stands before a number of its own: the second "$" of "$ 20 $ 30"."""
        token = self.grammar.token(after)
        if token is None or token.kind != "number" or self.grammar.symbol(place) == "%":
            return False
        return not self.grammar.is_glued(place) or self.grammar.is_glued(after)

    def _belongs_to_next(self, place: int, after: int) -> bool:
        """Tell "1 $ 10", "1 $ 10 dollars" and "3 USD50" from "10 $ 30 $" and "50 dollars 40 cents"."""
        if self.grammar.is_glued(after):
            return True
        if self.grammar.symbol(after - 1) == "":
            return False
        following = self.unit_after(after + 1)
        mine = SYMBOLS.get(self.grammar.symbol(place))
        if following.unit is None:
            return True
        is_named = self.grammar.word(following.end - 1) != ""
        return is_named and mine is not None and _agreed(mine, following.unit) is not None

    def unit_after(self, end: int) -> Suffix:
        """Return the unit that stands right after the token before *end*, whatever else stands there."""
        grammar = self.grammar
        if (start := self._after_part(end)) > end:
            whole = self.unit_after(start)
            return whole if whole.unit else Suffix(None, end)
        place = grammar.after_dash(end)
        hyphen = place > end
        # "49.- CHF", "250,- kr"
        place += 2 * (grammar.symbol(end) in _EVEN and grammar.symbol(end + 1) in _DASHES and grammar.is_glued(end + 1))
        # "5 mio. EUR"
        is_pointed = grammar.symbol(end) == "." and grammar.word(end - 1) in words.SHORT_SCALES
        place += is_pointed and (self._is_money(end + 1) or self._coded(end + 1) is not None)
        # "3 crores of rupees"
        place += grammar.word(end) == "of" and grammar.word(end - 1) in words.SCALES and self._is_money(end + 1)
        degrees = None if hyphen else degrees_after(grammar.text, grammar.tokens[end - 1].end, self._is_about_heat)
        if degrees is None and (found := self._money_after(place)) is not None:
            unit, after = found
            return Suffix(unit, after, _ONE, self._said(place, after), grammar.is_glued(place) and not hyphen)
        measure = measure_after(grammar.text, grammar.tokens[end - 1].end) if degrees is None else None
        named = (unit_of(measure[0]), measure[1]) if measure else degrees
        if named is None:
            return Suffix(None, end)
        after = self._place_at(named[1], end)
        is_glued = grammar.is_glued(end) and grammar.symbol(end) == ""
        return Suffix(named[0], after, _ONE, self._said(place, after) if after > place else "", is_glued)

    def _is_about_heat(self) -> bool:
        if self._heat is None:
            self._heat = speaks_of_heat(self.text)
        return self._heat

    def _after_part(self, end: int) -> int:
        """Return the place of "percent" in "half of one percent" and of "mile" in "quarter of a mile", else *end*."""
        last = self.grammar.word(end - 1)
        loose = self.grammar.after_hyphen(end)
        if self.grammar.word(loose) == "odd" or (loose > end and self.grammar.word(loose) == "plus"):
            # "thirty-odd percent", "20-plus dollars"
            return loose + 1
        if last not in words.PART and last not in words.PARTS and not self._is_below_one(end):
            return end
        place = loose + (self.grammar.word(loose) == "of")
        # "half of one percent"; in "one half one mile" the second number is another one
        token = self.grammar.token(place)
        is_whole = place > loose and token is not None and token.text in {"one", "1"}
        if is_whole or self.grammar.word(place) in words.ARTICLES:
            return self.grammar.after_hyphen(place + 1)
        return end

    def _is_below_one(self, end: int) -> bool:
        """True for the digits of "3/4 of a percent" and "0.3 of a percentage point"."""
        last = self.grammar.tokens[end - 1]
        is_small = last.kind in {"number", "fraction"} and len(last.readings) == 1 and 0 < last.readings[0] < 1
        return is_small and self.grammar.word(end) == "of"

    def _place_at(self, character: int, place: int) -> int:
        """Return the place of the first token at or after *character*, looking from *place* on."""
        while place < len(self.grammar.tokens) and self.grammar.tokens[place].start < character:
            place += 1
        return place


def _agreed(before: Unit, after: Unit) -> Unit | None:
    """Return what "$50 USD" and "$50 AUD" say together; None when the second unit belongs to something else."""
    if after.factor != before.factor:
        return None
    if after.code == before.code:
        return before if len(before.also) < len(after.also) else after
    if after.code in before.also:
        return after
    return before if before.code in after.also else None
