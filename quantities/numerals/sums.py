"""Amounts that are one although they are said in two: "3 dollars and 50 cents", "forty-five (45)", "5 ft 2 in"."""

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from quantities.numerals.found import Found, View
from quantities.units import CURRENCIES, compound
from quantities.units.currencies import PART_NAMES

#: Characters between two parts of one amount: " and " with a space to spare.
_WIDEST_GAP = 8
_HUNDRED, _TEN, _ONE = Decimal(100), Decimal(10), Decimal(1)
#: After "15 dollars 50" these show that the 50 counts nothing else.
_ENDS = re.compile(
    r"\s*(?:$|[.,;:!?)\]](?!\d)|and\b|or\b|more\b|each\b|per\b|please\b|thanks\b"
    r"|an? (?:piece|share|head|person|hour|day|night|week|month|year|kilo|litre|liter|gallon|mile|minute)\b)",
    re.IGNORECASE,
)
#: In a reading for prices any little word does.
_ENDS_LOOSELY = re.compile(
    _ENDS.pattern + r"|\s*(?:in|on|at|for|to|from|with|by|but|if|when|is|was|of|only|now|today|total|altogether)\b",
    re.IGNORECASE,
)
#: Right after the price ("15 dollars 50", with no "and" between) still more of them do.
_ENDS_CLOSELY = re.compile(
    _ENDS_LOOSELY.pattern + r"|\s*(?:plus|minus|than|then|as|so|he|she|we|they|i|you|it|that|which|who|because|while|"
    r"since|until|after|before|instead|extra|too|also|back|left|off|cash|change|an?|apiece|this|last|next|via|will|"
    r"would|were|are|has|had|have|can|could|should|did|does|not|yesterday|tomorrow)\b",
    re.IGNORECASE,
)


def merge(amounts: Iterator[Found], text: str, view: View) -> Iterator[Found]:
    """Join the amounts of *text* that make one, each with its neighbour."""
    last: Found | None = None
    # what the last part said is a part of: 1 for dollars, 0.1 for mao, 0.01 for cents
    step = _ONE
    for amount in amounts:
        joined = last and _joined(last, amount, text, view, step)
        if last and not joined:
            yield last
        step = _step(amount, step) if joined else _ONE
        last = joined or amount
    if last:
        yield last


def _step(amount: Found, step: Decimal) -> Decimal:
    if amount.said and amount.value and amount.unit:
        return abs(amount.value / amount.said)
    return step / _HUNDRED if step == 1 else step / _TEN


def _joined(last: Found, amount: Found, text: str, view: View, step: Decimal) -> Found | None:
    if last.value is None or amount.value is None or amount.start - last.end > _WIDEST_GAP:
        return None
    gap = text[last.end : amount.start].strip().lower()
    if gap == "(":
        return _repeated(last, amount, text)
    if view is View.NUMBERS:
        return None
    whole = text[last.start : amount.end]
    if together := compound(text, last, amount):
        value, unit = together
        return replace(last, value=value, unit=unit, readings=(value,), also=(), end=amount.end, text=whole, said=value)
    if parted := _with_fraction(last, amount, gap, text):
        value, said = parted
        return replace(last, value=value, readings=(value,), end=amount.end, text=whole, said=said)
    total = _sum(last, amount, gap, text, view, step)
    if total is None:
        return None
    return replace(last, value=total, readings=(total,), end=amount.end, text=whole, said=total)


def _with_fraction(last: Found, amount: Found, gap: str, text: str) -> tuple[Decimal, Decimal] | None:
    """Add the half of "two dollars and a half": what the whole is worth, and what was said."""
    is_part = gap == "and" and amount.unit is None and amount.text[:1].isalpha() and not last.is_vague
    if not is_part or last.value is None or amount.value is None or not last.said or not last.unit:
        return None
    is_whole = last.said == last.said.to_integral_value() and last.said > 0
    if not (is_whole and 0 < amount.value < 1 and _ENDS_LOOSELY.match(text, amount.end)):
        return None
    said = last.said + amount.value
    return last.value * said / last.said, said


def _repeated(last: Found, amount: Found, text: str) -> Found | None:
    """Join "forty-five (45)" and "thirty (30) days", whose unit stands behind the bracket."""
    if ")" in amount.text:
        is_same = last.unit is None and last.said == amount.said
        return replace(amount, start=last.start, text=text[last.start : amount.end]) if is_same else None
    if last.value != amount.value or (last.unit and amount.unit and last.unit != amount.unit):
        return None
    if text[amount.end : amount.end + 1] != ")":
        return None
    return replace(last, end=amount.end + 1, text=text[last.start : amount.end + 1], unit=last.unit or amount.unit)


def _sum(last: Found, amount: Found, gap: str, text: str, view: View, step: Decimal) -> Decimal | None:
    if gap not in {"", "and"} or not last.unit:
        return None
    return _with_parts(last, amount, step) if amount.unit else _with_bare(last, amount, gap, text, view, step)


def _with_parts(last: Found, amount: Found, step: Decimal) -> Decimal | None:
    """Add the cents of "3 dollars and 50 cents" and the fen of "1 yuan 5 jiao 5 fen"."""
    if last.value is None or amount.value is None or last.unit not in (amount.unit, *amount.also):
        return None
    is_whole = last.value % step == 0
    if not (_names_part(amount) and is_whole and 0 < amount.value < step):
        return None
    return last.value + amount.value.copy_sign(last.value)


def _with_bare(last: Found, amount: Found, gap: str, text: str, view: View, step: Decimal) -> Decimal | None:
    """Add the 50 of "15 dollars 50" as cents, when nothing is counted by it."""
    if last.value is None or amount.value is None or not _is_money(last):
        return None
    is_plain = amount.text.isdigit() or amount.text[:1].isalpha()
    if not is_plain or amount.value != amount.value.to_integral_value() or not 0 < amount.value < _HUNDRED:
        return None
    is_named = step < 1 or (bool(last.said_unit) and last.text.endswith(last.said_unit))
    is_loose = view is View.MONEY
    if last.value % step or not (is_named or (is_loose and gap == "and")) or (gap == "and" and not is_loose):
        return None
    ends = (_ENDS_LOOSELY if gap else _ENDS_CLOSELY) if is_loose else _ENDS
    if gap and (step < 1 or amount.value < _TEN):
        # "2 euros and 3 for a friend" are two prices
        ends = _ENDS
    if step <= 1 / _HUNDRED or not ends.match(text, amount.end):
        return None
    if step == 1 and not gap and amount.value < _TEN and last.said_unit.lower() == "kuai":
        # a digit after kuai is said for mao: "three kuai six"
        return last.value + (amount.value / _TEN).copy_sign(last.value)
    if step < 1:
        return last.value + amount.value * step / _TEN if amount.value < _TEN else None
    if not is_loose and amount.value < _TEN:
        return None
    return last.value + (amount.value / _HUNDRED).copy_sign(last.value)


def _is_money(amount: Found) -> bool:
    """True for whole units of a currency, also with parts already added."""
    return amount.unit in CURRENCIES and amount.said == amount.value


def _names_part(amount: Found) -> bool:
    said = amount.said_unit.lower()
    return said in PART_NAMES or said in {"c", "p", "¢"}
