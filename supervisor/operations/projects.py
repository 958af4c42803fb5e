"""Projects: note decisions and standards, find them and the history of runs again, export and import them."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue

from tasklore.contracts.callers import Caller
from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.memory.projects.lines import as_document, read_record
from tasklore.memory.projects.project import Kind, ProjectInfo, ProjectMemory, Record
from tasklore.memory.projects.records import RefusedRecord
from tasklore.memory.projects.words import words_of
from tasklore.memory.times import EPOCH, MILLISECOND
from tasklore.supervisor.operations.dependencies import (
    OperatorDependencies,
    SupervisorDependencies,
)
from tasklore.supervisor.operations.forms import Form, Lines, View, When, moment_of
from tasklore.supervisor.operations.idempotency import IdempotencyKey
from tasklore.supervisor.operations.noun import NounDeclaration, serve
from tasklore.supervisor.operations.refusals import Fault, Refused, not_found, unusable
from tasklore.supervisor.operations.table import Shows, operation

#: Seconds for one look: a person waits, and an answer late is better than none.
_DEADLINE_S = 5.0
#: Projects that a refusal names.
_MOST_LISTED = 8
#: An `after` of records is the id of the last one.
_RECORD_ID = r"^([dsh][1-9][0-9]{0,14})?$"
_COLUMNS = ("record_id", "at", "by", "tags", "superseded_by", "text")

ProjectId = Annotated[
    str,
    Field(
        pattern=NAME_PATTERN,
        description="Which project.",
        json_schema_extra={"x-cli": {"metavar": "PROJECT"}},
    ),
]
RecordId = Annotated[
    str,
    Field(
        max_length=64,
        description="A record: d17, s3 or h42.",
        json_schema_extra={"x-cli": {"metavar": "RECORD"}},
    ),
]
Tags = Annotated[
    tuple[str, ...],
    Field(
        max_length=100,
        description="Only with this tag; case-insensitive.",
        json_schema_extra={"x-cli": {"option": "--tag", "metavar": "TAG"}},
    ),
]
Since = Annotated[
    When | None,
    Field(description="Only from then on: 2h or 7d ago, or 2026-11-21T10:00:00Z."),
]
Until = Annotated[
    When | None, Field(description="Only before then, in the same format.")
]
After = Annotated[
    str,
    Field(
        pattern=_RECORD_ID,
        description="Pagination cursor: the `after` of the previous page.",
    ),
]
Limit = Annotated[int, Field(ge=1, le=200, description="Maximum number.")]


@dataclass(frozen=True, kw_only=True)
class ProjectServices:
    """The store of the operations of projects."""

    memory: ProjectMemory


class ProjectView(View):
    """A project: how many decisions, standards and notes of runs it has, and the time of the newest."""

    project_id: str
    decisions: int
    standards: int
    history: int
    last_at: datetime


class ProjectPage(View):
    """A page of projects; `after` leads to the next one, None at the end."""

    projects: tuple[ProjectView, ...]
    after: str | None


def _mend_text(data: object) -> object:
    """Return JSON with U+FFFD for each half of a surrogate pair, which an agent may have left in its data."""
    text = json.dumps(data, ensure_ascii=False).encode("utf-16", "surrogatepass")
    return json.loads(text.decode("utf-16", "replace"))


class ProjectRecord(View):
    """A record of a project; `superseded_by` is None while it is in force.

    `redacted_at` is the time at which its author was forgotten, and with that its words, None for one that stands.
    """

    record_id: str
    kind: Kind
    text: str
    tags: tuple[str, ...]
    at: datetime
    by: str | None
    supersedes: str | None
    superseded_by: str | None
    session_id: str | None
    data: Annotated[dict[str, JsonValue], BeforeValidator(_mend_text)]
    redacted_at: datetime | None


class ProjectRecordPage(View):
    """A page of records; `after` leads to the next one, None at the end."""

    records: tuple[ProjectRecord, ...]
    after: str | None


class NotedRecord(ProjectRecord):
    """A record that was noted; `is_new` says that its project began with it."""

    project_id: str
    is_new: bool


class ProjectRecordDetails(ProjectRecord):
    """A record with its `chain`: the records it superseded, itself, and those that superseded it, oldest first."""

    project_id: str
    chain: tuple[ProjectRecord, ...]


class NewProjectRecord(Form):
    """A decision or a standard of a project."""

    text: Annotated[
        str,
        Field(
            description="The text to record, at most 8,000 characters.",
            json_schema_extra={"x-cli": {"kind": "words"}},
        ),
    ]
    tags: Annotated[
        tuple[str, ...],
        Field(
            max_length=100,
            description="Tag to find it by; case-insensitive.",
            json_schema_extra={"x-cli": {"option": "--tag", "metavar": "TAG"}},
        ),
    ] = ()
    by: Annotated[
        str | None,
        Field(
            max_length=256,
            description="The user who says so; deleting that user's data deletes the "
            "text.",
            json_schema_extra={"x-cli": {"metavar": "USER"}},
        ),
    ] = None
    supersedes: Annotated[
        str | None,
        Field(
            max_length=64,
            description="The record that this one supersedes; it stays readable.",
            json_schema_extra={"x-cli": {"metavar": "RECORD"}},
        ),
    ] = None


class RefusedProjectRecord(View):
    """A record of a file that was not added, and why; a line that is none is named by its number."""

    record_id: str
    why: str


class ProjectRecordsImported(View):
    """What became of a file: how many records were added, how many were there already, and the refused ones."""

    project_id: str
    added: int
    known: int
    refused: tuple[RefusedProjectRecord, ...]


@operation(
    "projects",
    "list",
    "GET /v1/projects",
    roles=("read", "operate"),
    shows=Shows(
        rows="projects",
        columns=("project_id", "decisions", "standards", "history", "last_at"),
        example="projects list",
    ),
)
async def list_projects(
    services: ProjectServices,
    caller: Caller,
    *,
    after: Annotated[
        str,
        Field(
            pattern=r"^([0-9]{1,16}-[A-Za-z0-9_-]{1,64})?$",
            description="Pagination cursor: the `after` of the previous page.",
        ),
    ] = "",
    limit: Limit = 50,
) -> ProjectPage:
    """List the projects, the one with the newest record first."""
    caller.demand_unbound()
    last_ms, _, name = after.partition("-")
    found = [
        info
        for info in await services.memory.projects()
        if not name or (-info.last_ms, info.project_id) > (-int(last_ms), name)
    ]
    shown = found[:limit]
    has_more = len(found) > limit
    return ProjectPage(
        projects=tuple(map(_view_project, shown)),
        after=f"{shown[-1].last_ms}-{shown[-1].project_id}" if has_more else None,
    )


@operation(
    "projects",
    "decide",
    "POST /v1/projects/{project_id}/decisions",
    roles=("operate",),
    status=201,
    problems=(409,),
    shows=Shows(
        arguments=("text",),
        example=(
            'projects decide shop "Prices are kept in cents" --tag money --by ana\n'
            'projects decide shop "Prices are kept in tenths of a cent" --supersedes d1'
        ),
    ),
)
async def note_decision(
    services: ProjectServices,
    caller: Caller,
    project_id: ProjectId,
    new: NewProjectRecord,
    *,
    idempotency_key: IdempotencyKey = None,
) -> NotedRecord:
    """Record a decision; a project is created with its first record."""
    return await _note(
        services,
        caller,
        project_id,
        kind="decision",
        new=new,
        idempotency_key=idempotency_key,
    )


@operation(
    "projects",
    "standard",
    "POST /v1/projects/{project_id}/standards",
    roles=("operate",),
    status=201,
    problems=(409,),
    shows=Shows(
        arguments=("text",),
        example='projects standard shop "Functions have at most 50 lines" --tag size',
    ),
)
async def note_standard(
    services: ProjectServices,
    caller: Caller,
    project_id: ProjectId,
    new: NewProjectRecord,
    *,
    idempotency_key: IdempotencyKey = None,
) -> NotedRecord:
    """Record a standard.

    Pipelines and agents get it by its tags, as long as it is in force.
    """
    return await _note(
        services,
        caller,
        project_id,
        kind="standard",
        new=new,
        idempotency_key=idempotency_key,
    )


@operation(
    "projects",
    "history",
    "GET /v1/projects/{project_id}/history",
    roles=("read", "operate"),
    problems=(404,),
    shows=Shows(
        rows="records", columns=_COLUMNS, example="projects history shop --since 7d"
    ),
)
async def list_history(
    services: ProjectServices,
    caller: Caller,
    project_id: ProjectId,
    *,
    tags: Tags = (),
    since: Since = None,
    until: Until = None,
    after: After = "",
    limit: Limit = 20,
) -> ProjectRecordPage:
    """List the runs of a project, the newest first."""
    return await search_records.function(
        services,
        caller,
        project_id,
        kind="history",
        tags=tags,
        since=since,
        until=until,
        after=after,
        limit=limit,
    )


@operation(
    "projects",
    "search",
    "GET /v1/projects/{project_id}/records",
    roles=("read", "operate"),
    problems=(404,),
    shows=Shows(
        rows="records",
        columns=_COLUMNS,
        arguments=("text",),
        example=(
            "projects search shop cents price\n"
            "projects search shop --tag money --kind standard --in-force"
        ),
    ),
)
async def search_records(
    services: ProjectServices,
    caller: Caller,
    project_id: ProjectId,
    *,
    text: Annotated[
        str,
        Field(
            max_length=8_000,
            description="Words or their beginnings; a record must contain all of them.",
            json_schema_extra={"x-cli": {"kind": "words"}},
        ),
    ] = "",
    kind: Annotated[Kind | None, Field(description="Only these.")] = None,
    tags: Tags = (),
    since: Since = None,
    until: Until = None,
    in_force: Annotated[bool, Field(description="Exclude superseded records.")] = False,
    after: After = "",
    limit: Limit = 20,
) -> ProjectRecordPage:
    """Find records that fit every given condition, the newest first.

    Raises:
        Refused: 404, the project remembers nothing; 422, a condition can be none, or *after* is no record of it.
        InvalidInput: a condition can be none.
    """
    if text.strip() and not words_of(text):
        told = f"{text!r} has no word to look for; say a letter or a number of it"
        raise unusable([Fault(where="text", message=told)])
    caller.demand_unbound()
    memory = services.memory
    if after and await memory.read(project_id, after) is None:
        await _demand_known(memory, project_id)
        told = f"{after!r} is not a record of project {project_id!r}; use the `after` of the previous page"
        raise unusable([Fault(where="after", message=told)])
    now = datetime.now(UTC)
    found = await memory.search(
        project_id,
        kind=kind,
        tags=tags,
        text=text,
        in_force=in_force,
        since_ms=_milliseconds(moment_of(since, now)),
        until_ms=_milliseconds(moment_of(until, now)),
        before=after or None,
        limit=limit + 1,
    )
    if not found and not after:
        await _demand_known(memory, project_id)
    shown = found[:limit]
    return ProjectRecordPage(
        records=tuple(map(_view_record, shown)),
        after=shown[-1].record_id if len(found) > limit else None,
    )


@operation(
    "projects",
    "show",
    "GET /v1/projects/{project_id}/records/{record_id}",
    roles=("read", "operate"),
    problems=(404,),
    shows=Shows(picture="project_record", example="projects show shop d17"),
)
async def show_record(
    services: ProjectServices,
    caller: Caller,
    project_id: ProjectId,
    record_id: RecordId,
) -> ProjectRecordDetails:
    """Show a record with all its fields, the records it superseded, and those that superseded it.

    Raises:
        Refused: 404, there is none.
    """
    caller.demand_unbound()
    record = await services.memory.read(project_id, record_id)
    if record is None:
        await _demand_known(services.memory, project_id)
        raise not_found(
            f"project {project_id!r} has no record {record_id!r}; GET "
            f"/v1/projects/{project_id}/records lists them"
        )
    chain = await services.memory.chain(project_id, record_id)
    return ProjectRecordDetails.model_validate(
        as_document(record)
        | {"project_id": project_id, "chain": [as_document(one) for one in chain]}
    )


@operation(
    "projects",
    "export",
    "GET /v1/projects/{project_id}/export",
    roles=("read", "operate"),
    problems=(404,),
    shows=Shows(example="projects export shop > shop.jsonl"),
)
async def export_records(
    services: ProjectServices, caller: Caller, project_id: ProjectId
) -> AsyncIterator[ProjectRecord]:
    """Return all records as lines that `import` reads, the oldest first."""
    caller.demand_unbound()
    if not await services.memory.search(project_id, limit=1):
        await _demand_known(services.memory, project_id)
    return _view_all(services.memory, project_id)


@operation(
    "projects",
    "import",
    "POST /v1/projects/{project_id}/import",
    roles=("operate",),
    shows=Shows(picture="project_import", example="projects import shop shop.jsonl"),
)
async def import_records(
    services: ProjectServices, caller: Caller, project_id: ProjectId, lines: Lines
) -> ProjectRecordsImported:
    """Add the records of a file.

    Records keep their ids and times. Existing records stay as they are, so that an
    import can be repeated. A record whose id is taken by another one is refused, and so
    is a line that is not a valid record; the others are added.
    """
    caller.demand_unbound()
    records: list[Record] = []
    refused: list[RefusedRecord] = []
    for number, line in enumerate(lines.values, 1):
        try:
            records.append(read_record(line))
        except InvalidInput as error:
            refused.append(RefusedRecord(f"line {number}", str(error)))
    report = await services.memory.load(project_id, records)
    return ProjectRecordsImported(
        project_id=project_id,
        added=report.added,
        known=report.known,
        refused=tuple(
            RefusedProjectRecord.model_validate(one)
            for one in (*refused, *report.refused)
        ),
    )


OPERATIONS = (
    list_projects,
    note_decision,
    note_standard,
    list_history,
    search_records,
    show_record,
    export_records,
    import_records,
)


async def _note(
    services: ProjectServices,
    caller: Caller,
    project_id: str,
    *,
    kind: Kind,
    new: NewProjectRecord,
    idempotency_key: str | None,
) -> NotedRecord:
    """Append the record in *new*, once for an *idempotency_key*.

    Raises:
        InvalidInput: a field of it cannot be kept.
        Refused: 409, another one came under that key.
    """
    caller.demand_unbound()
    token = None if idempotency_key is None else f"key:{caller.space}:{idempotency_key}"
    is_new = not await services.memory.search(project_id, limit=1)
    record = await services.memory.append(
        project_id,
        kind,
        new.text,
        tags=new.tags,
        by=new.by,
        supersedes=new.supersedes,
        token=token,
    )
    # One whose author was forgotten since has no words to compare.
    told = (record.kind, record.text, record.supersedes)
    if record.redacted_ms is None and told != (kind, new.text, new.supersedes):
        detail = f"the Idempotency-Key {idempotency_key!r} was used with another record; use a new one for another"
        raise Refused(409, "other-body", detail)
    return NotedRecord.model_validate(
        as_document(record) | {"project_id": project_id, "is_new": is_new}
    )


async def _demand_known(memory: ProjectMemory, project_id: str) -> None:
    """Return when the project has a record.

    Raises:
        Refused: 404, it has none; the message names those that have.
    """
    known = [info.project_id for info in await memory.projects()]
    if project_id in known:
        return
    raise not_found(f"project {project_id!r} has no records; {_name_known(known)}")


def _name_known(known: Sequence[str]) -> str:
    if not known:
        return "there is no project yet: POST /v1/projects/{project_id}/decisions begins one"
    more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    verb = "is" if len(known) == 1 else "are"
    return f"there {verb} {', '.join(known[:_MOST_LISTED])}{more}"


def _milliseconds(moment: datetime | None) -> int | None:
    return None if moment is None else max(0, int(moment.timestamp() * 1000))


def _view_project(info: ProjectInfo) -> ProjectView:
    return ProjectView(
        project_id=info.project_id,
        decisions=info.decisions,
        standards=info.standards,
        history=info.history,
        last_at=EPOCH + info.last_ms * MILLISECOND,
    )


def _view_record(record: Record) -> ProjectRecord:
    return ProjectRecord.model_validate(as_document(record))


async def _view_all(
    memory: ProjectMemory, project_id: str
) -> AsyncIterator[ProjectRecord]:
    async for record in memory.export(project_id):
        yield _view_record(record)


def make_services(
    parts: SupervisorDependencies | OperatorDependencies,
) -> ProjectServices:
    """Return the services of operations of projects, in either process."""
    return ProjectServices(memory=ProjectMemory(parts.redis, deadline_s=_DEADLINE_S))


NOUN = NounDeclaration(
    operations=OPERATIONS,
    supervisor=serve(make_services, OPERATIONS),
    operator=serve(make_services, OPERATIONS),
)
