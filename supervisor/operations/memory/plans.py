"""Plans of edits as views: their changes for programs, and a line each for people."""

from datetime import datetime
from typing import Literal

from pydantic import JsonValue

from tasklore.memory.documents.change_lines import ChangeLine, change_lines
from tasklore.memory.documents.edits import Change
from tasklore.memory.documents.paths import ABSENT
from tasklore.memory.documents.plans import PlanKind
from tasklore.memory.documents.storage.history import PlanRecord
from tasklore.supervisor.operations.forms import View

PlanState = Literal["stands", "taken back", "takes back", "applies again"]

_STATES: dict[PlanKind, PlanState] = {
    "edit": "stands",
    "undo": "takes back",
    "redo": "applies again",
}


class Changed(View):
    """The change of an edit at one place; `had` and `has` tell an absent value from null."""

    path: str
    had: bool
    before: JsonValue = None
    has: bool
    after: JsonValue = None


class ShownChange(View):
    """One change for people: `+` came, `-` went, `~` became another; where, and what."""

    mark: Literal["+", "-", "~"]
    where: str
    what: str


class PlanView(View):
    """One plan of edits: its author, reason and evidence, and its changes by document.

    `undoes` is the plan that it takes back; `undone_by` is the one that took it back, null while it stands. `state`
    says so in a word, and `lines` has the changes of each document for people.
    """

    plan_id: str
    number: int
    kind: PlanKind
    state: PlanState
    at: datetime
    by: str
    reasoning: str
    fact: str
    evidence: str
    undoes: str | None
    undone_by: str | None
    revisions: dict[str, int]
    changes: dict[str, tuple[Changed, ...]]
    lines: dict[str, tuple[ShownChange, ...]]


class PlanExplained(PlanView):
    """A plan with the turn that it came from, and what finder and editor answered: null where rules decided."""

    turn_id: str | None
    finder: JsonValue
    editor: JsonValue


def view_plan(record: PlanRecord) -> PlanView:
    """Return *record* as a view."""
    origin = record.origin
    state = "taken back" if record.undone_by is not None else _STATES[record.kind]
    return PlanView(
        plan_id=record.plan_id,
        number=record.number,
        kind=record.kind,
        state=state,
        at=origin.at,
        by=origin.by,
        reasoning=origin.reasoning,
        fact=origin.fact_text,
        evidence=origin.evidence,
        undoes=record.undoes,
        undone_by=record.undone_by,
        revisions=dict(record.revisions),
        changes={
            name: tuple(map(view_change, changes))
            for name, changes in record.changes.items()
        },
        lines={
            name: tuple(map(show_change, change_lines(changes)))
            for name, changes in record.changes.items()
        },
    )


def explain_plan(record: PlanRecord) -> PlanExplained:
    """Return *record* with all that is known of how it came about."""
    origin = record.origin
    return PlanExplained(
        **dict(view_plan(record)),
        turn_id=origin.turn_id,
        finder=origin.finder,
        editor=origin.editor,
    )


def view_change(change: Change) -> Changed:
    """Return *change* as a view."""
    had = change.before is not ABSENT
    has = change.after is not ABSENT
    before = change.before if had else None
    after = change.after if has else None
    return Changed(path=str(change.path), had=had, before=before, has=has, after=after)


def show_change(line: ChangeLine) -> ShownChange:
    """Return *line* as a view."""
    return ShownChange(mark=line.mark, where=line.where, what=line.what)
