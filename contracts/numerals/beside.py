"""The units that stand before and after a number, and the signs before it."""

from dataclasses import dataclass
from decimal import Decimal

from contracts.numerals import words
from contracts.numerals.found import View
from contracts.numerals.grammar import Grammar
from contracts.units import (
    DOLLAR_PREFIXES,
    NAMES,
    SYMBOLS,
    Unit,
    currency_code,
    measure_after,
    unit_of,
)
from contracts.units.codes import SCALED_CODES
from contracts.units.currencies import CAPITAL_PREFIXES, PREFIX_NAMES

SIGN = {"-": -1, "+": 1}
_OPENERS = frozenset("([{=:<>,;|~\n\t")
_ONE = Decimal(1)
#: Names of money that may stand before the number in full ("rupees 500").
_NAMES_BEFORE = frozenset({"rupees", "rupee"})
#: Those that may when the number counts nothing else ("changed euros 3 days ago").
_NOUNS_BEFORE = frozenset({"euros", "dollars", "yen", "yuan", "renminbi"})
#: Money that is something else as well: a verb, points in a test, what kings wear.
_DOUBTFUL = frozenset({"won", "mark", "marks", "crown", "crowns"})
#: Single letters that belong to a dollar sign only when nothing stands between ("a $5 cake").
_ARTICLE_LIKE = frozenset({"a", "s", "r", "j", "z"})


def _lengths() -> dict[str, tuple[int, ...]]:
    lengths: dict[str, set[int]] = {}
    for name in NAMES:
        lengths.setdefault(name.partition(" ")[0], set()).add(name.count(" ") + 1)
    return {first: tuple(sorted(several, reverse=True)) for first, several in lengths.items()}


#: How many words the names have that begin with a word, the longest first.
_LENGTHS = _lengths()
#: First words of a currency with its country ("hong kong dollars").
_COUNTRIES = frozenset(name.partition(" ")[0] for name, unit in NAMES.items() if " " in name and unit.is_currency)
#: Words before a number that may be its currency.
OPENING_NAMES = frozenset({*DOLLAR_PREFIXES, *PREFIX_NAMES, *_NAMES_BEFORE, *_NOUNS_BEFORE, *_COUNTRIES, "u"})
#: Words after a price that the number before them does not count.
_AFTER_PRICE = frozenset({
    "and", "or", "to", "per", "for", "in", "on", "at", "from", "by", "each", "is", "was", "only", "a", "an",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Prefix:
    """What stands before a number: its unit as a code and as it was said, its sign, and where the digits begin."""

    unit: Unit | None
    sign: int
    end: int
    said: str = ""


@dataclass(frozen=True, slots=True)
class Suffix:
    """What stands after a number: its unit, the place after it, and the scale that follows the unit ("USD million")."""

    unit: Unit | None
    end: int
    scale: Decimal = _ONE
    said: str = ""
    is_glued: bool = False


class Beside:
    """Reads the units beside the numbers of one sentence."""

    def __init__(self, text: str, grammar: Grammar, view: View) -> None:
        self.text = text
        self.grammar = grammar
        self.view = view

    # -- before the number ----------------------------------------------------------------------------------------

    def prefix(self, place: int, previous_end: int) -> Prefix | None:
        """Return what stands before the number that the token at *place* opens, None for a dash or a subtraction."""
        signed = self._signed(place, previous_end)
        if signed is None:
            return None
        sign, first = signed
        unit, after = self._unit_before(first)
        said = self._said(first, after)
        if unit is not None and first == place:
            sign, after = self._signed(after, previous_end) or (1, after)
        return Prefix(unit, sign, after, said)

    def _said(self, start: int, end: int) -> str:
        tokens = self.grammar.tokens
        return self.text[tokens[start].start : tokens[end - 1].end] if end > start else ""

    def _signed(self, place: int, previous_end: int) -> tuple[int, int] | None:
        """Return the sign at *place* and the place after it, None for a dash or a subtraction."""
        grammar = self.grammar
        if grammar.word(place) in words.MINUS_WORDS:
            return None if place == previous_end else (-1, place + 1)
        sign = SIGN.get(grammar.symbol(place))
        if sign is None:
            return 1, place
        before = grammar.token(place - 1)
        # the dash of "5€-10€" follows the sign of a price that is read already
        is_unit = before is not None and before.text in SYMBOLS and place != previous_end
        opens = before is None or (before.kind == "symbol" and (before.text in _OPENERS or is_unit))
        is_sign = opens or (grammar.is_glued(place + 1) and not grammar.is_glued(place))
        return (sign, place + 1) if is_sign else None

    def _unit_before(self, place: int) -> tuple[Unit | None, int]:
        grammar = self.grammar
        word, symbol = grammar.word(place), grammar.symbol(place)
        if symbol:
            is_unit = symbol in SYMBOLS and (symbol != "%" or self._opens_percent(place))
            if symbol == "$" and grammar.is_glued(place + 1) and (code := DOLLAR_PREFIXES.get(grammar.word(place + 1))):
                return Unit(code), place + 2
            return (SYMBOLS[symbol], place + 1) if is_unit else (None, place)
        if not word:
            return None, place
        if word == "u":
            return self._spelled_us(place)
        if (code := DOLLAR_PREFIXES.get(word)) and grammar.symbol(place + 1) == "$":
            is_close = grammar.is_glued(place + 1) or word not in _ARTICLE_LIKE
            return (Unit(code), place + 2) if is_close else (None, place)
        if word in PREFIX_NAMES and (word not in CAPITAL_PREFIXES or self._is_abbreviation(place)):
            return PREFIX_NAMES[word], place + 1 + (grammar.symbol(place + 1) == ".")
        if word in _NAMES_BEFORE:
            return NAMES[word], place + 1
        unit = self._coded(place)
        if unit and not self._is_rate(place):
            return unit, place + 1
        return self._named_before(place)

    def _named_before(self, place: int) -> tuple[Unit | None, int]:
        """Read "canadian dollars 45", unless the number counts something else ("canadian dollars 3 days ago")."""
        grammar = self.grammar
        unit, end = self._named(place, 1 if grammar.word(place) in _NOUNS_BEFORE else 2) or (None, place)
        number, after = grammar.token(end), grammar.token(end + 1)
        if unit is None or not unit.is_currency or unit.factor != 1 or number is None or number.kind != "number":
            return None, place
        is_free = after is None or (after.kind == "symbol" and after.text not in SYMBOLS)
        is_free = is_free or grammar.scale(end + 1) is not None or grammar.word(end + 1) in _AFTER_PRICE
        return (unit, end) if is_free else (None, place)

    def _is_abbreviation(self, place: int) -> bool:
        """True for "RM 20"; "rm 20" can be a room, "rm 2.4 billion" in a reading for prices cannot."""
        if self._written(place).isupper():
            return True
        number = self.grammar.token(place + 1)
        if self.view is not View.MONEY or number is None or number.kind != "number":
            return False
        return not number.text.isdigit() or self.grammar.scale(place + 2) is not None

    def _opens_percent(self, place: int) -> bool:
        """True for the "%" of "% 20", which writers of Turkish put first; false for the one of "20 %"."""
        before = self.text[self.grammar.tokens[place].start - 1 : self.grammar.tokens[place].start]
        following, last = self.grammar.token(place + 1), self.grammar.token(place - 1)
        if following is None or following.kind != "number" or (last and last.kind in {"number", "fraction"}):
            return False
        # "n % 10" is a remainder
        is_near = self.grammar.is_glued(place + 1) or self.view is View.PERCENTS or last is None
        return is_near and before in {"", " ", "(", "\n", "\t"} and self.grammar.is_close(place + 1)

    def _spelled_us(self, place: int) -> tuple[Unit | None, int]:
        """Read the "u.s. $" of "u.s. $ 5"."""
        grammar = self.grammar
        if grammar.symbol(place + 1) != "." or grammar.word(place + 2) != "s":
            return None, place
        after = place + 3 + (grammar.symbol(place + 3) == ".")
        return (Unit("USD"), after + 1) if grammar.symbol(after) == "$" else (None, place)

    def _written(self, place: int) -> str:
        token = self.grammar.token(place)
        return self.text[token.start : token.end] if token and token.kind == "word" else ""

    def _coded(self, place: int) -> Unit | None:
        """Return the currency whose code stands at *place*, with its scale in "KEUR" or "USDbn"."""
        written = self._written(place)
        if not 3 <= len(written) <= 6:
            return None
        if code := currency_code(written):
            return Unit(code)
        scaled = SCALED_CODES.get(written)
        return Unit(scaled[0], _ONE.scaleb(scaled[1])) if scaled else None

    def _is_rate(self, place: int) -> bool:
        return self.grammar.symbol(place - 1) == "/"

    # -- after the number -----------------------------------------------------------------------------------------

    def suffix(self, end: int, before: Prefix) -> Suffix:
        """Return the unit after a number that ends before the token at *end*; it agrees with the one before it."""
        if before.unit is not None and (scaled := self._money_scale(end, before)):
            return scaled
        found = self._unit_after(end)
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
        following = self._unit_after(after + 1)
        mine = SYMBOLS.get(self.grammar.symbol(place))
        if following.unit is None:
            return True
        is_named = self.grammar.word(following.end - 1) != ""
        return is_named and mine is not None and _agreed(mine, following.unit) is not None

    def _unit_after(self, end: int) -> Suffix:
        grammar = self.grammar
        if (start := self._after_part(end)) > end:
            whole = self._unit_after(start)
            return whole if whole.unit else Suffix(None, end)
        place = grammar.after_dash(end)
        hyphen = place > end
        if (found := self._money_after(place)) is not None:
            unit, after = found
            return Suffix(unit, after, _ONE, self._said(place, after), grammar.is_glued(place) and not hyphen)
        measure = measure_after(grammar.text, grammar.tokens[end - 1].end)
        if measure is None:
            return Suffix(None, end)
        after = self._place_at(measure[1], end)
        is_glued = grammar.is_glued(end) and grammar.symbol(end) == ""
        return Suffix(unit_of(measure[0]), after, _ONE, self._said(place, after) if after > place else "", is_glued)

    def _is_much(self, place: int) -> bool:
        """True in a reading for prices and after a scale; "won" needs three digits: "1,000 won", "5 won the race"."""
        before = self.grammar.token(place - 1)
        return before is not None and (
            before.text in words.SCALES or (before.text[:1].isdigit() and len(before.text) > 2)
        )

    def _after_part(self, end: int) -> int:
        """Return the place of "percent" in "half of one percent" and of "mile" in "quarter of a mile", else *end*."""
        last = self.grammar.word(end - 1)
        if last not in words.PART and last not in words.PARTS:
            return end
        place = end + (self.grammar.word(end) == "of")
        # "half of one percent"; in "one half one mile" the second number is another one
        is_whole = self.grammar.word(place) == "one" and place > end
        return place + 1 if is_whole or self.grammar.word(place) in words.ARTICLES else end

    def _money_after(self, place: int) -> tuple[Unit, int] | None:
        """Read money or a percentage at *place*: a sign, a name or a code."""
        grammar = self.grammar
        if unit := SYMBOLS.get(grammar.symbol(place)):
            return unit, place + 1
        word = grammar.word(place)
        if not word:
            return None
        if word == "c" and grammar.is_glued(place):
            return SYMBOLS["¢"], place + 1
        if word == "p" and grammar.is_glued(place):
            return NAMES["pence"], place + 1
        if word == "u" and grammar.symbol(place + 1) == "." and grammar.word(place + 2) == "s":
            after = place + 3 + (grammar.symbol(place + 3) == ".")
            unit = NAMES.get(f"us {grammar.word(after)}")
            return (unit, after + 1) if unit else None
        if (code := DOLLAR_PREFIXES.get(word)) and grammar.symbol(place + 1) == "$" and grammar.is_glued(place + 1):
            return None if grammar.is_glued(place + 2) else (Unit(code), place + 2)
        if word in _DOUBTFUL and not self._is_much(place):
            return None
        if named := self._named(place):
            return named
        unit = self._coded(place)
        return (unit, place + 1) if unit else None

    def _named(self, place: int, shortest: int = 1) -> tuple[Unit, int] | None:
        """Read the longest name of money or a percentage at *place* that has at least *shortest* words."""
        word = self.grammar.word(place)
        for length in _LENGTHS.get(word, ()):
            if length < shortest:
                break
            end = place + length
            if unit := NAMES.get(" ".join(self.grammar.word(step) for step in range(place, end))):
                return unit, end
            # "per-cent", "percentage-points"
            after = self.grammar.after_hyphen(place + 1) if length == 2 else place + 1
            if after > place + 1 and (unit := NAMES.get(f"{word} {self.grammar.word(after)}")):
                return unit, after + 1
        return None

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
