"""What an earlier value comes to after a change, exactly: what has no end of digits is asked for, never rounded."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import MAX_PREC, Context, Decimal
from fractions import Fraction
from typing import Any

from contracts.errors import InvalidAmount
from quantities.amounts import Amount, wire_form
from supervisor.interpretation.earlier_tasks.changes import Change
from supervisor.interpretation.values.amounts import Doubt, value_in
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.scene import Scene

#: Digits of a computed value: what is longer than any sum of money was never meant.
_MOST_DIGITS = 60


@dataclass(frozen=True, slots=True)
class Computed:
    """A *value* ready for JSON, and *words* that say what it was made of: "double 50,000"."""

    value: Any
    words: str


def changed(field: FieldShape, change: Change, earlier: Any, scene: Scene) -> Computed | Doubt:
    """Return what *earlier*, a value of *field* as it is kept in a call, becomes by *change*; a doubt if it cannot."""
    if field.is_list:
        return _with_items(field, change, earlier, scene)
    try:
        before = Fraction(Amount.read(earlier, unit=field.unit).value)
    except InvalidAmount:
        return Doubt(field, f"What is {field.label}? I cannot reckon with the earlier {earlier!r}.")
    step = _step_of(field, change, before, scene)
    if isinstance(step, Doubt):
        return step
    after, words = step
    value = _exact(after)
    if value is None:
        return Doubt(field, f"What is {field.label}? {words[:1].upper()}{words[1:]} has no end of digits.")
    if field.kind == "integer" and after.denominator != 1:
        return Doubt(field, f"What is {field.label} as a whole number? {words[:1].upper()}{words[1:]} is {value:,f}.")
    return Computed(wire_form(Amount(value)), words)


def _step_of(field: FieldShape, change: Change, before: Fraction, scene: Scene) -> tuple[Fraction, str] | Doubt:
    shown = _shown(before)
    if change.is_multiple:
        is_step = change.words.startswith(("plus", "minus"))
        return before * change.factor, f"{shown} {change.words}" if is_step else f"{change.words} {shown}"
    sign = "plus" if change.factor > 0 else "minus"
    if change.item is None:
        return before + change.factor, f"{shown} {sign} {_shown(abs(change.factor))}"
    found = change.item.found
    if found.unit == "%" and field.unit != "%" and found.value is not None:
        return before * (1 + change.factor * Fraction(found.value) / 100), f"{shown} {sign} {found.text}"
    by = value_in(field, change.item, scene)
    if isinstance(by, Doubt):
        return by
    by_amount = Fraction(Amount.read(by, unit=field.unit).value)
    return before + change.factor * by_amount, f"{shown} {sign} {_shown(by_amount)}"


def _with_items(field: FieldShape, change: Change, earlier: Any, scene: Scene) -> Computed | Doubt:
    """Return the list *earlier* with the amount of *change* added at its end, or taken out where it stands once."""
    doubt = Doubt(field, f"What is {field.label}? I can only add one to it, or take one out.")
    if change.item is None or change.is_multiple or not isinstance(earlier, Sequence) or isinstance(earlier, str):
        return doubt
    item = value_in(field, change.item, scene)
    if isinstance(item, Doubt):
        return item
    said = change.item.found.text
    if change.factor > 0:
        return Computed([*earlier, item], f"{said} added")
    wanted = Amount.read(item, unit=field.unit)
    places = [place for place, one in enumerate(earlier) if Amount.read(one, unit=field.unit) == wanted]
    if len(places) != 1:
        return doubt
    return Computed([one for place, one in enumerate(earlier) if place != places[0]], f"{said} taken out")


def _exact(value: Fraction) -> Decimal | None:
    """Return *value* as a decimal with all of its digits, None when they have no end or are too many."""
    rest, places = value.denominator, 0
    while rest % 10 == 0:
        rest, places = rest // 10, places + 1
    while rest % 5 == 0:
        rest, places = rest // 5, places + 1
    while rest % 2 == 0:
        rest, places = rest // 2, places + 1
    whole = value.numerator * 10**places // value.denominator if rest == 1 and places <= _MOST_DIGITS else None
    if whole is None or abs(whole) >= 10**_MOST_DIGITS:
        return None
    return Decimal(whole).scaleb(-places, Context(prec=min(_MOST_DIGITS * 2, MAX_PREC)))


def _shown(value: Fraction) -> str:
    exact = _exact(value)
    return f"{exact.normalize():,f}" if exact is not None else str(value)
