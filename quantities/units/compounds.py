"""Quantities said in two units: "5 ft 2 in", "six foot two", "3 pounds 4 ounces", "2 hours and 30 minutes"."""

import re
from decimal import Context, Decimal
from itertools import product
from typing import Protocol

from quantities.units.catalogue import Measure
from quantities.units.codes import CURRENCIES
from quantities.units.reading import measure_named

#: What stands between the parts of one quantity; comma and stop only between parts that are always said together.
_JOINTS = frozenset({"", "and", "-", "&"})
_STOPS = frozenset({",", ".", ".,"})
_PAIRS = frozenset({
    ("ft", "inch"), ("yd", "ft"), ("lb", "oz"), ("stone", "lb"), ("day", "hour"), ("hour", "minute"),
    ("minute", "second"), ("week", "day"), ("year", "month"), ("degree", "arcminute"), ("arcminute", "arcsecond"),
})  # fmt: skip
#: What a bare number after a unit is counted in: "six foot two", "ten stone four".
_UNSAID = {"ft": ("inch",), "stone": ("lb",)}
_IS_LAST = re.compile(r"\s*(?:[.,;:!?)]|$)(?!\d)")
_QUOTIENT = Context(prec=34)


class Said(Protocol):
    """An amount of a sentence, such as `quantities.numerals.Found`: its value, unit and place."""

    @property
    def value(self) -> Decimal | None:
        """Its number, None when there are two readings."""

    @property
    def unit(self) -> str | None:
        """Its unit, None for a bare number."""

    @property
    def also(self) -> tuple[str, ...]:
        """Other units that the wording can mean."""

    @property
    def start(self) -> int:
        """Where it begins."""

    @property
    def end(self) -> int:
        """Where it ends."""


def compound(text: str, first: Said, second: Said) -> tuple[Decimal, str] | None:
    """Return what *first* and *second*, neighbours in *text*, are together in the unit of the first, to 34 digits.

    None when they are two amounts: other dimensions, a part that makes a whole unit, a list.
    """
    if first.value is None or second.value is None or first.unit is None or second.start - first.end > len(" and "):
        return None
    larger = [unit for unit in (first.unit, *first.also) if unit not in CURRENCIES]
    if not larger:
        return None
    joint = text[first.end : second.start].strip().lower()
    smaller = (second.unit, *second.also) if second.unit else _unsaid(text, first, second, joint)
    if not smaller or (joint not in _JOINTS and joint not in _STOPS) or text.endswith("between ", 0, first.start):
        return None
    for unit, part in product(larger, smaller):
        # "11 stone 4 pounds" is a weight; elsewhere pounds keep to money
        is_likeliest = second.unit is None or part == second.unit
        if (joint in _STOPS or not is_likeliest) and (unit, part) not in _PAIRS:
            continue
        left, right = measure_named(unit), measure_named(part)
        whole = _added(first.value, left, second.value, right) if left and right else None
        if whole is not None:
            return whole, unit
    return None


def _unsaid(text: str, first: Said, second: Said, joint: str) -> tuple[str, ...]:
    is_bare = joint in {"", "-"} and second.value is not None and second.value == second.value.to_integral_value()
    is_bare = is_bare and text[second.start : second.end].isalnum() and _IS_LAST.match(text, second.end) is not None
    return _UNSAID.get(first.unit or "", ()) if is_bare else ()


def _added(first: Decimal, left: Measure, second: Decimal, right: Measure) -> Decimal | None:
    if left.dimension != right.dimension or left.code == right.code or left.shift or right.shift:
        return None
    if left.scale is None or right.scale is None:
        return None
    # the "2 hours 30 minutes" of "2 hours 30 minutes 5 seconds" are no whole number of hours any more
    is_whole = first == first.to_integral_value() or left.dimension == "time"
    if first < 0 or second < 0 or not is_whole:
        return None
    part = _QUOTIENT.divide(second * right.scale * left.per, left.scale * right.per)
    return _QUOTIENT.add(first, part).normalize(_QUOTIENT) if part < 1 else None
