"""The history of documents: the record of each applied plan, and the log of each document, as JSON and back.

A log entry is one revision: the plan that led to it, its changes with the values before, and those that the stamp wrote
over. Going back through them gives every earlier revision, letter by letter. Pure.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

from pydantic import JsonValue, TypeAdapter
from pydantic_core import PydanticSerializationError, from_json, to_json

from tasklore.contracts.edits import Edit
from tasklore.contracts.errors import InvalidInput
from tasklore.memory.documents.edits import (
    Change,
    apply_changes,
    dump_changes,
    inverse,
    load_changes,
)
from tasklore.memory.documents.items import Body
from tasklore.memory.documents.plans import (
    AppliedPlan,
    Document,
    Origin,
    PlanKind,
    Step,
)
from tasklore.memory.documents.stamps import unstamp

#: Bytes of a record beyond which answers of models are not kept: twenty times a usual one.
MAX_RECORD = 64 * 1024

_EDITS: TypeAdapter[tuple[Edit, ...]] = TypeAdapter(tuple[Edit, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRecord:
    """An applied plan: its origin, the edits asked for, the changes of each document, and the revisions.

    `number` orders the plans of a user. `undoes` is the plan that this one takes back, None for an `edit`. `undone_by`
    is the plan that took this one back, None while it stands or stands again. `changes` lacks the documents whose log
    no longer reaches back to it.
    """

    plan_id: str
    number: int
    kind: PlanKind
    origin: Origin
    edits: tuple[Edit, ...]
    changes: Mapping[str, tuple[Change, ...]]
    revisions: Mapping[str, int]
    undoes: str | None = None
    undone_by: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEntry:
    """One revision of one document: what led to it from the one before."""

    plan_id: str
    number: int
    revision: int
    recorded: JsonValue
    undoes: str | None
    overwritten: JsonValue
    form_before: str | None

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes, parsed at each access."""
        return load_changes(self.recorded)

    def before(self, document: Document) -> Document:
        """Return *document*, which is of this revision, as it was one revision earlier."""
        form = document.form if self.form_before is None else self.form_before
        former = cast(
            "Body",
            apply_changes(
                unstamp(document.body, self.overwritten), inverse(self.changes)
            ),
        )
        return replace(
            document, revision=self.revision - 1, body=former, form=form, size=None
        )


def entry_json(applied: AppliedPlan, step: Step) -> bytes:
    """Return the log entry of *step*, one of *applied*, as the script COMMIT takes it: without its first brace.

    Raises:
        InvalidInput: it holds a value that JSON cannot hold.
    """
    changes = dump_changes(step.changes)
    entry: Body = {
        "plan": applied.plan.plan_id,
        "revision": step.after.revision,
        "changes": changes,
        "stamp": step.overwritten,
    }
    if applied.undoes is not None:
        entry["undoes"] = applied.undoes
    if step.before.form != step.after.form:
        entry["form"] = step.before.form
    return json_bytes(entry)[1:]


def read_entry(raw: bytes) -> LogEntry:
    """Read a log entry as it is stored."""
    entry = from_json(raw)
    return LogEntry(
        plan_id=entry["plan"],
        number=entry["number"],
        revision=entry["revision"],
        recorded=entry["changes"],
        undoes=entry.get("undoes"),
        overwritten=entry["stamp"],
        form_before=entry.get("form"),
    )


def record_json(applied: AppliedPlan) -> bytes:
    """Return the record of *applied*, as the script COMMIT takes it: without its first brace.

    What a finder and an editor said is left out where it is more than `MAX_RECORD`, and the record says so.

    Raises:
        InvalidInput: it holds a value that JSON cannot hold.
    """
    plan = applied.plan
    record = _record(applied, plan.origin)
    if len(record) > MAX_RECORD:
        named = {
            "finder": _without_output(plan.origin.finder),
            "editor": _without_output(plan.origin.editor),
        }
        record = _record(applied, plan.origin.model_copy(update=named))
    return record


def _record(applied: AppliedPlan, origin: Origin) -> bytes:
    record = {
        "kind": applied.kind,
        "undoes": applied.undoes,
        "revisions": applied.revisions,
        "origin": origin.model_dump(mode="json"),
        "edits": [edit.model_dump(mode="json") for edit in applied.plan.edits],
    }
    return json_bytes(record)[1:]


def _without_output(said: JsonValue) -> JsonValue:
    """Return the model of *said*, and that the rest was too long to keep."""
    if not isinstance(said, dict):
        return None
    return {name: said[name] for name in ("model", "temperature") if name in said} | {
        "omitted": True
    }


def read_record(plan_id: str, raw: bytes, undone_by: str | None) -> PlanRecord:
    """Read a record as it is stored; its changes are in the logs."""
    record = from_json(raw)
    return PlanRecord(
        plan_id=plan_id,
        number=record["number"],
        kind=record["kind"],
        origin=Origin.model_validate(record["origin"]),
        edits=_EDITS.validate_python(record["edits"]),
        changes={},
        revisions=record["revisions"],
        undoes=record["undoes"],
        undone_by=undone_by,
    )


def json_bytes(value: object) -> bytes:
    """Return *value* as compact JSON, names in their order and numbers as they are spelled.

    Raises:
        InvalidInput: it holds a value that JSON cannot hold, or half of a surrogate pair.
    """
    try:
        return to_json(value, inf_nan_mode="constants")
    except (PydanticSerializationError, ValueError) as error:
        raise InvalidInput(
            f"a document contains a value that is not valid JSON: {error}; send texts, "
            "numbers, lists and objects"
        ) from error


def rewind(document: Document, log: Sequence[LogEntry], revision: int) -> Document:
    """Return *document* as it was at *revision*, by its *log*, oldest entry first.

    Raises:
        InvalidInput: there is no such revision, or the log no longer reaches back to it.
    """
    oldest = document.revision - len(log)
    if not oldest <= revision <= document.revision:
        what = (
            "is older than its history"
            if 0 <= revision < oldest
            else "was never reached"
        )
        raise InvalidInput(
            f"revision {revision} of {document.resource_id!r} {what}, which goes from {oldest} to {document.revision}; "
            "name one of those"
        )
    for entry in reversed(log):
        if document.revision == revision:
            break
        document = entry.before(document)
    return document


def whole_records(
    records: Iterable[PlanRecord], entries: Mapping[tuple[str, str], LogEntry]
) -> tuple[PlanRecord, ...]:
    """Return *records*, newest first, with their changes out of *entries*, which are by plan id and resource id.

    A plan that was taken back by one that was taken back itself stands again, and says so.
    """
    whole: dict[str, PlanRecord] = {}
    for record in records:
        changes = {
            resource_id: entries[record.plan_id, resource_id].changes
            for resource_id in record.revisions
            if (record.plan_id, resource_id) in entries
        }
        taker = whole.get(record.undone_by or "")
        undone_by = (
            None
            if taker is not None and taker.undone_by is not None
            else record.undone_by
        )
        whole[record.plan_id] = replace(record, changes=changes, undone_by=undone_by)
    return tuple(whole.values())
