"""Amounts in English sentences: what each is worth, in what unit, and where it stands.

Linear in the length of the text. What is ambiguous stays so ("1.500"): both readings are returned and nobody guesses.
"""

import re
from collections.abc import Iterator
from decimal import Context, Decimal, localcontext

from quantities.errors import AmbiguousAmount, InvalidAmount
from quantities.numerals import words
from quantities.numerals.beside import OPENING_NAMES, SIGN, Beside, Prefix, Suffix
from quantities.numerals.digit_runs import DecimalMark
from quantities.numerals.found import Found, View, plain
from quantities.numerals.fractions import ratio, ratio_words
from quantities.numerals.grammar import Grammar
from quantities.numerals.locales import mark_of
from quantities.numerals.percents import percents_of
from quantities.numerals.sharing import share_units
from quantities.numerals.single import has_part, single
from quantities.numerals.sums import merge
from quantities.numerals.tokens import fold, tokens_of
from quantities.units import CURRENCIES, NAMES, SYMBOLS, Unit, currency_code, measure_after, unit_named
from quantities.units.codes import CODES_IN_SMALL, SCALED_CODES

__all__ = [
    "DecimalMark", "Found", "amounts_as_said", "find_amounts", "find_money", "find_numbers", "find_percents",
    "parse_amount", "parse_number",
]  # fmt: skip

#: Whatever the caller's thread rounds to, values stay exact: 60 digits times any scale.
_CALCULATION = Context(prec=240)
_ONE = Decimal(1)
_PERCENT = NAMES["percent"]
_YEARS = range(1900, 2101)
#: Digits that mean what they are wherever they stand alone: most amounts of most messages.
_PLAIN = re.compile(r"[1-9][0-9]{0,14}")


def find_amounts(text: str, *, decimal_mark: DecimalMark | None = None, locale: str | None = None) -> tuple[Found, ...]:
    """Return every amount in *text* that can be a parameter, in order and without overlaps.

    Identifiers, versions, addresses, dates, times, ordinals and powers are no amounts, and neither are ratios ("1 in
    20") or loose words ("a few"): what can mean something else is left out.

    Args:
        text: any sentence, list or single number.
        decimal_mark: what the writer uses for decimals when that is known; it settles "1.500".
        locale: the writer's language and country ("de", "en-IN"), which says the same.

    Both ends of a span have its unit ("5 to 10 km").
    """
    amounts = _found(text, View.AMOUNTS, decimal_mark, locale)
    with localcontext(_CALCULATION):
        return share_units(amounts, text)


def amounts_as_said(
    text: str, *, decimal_mark: DecimalMark | None = None, locale: str | None = None
) -> tuple[Found, ...]:
    """Return what `find_amounts` does, but as worded: the 5 of "5 to 10 km" has no unit, and "a mile" no number."""
    return _found(text, View.WORDED, decimal_mark, locale)


def find_numbers(text: str, *, decimal_mark: DecimalMark | None = None, locale: str | None = None) -> tuple[Found, ...]:
    """Return every number in *text* as a table of numbers holds them: as said, its unit left out of the value.

    More is a number here than in `find_amounts`: powers ("2^10"), ratios ("3 over 8", "1 out of twenty"; "12 out of 10"
    are two), "single", "a pair", the four parts of an address, and "a few", which is marked as vague. Less is one too:
    digits glued to a unit ("29km", "1m", "115USD") are a quantity.
    """
    return _found(text, View.NUMBERS, decimal_mark, locale)


def find_money(text: str, *, decimal_mark: DecimalMark | None = None, locale: str | None = None) -> tuple[Found, ...]:
    """Return the prices in *text*; a small number after one is its cents: "15 dollars and 15", "c$ 100 and fifty".

    The value is in the currency (50 cents are 0.5 USD); `Found.said` keeps the number that was said (50).
    """
    return tuple(found for found in _found(text, View.MONEY, decimal_mark, locale) if found.unit in CURRENCIES)


def find_percents(
    text: str, *, decimal_mark: DecimalMark | None = None, locale: str | None = None
) -> tuple[Found, ...]:
    """Return the percentages in *text*, both ends of "10-15 %" among them and "per cent of 210" as 210 by custom.

    Basis points are hundredths of a percent; a percent sign without a number gives nothing.
    """
    return tuple(percents_of(_found(text, View.PERCENTS, decimal_mark, locale), text))


def parse_amount(text: str, *, decimal_mark: DecimalMark | None = None, locale: str | None = None) -> Found:
    """Return the one amount that *text* consists of; it may be ambiguous.

    Raises:
        InvalidAmount: *text* is empty, holds anything else, or holds several amounts.
    """
    if _PLAIN.fullmatch(text):
        value = Decimal(text)
        return Found(value, None, 0, len(text), text, (value,), said=value)
    found = find_amounts(text, decimal_mark=decimal_mark, locale=locale)
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


def parse_number(text: str, *, decimal_mark: DecimalMark | None = None, locale: str | None = None) -> Decimal:
    """Return the value of the one amount that *text* consists of, its unit left out.

    Raises:
        InvalidAmount: *text* is not exactly one amount.
        AmbiguousAmount: it has two readings.
    """
    found = parse_amount(text, decimal_mark=decimal_mark, locale=locale)
    if found.value is None:
        raise AmbiguousAmount(found.text, [format(reading, "f") for reading in found.readings])
    return found.value


def _found(text: str, view: View, mark: DecimalMark | None, locale: str | None) -> tuple[Found, ...]:
    if locale is not None and mark is None:
        mark = mark_of(locale)
    folded = fold(text)
    is_wide = view is View.NUMBERS
    with localcontext(_CALCULATION):
        grammar = Grammar(folded, tokens_of(folded, mark, is_wide=is_wide), is_wide=is_wide)
        return tuple(merge(_Finder(text, grammar, view).amounts(), text, view))


class _Finder:
    def __init__(self, text: str, grammar: Grammar, view: View) -> None:
        self.text = text
        self.grammar = grammar
        self.beside = Beside(text, grammar, view)
        self.view = view
        self.previous_end = -1
        self.previous_readings: tuple[Decimal, ...] = ()

    def amounts(self) -> Iterator[Found]:
        place = 0
        while place < len(self.grammar.tokens):
            found = self._amount(place) if self._may_open(place) else None
            if found is None:
                place += 1
                continue
            amount, place = found
            self.previous_end = place
            if amount is not None:
                yield amount

    def _may_open(self, place: int) -> bool:
        if place >= len(self.grammar.tokens):
            return False
        kind, text, start, end, _ = self.grammar.tokens[place]
        if kind == "word":
            if text in words.OPENING_WORDS or text in OPENING_NAMES:
                return True
            if self.view is View.NUMBERS and (text in words.LOOSE_NUMBERS or text in words.LONE_NUMBERS):
                return True
            if text not in CODES_IN_SMALL:
                return False
            written = self.text[start:end].rstrip(".")
            return 3 <= len(written) <= 6 and (currency_code(written) is not None or written in SCALED_CODES)
        if kind == "symbol":
            return text in SYMBOLS or text in SIGN
        return kind != "other"

    def _amount(self, place: int) -> tuple[Found | None, int] | None:
        """Return the amount that opens at *place* and the place after it; None in its stead for what is read over."""
        prefix = self.beside.prefix(place, self.previous_end)
        quantity = self.grammar.quantity(prefix.end) if prefix else None
        if prefix is None or quantity is None:
            return self._single(place)
        readings, end = quantity
        if self.view is View.NUMBERS and (together := self._ratio(prefix, readings, end)):
            readings, end = together
        elif self._is_clock(end) or self._is_pronoun(prefix.end, end):
            return None
        suffix = self._suffix(place, prefix, readings, end)
        if self.view is View.NUMBERS:
            is_quantity = suffix.is_glued and suffix.said[:1].isalpha()
            return (None, suffix.end) if is_quantity else (self._bare(place, prefix, readings, end), end)
        if self._runs_on(suffix.end):
            return None
        self.previous_readings = readings
        return self._with_unit(place, prefix, readings, suffix), suffix.end

    def _suffix(self, place: int, prefix: Prefix, readings: tuple[Decimal, ...], end: int) -> Suffix:
        """Return the unit after the number, which for the second one of "thirty (30) days" is behind the bracket."""
        grammar = self.grammar
        is_repeated = grammar.symbol(place - 1) == "(" and place - 1 == self.previous_end
        if is_repeated and grammar.symbol(end) == ")" and readings == self.previous_readings:
            behind = self.beside.suffix(end + 1, prefix)
            if behind.unit is not None:
                return behind
        return self.beside.suffix(end, prefix)

    def _single(self, place: int) -> tuple[Found, int] | None:
        """Read "a dollar" as one dollar, where a parameter is looked for; that of "a dollar and a half" anywhere."""
        is_one = self.view is not View.NUMBERS and place != self.previous_end
        suffix = single(self.beside, place) if is_one else None
        is_percent = self.view is View.PERCENTS and suffix is not None and suffix.unit == _PERCENT
        if suffix and self.view is not View.AMOUNTS and not is_percent and not has_part(self.beside, suffix.end):
            return None
        return (self._with_unit(place, Prefix(None, 1, place), (_ONE,), suffix), suffix.end) if suffix else None

    def _runs_on(self, end: int) -> bool:
        """True for digits that letters follow which are no unit here: "2J"."""
        grammar = self.grammar
        return grammar.word(end) != "" and grammar.is_glued(end) and grammar.tokens[end - 1].kind == "number"

    def _with_unit(self, place: int, prefix: Prefix, readings: tuple[Decimal, ...], suffix: Suffix) -> Found:
        unit = suffix.unit
        # the scale of "30 MUSD" is said, the hundredth of "5 cents" is not
        scale = suffix.scale * unit.factor if unit and unit.factor > 1 else suffix.scale
        said = tuple(plain(reading * prefix.sign * scale) for reading in readings)
        worth = tuple(plain(reading * unit.factor) for reading in said) if unit and unit.factor < 1 else said
        return self._made(place, prefix.end, suffix.end, worth, said, unit, suffix.said)

    def _bare(self, place: int, prefix: Prefix, readings: tuple[Decimal, ...], end: int) -> Found:
        start = place if prefix.unit is None else prefix.end
        readings = tuple(plain(reading * prefix.sign) for reading in readings)
        return self._made(start, prefix.end, end, readings, readings, None, "")

    def _made(
        self,
        place: int,
        first: int,
        end: int,
        readings: tuple[Decimal, ...],
        said: tuple[Decimal, ...],
        unit: Unit | None,
        said_unit: str,
    ) -> Found:
        tokens = self.grammar.tokens
        start, stop = tokens[place].start, tokens[end - 1].end
        is_sure = len(readings) == 1
        code, also = (unit.code, unit.also) if unit else (None, ())
        return Found(
            readings[0] if is_sure else None,
            code,
            start,
            stop,
            self.text[start:stop],
            readings,
            also,
            said[0] if is_sure else None,
            said_unit,
            any(token.text in words.VAGUE for token in tokens[first : min(end, first + 2)]),
        )

    def _ratio(self, prefix: Prefix, readings: tuple[Decimal, ...], end: int) -> tuple[tuple[Decimal, ...], int] | None:
        """Read "1 over 3", "one in twenty" and "3 out of 4"; a price or a span of years is divided by nothing."""
        count = ratio_words(self.grammar.tokens, end)
        if not count or len(readings) != 1 or prefix.unit is not None:
            return None
        bottom = self.grammar.quantity(end + count)
        if bottom is None or len(bottom[0]) != 1:
            return None
        joint = self.grammar.word(end)
        token = self.grammar.tokens[end + count]
        if joint == "in" and token.kind == "number" and token.text.isdigit() and int(bottom[0][0]) in _YEARS:
            return None
        unit = self.beside.suffix(bottom[1], Prefix(None, 1, bottom[1])).unit
        value = ratio(readings[0], joint, bottom[0][0]) if unit is None else None
        return None if value is None else ((value,), bottom[1])

    def _is_clock(self, end: int) -> bool:
        return self.grammar.word(end) in words.CLOCK_WORDS

    def _is_pronoun(self, place: int, end: int) -> bool:
        """True for the "one" of "no one", "this one", "one of them"."""
        grammar = self.grammar
        if end != place + 1 or grammar.word(place) != "one":
            return False
        before, after = grammar.token(place - 1), grammar.word(end)
        if (grammar.word(end), grammar.word(end + 1)) == ("by", "one") or self._is_name(place, end):
            return True
        following = grammar.token(end + 1)
        # "one of 6 stars" is a mark
        is_mark = after == "of" and following is not None and following.kind == "number"
        if after in words.COUNTED_BY_ONE or (after, grammar.word(end + 1)) == ("per", "cent"):
            return False
        is_length = after == "day" and (grammar.word(place - 1) in words.BEFORE_ONE_DAY or len(grammar.tokens) == 2)
        if self._names_one(place, after) or (after in words.AFTER_PRONOUN and not is_mark and not is_length):
            return True
        starts = before is None or before.text in {".", "!", "?"}
        if not starts or after == "" or self._may_open(end) or (after == "to" and self._may_open(end + 1)):
            return False
        is_unit = after in NAMES or unit_named(after) is not None
        if is_unit or measure_after(grammar.text, grammar.tokens[place].end):
            return False
        # "one wonders", and one bus
        is_verb = after.endswith("s") and not after.endswith(("ss", "us", "as"))
        return is_verb or after in words.AFTER_ANYBODY

    def _is_name(self, place: int, end: int) -> bool:
        """True for the "one" of "one-way", "a one-off", "one-on-one", "one by one" and "at one point"."""
        word = self.grammar.word
        if self.grammar.after_hyphen(end) > end and word(end + 1) in words.AFTER_ONE_HYPHEN:
            return True
        before = word(place - 1) or word(place - 2)
        if before in words.JOINTS_OF_ONE and "one" in {word(place - 2), word(place - 4)}:
            return True
        return (before, word(end)) == ("at", "point")

    def _names_one(self, place: int, after: str) -> bool:
        """True after "this", "no" and "fifth"; "only one" is counted, "the only one" and "my only one" are not."""
        before = self.grammar.word(place - 1)
        if before == "only" and after not in words.AFTER_PRONOUN:
            owner = self.grammar.word(place - 2)
            return owner in words.BEFORE_PRONOUN or owner in words.OWNERS
        return before in words.BEFORE_PRONOUN or before in words.ORDINALS
