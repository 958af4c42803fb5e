"""Amounts in English sentences: value, unit and place of each.

Linear in the length of the text. What is ambiguous stays so ("1.500"): both readings are returned.
"""

import re
from collections.abc import Iterator
from decimal import Decimal, localcontext
from fractions import Fraction

from tasklore.contracts.quantities.errors import AmbiguousAmount, InvalidAmount
from tasklore.contracts.quantities.numerals import words
from tasklore.contracts.quantities.numerals.digit_runs import (
    DecimalMark,
    RunNumber,
    pieces_of,
)
from tasklore.contracts.quantities.numerals.found import CALCULATION, FoundAmount, plain
from tasklore.contracts.quantities.numerals.joining import join_parts, share_units
from tasklore.contracts.quantities.numerals.locales import mark_of
from tasklore.contracts.quantities.numerals.money import (
    Prefix,
    Suffix,
    Units,
    opens_with_unit,
)
from tasklore.contracts.quantities.numerals.numbers import number_at
from tasklore.contracts.quantities.numerals.whole import Numbers
from tasklore.contracts.quantities.sentence import Sentence
from tasklore.contracts.quantities.units import NAMES, SYMBOLS, unit_named
from tasklore.contracts.quantities.units.codes import SCALED_CODES

#: Digits that mean what they are wherever they stand alone: most amounts of most messages.
_PLAIN = re.compile(r"[1-9][0-9]{0,14}")
#: "room 12B", "seat 14C" and "question 3b" are names; "flat 500k" has its price behind it.
_AFTER_PLACE = re.compile(
    r"(?<!\w)(?:room|flat|apartment|apt|suite|seat|gate|bay|platform|terminal|exit|bus|tram|route|section|question"
    r"|figure|fig|table|step|exercise|appendix|article|paragraph|building)s?\.? ?\Z",
    re.IGNORECASE,
)
#: Characters of the longest of them with what may follow.
_LONGEST_PLACE = 14
#: Marks that make a name of the digits they touch.
_NAMING_BEFORE = frozenset("#@^&_")
_NAMING_AFTER = frozenset("@^_")
_NO_PREFIX = Prefix(None, 1, 0)


def find_amounts(
    text: str, *, decimal_mark: DecimalMark | None = None, locale: str | None = None
) -> tuple[FoundAmount, ...]:
    """Return every amount in *text*, in order and without overlaps.

    Identifiers, versions, addresses, dates, times of day, ordinals and powers are no amounts, and neither are loose
    words ("a few"). Both ends of a span have its unit ("5 to 10 km").

    Args:
        text: any sentence, list or single number.
        decimal_mark: what the writer uses for decimals when that is known; it settles "1.500".
        locale: the writer's language and country ("de", "en-IN"), which says the same.
    """
    if locale is not None and decimal_mark is None:
        decimal_mark = mark_of(locale)
    sentence = Sentence(text)
    with localcontext(CALCULATION):
        return share_units(
            list(join_parts(_Finder(sentence, decimal_mark).amounts(), text)), text
        )


def parse_amount(
    text: str, *, decimal_mark: DecimalMark | None = None, locale: str | None = None
) -> FoundAmount:
    """Return the one amount that *text* consists of; it may be ambiguous.

    Raises:
        InvalidAmount: *text* is empty, holds anything else, or holds several amounts.
    """
    if _PLAIN.fullmatch(text):
        value = Decimal(text)
        return FoundAmount(
            value=value,
            unit=None,
            start=0,
            end=len(text),
            text=text,
            readings=(value,),
            said=value,
        )
    found = find_amounts(text, decimal_mark=decimal_mark, locale=locale)
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    if len(found) > 1:
        raise InvalidAmount(
            f"{shown!r} holds {len(found)} amounts; write one, with '.' before decimals"
        )
    if (
        not found
        or text[: found[0].start].strip()
        or text[found[0].end :].removeprefix(" of").strip(" .,;!?\t\n\u00a0")
    ):
        raise InvalidAmount(
            f"{shown!r} is not a valid amount; write a number such as 50000, '50k' or "
            "'fifty thousand'"
        )
    return found[0]


def parse_number(
    text: str, *, decimal_mark: DecimalMark | None = None, locale: str | None = None
) -> Decimal:
    """Return the value of the one amount that *text* consists of, its unit left out.

    Raises:
        InvalidAmount: *text* is not exactly one amount.
        AmbiguousAmount: it has two readings.
    """
    found = parse_amount(text, decimal_mark=decimal_mark, locale=locale)
    if found.value is None:
        raise AmbiguousAmount(
            found.text, [format(reading, "f") for reading in found.readings]
        )
    return found.value


class _Finder:
    def __init__(self, sentence: Sentence, mark: DecimalMark | None) -> None:
        self.sentence = sentence
        self.numbers = Numbers(sentence, mark)
        self.units = Units(self.numbers)
        self.previous_end = -1

    def amounts(self) -> Iterator[FoundAmount]:
        place = 0
        count = len(self.sentence.tokens)
        while place < count:
            found = self._amount(place) if self._may_open(place) else ((), place + 1)
            yield from found[0]
            place = found[1]
            if found[0]:
                self.previous_end = place

    def _may_open(self, place: int) -> bool:
        kind, text, *_ = self.sentence.tokens[place]
        if kind == "number":
            return not self._is_name(place)
        if kind == "word":
            return (
                text in words.OPENING_WORDS
                or opens_with_unit(self.sentence, place)
                or text == "u"
            )
        is_sign = text in {"-", "+"} and self.sentence.symbol(place - 1) != "^"
        return kind == "fraction" or (kind == "symbol" and (is_sign or text in SYMBOLS))

    def _is_name(self, place: int) -> bool:
        """True for digits that belong to a name: "covid-19", "#7", "item.5", "2x", "50@home", "room 12B"."""
        sentence = self.sentence
        before = sentence.token(place - 1)
        if before is not None and sentence.tokens[place].is_glued:
            if before.text in _NAMING_BEFORE or (
                before.kind == "word" and place != self.previous_end
            ):
                return True
            word = sentence.word(place - 2)
            is_joined = (
                before.is_glued and word != "" and before.text in {"-", "+", "."}
            )
            if is_joined and (before.text == "." or place - 1 != self.previous_end):
                return True
            if before.text in {"-", "+"} and sentence.symbol(place - 2) == "^":
                return True
        return self._is_named_after(place)

    def _is_named_after(self, place: int) -> bool:
        """True for the digits of "2x" and "50@home", whatever stands before them."""
        after = self.sentence.token(place + 1)
        if after is None or not after.is_glued:
            return False
        return after.text in _NAMING_AFTER or (
            after.kind == "word" and not self._is_suffix(place + 1)
        )

    def _is_suffix(self, place: int) -> bool:
        """True for letters right behind digits that say how many of what: "5k", "5km", "5USD", "5us$"."""
        sentence = self.sentence
        token = sentence.tokens[place]
        word = token.text
        if len(word) == 1 and word not in "km":
            start = sentence.tokens[place - 1].start
            if _AFTER_PLACE.search(
                sentence.text, max(0, start - _LONGEST_PLACE), start
            ):
                return False
        if sentence.kind(place + 1) == "number" and sentence.is_glued(place + 1):
            # "24703m2", but no "24703m212"
            return self.units.unit_after(place).end > place + 1
        written = sentence.text[token.start : token.end]
        return (
            word == "per"
            or word in words.SHORT_SCALES
            or word in words.SCALES
            or word in words.HUNDREDS
            or written in SCALED_CODES
            or unit_named(written) is not None
            or self.units.unit_after(place).unit is not None
        )

    def _amount(self, place: int) -> tuple[tuple[FoundAmount, ...], int]:
        """Return the amounts that open at *place* and the place after them; none for what is read over."""
        sentence = self.sentence
        if sentence.tokens[place].kind == "number" and sentence.kind(place + 1) not in {
            "word",
            "symbol",
            "fraction",
        }:
            prefix: Prefix | None = _NO_PREFIX._replace(end=place)
        else:
            prefix = self.units.prefix(place, self.previous_end)
        if prefix is None or (
            prefix.end > place and not self._opens_number(prefix.end)
        ):
            return (), place + 1
        if (
            prefix.end > place
            and sentence.kind(prefix.end) == "number"
            and self._is_named_after(prefix.end)
        ):
            return (), prefix.end + 1
        if (
            sentence.kind(prefix.end) == "number"
            and (listed := self._read_run(prefix)) is not None
        ):
            return listed, prefix.end + 1
        found = number_at(self.numbers, prefix.end)
        if found is None:
            return self._single(place)
        readings, end = found
        if not readings or sentence.word(end) in words.CLOCK_WORDS:
            return (), end
        if prefix.unit is None and self._is_pronoun(place, end):
            return (), place + 1
        if ratio := self._ratio(prefix, readings, end):
            readings, end = ratio
        suffix = self.units.suffix(end, prefix)
        if (
            suffix.unit is None
            and sentence.symbol(end) == ")"
            and sentence.symbol(place - 1) == "("
        ):
            # "thirty (30) days"
            behind = self.units.unit_after(end + 1)
            suffix = behind if behind.unit else suffix
        return (self._make(place, prefix, readings, suffix),), suffix.end

    def _opens_number(self, place: int) -> bool:
        """True for digits and number words; an article after "minus" or a currency opens nothing."""
        return (
            self.sentence.kind(place) in {"number", "fraction"}
            or self.sentence.word(place) in words.OPENING_WORDS
        )

    def _read_run(self, prefix: Prefix) -> tuple[FoundAmount, ...] | None:
        """Return the numbers of a run of digits that holds several or none; None when it is one number."""
        sentence = self.sentence
        token = sentence.tokens[prefix.end]
        pieces = pieces_of(token.text, self.numbers.mark, False)
        if len(pieces) == 1 or (not pieces and "," not in token.text):
            return None if pieces else ()
        scale = self.numbers.scale(prefix.end + 1)
        if (
            prefix.unit is not None
            or scale
            or self.units.unit_after(prefix.end + 1).unit is not None
        ):
            priced = pieces_of(token.text, self.numbers.mark, True)
            if len(priced) == 1:
                self.numbers.measured = prefix.end
                return None
        if scale:
            # whether the "k" of "5,7,8k" counts all of them is not said
            return ()
        return tuple(self._piece(token.start, piece) for piece in pieces)

    def _piece(self, start: int, piece: RunNumber) -> FoundAmount:
        readings = tuple(plain(reading) for reading in piece.readings)
        value = readings[0] if len(readings) == 1 else None
        first = start + piece.start
        end = start + piece.end
        return FoundAmount(
            value=value,
            unit=None,
            start=first,
            end=end,
            text=self.sentence.written[first:end],
            readings=readings,
            said=value,
        )

    def _single(self, place: int) -> tuple[tuple[FoundAmount, ...], int]:
        is_one = (
            self.sentence.word(place) in words.ARTICLES and place != self.previous_end
        )
        suffix = self.units.single(place) if is_one else None
        if suffix is None:
            return (), place + 1
        return (self._make(place, Prefix(None, 1, place), (1,), suffix),), suffix.end

    def _make(
        self,
        place: int,
        prefix: Prefix,
        readings: tuple[Decimal | Fraction | int, ...],
        suffix: Suffix,
    ) -> FoundAmount:
        unit = suffix.unit
        first = place if unit is not None or prefix.unit is None else prefix.end
        start, stop, text = self.sentence.cut(first, suffix.end)
        said = tuple(map(plain, readings))
        factor = prefix.sign * suffix.scale
        if unit is None and factor == 1:
            value = said[0] if len(said) == 1 else None
            return FoundAmount(
                value=value,
                unit=None,
                start=start,
                end=stop,
                text=text,
                readings=said,
                also=(),
                said=value,
            )
        # the scale of "30 MUSD" is said, the hundredth of "5 cents" is not
        scale = Decimal(factor) * (unit.factor if unit and unit.factor > 1 else 1)
        said = tuple(plain(reading * scale) for reading in said)
        worth = (
            tuple(plain(reading * unit.factor) for reading in said)
            if unit and unit.factor < 1
            else said
        )
        is_sure = len(worth) == 1
        code, also = (unit.code, unit.also) if unit else (None, ())
        return FoundAmount(
            value=worth[0] if is_sure else None,
            unit=code,
            start=start,
            end=stop,
            text=text,
            readings=worth,
            also=also,
            said=said[0] if is_sure else None,
            said_unit=suffix.said,
        )

    def _ratio(
        self, prefix: Prefix, readings: tuple[Decimal | Fraction | int, ...], end: int
    ) -> tuple[tuple[Fraction], int] | None:
        """Read "1 over 3" and "one over twenty"; more than one over something is a comparison of two numbers."""
        if (
            self.sentence.word(end) != "over"
            or prefix.unit is not None
            or readings != (1,)
        ):
            return None
        bottom = number_at(self.numbers, end + 1)
        if bottom is None or len(bottom[0]) != 1 or bottom[0][0] <= 1:
            return None
        unit = self.units.suffix(bottom[1], Prefix(None, 1, bottom[1])).unit
        return ((1 / Fraction(bottom[0][0]),), bottom[1]) if unit is None else None

    def _is_pronoun(self, place: int, end: int) -> bool:
        """True for the "one" of "no one", "this one", "one of them" and "one-way"."""
        word = self.sentence.word
        if end != place + 1 or word(place) != "one":
            return False
        before = word(place - 1)
        after = word(end)
        is_measured = (
            after in NAMES
            or after in words.SCALES
            or (after != "in" and unit_named(after) is not None)
        )
        if after == "day":
            # how long, after "for one day"; a day in a story anywhere else
            return (
                before not in {"for", "in", "than", "least", "just", "only"}
                and len(self.sentence.tokens) > 2
            )
        if is_measured:
            return False
        if before in words.BEFORE_PRONOUN or (before, after) == ("at", "point"):
            return True
        if before == "only":
            return word(place - 2) in words.BEFORE_PRONOUN or word(place - 2) in {
                "my",
                "your",
                "his",
                "her",
                "our",
            }
        joined = self.sentence.after_hyphen(end)
        if joined > end and word(joined) in words.AFTER_ONE_HYPHEN:
            return True
        return after in words.AFTER_PRONOUN and self.sentence.kind(end + 1) != "number"
