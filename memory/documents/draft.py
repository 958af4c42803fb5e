"""A draft: documents of one user as they would be after some plans, not stored yet.

A plan is applied to all of its documents or to none; its changes are kept beside it, for the log and for undo. What
a draft read and wrote is checked once more when it is stored (`tasklore.memory.documents.storage.store`).
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from pydantic import JsonValue

from tasklore.contracts.edits import Edit, NoChange
from tasklore.contracts.errors import EditRefused, InvalidInput
from tasklore.memory.documents.edits import Change, apply_changes, apply_edits
from tasklore.memory.documents.guard import DocumentLimits, check, growth_of
from tasklore.memory.documents.items import Body
from tasklore.memory.documents.plans import (
    AppliedPlan,
    Document,
    Origin,
    Plan,
    PlanKind,
    Snapshot,
    Step,
    resource_of,
)
from tasklore.memory.documents.rebase import rebase_edits
from tasklore.memory.documents.stamps import stamp, with_days

__all__ = ["AppliedPlan", "Document", "Draft", "Origin", "Plan", "Snapshot"]

#: Bytes by which a stamp can make a document longer: names, a day and a revision of any length that is ever reached.
_STAMP_BYTES = 80


class Draft:
    """Documents of one user as they would be after the plans applied so far.

    Args:
        snapshot: The stored documents.
        limits: What an edited document may be.
        now: The time that documents and new items are stamped with.
        known: Ids of plans that are stored already (`Stale.known` of an earlier attempt): they do nothing here.
    """

    def __init__(
        self,
        snapshot: Snapshot,
        limits: DocumentLimits,
        now: datetime,
        *,
        known: Collection[str] = (),
    ) -> None:
        self.snapshot = snapshot
        self._limits = limits
        self._day = now.date()
        self._known = frozenset(known)
        self._read: set[str] = set()
        self._applied: list[AppliedPlan] = []
        # The documents before the first plan, after it, after the next: bodies share what they have in common.
        self._states: list[Mapping[str, Document]] = [dict(snapshot.documents)]

    @property
    def user_id(self) -> str:
        """Whose documents these are."""
        return self.snapshot.user_id

    @property
    def documents(self) -> Mapping[str, Document]:
        """The documents as they are now; a decision by one of them asks `body` for it."""
        return self._states[-1]

    @property
    def applied(self) -> tuple[AppliedPlan, ...]:
        """The plans applied so far, in order."""
        return tuple(self._applied)

    @property
    def read(self) -> frozenset[str]:
        """Resources whose body was read: a decision may rest on it."""
        return frozenset(self._read)

    def body(self, resource_id: str) -> Body:
        """Return the body of a document as it is now, read only.

        Raises:
            EditRefused: the snapshot has no such document (`file`).
        """
        document = self._document(resource_id)
        self._read.add(document.resource_id)
        return document.body

    def apply(self, plan: Plan, as_of: int | None = None) -> AppliedPlan:
        """Apply *plan* and return its changes; one whose id is applied already changes nothing.

        Paths refer to the documents as they are now, or with *as_of* to the documents after the first *as_of* plans of
        `applied`: 0 is the snapshot.

        Raises:
            EditRefused: the plan does not fit, and the draft is as it was.
            InvalidInput: there are fewer than *as_of* plans.
        """
        done = self._finish(plan)
        if done is not None:
            return done
        seen = len(self._applied) if as_of is None else as_of
        if not 0 <= seen <= len(self._applied):
            raise InvalidInput(
                f"as_of {as_of!r} must be 0 to {len(self._applied)}, as many plans as are applied"
            )
        steps: dict[str, Step] = {}
        for resource_id, edits in self._by_resource(plan).items():
            step = self._apply_edits(resource_id, edits, seen)
            if step is not None:
                steps[resource_id] = step
        return self._append(AppliedPlan(plan=plan, steps=steps))

    def replay(
        self,
        plan: Plan,
        changes: Mapping[str, Sequence[Change]],
        *,
        kind: PlanKind = "edit",
        undoes: str | None = None,
        forms: Mapping[str, str] | None = None,
    ) -> AppliedPlan:
        """Apply *changes* of each resource as they stand, for an undo or an import; *plan* says who and why.

        Neither limits nor `_metadata` hold them back. *undoes* is the plan that they take back, *forms* are new forms
        of the documents.

        Raises:
            EditRefused: they were not made of these documents, and the draft is as it was.
        """
        done = self._finish(plan)
        if done is not None:
            return done
        steps: dict[str, Step] = {}
        for resource_id, mine in changes.items():
            document = self._document(resource_id)
            body = apply_changes(document.body, mine)
            form = (forms or {}).get(resource_id, document.form)
            steps[resource_id] = self._step(document, body, tuple(mine), form)
        return self._append(
            AppliedPlan(plan=plan, steps=steps, kind=kind, undoes=undoes)
        )

    def _finish(self, plan: Plan) -> AppliedPlan | None:
        """Return what became of the plan of this id when it was applied before, which counts as this time."""
        for applied in self._applied:
            if applied.plan.plan_id == plan.plan_id:
                return applied
        return (
            self._append(AppliedPlan(plan=plan, known=True))
            if plan.plan_id in self._known
            else None
        )

    def _by_resource(self, plan: Plan) -> dict[str, list[Edit]]:
        """Return the edits of *plan* that change something, by the document that they are for."""
        found: dict[str, list[Edit]] = {}
        for edit in plan.edits:
            if not isinstance(edit, NoChange):
                found.setdefault(self._document(edit.file).resource_id, []).append(edit)
        return found

    def _document(self, file: str | None) -> Document:
        documents = self.documents
        if file is None and len(documents) == 1:
            return next(iter(documents.values()))
        name = None if file is None else resource_of(file)
        if name is None or name not in documents:
            given = "no file" if file is None else repr(file)
            msg = (
                f"an edit names {given}, but the documents here are "
                f"{', '.join(documents) or 'none'}; name one of them"
            )
            raise EditRefused(msg, "file")
        return documents[name]

    def _apply_edits(
        self, resource_id: str, edits: Sequence[Edit], seen: int
    ) -> Step | None:
        """Return what *edits*, made for the documents after the first *seen* plans, do to a document now."""
        document = self._document(resource_id)
        over = [
            change
            for applied in self._applied[seen:]
            for change in applied.changes.get(resource_id, ())
        ]
        if over:
            edits = rebase_edits(edits, over, self._states[seen][resource_id].body)
        dated = [with_days(edit, self._day, document.body) for edit in edits]
        applied = apply_edits(document.body, dated)
        if not applied.changes:
            return None
        check(
            document.body,
            applied.body,
            applied.changes,
            self._limits,
            size=document.size,
        )
        return self._step(document, applied.body, applied.changes, document.form)

    def _step(
        self,
        document: Document,
        body: JsonValue,
        changes: tuple[Change, ...],
        form: str,
    ) -> Step:
        """Return *document* with *body* as its next revision."""
        if not isinstance(body, dict):
            msg = f"{document.resource_id!r} must stay an object of names and values; edit what is in it"
            raise EditRefused(msg, "type")
        revision = document.revision + 1
        stamped, overwritten = stamp(body, document.resource_id, revision, self._day)
        size = (
            None
            if document.size is None
            else document.size + growth_of(changes) + _STAMP_BYTES
        )
        after = Document(
            resource_id=document.resource_id,
            revision=revision,
            body=stamped,
            form=form,
            born=document.born,
            size=size,
        )
        return Step(document, after, changes, overwritten)

    def _append(self, applied: AppliedPlan) -> AppliedPlan:
        self._applied.append(applied)
        self._states.append(
            {
                **self.documents,
                **{name: step.after for name, step in applied.steps.items()},
            }
        )
        return applied
