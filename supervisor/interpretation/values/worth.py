"""What an amount of a sentence is worth in a field, ready for JSON, or the doubt that has to be asked about."""

import re
from dataclasses import dataclass
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

from contracts.errors import AmbiguousAmount, InvalidAmount, UnitMismatch
from quantities.amounts import Amount, canonical, wire_form
from quantities.amounts.percent import Percent
from quantities.amounts.quantity import Quantity
from quantities.numerals import Found
from supervisor.interpretation.questions import ask_which_value
from supervisor.interpretation.values.counting import PERSON
from supervisor.interpretation.values.fields import FieldShape, Kind
from supervisor.interpretation.values.scene import Item, Scene

#: "50k" and "50 grand", of which a correction may repeat the number alone.
_SCALED = re.compile(r"[\d.,]+\s*(?:k|grand|thousand|m|mn|million|lakh|crore|bn|billion)", re.IGNORECASE)
_THOUSAND = Decimal(1000)
#: Digits of a share that was said exactly: a third has no end of them.
_LONGEST_PART = 12
_EXACT = Context(prec=120)
#: What a word alone may count.
_COUNTS = range(1, 1001)
_TYPES: dict[Kind, type[Percent] | type[Quantity]] = {"percent": Percent, "quantity": Quantity}
_WANTED: dict[Kind, str] = {"percent": "in per cent", "quantity": "as a measure"}


@dataclass(frozen=True, slots=True)
class Doubt:
    """A value of *field* that was said but cannot be taken; *question* asks what is meant."""

    field: FieldShape
    question: str


def is_allowed(field: FieldShape, value: Decimal) -> bool:
    """True when *value* is within the bounds that *field* declares."""
    return (field.least is None or value >= field.least) and (field.most is None or value <= field.most)


def _bounds(field: FieldShape) -> str:
    if field.least is not None and field.most is not None:
        return f"from {canonical(field.least)} to {canonical(field.most)}"
    return (
        f"at most {canonical(field.most)}"
        if field.most is not None
        else f"at least {canonical(field.least or Decimal())}"
    )


def speaks_of_unit(item: Item, field: FieldShape, scene: Scene) -> bool:
    """True when the unit of *item* is itself what *field* is called ("3 months" for `months`)."""
    words = scene.tokens[scene.index_at(item.start) : scene.index_at(item.end - 1) + 1]
    stems = {token.stem for token in words if token.is_word}
    return any(len(phrase.stems) == 1 and phrase.stems[0] in stems for phrase in field.phrases)


def _plainly(found: Found, field: FieldShape) -> str:
    """Return *found* in the one spelling that nobody reads otherwise, its decimal mark being known."""
    if found.value is None:
        return found.text
    unit = field.unit if field.unit in found.also else found.unit
    return f"{canonical(found.value)} {unit or ''}".rstrip()


def _may_be_scaled(item: Item) -> bool:
    """True for the 60 of "50k, no, 60", which may mean 60k."""
    before, found = item.instead_of, item.found
    if before is None or before.value is None or found.value is None or found.unit != before.unit:
        return False
    return bool(_SCALED.fullmatch(before.text)) and found.text.isdigit() and found.value < _THOUSAND <= before.value


def _part_of(item: Item, field: FieldShape) -> Amount | None:
    """Return the exact amount that "20 % of 5000" comes to, None for an amount of its own or one without an end."""
    part, base = item.found.value, item.base
    if base is None or part is None or field.kind == "percent" or len(part.as_tuple().digits) > _LONGEST_PART:
        return None
    share = Fraction(part) / (100 if item.found.unit == "%" else 1)
    whole = Amount.read(base.text, unit=field.unit)
    product = Fraction(whole.value) * share
    exact = _EXACT.divide(Decimal(product.numerator), Decimal(product.denominator))
    return Amount(exact) if Fraction(exact) == product else None


def fits_type(field: FieldShape, item: Item) -> bool:
    """True when the unit of *item* alone says that it is a value of *field*: a percentage, or its dimension."""
    if item.found.unit is None or item.found.value is None:
        return False
    if field.kind == "percent":
        return item.found.unit == "%"
    if field.kind != "quantity" or field.unit is None:
        return False
    try:
        Quantity.read(item.found.text, unit=field.unit)
    except InvalidAmount:
        return False
    return True


def _is_small_count(found: Found) -> bool:
    return found.unit is None and found.value is not None and found.value in _COUNTS


def value_in(field: FieldShape, item: Item, scene: Scene) -> Any | Doubt:
    """Return what *item* is worth in *field*, ready for JSON, or the doubt that has to be asked about."""
    found = item.found
    if found.unit == PERSON and found.value is not None:
        return _bounded(field, Amount(found.value), found)
    if doubt := _left_open(field, item):
        return doubt
    raw: Any = found.text if scene.decimal_mark is None else _plainly(found, field)
    if found.value is not None and field.unit is None and speaks_of_unit(item, field, scene):
        raw = found.value
    try:
        if field.kind in _TYPES:
            return str(_TYPES[field.kind].read(raw, unit=field.unit))
        part = _part_of(item, field)
        if part is None and item.base is not None:
            return Doubt(field, f"What is {field.label} exactly? You wrote '{found.text} of {item.base.text}'.")
        amount = part or Amount.read(raw, unit=field.unit)
    except AmbiguousAmount as error:
        return Doubt(field, f"Is {field.label} {' or '.join(error.readings)}? You wrote {found.text!r}.")
    except UnitMismatch:
        wanted = f"in {field.unit}" if field.unit else _WANTED.get(field.kind, "without a unit")
        unit = f", which is in {found.unit}" if found.unit else ""
        return Doubt(field, f"What is {field.label} {wanted}? You wrote {found.text!r}{unit}.")
    except InvalidAmount:
        if item.base is None and field.unit is None and _is_small_count(found):
            # The "dozen" of "for dozen guests" is an amount among its words only.
            return _bounded(field, Amount(found.value), found)
        wanted = _WANTED.get(field.kind, "as a plain number")
        return Doubt(field, f"What is {field.label} {wanted}? I cannot keep {found.text!r} exactly.")
    return _bounded(field, amount, found)


def _left_open(field: FieldShape, item: Item) -> Doubt | None:
    """Return the question about an amount that was only half said: "no, 60" after "50k", "a couple of hundred", "5"."""
    found = item.found
    if _may_be_scaled(item):
        scale = item.instead_of.text.lstrip("0123456789.,") if item.instead_of else ""
        return Doubt(field, ask_which_value(field, [found.text, f"{found.text}{scale}"]))
    if found.is_vague:
        return Doubt(field, f"What is {field.label} exactly? You wrote {found.text!r}.")
    if field.kind == "quantity" and found.unit is None and field.unit is None:
        return Doubt(field, f"What is {field.label} with its unit? You wrote {found.text!r}.")
    return None


def _bounded(field: FieldShape, amount: Amount, found: Found) -> Any | Doubt:
    if field.unit is None and not is_allowed(field, amount.value):
        return Doubt(field, f"What is {field.label}, {_bounds(field)}? You wrote {found.text!r}.")
    if field.kind == "integer" and amount.value != amount.value.to_integral_value():
        return Doubt(field, f"What is {field.label} as a whole number? You wrote {found.text!r}.")
    return wire_form(Amount(amount.value))
