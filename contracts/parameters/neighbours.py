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
from typing import Any

from tasklore.contracts.parameters.distances import (
    MeasuredValue,
    distance_between,
    measured,
    moved,
    sign_of,
)
from tasklore.contracts.parameters.questions import question_key, spell_field
from tasklore.contracts.parameters.tolerances import EXACT, Tolerance
from tasklore.contracts.quantities.amounts import canonical

#: A share of the reach by which a search in floats goes further, so that rounding hides no neighbour.
_SLACK = 1e-9
#: Between the values of a place; no number is spelled with it.
_BETWEEN = "|"


@dataclass(frozen=True, slots=True)
class Window:
    """Where in floats a neighbour may have one of its values: about *score*, from *low* to *high*, *reach* away."""

    score: float
    low: float
    high: float
    reach: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Neighbourhood:
    """The questions that differ from one in the values of its tolerant *fields* alone.

    *frame* is one for all of them, and for no question with another text, unit or sign anywhere. *asked*, *measures*
    and *tolerances* are of *fields*, in the order in which the class declares them; *spelled* are all fields of the
    question, spelled for its key, and *places* say which of these are the tolerant ones.
    """

    task_name: str
    frame: str
    fields: tuple[str, ...]
    asked: tuple[Any, ...]
    measures: tuple[MeasuredValue, ...]
    tolerances: tuple[Tolerance, ...]
    spelled: tuple[str, ...]
    places: tuple[int, ...]

    @property
    def place(self) -> str:
        """Where the question itself stands in its frame: the numbers of its tolerant fields, in their one spelling."""
        return _BETWEEN.join([canonical(measure.number) for measure in self.measures])

    @property
    def windows(self) -> tuple[Window, ...]:
        """Where neighbours are looked for, field by field, or a little beyond; nearness itself is decided exactly."""
        return tuple(map(_window, self.measures, self.tolerances))

    def nearest(self, places: list[str], most: int) -> list[str]:
        """Return at most *most* of *places* that are within tolerance, the nearest first; of equally near the lesser.

        Near is what is within the tolerance of every field. How near is the sum of the shares of the tolerances that
        are used up.
        """
        ranked = []
        for place in dict.fromkeys(places):
            numbers = self._numbers_at(place)
            if (
                numbers is not None
                and place != self.place
                and (used := self._used(numbers)) is not None
            ):
                ranked.append((used, numbers, place))
        return [place for _, _, place in sorted(ranked)[:most]]

    def values_at(self, place: str) -> dict[str, Any]:
        """Return the values of the tolerant fields at *place*, one that is near, in the types and units asked in."""
        numbers = self._numbers_at(place) or tuple(
            measure.number for measure in self.measures
        )
        return dict(
            zip(
                self.fields,
                map(moved, self.asked, numbers, self.tolerances),
                strict=True,
            )
        )

    def distances(self, place: str) -> dict[str, tuple[Decimal, str]]:
        """Return how far *place*, one that is near, lies from the question, for each tolerant field.

        As a number and as text, as `tasklore.contracts.parameters.distances.distance_between` tells them.
        """
        there = self.values_at(place)
        return {
            name: distance_between(asked, there[name])
            for name, asked in zip(self.fields, self.asked, strict=True)
        }

    def question_at(self, place: str) -> str:
        """Return the key of the question at *place*, one that is near, as `Parameters.key` makes it."""
        spelled = list(self.spelled)
        numbers = self._numbers_at(place)
        for index, measure, number in zip(
            self.places, self.measures, numbers or (), strict=numbers is not None
        ):
            spelled[index] = measure.spell(number)
        return question_key(self.task_name, spelled)

    def _numbers_at(self, place: str) -> tuple[Decimal, ...] | None:
        """Return the numbers that *place* spells, None when they are none of ours or have other signs."""
        parts = place.split(_BETWEEN)
        try:
            numbers = tuple(map(Decimal, parts))
        except decimal.InvalidOperation:
            return None
        fits = len(numbers) == len(self.measures) and all(
            map(_fits, numbers, parts, self.measures)
        )
        return numbers if fits else None

    def _used(self, numbers: tuple[Decimal, ...]) -> Fraction | Decimal | None:
        """Return the shares of the tolerances that *numbers* use up, None when one of them is too far away.

        Of one field the distance itself, which ranks the same and costs less.
        """
        used = Fraction()
        for measure, other, tolerance in zip(
            self.measures, numbers, self.tolerances, strict=True
        ):
            try:
                distance = EXACT.subtract(measure.number, other).copy_abs()
                reach = tolerance.reach(measure.number)
                if distance > reach and not _is_doubtful(measure, distance, reach):
                    return None
            except decimal.DecimalException:
                return None
            if len(numbers) == 1:
                return distance
            used += Fraction(distance) / Fraction(reach) if reach else Fraction()
        return used


def _window(measure: MeasuredValue, tolerance: Tolerance) -> Window:
    score = float(measure.number)
    reach = float(tolerance.reach(measure.number))
    wider = reach * (1 + _SLACK)
    return Window(
        score,
        math.nextafter(score - wider, -math.inf),
        math.nextafter(score + wider, math.inf),
        reach,
    )


def _fits(number: Decimal, spelled: str, measure: MeasuredValue) -> bool:
    """Return whether *number* is one that a question of the same frame can have there."""
    return (
        number.is_finite()
        and canonical(number) == spelled
        and sign_of(number) == sign_of(measure.number)
        and (measure.is_possible is None or measure.is_possible(number))
    )


def _is_doubtful(measure: MeasuredValue, distance: Decimal, reach: Decimal) -> bool:
    """Return whether *distance* may be beyond *reach* for no other reason than that quantities are rounded."""
    if not measure.doubt:
        return False
    doubt = EXACT.multiply(EXACT.add(measure.number.copy_abs(), reach), measure.doubt)
    return EXACT.subtract(distance, reach) <= doubt


def neighbourhood(
    task_name: str,
    values: Mapping[str, object],
    bare_lists: Mapping[str, bool],
    tolerances: Mapping[str, Tolerance],
) -> Neighbourhood | None:
    """Return the neighbourhood of asking *task_name* with *values*, by field in declared order.

    None when no field with a tolerance has a value: there is nothing that may differ. *bare_lists* is as in
    `tasklore.contracts.parameters.questions.spell_field`.
    """
    spelled = []
    framed = []
    places = []
    tolerant: dict[str, MeasuredValue] = {}
    for index, (name, value) in enumerate(values.items()):
        text = spell_field(name, value, bare_list=bare_lists[name])
        spelled.append(text)
        measure = (
            measured(value, text, tolerances[name]) if name in tolerances else None
        )
        if measure is None:
            framed.append(text)
            continue
        # No spelling of a value begins so: a tilde in a text is escaped.
        framed.append(f"~near{sign_of(measure.number)}{measure.rest}")
        tolerant[name] = measure
        places.append(index)
    if not tolerant:
        return None
    return Neighbourhood(
        task_name=task_name,
        frame=_digest(":".join((task_name, *framed))),
        fields=tuple(tolerant),
        asked=tuple(values[name] for name in tolerant),
        measures=tuple(tolerant.values()),
        tolerances=tuple(tolerances[name] for name in tolerant),
        spelled=tuple(spelled),
        places=tuple(places),
    )


def _digest(text: str) -> str:
    return (
        base64.b32encode(hashlib.blake2b(text.encode(), digest_size=16).digest())
        .decode()
        .rstrip("=")
        .lower()
    )
