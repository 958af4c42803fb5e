"""Which amount of a sentence belongs to which field."""

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import islice

from quantities.amounts import Amount
from quantities.units import CURRENCIES, is_counted
from supervisor.interpretation.values.counting import PERSON
from supervisor.interpretation.values.cues import Cue, Distances
from supervisor.interpretation.values.fields import FieldShape
from supervisor.interpretation.values.matching import match_cheapest
from supervisor.interpretation.values.naming import is_clock, is_date_in_digits, is_labelled, is_name
from supervisor.interpretation.values.scene import Item, Scene, runs_of
from supervisor.interpretation.values.worth import Doubt, fits_type, is_allowed, speaks_of_unit, value_in
from supervisor.interpretation.words import word_set

__all__ = ["Claim", "Doubt", "claim_amounts", "is_allowed", "is_year", "strangeness", "value_in"]

#: Steps from a cue past which an amount has nothing to do with it.
FAR = 4.0
_IMPOSSIBLE = 1000.0
#: For "20%" or "5 km" where a plain number or another unit is asked for: taken only when said right beside the cue.
_STRANGE_UNIT_STEP = 2.5
#: "3 months" says how long, never how much.
_TIMES = frozenset({"second", "minute", "hour", "day", "week", "month", "year"})
#: For the 2026 of "in 2026", and for what stands in a name.
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
#: A set, as whether a `Decimal` lies in a range is found out year by year.
_YEARS = frozenset(map(Decimal, range(1900, 2101)))
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


def claim_amounts(
    scene: Scene, cues: tuple[Cue, ...], fields: tuple[FieldShape, ...]
) -> tuple[list[Claim], list[Item], Distances]:
    """Return whose each amount is, the amounts that are nobody's, and the distances it was decided by."""
    cues = _joining(scene, cues)
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
        for place, column in enumerate(_nearest_first(match_cheapest(table), columns, scalars, table))
        if column < len(columns) and table[place][column] < FAR
        for item in rows[place].items
    ]
    claimed = {claim.item.start for claim in claims}
    return claims, [item for item in scene.items if item.start not in claimed], distances


def _joining(scene: Scene, cues: tuple[Cue, ...]) -> tuple[Cue, ...]:
    """Return *cues* without a mere "of" that joins no amount and no other cue: "3 of 6", not "The Sign of Four"."""
    lone = [cue for cue in cues if len(cue) == 1 and scene.tokens[cue.first].text == "of"]
    if not lone:
        return cues
    ends = {cue.end for cue in cues} | {scene.index_at(item.end - 1) + 1 for item in scene.items}
    return tuple(cue for cue in cues if cue not in lone or cue.first in ends)


def _nearest_first(
    taken: list[int], columns: list[FieldShape], scalars: list[FieldShape], table: list[list[float]]
) -> list[int]:
    """Return *taken* with a field's two amounts swapped where the second stands nearer to the cue than the first."""
    row_of = {column: row for row, column in enumerate(taken)}
    for number, field in enumerate(scalars):
        first = columns.index(field)
        rows = row_of.get(first), row_of.get(len(columns) + number)
        if rows[0] is not None and rows[1] is not None and table[rows[1]][first] < table[rows[0]][first]:
            taken[rows[0]], taken[rows[1]] = taken[rows[1]], taken[rows[0]]
    return taken


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
        if steps < costs[name]:
            costs[name] = min(costs[name], steps + strangeness(item, cue.field, scene))
    for cue in cues:
        if cue.field.name in costs and distances.quantifies(cue, item):
            costs[cue.field.name] += _STRANGE_UNIT_STEP
    if item.found.unit == PERSON:
        # People need no cue: they are one themselves.
        costs |= {field.name: 0.0 for field in fields if field.counts and not field.is_list}
    return costs


def strangeness(item: Item, field: FieldShape, scene: Scene) -> float:
    """Return the steps added to an amount whose unit or place shows it to be something else; 0 for a fitting one."""
    unit = item.base.unit if item.base is not None and field.kind != "percent" else item.found.unit
    if unit == PERSON:
        return 0.0 if field.counts else FAR
    if field.kind in {"percent", "quantity"}:
        return _strange_type(item, field)
    if not _is_within(item, field):
        return FAR if field.kind == "integer" and is_date_in_digits(item, scene) else _STRANGE_UNIT_STEP
    if unit is not None and not is_counted(unit) and not speaks_of_unit(item, field, scene):
        declared = Amount.read(0, unit=field.unit).unit if field.unit else None
        if unit in _TIMES and declared not in _TIMES:
            return FAR
        if unit != declared and (unit in CURRENCIES) != (declared is None or declared in CURRENCIES):
            return _STRANGE_UNIT_STEP
    if is_labelled(item, scene, field) or (field.kind == "integer" and is_date_in_digits(item, scene)):
        return FAR
    if field.counts and unit is not None:
        return FAR
    if field.kind == "integer" and is_clock(item, scene):
        return _YEAR_STEP
    return _YEAR_STEP if is_year(item, scene) or is_name(item, scene) else 0.0


def _strange_type(item: Item, field: FieldShape) -> float:
    """Return the steps for a field of percentages or measures: a bare number is taken only beside its cue."""
    unit = item.found.unit
    if unit is None:
        return 0.0 if field.kind == "percent" or field.unit else _STRANGE_UNIT_STEP
    if field.kind == "percent":
        return 0.0 if unit == "%" else FAR
    return (
        FAR
        if unit == "%" or unit in CURRENCIES
        else (0.0 if field.unit is None or fits_type(field, item) else _STRANGE_UNIT_STEP)
    )


def _is_within(item: Item, field: FieldShape) -> bool:
    value = item.found.value
    if value is None or item.found.unit is not None:
        return True
    return is_allowed(field, value)


def is_year(item: Item, scene: Scene) -> bool:
    """True for the 2026 of "in 2026" and "March 2026"."""
    value = item.found.value
    if value is None or item.found.unit or not item.found.text.isdigit() or value not in _YEARS:
        return False
    first = scene.index_at(item.start)
    return first > 0 and scene.tokens[first - 1].text in _BEFORE_YEAR
