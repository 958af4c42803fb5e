"""Amounts that are one although they are said in two: "3 dollars and 50 cents", "5 ft 2 in"; units said once for two.

Only units are shared. A scale may or may not be meant for both ("5 to 10 million dollars"): then the first end has two
readings.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Context, Decimal
from itertools import product

from tasklore.contracts.quantities.numerals.found import FoundAmount, plain
from tasklore.contracts.quantities.numerals.words import SCALES, SHORT_SCALES
from tasklore.contracts.quantities.units import CURRENCIES, measure_named
from tasklore.contracts.quantities.units.currencies import PART_NAMES

#: Characters between two parts of one amount (" and " with a space to spare) and between two ends (" through ").
_WIDEST_GAP = 8
_WIDEST_SPAN = 10
#: Characters that hold the word before a span.
_OPENER = 16
_HUNDRED = Decimal(100)
_ONE = Decimal(1)
_THOUSAND = Decimal(1000)
#: After "15 dollars 50" these show that the 50 counts nothing else.
_ENDS = re.compile(
    r"\s*(?:$|[.,;:!?)\]](?!\d)|(?:and|or|more|each|per|please|thanks)\b"
    r"|an? (?:piece|share|head|person|hour|day|night|week|month|year|kilo|litre|liter|gallon|mile|minute)\b)",
    re.IGNORECASE,
)
#: A half of something else: "5 dollars and half the crew".
_OF_OTHERS = re.compile(r" (?:the|of|an?|my|our)\b", re.IGNORECASE)
#: What stands between the parts of one quantity; comma and stop only between those that are always said together.
_COMPOUND_JOINTS = frozenset({"", "and", "-", "&", ",", "."})
_PAIRS = frozenset({
    ("ft", "inch"), ("yd", "ft"), ("lb", "oz"), ("stone", "lb"), ("day", "hour"), ("hour", "minute"),
    ("minute", "second"), ("week", "day"), ("year", "month"), ("degree", "arcminute"), ("arcminute", "arcsecond"),
})  # fmt: skip
#: What a bare number after a unit is counted in: "six foot two", "ten stone four".
_UNSAID = {"ft": ("inch",), "stone": ("lb",)}
_IS_LAST = re.compile(r"\s*(?:[.,;:!?)]|$)(?!\d)")
_QUOTIENT = Context(prec=34)
_JOINTS = frozenset({"to", "till", "until", "through", "thru"})
#: Between these the second number has to be the larger one; "3 - 2 km" is no span.
_RISING = frozenset({"-", "~", "or", "\u2013", "\u2014"})
#: Between the sides of a thing, which has a unit of length or pixels.
_TIMES = frozenset({"x", "\u00d7", "by"})
_EXTENTS = frozenset({"length", "pixels"})
_BETWEEN = re.compile(r"\bbetween(?: about)? $", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]+")
_FACTORS = SCALES | SHORT_SCALES


def join_parts(amounts: Iterator[FoundAmount], text: str) -> Iterator[FoundAmount]:
    """Join the *amounts* of *text* that make one, each with its neighbour."""
    last: FoundAmount | None = None
    # what the last part said is a part of: 1 for dollars, 0.1 for mao, 0.01 for cents
    step = _ONE
    for amount in amounts:
        joined = (
            _join(last, amount, text, step)
            if last and amount.start - last.end <= _WIDEST_GAP
            else None
        )
        if last and not joined:
            yield last
        step = _step(amount, step) if joined else _ONE
        last = joined or amount
    if last:
        yield last


def _step(amount: FoundAmount, step: Decimal) -> Decimal:
    if amount.said and amount.value and amount.unit:
        return abs(amount.value / amount.said)
    return step / (_HUNDRED if step == 1 else 10)


def _join(
    last: FoundAmount, amount: FoundAmount, text: str, step: Decimal
) -> FoundAmount | None:
    if last.value is None or amount.value is None:
        return None
    gap = text[last.end : amount.start].strip().lower()
    if gap == "(":
        return _join_repeat(last, amount, text)
    if last.unit is None:
        return None
    whole = text[last.start : amount.end]
    if together := _compound(last, amount, gap, text):
        value, unit = together
        return replace(
            last,
            value=value,
            unit=unit,
            readings=(value,),
            also=(),
            end=amount.end,
            text=whole,
            said=value,
        )
    if gap not in {"", "and"}:
        return None
    if (
        parted := None
        if _OF_OTHERS.match(text, amount.end)
        else _with_fraction(last, amount, gap)
    ):
        value, said = parted
        return replace(
            last, value=value, readings=(value,), end=amount.end, text=whole, said=said
        )
    total = (
        _with_parts(last, amount, step)
        if amount.unit
        else _with_bare(last, amount=amount, gap=gap, text=text, step=step)
    )
    return None if total is None else replace(
        last, value=total, readings=(total,), end=amount.end, text=whole, said=total
    )  # fmt: skip


def _compound(
    first: FoundAmount, second: FoundAmount, joint: str, text: str
) -> tuple[Decimal, str] | None:
    """Return what "5 ft 2 in" and "six foot two" are together in the unit of the first, to 34 digits."""
    units = [
        unit for unit in (first.unit, *first.also) if unit and unit not in CURRENCIES
    ]
    if (
        not units
        or joint not in _COMPOUND_JOINTS
        or text.endswith("between ", 0, first.start)
    ):
        return None
    parts: tuple[str, ...] = (second.unit, *second.also) if second.unit else ()
    if (
        second.unit is None
        and joint in {"", "-"}
        and _IS_LAST.match(text, second.end)
        and second.text.isalnum()
    ):
        parts = _UNSAID.get(units[0], ())
    for unit, part in product(units, parts):
        # "11 stone 4 pounds" is a weight; elsewhere pounds keep to money, and commas stand between closest kin alone
        is_likely = second.unit in {None, part} and joint not in {",", "."}
        if (is_likely or (unit, part) in _PAIRS) and (
            whole := _add(first.value, unit, second.value, part)
        ):
            return whole, unit
    return None


def _add(
    first: Decimal | None, unit: str, second: Decimal | None, part: str
) -> Decimal | None:
    left = measure_named(unit)
    right = measure_named(part)
    if (
        first is None
        or second is None
        or left is None
        or right is None
        or left.code == right.code
    ):
        return None
    if (
        left.dimension != right.dimension
        or left.shift
        or right.shift
        or left.scale is None
        or right.scale is None
    ):
        return None
    # the "2 hours 30 minutes" of "2 hours 30 minutes 5 seconds" are no whole number of hours any more
    is_whole = first == first.to_integral_value() or left.dimension == "time"
    if first < 0 or second < 0 or not is_whole:
        return None
    rest = _QUOTIENT.divide(second * right.scale * left.per, left.scale * right.per)
    return _QUOTIENT.add(first, rest).normalize(_QUOTIENT) if rest < 1 else None


def _with_fraction(
    last: FoundAmount, amount: FoundAmount, gap: str
) -> tuple[Decimal, Decimal] | None:
    """Add the half of "two dollars and a half" to value and wording."""
    is_part = gap == "and" and amount.unit is None and amount.text[:1].isalpha()
    if not is_part or last.value is None or amount.value is None or not last.said:
        return None
    if not (
        last.said == last.said.to_integral_value()
        and last.said > 0
        and 0 < amount.value < 1
    ):
        return None
    said = last.said + amount.value
    return last.value * said / last.said, said


def _join_repeat(
    last: FoundAmount, amount: FoundAmount, text: str
) -> FoundAmount | None:
    """Join "forty-five (45)" and "thirty (30) days", whose unit stands behind the bracket."""
    if ")" in amount.text:
        is_same = last.unit is None and last.said == amount.said
        return (
            replace(amount, start=last.start, text=text[last.start : amount.end])
            if is_same
            else None
        )
    if last.value != amount.value or (
        last.unit and amount.unit and last.unit != amount.unit
    ):
        return None
    if text[amount.end : amount.end + 1] != ")":
        return None
    return replace(
        last,
        end=amount.end + 1,
        text=text[last.start : amount.end + 1],
        unit=last.unit or amount.unit,
    )


def _with_parts(
    last: FoundAmount, amount: FoundAmount, step: Decimal
) -> Decimal | None:
    """Add the cents of "3 dollars and 50 cents" and the fen of "1 yuan 5 jiao 5 fen"."""
    if (
        last.value is None
        or amount.value is None
        or last.unit not in (amount.unit, *amount.also)
    ):
        return None
    said = amount.said_unit.lower()
    is_part = said in PART_NAMES or said in {"c", "p", "¢"}
    if not (is_part and last.value % step == 0 and 0 < amount.value < step):
        return None
    return last.value + amount.value.copy_sign(last.value)


def _with_bare(
    last: FoundAmount, amount: FoundAmount, gap: str, text: str, step: Decimal
) -> Decimal | None:
    """Add the 50 of "15 dollars 50" as cents, when nothing is counted by it; after cents the next smaller coin."""
    if (
        last.value is None
        or amount.value is None
        or last.unit not in CURRENCIES
        or last.said != last.value
        or gap
    ):
        return None
    is_plain = amount.text.isdigit() or amount.text[:1].isalpha()
    is_whole = (
        is_plain
        and amount.value == amount.value.to_integral_value()
        and 0 < amount.value < _HUNDRED
    )
    is_named = step < 1 or (bool(last.said_unit) and last.text.endswith(last.said_unit))
    if (
        not is_whole
        or not is_named
        or last.value % step
        or not _ENDS.match(text, amount.end)
    ):
        return None
    if step == Decimal("0.1"):
        # "one kuai and five mao five"
        return last.value + amount.value / _HUNDRED if amount.value < 10 else None
    if step < 1 or amount.value < 10:
        return None
    return last.value + (amount.value / _HUNDRED).copy_sign(last.value)


def share_units(amounts: list[FoundAmount], text: str) -> tuple[FoundAmount, ...]:
    """Return *amounts*, neighbours in *text*, with the unit of each span at both its ends."""
    for place in range(len(amounts) - 2, -1, -1):
        first = amounts[place]
        second = amounts[place + 1]
        if second.start - first.end > _WIDEST_SPAN or (
            first.unit is None and second.unit is None
        ):
            continue
        if not _is_span(text, amounts[place - 1].end if place else 0, first, second):
            continue
        if second.unit is None and _stands_before(first):
            # a unit behind the first end counts that end alone: "5 km to 10"
            second = amounts[place + 1] = _in_unit_of(first, second)
        amounts[place] = _first_end(first, second)
    return tuple(amounts)


def _is_span(text: str, after: int, first: FoundAmount, second: FoundAmount) -> bool:
    if first.value is None or second.value is None:
        return False
    gap = text[first.end : second.start].strip().lower()
    if gap in _TIMES:
        measure = measure_named(second.unit) if second.unit else None
        return measure is not None and measure.dimension in _EXTENTS
    if gap in _RISING:
        return (first.said or 0) < (second.said or 0)
    if gap in _JOINTS:
        return True
    return (
        gap == "and"
        and _BETWEEN.search(text, max(after, first.start - _OPENER), first.start)
        is not None
    )


def _stands_before(amount: FoundAmount) -> bool:
    return bool(amount.said_unit) and amount.text.startswith(amount.said_unit)


def _first_end(first: FoundAmount, second: FoundAmount) -> FoundAmount:
    """Return the first end of a span as the second one completes it."""
    if first.unit is None and second.unit is not None and not _stands_before(second):
        shared = _in_unit_of(second, first)
    elif first.unit == second.unit and _stands_before(first):
        shared = first
    else:
        return first
    scale = max(
        (_FACTORS.get(word.lower(), 1) for word in _LETTERS.findall(second.text)),
        default=1,
    )
    has_scale = any(word.lower() in _FACTORS for word in _LETTERS.findall(first.text))
    if shared.value is None or second.value is None or has_scale or scale < _THOUSAND:
        return shared
    if shared.value * scale >= second.value:
        return shared
    return replace(
        shared,
        value=None,
        said=None,
        readings=(plain(shared.value * scale), shared.value),
    )


def _in_unit_of(lender: FoundAmount, amount: FoundAmount) -> FoundAmount:
    """Return *amount* in the unit of *lender*, cents as parts of their currency."""
    factor = _ONE
    if (
        lender.value
        and lender.said
        and lender.said_unit
        and abs(lender.value) < abs(lender.said)
    ):
        factor = lender.value / lender.said
    readings = tuple(plain(reading * factor) for reading in amount.readings)
    value = readings[0] if len(readings) == 1 else None
    unit = lender.unit
    also = lender.also
    said_unit = lender.said_unit
    return replace(
        amount,
        value=value,
        readings=readings,
        unit=unit,
        also=also,
        said_unit=said_unit,
    )
