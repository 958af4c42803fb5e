"""Amounts in English sentences: what each is worth, in what unit, and where it stands.

Linear in the length of the text. What is ambiguous stays so ("1.500"): both readings are returned and nobody guesses.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext

from contracts.errors import AmbiguousAmount, InvalidAmount
from contracts.numerals import words
from contracts.numerals.digit_runs import DecimalMark
from contracts.numerals.grammar import Grammar
from contracts.numerals.tokens import fold, tokens_of
from contracts.units import (
    DOLLAR_PREFIXES,
    LONGEST_NAME,
    SYMBOLS,
    Unit,
    currency_code,
    unit_named,
)

__all__ = ["DecimalMark", "Found", "find_amounts", "parse_amount", "parse_number"]

#: Whatever the caller's thread rounds to, values stay exact: 60 digits times any scale.
_CALCULATION = Context(prec=240)
_SIGN = {"-": -1, "+": 1}
_OPENERS = frozenset("([{=:<>,;|\n\t")


@dataclass(frozen=True, slots=True)
class Found:
    """One amount of a sentence, `sentence[start:end]` being *text*.

    *value* is None when the text has two *readings*. *unit* is an ISO currency code, "%" or a unit such as "km"; cents
    are already turned into their currency. *also* lists the other currencies that the wording can mean ("$").
    """

    value: Decimal | None
    unit: str | None
    start: int
    end: int
    text: str
    readings: tuple[Decimal, ...]
    also: tuple[str, ...] = ()


def find_amounts(text: str, *, decimal_mark: DecimalMark | None = None) -> tuple[Found, ...]:
    """Return every amount in *text*, in order and without overlaps.

    Args:
        text: any sentence, list or single number.
        decimal_mark: what the writer uses for decimals when that is known; it settles "1.500".
    """
    folded = fold(text)
    with localcontext(_CALCULATION):
        finder = _Finder(text, Grammar(folded, tokens_of(folded, decimal_mark)))
        return tuple(_merge(finder.amounts(), text))


def parse_amount(text: str, *, decimal_mark: DecimalMark | None = None) -> Found:
    """Return the one amount that *text* consists of; it may be ambiguous.

    Raises:
        InvalidAmount: *text* is empty, holds anything else, or holds several amounts.
    """
    found = find_amounts(text, decimal_mark=decimal_mark)
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    if len(found) > 1:
        raise InvalidAmount(f"{shown!r} holds {len(found)} amounts; write one, with '.' before decimals")
    if (
        not found
        or text[: found[0].start].strip()
        or text[found[0].end :].removeprefix(" of").strip(" .,;!?\t\n\u00a0")
    ):
        raise InvalidAmount(f"{shown!r} is no amount; write a number such as 50000, '50k' or 'fifty thousand'")
    return found[0]


def parse_number(text: str, *, decimal_mark: DecimalMark | None = None) -> Decimal:
    """Return the value of the one amount that *text* consists of, its unit left out.

    Raises:
        InvalidAmount: *text* is not exactly one amount.
        AmbiguousAmount: it has two readings.
    """
    found = parse_amount(text, decimal_mark=decimal_mark)
    if found.value is None:
        raise AmbiguousAmount(found.text, [format(reading, "f") for reading in found.readings])
    return found.value


@dataclass(frozen=True, slots=True)
class _Prefix:
    unit: Unit | None
    sign: int
    end: int


class _Finder:
    def __init__(self, text: str, grammar: Grammar) -> None:
        self.text = text
        self.grammar = grammar
        self.previous_end = -1

    def amounts(self) -> Iterator[Found]:
        place = 0
        while place < len(self.grammar.tokens):
            found = self._amount(place) if self._may_open(place) else None
            if found is None:
                place += 1
                continue
            amount, place = found
            self.previous_end = place
            yield amount

    def _may_open(self, place: int) -> bool:
        kind, text = self.grammar.tokens[place][:2]
        if kind == "word":
            return text in words.OPENING_WORDS or text in DOLLAR_PREFIXES or unit_named(text) is not None
        if kind == "symbol":
            return text in SYMBOLS or text in _SIGN
        return kind != "other"

    def _amount(self, place: int) -> tuple[Found, int] | None:
        prefix = self._prefix(place)
        quantity = self.grammar.quantity(prefix.end) if prefix else None
        if prefix is None or quantity is None:
            return None
        readings, end = quantity
        if self._is_clock(end) or self._is_pronoun(prefix.end, end):
            return None
        unit, end, factor = self._suffix(end, prefix.unit)
        if unit is not None:
            factor *= unit.factor
        readings = tuple(_plain(reading * prefix.sign * factor) for reading in readings)
        start, stop = self.grammar.tokens[place].start, self.grammar.tokens[end - 1].end
        value = readings[0] if len(readings) == 1 else None
        code, also = (unit.code, unit.also) if unit else (None, ())
        return Found(value, code, start, stop, self.text[start:stop], readings, also), end

    # -- before the number ----------------------------------------------------------------------------------------

    def _prefix(self, place: int) -> _Prefix | None:
        signed = self._signed(place)
        if signed is None:
            return None
        sign, after = signed
        unit, after = self._unit_before(after)
        if unit is not None and signed[1] == place:
            sign, after = self._signed(after) or (1, after)
        return _Prefix(unit, sign, after)

    def _signed(self, place: int) -> tuple[int, int] | None:
        """Return the sign at *place* and the place after it, None for a dash or a subtraction."""
        grammar = self.grammar
        if grammar.word(place) in words.MINUS_WORDS:
            return None if place == self.previous_end else (-1, place + 1)
        sign = _SIGN.get(grammar.symbol(place))
        if sign is None:
            return 1, place
        before = grammar.token(place - 1)
        opens = before is None or (before.kind == "symbol" and (before.text in _OPENERS or before.text in SYMBOLS))
        is_sign = opens or (grammar.is_glued(place + 1) and not grammar.is_glued(place))
        return (sign, place + 1) if is_sign else None

    def _unit_before(self, place: int) -> tuple[Unit | None, int]:
        grammar = self.grammar
        word, symbol = grammar.word(place), grammar.symbol(place)
        if symbol and symbol != "%" and (unit := SYMBOLS.get(symbol)):
            return unit, place + 1
        if not word:
            return None, place
        if word == "u" and grammar.symbol(place + 1) == "." and grammar.word(place + 2) == "s":
            after = place + 3 + (grammar.symbol(place + 3) == ".")
            return (Unit("USD"), after + 1) if grammar.symbol(after) == "$" else (None, place)
        if (code := DOLLAR_PREFIXES.get(word)) and grammar.symbol(place + 1) == "$":
            return (
                (Unit(code), place + 2) if grammar.is_glued(place + 1) or word not in {"a", "s", "r"} else (None, place)
            )
        if word in {"rs", "rs."}:
            return unit_named("rs"), place + 1 + (grammar.symbol(place + 1) == ".")
        code = self._code(place)
        return (Unit(code), place + 1) if code and not self._is_rate(place) else (None, place)

    def _code(self, place: int) -> str | None:
        token = self.grammar.token(place)
        return currency_code(self.text[token.start : token.end]) if token and token.kind == "word" else None

    def _is_rate(self, place: int) -> bool:
        return self.grammar.symbol(place - 1) == "/"

    # -- after the number -----------------------------------------------------------------------------------------

    def _suffix(self, end: int, before: Unit | None) -> tuple[Unit | None, int, Decimal]:
        """Return the unit after a number, the place after that and the scale that follows ("USD million")."""
        unit, after = self._unit_after(end)
        if unit is None or (before is not None and self._opens_next(end, after)):
            return before, end, Decimal(1)
        if before is not None:
            agreed = _agreed(before, unit)
            return (agreed, after, Decimal(1)) if agreed else (before, end, Decimal(1))
        if self._opens_next(end, after) and self._belongs_to_next(after):
            return None, end, Decimal(1)
        scale = self.grammar.scale(after) if unit.is_currency and not self.grammar.is_glued(after) else None
        return (unit, scale.end, scale.value) if scale else (unit, after, Decimal(1))

    def _opens_next(self, place: int, after: int) -> bool:
        """True when the unit at *place* stands before a number of its own: the second "$" of "$ 20 $ 30"."""
        token = self.grammar.token(after)
        if token is None or token.kind != "number" or self.grammar.symbol(place) == "%":
            return False
        return not self.grammar.is_glued(place) or self.grammar.is_glued(after)

    def _belongs_to_next(self, after: int) -> bool:
        """Tell "1 $ 10" and "3 USD50" from "10 $ 30 $" and "50 dollars 40 cents"."""
        if self.grammar.is_glued(after):
            return True
        return self.grammar.symbol(after - 1) != "" and self._unit_after(after + 1)[0] is None

    def _unit_after(self, end: int) -> tuple[Unit | None, int]:
        grammar = self.grammar
        hyphen = grammar.symbol(end) == "-" and grammar.is_glued(end) and grammar.is_glued(end + 1)
        place = end + 1 if hyphen else end
        if unit := SYMBOLS.get(grammar.symbol(place)):
            return unit, place + 1
        if grammar.word(place) == "c" and grammar.is_glued(place):
            return SYMBOLS["¢"], place + 1
        for length in range(LONGEST_NAME, 0, -1):
            name = [grammar.word(place + step) for step in range(length)]
            if all(name) and (length > 1 or not self._code(place)) and (unit := unit_named(" ".join(name))):
                return unit, place + length
        code = self._code(place)
        return (Unit(code), place + 1) if code else (None, end)

    def _is_clock(self, end: int) -> bool:
        return self.grammar.word(end) in words.CLOCK_WORDS

    def _is_pronoun(self, place: int, end: int) -> bool:
        """True for the "one" of "no one", "this one", "one of them"."""
        grammar = self.grammar
        if end != place + 1 or grammar.word(place) != "one":
            return False
        before = grammar.token(place - 1)
        starts = before is None or before.text in {".", "!", "?"}
        return (
            grammar.word(place - 1) in words.BEFORE_PRONOUN
            or grammar.word(end) in words.AFTER_PRONOUN
            or (
                starts and grammar.word(end) != "" and not self._may_open(end) and unit_named(grammar.word(end)) is None
            )
        )


def _plain(value: Decimal) -> Decimal:
    """Return *value* without trailing zeros after the point and without an exponent on whole numbers."""
    value = value.normalize() if value else Decimal(0)
    return value.quantize(Decimal(1)) if 0 < int(value.as_tuple().exponent) <= 120 else value


def _agreed(before: Unit, after: Unit) -> Unit | None:
    """Return what "$50 USD" and "$50 AUD" say together; None when the second unit belongs to something else."""
    if after.factor != before.factor:
        return None
    if after.code == before.code:
        return before if len(before.also) < len(after.also) else after
    if after.code in before.also:
        return after
    return before if before.code in after.also else None


def _merge(amounts: Iterator[Found], text: str) -> Iterator[Found]:
    """Join "3 dollars and 50 cents" and "forty-five (45)" into one amount each."""
    last: Found | None = None
    for amount in amounts:
        joined = last and _joined(last, amount, text)
        if last and not joined:
            yield last
        last = joined or amount
    if last:
        yield last


def _joined(last: Found, amount: Found, text: str) -> Found | None:
    gap = text[last.end : amount.start].strip().lower()
    if last.value is None or amount.value is None:
        return None
    if gap == "(" and last.value == amount.value and text[amount.end : amount.end + 1] == ")":
        return replace(last, end=amount.end + 1, text=text[last.start : amount.end + 1], unit=last.unit or amount.unit)
    is_small = amount.unit and last.unit in (amount.unit, *amount.also) and 0 < amount.value < 1 <= abs(last.value)
    if gap in {"", "and"} and is_small and _names_cents(amount.text) and last.value == last.value.to_integral_value():
        value = last.value + amount.value.copy_sign(last.value)
        return replace(last, value=value, readings=(value,), end=amount.end, text=text[last.start : amount.end])
    return None


def _names_cents(text: str) -> bool:
    return text.lower().endswith(("cent", "cents", "c", "¢", "pence", "penny", "paise", "paisa"))
