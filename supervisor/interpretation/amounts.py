"""Which amount of a sentence belongs to which field, and what it is worth there."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from contracts.amounts import Amount, wire_form
from contracts.errors import AmbiguousAmount, InvalidAmount, UnitMismatch
from contracts.units import CURRENCIES
from supervisor.interpretation.cues import Cue, Distances
from supervisor.interpretation.fields import FieldShape
from supervisor.interpretation.matching import match_cheapest
from supervisor.interpretation.scene import Item, Scene, runs_of
from supervisor.interpretation.words import word_set

#: Steps from a cue past which an amount has nothing to do with it.
FAR = 4.0
_IMPOSSIBLE = 1000.0
#: For "20%" or "5 km" where a plain number or another unit is asked for: taken only when said right beside the cue.
_STRANGE_UNIT_STEP = 2.5
#: "3 months" says how long, never how much.
_TIMES = frozenset({"second", "minute", "hour", "day", "week", "month", "year"})
#: For the 2026 of "in 2026".
_YEAR_STEP = 3.0
#: Each further member of a list, so that the one next to the cue is the surest.
_MEMBER_STEP = 0.05
#: Steps within which a cue plainly speaks of an amount, whatever else is there.
RIGHT_BESIDE = 0.8
#: A field is less likely to be given twice.
_SECOND_STEP = 1.5
#: Amounts at either end of a list that may belong to another field than the list does.
_EDGE = 3
#: Assignment is cubic: what has more separate amounts or cues is no sentence.
_MOST_ROWS = 32
_MOST_CUES = 256
_YEARS = range(1900, 2101)
_BEFORE_YEAR = word_set(
    "in since during until year january february march april may june july august september october november december"
    " jan feb mar apr jun jul aug sep sept oct nov dec q1 q2 q3 q4"
)


@dataclass(frozen=True, slots=True)
class Claim:
    """*item* is meant for *field*; *distance* says how near its cue stood (0 touches, None means by elimination)."""

    field: FieldShape
    item: Item
    distance: float | None


@dataclass(frozen=True, slots=True)
class Doubt:
    """A value of *field* that was said but cannot be taken; *question* asks what is meant."""

    field: FieldShape
    question: str


def claim_amounts(
    scene: Scene, cues: tuple[Cue, ...], fields: tuple[FieldShape, ...]
) -> tuple[list[Claim], list[Item], Distances]:
    """Return whose each amount is, the amounts that are nobody's, and the distances it was decided by."""
    distances = Distances(scene, cues)
    if not scene.items or not fields:
        return [], list(scene.items), distances
    rows = list(_rows(scene.items))
    columns = [field for field in fields for _ in (rows if field.is_list else (None,))]
    costs = [_costs(row, scene, cues[:_MOST_CUES], fields, distances) for row in rows]
    scalars = [field for field in fields if not field.is_list]
    # A second amount for a field has a column of its own, which leaves it loose: else "limit 5, spent 4, limit 5" would
    # push every amount one field on.
    table = [
        [cost[field.name] for field in columns]
        + [_second_cost(row, cost[field.name]) for field in scalars]
        + [FAR] * len(rows)
        for row, cost in zip(rows, costs, strict=True)
    ]
    claims = [
        Claim(columns[column], item, table[place][column])
        for place, column in enumerate(match_cheapest(table))
        if column < len(columns) and table[place][column] < FAR
        for item in rows[place].items
    ]
    claimed = {claim.item.start for claim in claims}
    return claims, [item for item in scene.items if item.start not in claimed], distances


def _second_cost(row: "_Row", cost: float) -> float:
    """Return the cost of a second amount for a field: only a lone one said right beside a cue can be that."""
    return cost + _SECOND_STEP if len(row.run) == 1 and cost <= RIGHT_BESIDE else _IMPOSSIBLE


@dataclass(frozen=True, slots=True)
class _Row:
    """Amounts that go to one field together: a single one, or the inside of a list; *place* is that in its *run*."""

    items: tuple[Item, ...]
    run: list[Item]
    place: int


def _rows(items: tuple[Item, ...]) -> Iterator[_Row]:
    """Yield what is assigned as one; amounts past the most that a sentence can hold are nobody's."""
    rows = (row for run in runs_of(items).values() for row in _rows_of(run))
    return islice(rows, _MOST_ROWS)


def _rows_of(run: list[Item]) -> Iterator[_Row]:
    if run[0].bracket is not None and len(run) > 1:
        yield _Row(tuple(run), run, 0)
        return
    inside = slice(_EDGE, len(run) - _EDGE)
    for place, item in enumerate(run):
        if place == inside.start and len(run) > 2 * _EDGE:
            yield _Row(tuple(run[inside]), run, place)
        if not inside.start <= place < inside.stop:
            yield _Row((item,), run, place)


def _costs(
    row: _Row, scene: Scene, cues: tuple[Cue, ...], fields: tuple[FieldShape, ...], distances: Distances
) -> dict[str, float]:
    costs = {field.name: _IMPOSSIBLE for field in fields}
    item = row.items[0]
    for cue in cues:
        name = cue.field.name
        if name not in costs or (len(row.items) > 1 and not cue.field.is_list):
            continue
        steps = distances.between(cue, item)
        if cue.field.is_list:
            along = distances.to_stretch(cue, row.run[0], row.run[-1]) + _MEMBER_STEP * min(row.place, _EDGE)
            steps = min(steps, along)
        costs[name] = min(costs[name], steps + strangeness(item, cue.field, scene))
    return costs


def strangeness(item: Item, field: FieldShape, scene: Scene) -> float:
    """Return the steps added to an amount whose unit or place shows it to be something else; 0 for a fitting one."""
    unit = item.found.unit
    if unit is not None and not speaks_of_unit(item, field, scene):
        declared = Amount.read(0, unit=field.unit).unit if field.unit else None
        if unit in _TIMES and declared not in _TIMES:
            return FAR
        if unit != declared and (unit in CURRENCIES) != (declared is None or declared in CURRENCIES):
            return _STRANGE_UNIT_STEP
    return _YEAR_STEP if is_year(item, scene) else 0.0


def is_year(item: Item, scene: Scene) -> bool:
    """True for the 2026 of "in 2026" and "March 2026"."""
    value = item.found.value
    if value is None or item.found.unit or not item.found.text.isdigit() or value not in _YEARS:
        return False
    first = scene.index_at(item.start)
    return first > 0 and scene.tokens[first - 1].text in _BEFORE_YEAR


def speaks_of_unit(item: Item, field: FieldShape, scene: Scene) -> bool:
    """True when the unit of *item* is itself what *field* is called ("3 months" for `months`)."""
    words = scene.tokens[scene.index_at(item.start) : scene.index_at(item.end - 1) + 1]
    stems = {token.stem for token in words if token.is_word}
    return any(len(phrase.stems) == 1 and phrase.stems[0] in stems for phrase in field.phrases)


def value_in(field: FieldShape, item: Item, scene: Scene) -> Any | Doubt:
    """Return what *item* is worth in *field*, ready for JSON, or the doubt that has to be asked about."""
    found = item.found
    raw: Any = found.text
    if found.value is not None and field.unit is None and speaks_of_unit(item, field, scene):
        raw = found.value
    try:
        amount = Amount.read(raw, unit=field.unit)
    except AmbiguousAmount as error:
        return Doubt(field, f"Is {field.label} {' or '.join(error.readings)}? You wrote {found.text!r}.")
    except UnitMismatch:
        wanted = f"in {field.unit}" if field.unit else "without a unit"
        return Doubt(field, f"What is {field.label} {wanted}? You wrote {found.text!r}, which is in {found.unit}.")
    except InvalidAmount:
        return Doubt(field, f"What is {field.label} as a plain number? I cannot keep {found.text!r} exactly.")
    if field.kind == "integer" and amount.value != amount.value.to_integral_value():
        return Doubt(field, f"What is {field.label} as a whole number? You wrote {found.text!r}.")
    return wire_form(Amount(amount.value))
