"""What stands before a number: its sign, and the money it is an amount of."""

from dataclasses import dataclass

from quantities.numerals import words
from quantities.numerals.coins import DOLLAR_LETTERS, Coins
from quantities.numerals.found import View
from quantities.units import DOLLAR_PREFIXES, NAMES, SYMBOLS, Unit
from quantities.units.currencies import CAPITAL_PREFIXES, PREFIX_NAMES, PRICE_PREFIXES

#: The dash is how typesetters write a minus.
SIGN = {"-": -1, "\u2013": -1, "+": 1}
_OPENERS = frozenset("([{=:<>,;|~\n\t")
#: Names of money that may stand before the number in full ("rupees 500").
_NAMES_BEFORE = frozenset({"rupees", "rupee"})
#: Those that may when the number counts nothing else ("changed euros 3 days ago").
_NOUNS_BEFORE = frozenset({"euros", "dollars", "yen", "yuan", "renminbi"})
#: Those that need a number which can only be a price ("euro 4.50"; "euro 96" was a cup).
_NOUNS_BEFORE_PRICES = frozenset({
    "euro", "dollar", "pound", "pounds", "francs", "pesos", "dinars", "riyals", "dirhams",
})  # fmt: skip
#: The years in which nations of Europe play, as two digits and in full, and the last norm of exhaust.
_CUPS, _CUPS_IN_FULL, _YEARS_AHEAD, _LAST_NORM = range(60, 100), range(1960, 2101), 40, 7
_LONGEST_YEAR = 4
#: Codes that are written with the point of "Rs.".
_POINTED = frozenset({"INR", "PKR", "LKR", "NPR"})
#: "S/. 20" in Peru, "B/. 20" in Panama.
_SLASHED = {"s": Unit("PEN"), "b": Unit("PAB")}
#: Single letters that belong to a dollar sign only when nothing stands between ("a $5 cake").
_ARTICLE_LIKE = frozenset({"a", "s", "r", "j", "z", "b", "g", "l", "n", "t"})
#: First words of a currency with its country ("hong kong dollars").
_COUNTRIES = frozenset(name.partition(" ")[0] for name, unit in NAMES.items() if " " in name and unit.is_currency)
#: Words before a number that may be its currency.
OPENING_NAMES = frozenset({
    *DOLLAR_PREFIXES, *PREFIX_NAMES, *_NAMES_BEFORE, *_NOUNS_BEFORE, *_NOUNS_BEFORE_PRICES, *_COUNTRIES, *_SLASHED, "u",
})  # fmt: skip
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


class Prefixes(Coins):
    """Reads the signs and units before the numbers of one sentence."""

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

    def _signed(self, place: int, previous_end: int) -> tuple[int, int] | None:
        """Return the sign at *place* and the place after it, None for a dash or a subtraction."""
        grammar = self.grammar
        if grammar.word(place) in words.MINUS_WORDS:
            # "plus or minus three" is a margin
            is_margin = grammar.word(place - 1) == "or" and grammar.word(place - 2) == "plus"
            return None if place == previous_end else (1 if is_margin else -1, place + 1)
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
            if symbol == "$" and (code := DOLLAR_PREFIXES.get(grammar.word(place + 1))):
                # "$us 50"; apart it is two letters at least: "$ us 50"
                is_close = grammar.is_glued(place + 1) or self._names_dollars(place + 1)
                return (Unit(code), place + 2) if is_close else (SYMBOLS[symbol], place + 1)
            return (SYMBOLS[symbol], place + 1) if is_unit else (None, place)
        if not word:
            return None, place
        if word == "u":
            return self._spelled_us(place)
        if (code := DOLLAR_PREFIXES.get(word)) and grammar.symbol(place + 1) == "$":
            is_close = grammar.is_glued(place + 1) or word not in _ARTICLE_LIKE
            return (Unit(code), place + 2) if is_close else (None, place)
        if short := self._abbreviated(word, place):
            return short
        if word in _NAMES_BEFORE:
            return NAMES[word], place + 1
        unit = self._coded(place)
        if unit and not self._is_rate(place):
            # "INR. 500"
            is_pointed = unit.code in _POINTED and grammar.symbol(place + 1) == "." and grammar.is_glued(place + 1)
            return unit, place + 1 + (is_pointed and self._counts_nothing(place + 2))
        return self._named_before(place)

    def _named_before(self, place: int) -> tuple[Unit | None, int]:
        """Read "canadian dollars 45", unless the number counts something else ("canadian dollars 3 days ago")."""
        grammar = self.grammar
        word = grammar.word(place)
        is_noun = word in _NOUNS_BEFORE or (
            word in _NOUNS_BEFORE_PRICES
            and (self._is_price(place + 1) or grammar.is_glued(place + 1) or self._is_priced(place))
        )
        is_noun = is_noun or (word == "euro" and self._is_no_cup(place + 1))
        unit, end = self._named(place, 1 if is_noun else 2) or (None, place)
        if unit is None or not unit.is_currency or unit.factor != 1 or not self._counts_nothing(end):
            return None, place
        return unit, end

    def _counts_nothing(self, place: int) -> bool:
        """True for a number at *place* behind which no noun stands that it would count."""
        grammar = self.grammar
        number, after = grammar.token(place), grammar.token(place + 1)
        if number is None or number.kind != "number":
            return False
        is_free = after is None or (after.kind == "symbol" and after.text not in SYMBOLS)
        is_free = is_free or grammar.is_glued(place) or grammar.scale(place + 1) is not None
        return is_free or grammar.word(place + 1) in _AFTER_PRICE

    def _abbreviated(self, word: str, place: int) -> tuple[Unit, int] | None:
        grammar = self.grammar
        if word in _SLASHED and grammar.symbol(place + 1) == "/" and self._written(place).isupper():
            return _SLASHED[word], place + 2 + (grammar.symbol(place + 2) == ".")
        after = place + 1 + (grammar.symbol(place + 1) == ".")
        if word in PREFIX_NAMES and self._is_abbreviation(word, place, after):
            return PREFIX_NAMES[word], after
        return None

    def _is_abbreviation(self, word: str, place: int, after: int) -> bool:
        """True for "RM 20"; "rm 20" can be a room, "rm 2.4 billion" in a reading for prices cannot."""
        if word in PRICE_PREFIXES:
            written = self._written(place)
            if self.view is View.MONEY and after > place + 1 and written[:1].isupper() and len(word) > 1:
                return True
            is_written_so = len(word) > 1 or written.isupper() or self.grammar.is_glued(after)
            return is_written_so and self._is_price(after)
        if word not in CAPITAL_PREFIXES or self._written(place).isupper() or self._written(place) == "Php":
            return True
        return self._is_priced(place) or (self.view is View.MONEY and self._is_price(after))

    def _is_no_cup(self, place: int) -> bool:
        """True for the number of "euro 50"; the norms are Euro 1 to 7, and every fourth year has a cup of its name."""
        number = self.grammar.token(place)
        if number is None or not number.text.isdigit() or len(number.text) > _LONGEST_YEAR or number.text[0] == "0":
            return False
        value = int(number.text)
        is_year = value % 4 == 0 and (value < _YEARS_AHEAD or value in _CUPS or value in _CUPS_IN_FULL)
        return value > _LAST_NORM and not is_year

    def _is_price(self, place: int) -> bool:
        """True when the number at *place* has decimals, groups or a scale, as prices have and page numbers do not."""
        number = self.grammar.token(place)
        if number is None or number.kind != "number":
            return False
        return not number.text.isdigit() or self.grammar.scale(place + 1) is not None

    def _names_dollars(self, place: int) -> bool:
        """True for the "us" of "$ us 50", which is no word beside a sign of dollars."""
        return self.grammar.word(place) in DOLLAR_LETTERS and self._opens_number(place + 1)

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

    def _is_rate(self, place: int) -> bool:
        return self.grammar.symbol(place - 1) == "/"
