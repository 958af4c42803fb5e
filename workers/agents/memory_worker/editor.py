"""The editor: turn a fact into edits, by its relation to the entries that were found. Mechanical; asks no model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Literal

from pydantic import JsonValue

from tasklore.contracts.edits import MAX_EDITS, Delete, Edit, Insert, Update
from tasklore.memory.documents.entries import DocumentEntry
from tasklore.memory.documents.items import (
    CONFLICT,
    DURABILITIES,
    Body,
    Item,
    make_item,
)
from tasklore.workers.agents.memory_worker.arbiter import JudgedEntries
from tasklore.workers.agents.memory_worker.case import Case

#: Operations on an item.
Operation = Literal["insert", "renew", "end", "pause", "delete", "contest"]


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """One operation, on an entry or, for an insert, at a place: for the history and for the person."""

    operation: Operation
    path: str
    display: str

    def dump(self) -> JsonValue:
        """Return it as the history keeps it."""
        return {"operation": self.operation, "path": self.path, "display": self.display}


@dataclass(frozen=True, slots=True)
class PlannedEdits:
    """Edits, and their steps; no edits where the documents say it already."""

    edits: tuple[Edit, ...] = ()
    steps: tuple[PlannedStep, ...] = ()

    def __add__(self, other: "PlannedEdits") -> "PlannedEdits":
        return PlannedEdits(self.edits + other.edits, self.steps + other.steps)


def change_for(
    case: Case, judged: JudgedEntries, twin: DocumentEntry | None
) -> PlannedEdits:
    """Return the change for the fact of *case*: entries that may go, the *twin* that says the same, and a new item.

    An item is ended and kept as the past, or deleted where the person asks to have it forgotten.
    """
    fact = case.pending.fact
    if fact.relation == "forget":
        return _sum(
            PlannedEdits(
                (Delete(path=str(entry.path), file=entry.resource_id),),
                (PlannedStep("delete", str(entry.path), entry.text),),
            )
            for entry in judged.allowed
        )
    ended = [
        _retire(case, entry)
        for entry in judged.allowed
        if twin is None or entry.path != twin.path
    ]
    marks = [_contest(case, entry) for entry in judged.conflicts]
    if fact.relation == "ends":
        return _sum([*ended, *marks])
    mark = _mark_of(case, judged.conflicts)
    if twin is None:
        return _sum([*ended, *marks, _insert(case, judged, mark)])
    # A later fact has made it the past already.
    return _sum(
        [*ended, *marks] if judged.later else [*ended, *marks, _renew(case, twin, mark)]
    )


def is_too_much(change: PlannedEdits) -> bool:
    """Return whether *change* has more edits than one plan may have."""
    return len(change.edits) > MAX_EDITS


def _insert(case: Case, judged: JudgedEntries, mark: str | None) -> PlannedEdits:
    item = _item(case, until=_last_day(case, judged))
    if mark is not None:
        item[CONFLICT] = mark
    edit = Insert(path=str(case.home.path), file=case.home.resource_id, new_value=item)
    return PlannedEdits(
        (edit,), (PlannedStep("insert", str(case.home.path), case.display),)
    )


def _renew(case: Case, twin: DocumentEntry, mark: str | None) -> PlannedEdits:
    """Return the change that dates *twin* anew; none where it is newer, or stated and the fact inferred.

    A fact that says more of it gives it its words. One that does not say that it changes ends it no sooner, begins it
    no later, and makes it no less lasting.
    """
    fact = case.pending.fact
    item = twin.item
    if item is None or case.is_newer(twin) or (fact.inferred and not item.is_inferred):
        return PlannedEdits()
    display = case.display if case.says_more_than(twin) else item.display
    renewed = {
        **item.others,
        **_item(case, until=None),
        "item": item.item,
        "display": display,
    }
    if not case.is_changing(twin) and twin.is_live(case.today):
        _keep_span(renewed, case, item)
    renewed.pop(CONFLICT, None)
    # One that was named as the same may stand at another place.
    renewed.pop("category", None)
    if item.category:
        renewed["category"] = item.category
    if (
        "since" not in renewed
        and item.since is not None
        and item.state(case.today) != "past"
    ):
        renewed["since"] = item.since.isoformat()
    if mark is not None:
        renewed[CONFLICT] = mark
    said_again = {**renewed, "source": item.source}
    if isinstance(twin.value, dict) and said_again == twin.value:
        return PlannedEdits()
    edit = Update(path=str(twin.path), file=twin.resource_id, new_value=renewed)
    return PlannedEdits((edit,), (PlannedStep("renew", str(twin.path), display),))


def _keep_span(renewed: Body, case: Case, item: Item) -> None:
    """Give *renewed* the days and the durability of *item* where those of the fact would make it hold for less."""
    fact = case.pending.fact
    end = fact.expiry
    if end is not None and (item.expiry is None or item.expiry > end):
        renewed["expiry"] = None if item.expiry is None else item.expiry.isoformat()
    begin = fact.valid_from
    if begin is not None and begin > case.today:
        renewed.pop("since")
        if item.since is not None:
            renewed["since"] = min(begin, item.since).isoformat()
    if DURABILITIES.index(item.durability) < DURABILITIES.index(fact.durability):
        renewed["durability"] = item.durability


def _item(case: Case, *, until: date | None) -> Body:
    """Return the fact as an item; one that has ended already is the past, and is not swept."""
    fact = case.pending.fact
    has_ended = fact.expiry is not None and fact.expiry < case.today
    item = make_item(
        case.display,
        added=case.day_said,
        expiry=None if has_ended else fact.expiry,
        confidence=fact.confidence,
        durability=fact.durability,
        source=case.source,
    )
    until = fact.expiry if has_ended else until
    fields: dict[str, JsonValue] = {
        "since": None if fact.valid_from is None else fact.valid_from.isoformat(),
        "until": None if until is None else until.isoformat(),
        "subject": fact.subject,
        "category": None if case.category == str(case.home.path) else case.category,
    }
    return {**item, **{name: value for name, value in fields.items() if value}}


def _last_day(case: Case, judged: JudgedEntries) -> date | None:
    """Return the last day of a fact that later facts replace; None without later facts."""
    days = [
        entry.item.since or entry.item.added
        for entry in judged.later
        if entry.item is not None
    ]
    known = [day for day in days if day is not None]
    return min(known) if known else case.day_said if judged.later else None


def _retire(case: Case, entry: DocumentEntry) -> PlannedEdits:
    """Return the change that makes *entry* the past, or hides it for as long as the fact lasts."""
    fact = case.pending.fact
    operation: Operation = "end"
    name = "until"
    day = fact.valid_from or case.day_said
    if case.is_event(entry):
        # Moved or called off, it does not happen on its old day: neither until the new one nor after it.
        day = case.day_said
    elif fact.relation == "updates" and entry.item is not None and entry.item.expiry:
        # What lasts for a while is replaced for good by what takes its place for a while.
        pass
    elif fact.expiry is not None and fact.expiry >= case.day_said:
        operation = "pause"
        name = "paused_until"
        day = fact.expiry
    elif fact.expiry is not None and fact.relation == "ends":
        day = fact.expiry
    step = PlannedStep(operation, str(entry.path), entry.text)
    if isinstance(entry.value, dict):
        at = str(entry.path / name)
        edit: Edit = Insert(path=at, file=entry.resource_id, new_value=day.isoformat())
        if name in entry.value:
            edit = Update(path=at, file=entry.resource_id, new_value=day.isoformat())
        return PlannedEdits((edit,), (step,))
    gone = Delete(path=str(entry.path), file=entry.resource_id)
    if not isinstance(entry.path.last, int) or not entry.text.strip():
        return PlannedEdits((gone,), (step,))
    # A plain text cannot say until when it held; an item can.
    past = {
        **make_item(entry.text, added=case.day_said, source="imported"),
        name: day.isoformat(),
    }
    kept = Insert(path=str(entry.path.parent), file=entry.resource_id, new_value=past)
    return PlannedEdits((gone, kept), (step,))


def _contest(case: Case, entry: DocumentEntry) -> PlannedEdits:
    """Return the change that marks *entry* as contradicted."""
    step = PlannedStep("contest", str(entry.path), entry.text)
    if not isinstance(entry.value, dict) or CONFLICT in entry.value:
        return PlannedEdits((), (step,))
    mark = _mark_of(case, (entry,))
    return PlannedEdits(
        (
            Insert(
                path=str(entry.path / CONFLICT), file=entry.resource_id, new_value=mark
            ),
        ),
        (step,),
    )


def _mark_of(case: Case, contested: Sequence[DocumentEntry]) -> str | None:
    """Return the mark of a conflict: one that is there already, else the id of this fact's plan."""
    if not contested:
        return None
    known = [
        entry.value.get(CONFLICT)
        for entry in contested
        if isinstance(entry.value, dict)
    ]
    return next(
        (mark for mark in known if isinstance(mark, str)), case.pending.fact.fact_id
    )


def _sum(changes: Iterable[PlannedEdits]) -> PlannedEdits:
    total = PlannedEdits()
    for change in changes:
        total += change
    return total
