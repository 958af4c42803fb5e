"""Stores a user's documents: drafts whole or not at all, what takes a plan back, files, expiry. Without a model."""

from collections.abc import Collection, Mapping
from datetime import date, datetime

from tasklore.contracts.edits import MAX_EDITS, MAX_PATH, Delete
from tasklore.contracts.errors import (
    EditRefused,
    InvalidInput,
    MemoryUnavailable,
    UndoRefused,
)
from tasklore.contracts.identifiers import new_id
from tasklore.memory.documents.differences import differences, replacement
from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.edits import Change
from tasklore.memory.documents.files import json_files
from tasklore.memory.documents.guard import check_document
from tasklore.memory.documents.items import METADATA, is_expired, leaves
from tasklore.memory.documents.plans import (
    Document,
    Origin,
    Plan,
    PlanKind,
    Snapshot,
    resource_of,
)
from tasklore.memory.documents.stamps import with_stamp_of
from tasklore.memory.documents.storage.history import PlanRecord, json_bytes
from tasklore.memory.documents.storage.reader import Look, token_of
from tasklore.memory.documents.storage.repository import (
    Committed,
    RemovedDocuments,
    Stale,
)
from tasklore.memory.documents.storage.writer import DocumentWriter
from tasklore.memory.documents.undo import entry_of, take_back_changes
from tasklore.memory.times import milliseconds

__all__ = ["Committed", "DocumentStore", "RemovedDocuments", "Stale"]

#: How often what needs no model is worked out again when somebody else was quicker; each time somebody gets ahead.
_ATTEMPTS = 20

#: Bytes of a file for each byte that its document may have: indented by hand it takes two or three.
_FILE_SHARE = 4


class DocumentStore(DocumentWriter):
    """Edits, undo and redo, files and expiry of documents; errors as in the classes that it extends."""

    async def undo(
        self,
        user_id: str,
        plan_id: str | None = None,
        *,
        by: str = "person",
        at: datetime,
    ) -> PlanRecord:
        """Take a plan back in all its documents and return the plan that did; None: the latest that stands.

        An older one is taken back beneath later ones. The result is a revision like any other.

        Raises:
            UndoRefused: a later plan touched the same place, the plan does not stand, or the history has none.
        """
        return await self._take_back(
            user_id, plan_id, Origin(by=by, at=at), undone=False
        )

    async def redo(
        self,
        user_id: str,
        plan_id: str | None = None,
        *,
        by: str = "person",
        at: datetime,
    ) -> PlanRecord:
        """Apply a plan again that was taken back; *plan_id* is the plan or its undo, None the last undo.

        Raises:
            UndoRefused: a later plan touched the same place, the plan stands, or nothing was taken back.
        """
        return await self._take_back(
            user_id, plan_id, Origin(by=by, at=at), undone=True
        )

    async def diff(
        self, user_id: str, resource: str, from_revision: int, to_revision: int
    ) -> tuple[Change, ...]:
        """Return few changes that lead from one revision to another, metadata left out.

        Raises:
            InvalidInput: there is no such document or revision, or the history no longer reaches back to it.
        """
        first = await self.at(user_id, resource, from_revision)
        second = await self.at(user_id, resource, to_revision)
        return tuple(
            change
            for change in differences(first.body, second.body)
            if change.path.steps[0] != METADATA
        )

    async def import_document(
        self,
        user_id: str,
        content: bytes,
        *,
        at: datetime,
        resource: str | None = None,
        by: str = "import",
    ) -> PlanRecord | None:
        """Put the document of a file in the place of the stored one, and return the plan that did.

        None when they are equal. *resource* is needed when the file's metadata does not name it.

        Raises:
            InvalidInput: the file is no document, or one of another resource.
            EditRefused: it is larger or deeper than a document may be.
        """
        token_of(user_id)
        if len(content) > _FILE_SHARE * self._limits.max_bytes:
            raise EditRefused(
                f"the file has {len(content)} bytes; a document may have {self._limits.max_bytes}",
                "size",
            )
        file = json_files.read(content)
        resource_id = _resource_of_file(file.body, resource)
        check_document(file.body, self._limits)
        plan = Plan(
            plan_id=_new_id(at),
            edits=(),
            origin=Origin(by=by, at=at, reasoning="imported from a file"),
        )
        for _ in range(_ATTEMPTS):
            found = await self.snapshot(user_id, [resource_id])
            before = found.documents.get(resource_id) or Document(
                resource_id=resource_id, revision=0, body={}
            )
            changes = replacement(before.body, with_stamp_of(file.body, before.body))
            if not changes and before.form == file.form and before.revision:
                return None
            draft = Draft(Snapshot(user_id, {resource_id: before}), self._limits, at)
            draft.replay(plan, {resource_id: changes}, forms={resource_id: file.form})
            record = await self._store(draft, plan)
            if record is not None:
                return record
        raise _outrun(user_id)

    async def export_document(self, user_id: str, resource: str) -> bytes:
        """Return the file of a document: the imported one to the byte, when nothing was edited since.

        Raises:
            InvalidInput: there is no such document.
        """
        resource_id = resource_of(resource)
        document = (await self.snapshot(user_id, [resource_id])).documents.get(
            resource_id
        )
        if document is None:
            known = ", ".join(self._kinds.ids)
            raise InvalidInput(
                f"user {user_id!r} has no document {resource!r}; the kinds of documents are {known}"
            )
        return json_files.write(document.body, document.form)

    async def sweep(self, user_id: str, now: datetime) -> PlanRecord | None:
        """Delete the items whose last day has passed, as a plan of its own, and return it; None when there is none.

        What an undo brought back after a sweep took it, is left alone.
        """
        plan_id = _new_id(now)
        kept = frozenset[tuple[str, bytes]]()
        origin = Origin(
            by="expiry",
            at=now,
            reasoning=f"their last day was before {now.date().isoformat()}",
        )
        for _ in range(_ATTEMPTS):
            snapshot = await self.snapshot(user_id)
            if not _find_expired(snapshot, now.date(), kept):
                return None
            kept = await self._find_restored(user_id)
            edits = _find_expired(snapshot, now.date(), kept)
            if not edits:
                return None
            draft = Draft(snapshot, self._limits, now)
            plan = Plan(plan_id=plan_id, edits=edits, origin=origin)
            draft.apply(plan)
            record = await self._store(draft, plan)
            if record is not None:
                return record
        raise _outrun(user_id)

    async def forget(self, user_id: str) -> RemovedDocuments:
        """Remove all documents of a user with their history; the name is free at once.

        Raises:
            MemoryUnavailable: no answer in time; some of it may be there still, so call it again.
        """
        token = token_of(user_id)
        found = await self._repository.read(token, self._kinds.ids, 0, {})
        resources = list(dict.fromkeys([*self._kinds.ids, *sorted(found.resources)]))
        self._bodies.drop(token, resources)
        return await self._repository.forget(token, resources)

    async def _take_back(
        self, user_id: str, plan_id: str | None, origin: Origin, *, undone: bool
    ) -> PlanRecord:
        """Take back a plan that stands, or (*undone*) the undo of one that does not."""
        own_id = _new_id(origin.at)
        for _ in range(_ATTEMPTS):
            if plan_id is None:
                target = await self._latest(user_id, undone=undone)
            else:
                target = await self._find_plan(user_id, plan_id, undone=undone)
            look = await self._with_logs(user_id, target)
            if look is None:
                continue
            reasoning = (
                f"{'applies again what' if undone else 'takes back'} {target.plan_id}"
            )
            plan = Plan(
                plan_id=own_id,
                edits=(),
                origin=origin.model_copy(update={"reasoning": reasoning}),
            )
            record = await self._store(self._taking_back(look, target, plan), plan)
            if record is not None:
                return record
        raise _outrun(user_id)

    def _taking_back(self, look: Look, target: PlanRecord, plan: Plan) -> Draft:
        """Return a draft in which *plan* takes *target* back in all its documents."""
        changes: dict[str, tuple[Change, ...]] = {}
        forms: dict[str, str] = {}
        for resource_id in target.revisions:
            log = look.logs.get(resource_id, ())
            entry = entry_of(target, resource_id, log)
            changes[resource_id] = take_back_changes(
                entry.plan_id, log, look.snapshot.documents[resource_id].body
            )
            if entry.form_before is not None:
                forms[resource_id] = entry.form_before
        draft = Draft(look.snapshot, self._limits, plan.origin.at)
        try:
            kind: PlanKind = "redo" if target.kind == "undo" else "undo"
            draft.replay(plan, changes, kind=kind, undoes=target.plan_id, forms=forms)
        except EditRefused as error:
            raise UndoRefused(
                f"plan {target.plan_id!r} cannot be taken back: {error}"
            ) from error
        return draft

    async def _with_logs(self, user_id: str, target: PlanRecord) -> Look | None:
        """Return the documents of *target* and their whole logs; None when another caller has just taken it back."""
        look = await self._look(user_id, list(target.revisions), entries=-1)
        return (
            None
            if any(
                entry.undoes == target.plan_id
                for log in look.logs.values()
                for entry in log
            )
            else look
        )

    async def _latest(self, user_id: str, *, undone: bool) -> PlanRecord:
        """Return the last plan that stands, or (*undone*) the last undo that does."""
        limit = 20
        while True:
            records = await self.history(user_id, limit=limit)
            for record in records:
                if record.undone_by is None and (record.kind == "undo") == undone:
                    return record
            if len(records) < limit:
                what = (
                    "that could be applied again"
                    if undone
                    else "that could be taken back"
                )
                raise UndoRefused(
                    f"the history of user_id {user_id!r} has no plan {what}"
                )
            limit *= 10

    async def _find_plan(
        self, user_id: str, plan_id: str, *, undone: bool
    ) -> PlanRecord:
        """Return what plan *plan_id* has come to: itself, or the last of those that took it back and forth."""
        name: str | None = plan_id
        while name is not None:
            records = await self._records(user_id, [name], {})
            if not records:
                raise UndoRefused(
                    f"user_id {user_id!r} has no plan {name!r}, or it is no longer "
                    "kept; see the history"
                )
            last = records[0]
            name = records[0].undone_by
        if (last.kind == "undo") != undone:
            cure = (
                "undo it first"
                if undone
                else f"plan {last.plan_id!r} did that; redo applies it again"
            )
            raise UndoRefused(
                f"plan {plan_id!r} {'stands' if undone else 'is taken back already'}: {cure}"
            )
        return last

    async def _find_restored(self, user_id: str) -> frozenset[tuple[str, bytes]]:
        """Return what sweeps took and an undo brought back: resources and items."""
        records = await self.history(user_id, limit=self._keep_revisions)
        return frozenset(
            (resource_id, json_bytes(change.before))
            for record in records
            if record.origin.by == "expiry" and record.undone_by is not None
            for resource_id, changes in record.changes.items()
            for change in changes
        )

    async def _store(self, draft: Draft, plan: Plan) -> PlanRecord | None:
        """Return the record of *plan* once *draft* is stored; None when another writer was quicker."""
        if isinstance(await self.commit(draft), Stale):
            return None
        return (await self._records(draft.user_id, [plan.plan_id], {}))[0]


def _resource_of_file(body: Mapping[str, object], resource: str | None) -> str:
    metadata = body.get(METADATA, {})
    if not isinstance(metadata, dict):
        raise InvalidInput(
            f"{METADATA!r} of an imported document must be an object; fix the file"
        )
    named = metadata.get("resource_id")
    wanted = named if resource is None else resource_of(resource)
    if not isinstance(wanted, str):
        raise InvalidInput(
            "the file does not say in _metadata.resource_id what it is; name the resource"
        )
    if named not in (None, wanted):
        raise InvalidInput(
            f"the file says that it is {named!r}, not {wanted!r}; name the resource that it is"
        )
    return wanted


def _new_id(at: datetime) -> str:
    return new_id(milliseconds(at))


def _outrun(user_id: str) -> MemoryUnavailable:
    return MemoryUnavailable(
        f"documents of user_id {user_id!r} change faster than they can be edited; try again"
    )


def _find_expired(
    snapshot: Snapshot, today: date, kept: Collection[tuple[str, bytes]] = ()
) -> tuple[Delete, ...]:
    """Return an edit for each item that no longer holds on *today*, as many as one plan may have.

    *kept* are resources and items, as JSON, that stay whatever their expiry says.
    """
    found = (
        Delete(path=str(path), file=resource_id, reason="its last day has passed")
        for resource_id, document in snapshot.documents.items()
        for path, _, value in leaves(document.body)
        if is_expired(value, today)
        and len(str(path)) <= MAX_PATH
        and (resource_id, json_bytes(value)) not in kept
    )
    return tuple(found)[:MAX_EDITS]
