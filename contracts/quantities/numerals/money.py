"""The units beside a number: its sign and currency before it, and what is named after it."""

import re
from decimal import Decimal
from typing import NamedTuple

from tasklore.contracts.quantities.numerals import words
from tasklore.contracts.quantities.numerals.whole import Numbers
from tasklore.contracts.quantities.sentence import Sentence
from tasklore.contracts.quantities.units import (
    DOLLAR_PREFIXES,
    NAMES,
    SYMBOLS,
    Unit,
    currency_code,
    measure_after,
    unit_of,
)
from tasklore.contracts.quantities.units.codes import CODES_IN_SMALL, SCALED_CODES
from tasklore.contracts.quantities.units.currencies import (
    BEHIND,
    CAPITAL_PREFIXES,
    PREFIX_NAMES,
)
from tasklore.contracts.quantities.units.heat import degrees_after

__all__ = ["Prefix", "Suffix", "Units", "opens_with_unit"]

_ONE = Decimal(1)
#: Before a sign of minus that stands apart from its number: the start, a bracket, a colon, a comma.
_OPENERS = frozenset("([{=:<>,;|~\n\t")
#: Single letters that belong to a dollar sign only when nothing stands between ("a $5 cake").
_ARTICLE_LIKE = frozenset({"a", "s", "r", "j", "z", "b", "g", "l", "n", "t"})
#: Money that is something else as well, so that only much of it counts: "1,000 won", not "5 won the race".
_DOUBTFUL = frozenset({"won", "mark", "marks", "crown", "crowns"})
#: Of money and measures that people say "a" of: one of it; what is a thing as well has to be counted.
_SINGLE = frozenset({
    "dollar", "euro", "pound", "buck", "penny", "cent", "mile", "kilometer", "kilometre", "meter", "metre", "kilo",
    "kilogram", "ounce", "litre", "liter", "gallon", "ton", "tonne", "acre", "hour", "day", "week", "month", "year",
})  # fmt: skip
_TIMES = frozenset({"hour", "day", "week", "month", "year"})
#: Before these an article is that of a rate or of talk about the unit: "per a mile", "feet in a mile".
_NO_SINGLE = frozenset(
    {
        "per",
        "half",
        "many",
        "such",
        "what",
        "times",
        "once",
        "twice",
        "in",
        "of",
        "is",
        "not",
    }
)
_PERCENT = frozenset({"percent", "percentage", "pct", "per"})
_PENCE = re.compile(r"(?<![\d.,])\d{1,2}\Z")
_DEGREES = frozenset({"degree", "°C", "°F", "K"})
#: What can open the name of a measure, hyphens and brackets before it included.
_MEASURE_MARKS = frozenset("-([{<'\"°º℃℉ΩÅ\u2032\u2033\u201d")


def _lengths() -> dict[str, tuple[int, ...]]:
    lengths: dict[str, set[int]] = {}
    for name in NAMES:
        lengths.setdefault(name.partition(" ")[0], set()).add(name.count(" ") + 1)
    return {
        first: tuple(sorted(several, reverse=True))
        for first, several in lengths.items()
    }


#: How many words the names have that begin with a word, the longest first.
_LENGTHS = _lengths()


class Prefix(NamedTuple):
    """What stands before a number: its unit as a code and as it was said, its sign, and where the digits begin."""

    unit: Unit | None
    sign: int
    end: int
    said: str = ""


class Suffix(NamedTuple):
    """What stands after a number: its unit, the place after it, and the scale that follows the unit ("USD million")."""

    unit: Unit | None
    end: int
    scale: int = 1
    said: str = ""


def opens_with_unit(sentence: Sentence, place: int) -> bool:
    """True for a word before a number that may be its currency."""
    word = sentence.word(place)
    return (
        word in PREFIX_NAMES
        or word in DOLLAR_PREFIXES
        or word in CODES_IN_SMALL
        or word in _PERCENT
    )


class Units:
    """Reads the units beside the numbers of one sentence."""

    def __init__(self, numbers: Numbers) -> None:
        self.numbers = numbers
        self.sentence = numbers.sentence

    def prefix(self, place: int, previous_end: int) -> Prefix | None:
        """Return what stands before the number that the token at *place* opens, None for a dash or a subtraction."""
        signed = self._read_sign(place, previous_end)
        if signed is None:
            return None
        sign, first = signed
        unit, after = self._unit_before(first)
        said = self._text_between(first, after)
        if unit is not None and first == place and after > place:
            sign, after = self._read_sign(after, previous_end) or (1, after)
        return Prefix(unit, sign, after, said)

    def _read_sign(self, place: int, previous_end: int) -> tuple[int, int] | None:
        sentence = self.sentence
        if sentence.word(place) in words.MINUS_WORDS:
            # "plus or minus three" is a margin
            is_margin = (
                sentence.word(place - 1) == "or" and sentence.word(place - 2) == "plus"
            )
            return (
                None if place == previous_end else (1 if is_margin else -1, place + 1)
            )
        symbol = sentence.symbol(place)
        if symbol not in {"-", "+"}:
            return 1, place
        before = sentence.symbol(place - 1)
        opens = (
            place == 0
            or before in _OPENERS
            or (before in SYMBOLS and before != "" and place != previous_end)
        )
        is_sign = opens or (
            sentence.is_glued(place + 1) and not sentence.is_glued(place)
        )
        return (
            (-1 if symbol == "-" else 1, place + 1)
            if is_sign and not (before and before == symbol)
            else None
        )

    def _unit_before(self, place: int) -> tuple[Unit | None, int]:
        sentence = self.sentence
        symbol = sentence.symbol(place)
        word = sentence.word(place)
        if symbol:
            if symbol not in SYMBOLS or (
                symbol == "%" and not self._opens_percent(place)
            ):
                return None, place
            if (
                symbol == "$"
                and sentence.is_glued(place + 1)
                and sentence.word(place + 1) in DOLLAR_PREFIXES
            ):
                return Unit(DOLLAR_PREFIXES[sentence.word(place + 1)]), place + 2
            return SYMBOLS[symbol], place + 1
        if not word:
            return None, place
        if (
            word == "u"
            and (after := self._after_us(place))
            and sentence.symbol(after) == "$"
        ):
            return Unit("USD"), after + 1
        if (code := DOLLAR_PREFIXES.get(word)) and sentence.symbol(place + 1) == "$":
            is_close = sentence.is_glued(place + 1) or word not in _ARTICLE_LIKE
            return (Unit(code), place + 2) if is_close else (None, place)
        if word in PREFIX_NAMES:
            after = place + 1 + (sentence.symbol(place + 1) == ".")
            is_written = (
                word not in CAPITAL_PREFIXES or not self._word_at(place).islower()
            )
            return (
                (PREFIX_NAMES[word], after)
                if is_written and self._is_number(after)
                else (None, place)
            )
        if word in _PERCENT and place == 0:
            return self._percent_of(place)
        unit = self._read_code(place) if sentence.symbol(place - 1) != "/" else None
        return (unit, place + 1) if unit else (None, place)

    def _percent_of(self, place: int) -> tuple[Unit | None, int]:
        """Read "per cent of 210" and "percent: 20", which open a text as the head of a column does."""
        unit, after = self._read_name(place) or (None, place)
        after += self.sentence.word(after) == "of" or self.sentence.symbol(after) == ":"
        return (unit, after) if unit and self._is_number(after) else (None, place)

    def _after_us(self, place: int) -> int:
        """Return the place after "u.s." at *place*, 0 when it is not there."""
        sentence = self.sentence
        if sentence.symbol(place + 1) != "." or sentence.word(place + 2) != "s":
            return 0
        return place + 3 + (sentence.symbol(place + 3) == ".")

    def _opens_percent(self, place: int) -> bool:
        """True for the "%" of "% 20", which writers of Turkish put first; "n % 10" is a remainder."""
        sentence = self.sentence
        is_first = place == 0 or (
            sentence.is_glued(place + 1) and not sentence.is_glued(place)
        )
        return (
            is_first
            and self._is_number(place + 1)
            and sentence.kind(place - 1) != "number"
        )

    def _is_number(self, place: int) -> bool:
        return self.sentence.kind(place) in {"number", "fraction"}

    def suffix(self, end: int, before: Prefix) -> Suffix:
        """Return the unit after a number that ends before the token at *end*; it agrees with the one before it."""
        if before.unit is None and self.sentence.kind(end) not in {"word", "symbol"}:
            return Suffix(None, end)
        found = self._suffix(end, before)
        if (
            self.sentence.word(found.end) == "below"
            and self.sentence.word(found.end + 1) == "zero"
        ):
            return self._below_zero(found) or found
        return found

    def _suffix(self, end: int, before: Prefix) -> Suffix:
        sentence = self.sentence
        found = self.unit_after(end)
        unit = found.unit
        after = found.end
        if before.unit is not None:
            if before.unit.is_currency and unit is not None and not unit.is_currency:
                factor = words.SHORT_SCALES.get(sentence.word(end))
                # the "m" of "$ 5 m" is no metre
                return Suffix(
                    before.unit, end + (factor is not None), factor or 1, before.said
                )
            agreed = (
                _agree(before.unit, unit)
                if unit and not self._opens_next(end, after)
                else None
            )
            return Suffix(
                agreed or before.unit, after if agreed else end, 1, before.said
            )
        if unit is None:
            return Suffix(None, end)
        if (
            unit.is_currency
            and self._opens_next(end, after)
            and self._belongs_to_next(end, after)
        ):
            return Suffix(None, end)
        scale = (
            self.numbers.scale(after)
            if unit.is_currency and not sentence.is_glued(after)
            else None
        )
        return Suffix(unit, scale.end, int(scale.value), found.said) if scale else found

    def _below_zero(self, found: Suffix) -> Suffix | None:
        """Read "10 degrees below zero" and "ten below zero celsius", of which "below zero" is behind *found*."""
        unit = found.unit
        end = found.end + 2
        behind = self.unit_after(end)
        if (
            behind.unit
            and behind.unit.code in _DEGREES
            and (unit is None or unit.code == "degree")
        ):
            unit = behind.unit
            end = behind.end
        is_heat = unit is None or unit.code in _DEGREES
        return Suffix(unit, end, -1, found.said or behind.said) if is_heat else None

    def _opens_next(self, place: int, after: int) -> bool:
        """True when the unit at *place* stands before a number of its own: the second "$" of "$ 20 $ 30"."""
        if not self._is_number(after) or self.sentence.symbol(place) == "%":
            return False
        return not self.sentence.is_glued(place) or self.sentence.is_glued(after)

    def _belongs_to_next(self, place: int, after: int) -> bool:
        """Tell "1 $ 10" and "3 USD50" from "10 $ 30 $" and "50 dollars 40 cents"."""
        if self.sentence.is_glued(after):
            return True
        if self.sentence.symbol(after - 1) == "":
            return False
        following = self.unit_after(after + 1).unit
        mine = SYMBOLS.get(self.sentence.symbol(place))
        is_sign = self.sentence.symbol(after + 1) != ""
        return following is None or (
            not is_sign and mine is not None and _agree(mine, following) is not None
        )

    def unit_after(self, end: int) -> Suffix:
        """Return the unit that stands right after the token before *end*, whatever else stands there."""
        sentence = self.sentence
        last = sentence.word(end - 1)
        if (
            last in words.PART
            or last in words.PARTS
            or sentence.kind(end - 1) == "fraction"
        ):
            if (start := self._after_part(end)) > end:
                whole = self.unit_after(start)
                return whole if whole.unit else Suffix(None, end)
        elif sentence.word(end) == "of" and (
            last in words.SCALES or sentence.kind(end - 1) == "number"
        ):
            # "3 crores of rupees"
            named = self._read_name(end + 1) if last in words.SCALES else None
            return (
                Suffix(named[0], named[1], 1, self._text_between(end + 1, named[1]))
                if named
                else Suffix(None, end)
            )
        place = sentence.after_hyphen(end)
        tokens_end = sentence.tokens[end - 1].end
        degrees = (
            degrees_after(sentence.text, tokens_end)
            if sentence.word(end) in {"c", "f"}
            else None
        )
        if degrees is None and (found := self._money_after(place)) is not None:
            return Suffix(found[0], found[1], 1, self._text_between(place, found[1]))
        if degrees is None and not (
            sentence.word(end) or sentence.symbol(end) in _MEASURE_MARKS
        ):
            return Suffix(None, end)
        measure = measure_after(sentence.text, tokens_end) if degrees is None else None
        named_unit = (unit_of(measure[0]), measure[1]) if measure else degrees
        if named_unit is None:
            return Suffix(None, end)
        after = end
        while (
            after < len(sentence.tokens)
            and sentence.tokens[after].start < named_unit[1]
        ):
            after += 1
        return Suffix(
            named_unit[0],
            after,
            1,
            self._text_between(place, after) if after > place else "",
        )

    def _after_part(self, end: int) -> int:
        """Return the place of "percent" in "half of one percent" and of "mile" in "quarter of a mile", else *end*."""
        sentence = self.sentence
        loose = sentence.after_hyphen(end)
        place = loose + (sentence.word(loose) == "of")
        # in "one half one mile" the second number is another one
        token = sentence.token(place)
        is_whole = place > loose and token is not None and token.text in {"one", "1"}
        is_one = is_whole or sentence.word(place) in words.ARTICLES
        return sentence.after_hyphen(place + 1) if is_one else end

    def single(self, place: int) -> Suffix | None:
        """Return the unit of which there is one when an article stands at *place*: "a mile and a half", "a dollar"."""
        sentence = self.sentence
        if (
            sentence.word(place + 1) not in _SINGLE
            or sentence.word(place - 1) in _NO_SINGLE
        ):
            return None
        suffix = self.unit_after(place + 1)
        if suffix.unit is None or sentence.kind(place - 1) == "number":
            return None
        end = suffix.end
        token = sentence.tokens[end - 1]
        is_possessive = token.end - token.start > len(token.text)
        is_parted = sentence.word(end) == "and" and sentence.word(end + 1) in {
            *words.ARTICLES,
            "three",
            "five",
        }
        is_parted = is_parted or (
            suffix.unit.is_currency and sentence.word(end) in words.TENS
        )
        if sentence.word(place + 1) in _TIMES:
            return suffix if is_parted else None
        is_last = sentence.kind(end) != "word" and sentence.symbol(end) not in {
            "-",
            "'",
            "/",
        }
        is_free = (
            is_last
            or is_parted
            or sentence.word(end) in {"of", "and", "or", "to", "for", "in", "from"}
        )
        return suffix if is_free and not is_possessive else None

    def _text_between(self, start: int, end: int) -> str:
        return self.sentence.cut(start, end)[2] if end > start else ""

    def _word_at(self, place: int) -> str:
        token = self.sentence.token(place)
        return (
            self.sentence.text[token.start : token.end]
            if token and token.kind == "word"
            else ""
        )

    def _read_code(self, place: int) -> Unit | None:
        """Return the currency whose code stands at *place*, with its scale in "KEUR" or "USDbn"."""
        if self.sentence.word(place) not in CODES_IN_SMALL:
            return None
        written = self._word_at(place)
        if code := currency_code(written):
            return Unit(code)
        scaled = SCALED_CODES.get(written)
        return Unit(scaled[0], _ONE.scaleb(scaled[1])) if scaled else None

    def _read_name(self, place: int) -> tuple[Unit, int] | None:
        """Read the longest name of money or a percentage at *place*."""
        sentence = self.sentence
        word = sentence.word(place)
        for length in _LENGTHS.get(word, ()):
            end = place + length
            if unit := NAMES.get(
                " ".join(sentence.word(step) for step in range(place, end))
            ):
                return unit, end
            # "per-cent", "percentage-points"
            after = sentence.after_hyphen(place + 1) if length == 2 else place + 1
            if after > place + 1 and (
                unit := NAMES.get(f"{word} {sentence.word(after)}")
            ):
                return unit, after + 1
        return None

    def _money_after(self, place: int) -> tuple[Unit, int] | None:
        """Read money or a percentage at *place*: a sign, a name or a code."""
        sentence = self.sentence
        if unit := SYMBOLS.get(sentence.symbol(place)):
            return unit, place + 1
        word = sentence.word(place)
        if not word:
            return None
        if self._word_at(place) == "c" and sentence.is_glued(place):
            return SYMBOLS["¢"], place + 1
        if word == "p" and sentence.is_glued(place):
            start = sentence.tokens[place].start
            is_pence = _PENCE.search(sentence.text, max(0, start - 4), start)
            return (NAMES["pence"], place + 1) if is_pence else None
        if word == "u" and (after := self._after_us(place)):
            us_unit = (
                Unit("USD")
                if sentence.symbol(after) == "$"
                else NAMES.get(f"us {sentence.word(after)}")
            )
            return (
                (us_unit, after + 1)
                if us_unit and not self._is_number(after + 1)
                else None
            )
        if (code := DOLLAR_PREFIXES.get(word)) and sentence.symbol(place + 1) == "$":
            is_mine = sentence.is_glued(place + 1) and not sentence.is_glued(place + 2)
            return (Unit(code), place + 2) if is_mine else None
        if word in _DOUBTFUL and not self._is_much(place):
            return None
        if self._word_at(place) in BEHIND:
            return PREFIX_NAMES[word], place + 1
        if named := self._read_name(place):
            return named
        unit = self._read_code(place)
        return (unit, place + 1) if unit else None

    def _is_much(self, place: int) -> bool:
        """True behind a scale or three digits at least."""
        before = self.sentence.token(place - 1)
        return before is not None and (
            before.text in words.SCALES
            or (before.kind == "number" and len(before.text) > 2)
        )


def _agree(before: Unit, after: Unit) -> Unit | None:
    """Return what "$50 USD" and "$50 AUD" say together; None when the second unit belongs to something else."""
    if after.factor != before.factor:
        return None
    if after.code == before.code:
        return before if len(before.also) < len(after.also) else after
    if after.code in before.also:
        return after
    return before if before.code in after.also else None
