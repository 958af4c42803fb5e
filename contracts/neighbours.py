"""Near matches: how far the values of two questions may be apart for one to be answered with the other's result.

Off unless a parameter declares `Field(tolerance=...)`. All arithmetic is exact: at the border nothing is rounded.
"""

import base64
import decimal
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Final

from contracts.amounts import Amount, canonical
from contracts.amounts.spellings import LONGEST, WIDE
from contracts.questions import question_key, spell_field

#: Holds the difference of any two amounts, and a share of one, without rounding; what it cannot hold is never near.
_EXACT = decimal.Context(prec=WIDE.prec, traps=[decimal.Inexact, decimal.InvalidOperation, decimal.Overflow])
#: A share of the reach by which a search in floats goes further, so that rounding hides no neighbour.
_SLACK = 1e-9
_HUNDRED: Final = Decimal(100)
#: Between the values of a place; no number is spelled with it.
_BETWEEN = "|"
_LONGEST_TOLERANCE = 32


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far a remembered value may be from the asked one: *amount* in the field's unit, or percent of what is asked.

    Of zero a percentage is nothing: then only the same value is served.
    """

    amount: Decimal
    is_percent: bool = False

    def reach(self, asked: Decimal) -> Decimal:
        """Return the largest distance from *asked* that is still near."""
        if not self.is_percent:
            return self.amount
        return _EXACT.divide(_EXACT.multiply(asked.copy_abs(), self.amount), _HUNDRED)

    def __str__(self) -> str:
        return f"{canonical(self.amount)}%" if self.is_percent else canonical(self.amount)


def read_tolerance(raw: object) -> Tolerance:
    """Return the tolerance that *raw* declares: an int, a Decimal, a number as text, or a percentage such as "1%".

    Raises:
        TypeError: it is something else, a float for one, is not above zero, or is a percentage of 100 or more.
    """
    text = str(raw).strip() if isinstance(raw, str | int | Decimal) and not isinstance(raw, bool) else ""
    number = text.removesuffix("%").rstrip()
    try:
        amount = Decimal(number) if number.isascii() and len(number) <= _LONGEST_TOLERANCE else Decimal("NaN")
    except decimal.InvalidOperation:
        amount = Decimal("NaN")
    if not amount.is_finite() or amount <= 0 or abs(amount.adjusted()) > LONGEST:
        raise TypeError(f"a tolerance is a number above zero or a percentage, such as 250, '0.5' or '1%'; not {raw!r}")
    is_percent = text.endswith("%")
    if is_percent and amount >= _HUNDRED:
        raise TypeError(f"a tolerance of {text} would take anything for near; keep below 100%")
    return Tolerance(amount, is_percent)


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """The questions that differ from one in the values of its tolerant *fields* alone.

    *frame* is one for all of them, and for no question with another text, unit or sign anywhere. *values* and
    *tolerances* are of *fields*, in the order in which the class declares them; *spelled* are all fields of the
    question, spelled for its key, and *places* say which of these are the tolerant ones, and in which unit.
    """

    task_name: str
    frame: str
    fields: tuple[str, ...]
    values: tuple[Decimal, ...]
    tolerances: tuple[Tolerance, ...]
    spelled: tuple[str, ...]
    places: tuple[tuple[int, str], ...]

    @property
    def place(self) -> str:
        """Where the question itself stands in its frame: the values of its tolerant fields, in their one spelling."""
        return _BETWEEN.join(map(canonical, self.values))

    @property
    def score(self) -> float:
        """The first value as a float, by which neighbours are looked for; what is near is decided by the exact one."""
        return float(self.values[0])

    @property
    def window(self) -> tuple[float, float]:
        """The least and the greatest score that a neighbour may have, or a little beyond."""
        reach = float(self.tolerances[0].reach(self.values[0])) * (1 + _SLACK)
        low, high = self.score - reach, self.score + reach
        return math.nextafter(low, -math.inf), math.nextafter(high, math.inf)

    def nearest(self, places: list[str], most: int) -> list[str]:
        """Return those of *places* that are near, at most *most*, the nearest first; of equally near the lesser.

        Near is what is within the tolerance of every field. How near is the sum of the shares of the tolerances that
        are used up.
        """
        ranked = []
        for place in dict.fromkeys(places):
            values = self._values_at(place)
            if values is not None and place != self.place and (used := self._used(values)) is not None:
                ranked.append((used, values, place))
        return [place for _, _, place in sorted(ranked)[:most]]

    def distances(self, place: str) -> dict[str, Decimal]:
        """Return how far *place*, one that is near, lies from the question, for each tolerant field."""
        there = self._values_at(place) or self.values
        return {
            name: _EXACT.subtract(asked, other).copy_abs()
            for name, asked, other in zip(self.fields, self.values, there, strict=True)
        }

    def values_at(self, place: str) -> Mapping[str, Decimal]:
        """Return the values of the tolerant fields at *place*, one that is near."""
        return dict(zip(self.fields, self._values_at(place) or self.values, strict=True))

    def question_at(self, place: str) -> str:
        """Return the key of the question at *place*, as `Parameters.key` makes it."""
        spelled = list(self.spelled)
        for (index, unit), value in zip(self.places, self._values_at(place) or self.values, strict=True):
            spelled[index] = canonical(value) + unit
        return question_key(self.task_name, spelled)

    def _values_at(self, place: str) -> tuple[Decimal, ...] | None:
        """Return the values that *place* spells, None when they are none of ours or have other signs."""
        try:
            values = tuple(Decimal(part) for part in place.split(_BETWEEN))
        except decimal.InvalidOperation:
            return None
        fits = len(values) == len(self.values) and all(
            value.is_finite() and canonical(value) == part and sign_of(value) == sign_of(asked)
            for value, part, asked in zip(values, place.split(_BETWEEN), self.values, strict=True)
        )
        return values if fits else None

    def _used(self, values: tuple[Decimal, ...]) -> Fraction | Decimal | None:
        """Return the shares of the tolerances that *values* use up, None when one of them is too far away.

        Of one field the distance itself, which ranks the same and costs less.
        """
        used = Fraction()
        for asked, other, tolerance in zip(self.values, values, self.tolerances, strict=True):
            try:
                distance, reach = _EXACT.subtract(asked, other).copy_abs(), tolerance.reach(asked)
            except decimal.DecimalException:
                return None
            if distance > reach:
                return None
            if len(values) == 1:
                return distance
            used += Fraction(distance) / Fraction(reach) if reach else Fraction()
        return used


def neighbourhood(
    task_name: str, values: Mapping[str, object], bare_lists: Mapping[str, bool], tolerances: Mapping[str, Tolerance]
) -> Neighbourhood | None:
    """Return the neighbourhood of asking *task_name* with *values*, by field in declared order.

    None when no field with a tolerance has a value: there is nothing that may differ. *bare_lists* is as in
    `contracts.questions.spell_field`.
    """
    spelled, framed, fields, numbers, places = [], [], [], [], []
    for index, (name, value) in enumerate(values.items()):
        text = spell_field(name, value, bare_list=bare_lists[name])
        spelled.append(text)
        number = _number_of(value) if name in tolerances else None
        if number is None:
            framed.append(text)
            continue
        unit = text.removeprefix(canonical(number))
        # No spelling of a value begins so: a tilde in a text is escaped.
        framed.append(f"~near{sign_of(number)}{unit}")
        fields.append(name)
        numbers.append(number)
        places.append((index, unit))
    if not fields:
        return None
    return Neighbourhood(
        task_name,
        _digest(":".join((task_name, *framed))),
        tuple(fields),
        tuple(numbers),
        tuple(tolerances[name] for name in fields),
        tuple(spelled),
        tuple(places),
    )


def sign_of(number: Decimal) -> str:
    """Return "-", "0" or "+": a question about a debt is never answered with that of a credit, nor with nothing's."""
    return "0" if not number else "-" if number < 0 else "+"


def _number_of(value: object) -> Decimal | None:
    """Return *value* as a number, None when it is none or one that no amount could hold: it is near to nothing."""
    number = _decimal(value)
    return number if number is not None and abs(number.adjusted()) <= LONGEST else None


def _decimal(value: object) -> Decimal | None:
    if isinstance(value, Amount):
        return value.value
    if isinstance(value, float):
        return Decimal(repr(value))
    return Decimal(value) if isinstance(value, int | Decimal) and not isinstance(value, bool) else None


def _digest(text: str) -> str:
    return base64.b32encode(hashlib.blake2b(text.encode(), digest_size=16).digest()).decode().rstrip("=").lower()
