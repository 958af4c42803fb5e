"""The unit of one end of a span that the other end leaves unsaid: "5 to 10 km", "$5-10", "10 x 12 feet".

Only units are shared. A scale may or may not be meant for both ("5 to 10 million dollars"): then the first end has two
readings.
"""

import re
from dataclasses import replace
from decimal import Decimal

from quantities.numerals.found import Found, plain
from quantities.numerals.words import SCALES, SHORT_SCALES
from quantities.units import measure_named

#: Characters between the two ends: " through " with a space to spare.
_WIDEST_GAP = 10
#: Characters that hold the word before a span.
_OPENER = 16
_JOINTS = frozenset({"to", "till", "until", "through", "thru"})
#: Between these the second number has to be the larger one; "3 - 2 km" is no span.
_RISING = frozenset({"-", "\u2013", "\u2014", "~", "or"})
#: Between the sides of a thing, which has a unit of length or pixels.
_TIMES = frozenset({"x", "\u00d7", "by"})
_EXTENTS = frozenset({"length", "pixels"})
_IN = " in "
_BETWEEN = re.compile(r"\bbetween(?: about)? $", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]+")
_FACTORS = SCALES | SHORT_SCALES
_ONE, _THOUSAND = Decimal(1), Decimal(1000)


def share_units(amounts: tuple[Found, ...], text: str) -> tuple[Found, ...]:
    """Return *amounts*, neighbours in *text*, with the unit of each span at both its ends."""
    shared: list[Found] = []
    befores = (0, *(amount.end for amount in amounts))
    for amount, before in zip(reversed(amounts), reversed(befores[:-1]), strict=True):
        following = shared[-1] if shared else None
        if following is None or not _is_span(text, before, amount, following):
            shared.append(amount)
            continue
        if following.unit is None and amount.unit is not None and _stands_before(amount):
            # a unit behind the first end counts that end alone: "5 km to 10"
            shared[-1] = _in_unit_of(amount, following)
        shared.append(_first_end(amount, following))
    return tuple(reversed(shared))


def _is_span(text: str, after: int, first: Found, second: Found) -> bool:
    if first.value is None or second.value is None or second.start - first.end > _WIDEST_GAP:
        return False
    gap = text[first.end : second.start].strip().lower()
    if gap in _TIMES:
        measure = measure_named(second.unit) if second.unit else None
        return measure is not None and measure.dimension in _EXTENTS
    if gap in _RISING:
        # "1 in 4 or 25 %"
        is_odds = gap == "or" and text[max(after, first.start - len(_IN)) : first.start].lower() == _IN
        return (first.said or 0) < (second.said or 0) and not is_odds
    if gap in _JOINTS:
        return True
    return gap == "and" and _BETWEEN.search(text, max(after, first.start - _OPENER), first.start) is not None


def _stands_before(amount: Found) -> bool:
    return bool(amount.said_unit) and amount.text.startswith(amount.said_unit)


def _first_end(first: Found, second: Found) -> Found:
    """Return the first end of a span as the second one completes it."""
    if first.unit is None and second.unit is not None and not _stands_before(second):
        shared = _in_unit_of(second, first)
    elif first.unit is not None and second.unit is None and _stands_before(first):
        shared = first
    else:
        return first
    scale = max((_FACTORS.get(word.lower(), _ONE) for word in _LETTERS.findall(second.text)), default=_ONE)
    if shared.value is None or second.value is None or scale < _THOUSAND or shared.value * scale >= second.value:
        return shared
    return replace(shared, value=None, said=None, readings=(plain(shared.value * scale), shared.value))


def _in_unit_of(lender: Found, amount: Found) -> Found:
    """Return *amount* in the unit of *lender*, cents as parts of their currency."""
    factor = _ONE
    if lender.value and lender.said and lender.said_unit and lender.value < lender.said:
        factor = lender.value / lender.said
    readings = tuple(plain(reading * factor) for reading in amount.readings)
    value = readings[0] if len(readings) == 1 else None
    unit, also, said_unit = lender.unit, lender.also, lender.said_unit
    return replace(amount, value=value, readings=readings, unit=unit, also=also, said_unit=said_unit)
