"""Amounts that a sentence says and nobody has a use for: they are told, and never dropped in silence.

"Limit 50k, spent 42k, hotel 900" is a budget, and the hotel is what another agent does. Only what could be a value is
told: of most sentences that name a year, a page or a price beside their wish, nothing is.
"""

from collections.abc import Collection, Sequence
from typing import Any

from quantities.amounts import canonical
from quantities.units import CURRENCIES
from supervisor.understanding.outcome import Missing, Single, Understood, Unfitting
from supervisor.interpretation.values.filling import fill
from supervisor.interpretation.values.scene import Item, Scene
from supervisor.interpretation.wishes.routing import Prepared, Router

#: Amounts that are told of one sentence; who left out more wrote a table.
_MOST_TOLD = 5
#: Other tasks that are tried with what is left, each at the cost of a reading.
_MOST_TRIED = 4


def left_over(scene: Scene, parts: Sequence[Single], router: Router) -> Unfitting | None:
    """Return what tells of the amounts of *scene* that *parts* leave out, None when there are none.

    An amount is told where the words beside it name another task that has a field for it, and where it is money and a
    task of *parts*, none of which lacks anything, is about money.
    """
    read = [part for part in parts if isinstance(part, Understood) or (isinstance(part, Missing) and part.known)]
    if not read or len(read) < len(parts):
        # What is unclear as a whole is asked about first.
        return None
    items = _unused(scene, read)
    if not items:
        return None
    tasks = [task for part in read if (task := router.find(part.agent_id, _name(part))) is not None]
    told = _of_others(scene, items, tasks, router)
    if told is not None:
        task, ours = told
        label, agent = task.offer.label, task.offer.agent.agent_id
        return Unfitting(f"I left out {_said(ours)}. If that is for {label} ({agent}), please say it on its own.")
    # What lacks is asked for, and may well be what is left.
    is_whole = all(isinstance(part, Understood) for part in read) and any(_holds_money(task) for task in tasks)
    money = [item for item in items if _is_money(item)] if is_whole and not _takes_back(scene, tasks, items) else []
    return Unfitting(f"I left out {_said(money)}: I cannot tell what it is for.") if money else None


def _unused(scene: Scene, parts: Sequence[Understood | Missing]) -> list[Item]:
    """Return the amounts of *scene* that no value of *parts* rests on, without those that were taken back."""
    spans = [(span.start, span.end) for part in parts for span in part.spans if span.source is None]
    if any(isinstance(part, Understood) and part.computed for part in parts):
        return []
    said_twice = {str(value) for part in parts for value in _values(part)}
    return [
        item
        for item in scene.items
        if not any(a < item.end and item.start < b for a, b in spans)
        and (item.found.value is None or canonical(item.found.value) not in said_twice)
    ]


def _of_others(
    scene: Scene, items: Sequence[Item], tasks: Collection[Prepared], router: Router
) -> tuple[Prepared, list[Item]] | None:
    """Return another task that *scene* names and that takes some of *items*, with these."""
    known = {stem for task in tasks for stem in task.names}
    named = {token.stem for token in scene.tokens if token.is_word and token.stem in router.names} - known
    if not named:
        return None
    others = [task for task in router.tasks if not named.isdisjoint(task.names)]
    for task in [one for one in others if all(one is not ours for ours in tasks)][:_MOST_TRIED]:
        filled = fill(scene.with_items(tuple(items)), task)
        cued = [span for span in filled.spans if span.field not in filled.guessed]
        taken = [item for item in items if any(a.start <= item.start and item.end <= a.end for a in cued)]
        if taken:
            return task, taken
    return None


def _takes_back(scene: Scene, tasks: Sequence[Prepared], items: Sequence[Item]) -> bool:
    """Return whether some of *items* were said and taken back: "limit 70k, sorry, the limit is 75k"."""
    if scene.is_corrected:
        return True
    if len(tasks) != 1:
        return False
    loose = fill(scene, tasks[0]).loose
    return not all(item in loose for item in items)


def _holds_money(task: Prepared) -> bool:
    return any(
        shape.kind == "amount" and (shape.unit is None or shape.unit in CURRENCIES) for shape in task.shape.fields
    )


def _is_money(item: Item) -> bool:
    """True for "70k", "€70" and "two thousand euros"; a bare number may be anything."""
    is_scaled = item.found.unit is None and item.found.text[:1].isdigit() and item.found.text[-1:].lower() in {"k", "m"}
    return is_scaled or item.found.unit in CURRENCIES


def _said(items: Sequence[Item]) -> str:
    return ", ".join(f'"{item.found.text}"' for item in items[:_MOST_TOLD])


def _values(part: Understood | Missing) -> list[Any]:
    known = part.task.parameters if isinstance(part, Understood) else part.known
    return [one for value in known.values() for one in (value if isinstance(value, list | tuple) else (value,))]


def _name(part: Understood | Missing) -> str:
    return part.task.name if isinstance(part, Understood) else part.task_name
