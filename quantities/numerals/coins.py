"""Money in a sentence by sign, name and code, wherever beside a number it stands."""

import re
from decimal import Decimal

from quantities.numerals import words
from quantities.numerals.found import View
from quantities.numerals.grammar import Grammar
from quantities.units import DOLLAR_PREFIXES, NAMES, SYMBOLS, Unit, currency_code
from quantities.units.codes import SCALED_CODES
from quantities.units.currencies import NAMES_BEHIND_SCALES, PREFIX_NAMES

_ONE = Decimal(1)
#: Money that is something else as well: a verb, points in a test, what kings wear.
_DOUBTFUL = frozenset({"won", "mark", "marks", "crown", "crowns", "guineas"})
#: Words before an amount that show it to be a price.
_PRICED = re.compile(
    r"\b(?:costs?|pay|pays|paid|worth|price[ds]?|sold|bought|spent|spends?|charge[sd]?|earn(?:s|ed)?|owe[sd]?|lent"
    r"|borrowed|fined|fees?)(?: (?:of|at|for|to|is|was|it|only|just|about|around|over|nearly|almost|exactly|you|me|him"
    r"|her|us|them|than|more|less)){0,3} $",
    re.IGNORECASE,
)
#: Characters that hold them.
_BEFORE_PRICE = 40
#: Codes that are other words in small letters, unless so much stands before them: "300 rub", but "2 ron".
_CODES_BEHIND_PRICES = frozenset({"rub", "php", "ron", "sar", "ars"})
#: Abbreviations that stand behind a number as well, as their countries write them: "15,000 Rp", "20 RM", "50 Tk".
_BEHIND = frozenset({
    "Rp", "RM", "DM", "Fr", "SFr", "Sfr", "sFr", "FFr", "BFr", "KSh", "Ksh", "Kshs", "TSh", "Tsh", "USh", "Ush", "Shs",
    "shs", "Tk", "tk", "Dhs", "dhs", "Dh", "Ptas", "ptas", "Pta", "SKr", "Skr", "NKr", "Nkr", "DKr", "Dkr",
})  # fmt: skip
#: Letters of a dollar that are so few other things that they need not touch its sign.
DOLLAR_LETTERS = frozenset({"us", "usd", "hk", "hkd", "nz", "nzd", "nt", "ntd", "cad", "aud", "sgd", "cdn"})


def _lengths() -> dict[str, tuple[int, ...]]:
    lengths: dict[str, set[int]] = {}
    for name in NAMES:
        lengths.setdefault(name.partition(" ")[0], set()).add(name.count(" ") + 1)
    return {first: tuple(sorted(several, reverse=True)) for first, several in lengths.items()}


#: How many words the names have that begin with a word, the longest first.
_LENGTHS = _lengths()


class Coins:
    """Tells what money stands at a place of one sentence."""

    def __init__(self, text: str, grammar: Grammar, view: View) -> None:
        self.text = text
        self.grammar = grammar
        self.view = view

    def _said(self, start: int, end: int) -> str:
        tokens = self.grammar.tokens
        return self.text[tokens[start].start : tokens[end - 1].end] if end > start else ""

    def _written(self, place: int) -> str:
        token = self.grammar.token(place)
        return self.text[token.start : token.end].rstrip(".") if token and token.kind == "word" else ""

    def _coded(self, place: int) -> Unit | None:
        """Return the currency whose code stands at *place*, with its scale in "KEUR" or "USDbn"."""
        written = self._written(place)
        if not 3 <= len(written) <= 6:
            return None
        if code := currency_code(written):
            return Unit(code)
        scaled = SCALED_CODES.get(written)
        return Unit(scaled[0], _ONE.scaleb(scaled[1])) if scaled else None

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
            after = self.grammar.after_dash(place + 1) if length == 2 else place + 1
            if after > place + 1 and (unit := NAMES.get(f"{word} {self.grammar.word(after)}")):
                return unit, after + 1
        return None

    def _opens_number(self, place: int) -> bool:
        token = self.grammar.token(place)
        return token is not None and token.kind in {"number", "fraction"}

    def _is_money(self, place: int) -> bool:
        named = self._named(place)
        return named is not None and named[0].is_currency

    def _is_much(self, place: int) -> bool:
        """True behind a scale or three digits at least: "1,000 won" is money, "5 won the race" is not."""
        before = self.grammar.token(place - 1)
        return before is not None and (
            before.text in words.SCALES or (before.text[:1].isdigit() and len(before.text) > 2)
        )

    def _is_sure(self, place: int) -> bool:
        """True for doubtful money of which there is much, or for which something is sold; races are run for Guineas."""
        if self._written(place) == "Guineas":
            return False
        first = place
        while self._opens_number(first - 1) or self.grammar.word(first - 1) in words.OPENING_WORDS:
            first -= 1
        return self._is_much(place) or self._is_priced(first)

    def _is_priced(self, place: int) -> bool:
        """True after "costs", "paid" and "sold for about"."""
        token = self.grammar.token(place)
        start = token.start if token else 0
        return _PRICED.search(self.text, max(0, start - _BEFORE_PRICE), start) is not None

    def _money_after(self, place: int) -> tuple[Unit, int] | None:
        """Read money or a percentage at *place*: a sign, a name or a code."""
        grammar = self.grammar
        if unit := SYMBOLS.get(grammar.symbol(place)):
            return unit, place + 1
        word = grammar.word(place)
        if not word:
            return None
        if unit := self._lettered(word, place):
            return unit, place + 1
        if word == "u" and grammar.symbol(place + 1) == "." and grammar.word(place + 2) == "s":
            after = place + 3 + (grammar.symbol(place + 3) == ".")
            unit = Unit("USD") if grammar.symbol(after) == "$" else NAMES.get(f"us {grammar.word(after)}")
            return (unit, after + 1) if unit and not self._opens_number(after + 1) else None
        if (code := DOLLAR_PREFIXES.get(word)) and grammar.symbol(place + 1) == "$":
            return (Unit(code), place + 2) if self._ends_in_dollars(place) else None
        if word in _DOUBTFUL and not self._is_sure(place):
            return None
        if (unit := NAMES_BEHIND_SCALES.get(word)) and grammar.word(place - 1) in words.SCALES:
            return unit, place + 1
        if named := self._named(place):
            return named
        unit = self._coded(place) or (
            Unit(word.upper()) if word in _CODES_BEHIND_PRICES and self._is_much(place) else None
        )
        return (unit, place + 1) if unit else None

    def _lettered(self, word: str, place: int) -> Unit | None:
        """Read the letters of "50c", "50p", "50 Rp" and, where percentages are looked for, "50pc"."""
        if word in {"c", "p"} and self.grammar.is_glued(place):
            return SYMBOLS["¢"] if word == "c" else NAMES["pence"]
        written = self._written(place)
        if written == "pc" and self.view in {View.PERCENTS, View.NUMBERS}:
            # "a 12pc set" has pieces
            return NAMES["percent"]
        return PREFIX_NAMES[word] if written in _BEHIND else None

    def _ends_in_dollars(self, place: int) -> bool:
        """True for the "us$" of "50 us$" and of "50 us $"; in "10 us$20" and "10 us $ 20" it opens the next price."""
        if self.grammar.is_glued(place + 1):
            return not self.grammar.is_glued(place + 2)
        return self.grammar.word(place) in DOLLAR_LETTERS and not self._opens_number(place + 2)
