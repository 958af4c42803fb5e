"""What a spelling of a quantity is worth, as an exact Decimal and the unit it names.

The rules that `tasklore.contracts.quantities.amounts.Amount` reads by: no float, nothing rounded, no spelling of two
values accepted.
"""

import decimal
import re
from collections.abc import Mapping
from decimal import ROUND_HALF_EVEN, Decimal
from functools import lru_cache
from typing import Final

from tasklore.contracts.quantities.errors import (
    AmbiguousAmount,
    InvalidAmount,
    UnitMismatch,
)
from tasklore.contracts.quantities.numerals.finding import parse_amount
from tasklore.contracts.quantities.units import Unit, measure_named, unit_named

#: Significant digits, and powers of ten either way, that are kept; input with more is refused, not rounded.
LONGEST: Final = 60
#: Significant digits that survive a JSON number in every language (an IEEE double).
JSON_DIGITS: Final = 15
#: Characters up to which a reading is remembered, and how many readings: about 1 MB at most.
_CACHED_LENGTH = 48
_CACHED_READINGS = 2048
#: Characters of a text that can be one amount; the longest number in words stays far below.
_LONGEST_TEXT = 1000

_GLUED_M = re.compile(r"\s*([-+]?[\d.,']{1,40})m\s*")
_AMBIGUOUS = re.compile(r"-?[1-9]\d{0,2}\.\d{3}")

_TRAPS: Final = [decimal.InvalidOperation, decimal.DivisionByZero, decimal.Overflow]
EXACT = decimal.Context(prec=LONGEST, rounding=ROUND_HALF_EVEN, traps=_TRAPS)
#: Quotients and powers rarely end; 34 digits are those of an IEEE decimal128.
QUOTIENT = decimal.Context(prec=34, rounding=ROUND_HALF_EVEN, traps=_TRAPS)
#: Holds the integer quotient of any two amounts exactly.
WIDE = decimal.Context(prec=4 * LONGEST, rounding=ROUND_HALF_EVEN, traps=_TRAPS)
LARGEST_INT: Final = 10**LONGEST
_ZERO = Decimal(0)
_ONE = Decimal(1)


def canonical(value: Decimal) -> str:
    """Return the one decimal spelling of *value* ("50000", "0.5", "-3"); equal values share it, others never do.

    An exponent appears only past 60 powers of ten, where no amount can be.
    """
    if not value:
        return "0"
    if abs(value.adjusted()) > LONGEST:
        return str(
            value.normalize(
                decimal.Context(prec=max(LONGEST, len(value.as_tuple().digits)))
            )
        )
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def unmistakable(value: Decimal) -> str:
    """Return the canonical spelling, with a zero more where three decimals could be read as thousands ("1.2340")."""
    text = canonical(value)
    return f"{text}0" if _AMBIGUOUS.fullmatch(text) else text


def worth(raw: object) -> tuple[Decimal, Unit | None]:
    """Return the number that *raw* (a number, a wording or `{"value", "unit"}`) stands for and the unit it names.

    Raises:
        InvalidAmount: no finite number, or more digits than are kept exactly.
        AmbiguousAmount: a wording with two readings.
        UnitMismatch: the wording inside an object names another unit than the object.
    """
    if isinstance(raw, str):
        return _cached_text(raw) if len(raw) <= _CACHED_LENGTH else _text(raw)
    if isinstance(raw, Mapping):
        return _read_mapping(raw)
    if isinstance(raw, bool) or not isinstance(raw, (int, float, Decimal)):
        raise InvalidAmount(
            f"{shown(raw)} is not a valid amount; send a number or a wording such as "
            "'50k'"
        )
    return plain(raw), None


def in_metres(raw: object, unit: str | None) -> object:
    """Return "1.8m" as "1.8 m" where *unit* is one of length: elsewhere a small m glued to a number is a million."""
    glued = (
        _GLUED_M.fullmatch(raw) if unit is not None and isinstance(raw, str) else None
    )
    if glued is None or unit is None:
        return raw
    measure = measure_named(unit)
    return f"{glued[1]} m" if measure and measure.dimension == "length" else raw


def plain(raw: int | float | Decimal) -> Decimal:  # noqa: PYI041 - mypy tells the two apart
    """Return the exact value of a number; a float by its shortest spelling, refused past 15 digits."""
    if isinstance(raw, float):
        if raw.is_integer() and abs(raw) < 10**JSON_DIGITS:
            return Decimal(int(raw))
        value = Decimal(repr(raw))
        if (
            value.is_finite()
            and len(value.normalize(WIDE).as_tuple().digits) > JSON_DIGITS
        ):
            raise InvalidAmount(
                f"{raw!r} has more digits than a float keeps; send it as a string"
            )
        return kept(value, raw)
    if isinstance(raw, int):
        if abs(raw) > LARGEST_INT:
            raise InvalidAmount(
                f"an integer of {raw.bit_length()} bits is too large; keep amounts below 1e{LONGEST}"
            )
        return Decimal(raw)
    return kept(raw, raw)


def _text(text: str) -> tuple[Decimal, Unit | None]:
    if len(text) > _LONGEST_TEXT:
        raise InvalidAmount(
            f"{shown(text)} is too long for an amount; send the number alone"
        )
    if sum(map(str.isdecimal, text)) > LONGEST:
        raise InvalidAmount(f"{shown(text)} has too many digits; keep to {LONGEST}")
    found = parse_amount(text)
    if found.value is None:
        raise AmbiguousAmount(
            found.text, [canonical(reading) for reading in found.readings]
        )
    return kept(found.value, text), Unit(
        found.unit, also=found.also
    ) if found.unit else None


_cached_text = lru_cache(_CACHED_READINGS)(_text)


def _read_mapping(raw: Mapping[object, object]) -> tuple[Decimal, Unit | None]:
    if (
        "value" not in raw
        or not raw.keys() <= {"value", "unit"}
        or isinstance(raw["value"], Mapping)
    ):
        raise InvalidAmount(
            f"{shown(raw)} is not a valid amount; send a number, a wording or "
            '{"value": 5, "unit": "USD"}'
        )
    unit = raw.get("unit")
    number, meant = worth(raw["value"])
    if unit is None:
        return number, meant
    if not isinstance(unit, str):
        raise InvalidAmount(
            f"{shown(unit)} is not a valid unit; send a text such as 'USD'"
        )
    return fitted(raw, number, meant, declared_unit(unit))


@lru_cache(_CACHED_READINGS)
def declared_unit(unit: str) -> Unit:
    """Return the unit that a caller or a field names; one that is unknown here stands for itself."""
    name = unit.strip()
    if not 0 < len(name) <= 32 or not name.isprintable():
        raise InvalidAmount(
            f"{shown(unit)} is not a valid unit; use a short name such as 'USD' or 'km'"
        )
    return unit_named(name) or Unit(name)


def fitted(
    raw: object, number: Decimal, meant: Unit | None, declared: Unit
) -> tuple[Decimal, Unit]:
    """Return *number*, which *raw* says is of unit *meant* (None: unsaid), as a number of *declared*."""
    if meant is None and declared.factor == 1:
        return number, declared
    if meant is None:
        return kept(EXACT.multiply(number, declared.factor), raw), declared
    if meant.code == declared.code or declared.code in meant.also:
        return number, declared
    cure = (
        "convert it first"
        if meant.is_currency and declared.is_currency
        else f"send it in {declared.code}"
    )
    raise UnitMismatch(
        f"{shown(raw)} is in {meant.code} where {declared.code} is expected; {cure}"
    )


def is_kept(value: Decimal) -> bool:
    """Return whether `kept` returns *value* as it is, of whole numbers that most calculations give; False if unsure."""
    _, digits, exponent = value.as_tuple()
    return exponent == 0 and len(digits) <= LONGEST and digits[0] != 0


def kept(value: Decimal, raw: object) -> Decimal:
    """Return *value* normalised: no trailing zeros, no exponent on whole numbers, no "-0"; refuse what is not exact."""
    if not value.is_finite():
        raise InvalidAmount(f"{shown(raw)} is not a finite number; send a number")
    if not value:
        return _ZERO
    if abs(value.adjusted()) <= LONGEST and len(value.as_tuple().digits) <= 4 * LONGEST:
        value = value.normalize(WIDE)
        _, digits, exponent = value.as_tuple()
        if len(digits) <= LONGEST and int(exponent) >= -LONGEST:
            return value.quantize(_ONE, context=WIDE) if int(exponent) > 0 else value
    raise InvalidAmount(
        f"{shown(raw)} has too many digits; keep to {LONGEST} digits between 1e-{LONGEST} and 1e{LONGEST}"
    )


def is_factor(raw: object) -> bool:
    """True for what a value may be multiplied with or divided by: whole and decimal numbers, no float and no bool."""
    return isinstance(raw, (int, Decimal)) and not isinstance(raw, bool)


def shown(raw: object) -> str:
    """Return *raw* as an error message quotes it, never longer than 80 characters."""
    try:
        text = repr(raw)
    except ValueError:  # an integer inside that is too long to be spelled
        text = f"a {type(raw).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}..."
