"""The routes of a user's documents: reading them, their history, and undoing an edit."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal

from fastapi import APIRouter, Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.responses import Response

from tasklore.contracts.identifiers import NAME_PATTERN
from tasklore.memory.documents.edits import Change
from tasklore.memory.documents.paths import ABSENT
from tasklore.memory.documents.plans import Document, resource_of
from tasklore.memory.documents.storage.history import PlanRecord, json_bytes
from tasklore.memory.documents.storage.reader import DocumentReader
from tasklore.memory.documents.storage.writer import KEEP_REVISIONS
from tasklore.memory.rendering.documents import render
from tasklore.supervisor.http.memory.items import add_items, add_rest
from tasklore.supervisor.http.memory.search import add_block, add_search, add_turns
from tasklore.supervisor.http.memory.tasks import (
    LATER,
    AskedBy,
    By,
    MemoryTask,
    ReadBy,
    Started,
    carry_out,
)
from tasklore.supervisor.http.parts import ApiParts
from tasklore.supervisor.http.problems import answers
from tasklore.supervisor.http.requests.routes import IdempotencyKey
from tasklore.supervisor.operations.forms import Form, View
from tasklore.supervisor.operations.refusals import not_found

#: Tokens of a rendered document: all of it, as one holds at most a few thousand items.
_WHOLE = 1_000_000


Resource = Annotated[
    str,
    Path(
        pattern=NAME_PATTERN,
        description="A document, as `GET /v1/memory/{user}` lists them.",
    ),
]
Before = Annotated[
    int | None,
    Query(ge=1, le=2**53, description="Plans before this number: `next` of a page."),
]
Limit = Annotated[int, Query(ge=1, le=100, description="Plans of a page.")]


class Listed(View):
    """One document: `revision` counts its edits, 0 is the empty one that everybody begins with."""

    resource: str
    revision: int
    tags: tuple[str, ...] = ()


class Listing(View):
    """The documents of one user, all as they were at one moment."""

    user: str
    documents: tuple[Listed, ...]


class MemoryDocument(BaseModel):
    """A document as it is stored; its other fields depend on its kind."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    metadata: dict[str, JsonValue] = Field(default_factory=dict, alias="_metadata")


class Changed(View):
    """The change of an edit at one place; `had` and `has` tell an absent value from null."""

    path: str
    had: bool
    before: JsonValue = None
    has: bool
    after: JsonValue = None


class PlanTold(View):
    """One plan of edits: its author, reason and evidence, and its changes by document.

    `undoes` is the plan that it takes back; `undone_by` is the one that took it back, null while it stands.
    """

    plan_id: str
    number: int
    kind: Literal["edit", "undo", "redo"]
    at: datetime
    by: str
    reasoning: str
    fact: str
    evidence: str
    undoes: str | None
    undone_by: str | None
    revisions: dict[str, int]
    changes: dict[str, tuple[Changed, ...]]


class PlanPage(View):
    """Plans, the newest first; `next` is the `before` of the next page, null at the end."""

    plans: tuple[PlanTold, ...]
    next: int | None


class Undo(Form):
    """The edit to take back: a `plan_id` of the history."""

    model_config: ClassVar[ConfigDict] = ConfigDict(strict=True)

    plan_id: Annotated[str, Field(min_length=1, max_length=128)]
    wait_seconds: Annotated[float, Field(ge=0, le=300)] = 30.0


class Undone(Started):
    """The result of an undo: `plan_id` took `undoes` back and led to `revisions`."""

    plan_id: str | None = None
    undoes: str | None = None
    revisions: dict[str, int] = Field(default_factory=dict)


def routes(parts: ApiParts) -> APIRouter:
    """Return the routes below `/v1/memory`."""
    router = APIRouter(prefix="/v1/memory", tags=["memory"])
    reader = DocumentReader(parts.redis, parts.kinds)
    add_search(router, parts, reader)
    add_block(router, parts, reader)
    add_turns(router, parts)
    add_items(router, parts, reader)
    add_rest(router, parts)
    _add_reading(router, parts, reader)
    _add_history(router, reader)
    _add_undo(router, parts, reader)
    return router


def _add_reading(router: APIRouter, parts: ApiParts, reader: DocumentReader) -> None:
    @router.get(
        "/{user}",
        operation_id="memory_list",
        summary="List the documents of a user",
        responses=answers(),
    )
    async def documents(user: ReadBy) -> Listing:
        found = (await reader.snapshot(user)).documents.values()
        kinds = {one.resource_id: parts.kinds.get(one.resource_id) for one in found}
        tags = {
            name: tuple(kind.tags) if kind is not None else ()
            for name, kind in kinds.items()
        }
        listed = [
            Listed(
                resource=one.resource_id,
                revision=one.revision,
                tags=tags[one.resource_id],
            )
            for one in found
        ]
        return Listing(user=user, documents=tuple(listed))

    @router.get(
        "/{user}/documents/{resource}",
        operation_id="memory_show",
        summary="Read a document",
        response_class=Response,
        responses={
            200: {
                "description": "The document; `ETag` begins with its revision.",
                "model": MemoryDocument,
                "content": {"text/markdown": {"schema": {"type": "string"}}},
                "headers": {"ETag": {"schema": {"type": "string"}}},
            },
            304: {"description": "It is still the one that `If-None-Match` names."},
            **answers(404),
        },
    )
    async def document(
        user: ReadBy,
        resource: Resource,
        form: Annotated[
            Literal["json", "markdown"],
            Query(alias="format", description="Markdown is for prompts."),
        ] = ("json"),
        if_none_match: Annotated[
            str | None,
            Header(description="An `ETag`: 304 while the document is still that one."),
        ] = None,
    ) -> Response:
        found = _demand_document(
            (await reader.snapshot(user, [resource])).documents, resource
        )
        if form == "markdown":
            # It changes with the day, too: what has expired is left out.
            today = datetime.now(UTC).date()
            text = render(
                {found.resource_id: found.body},
                parts.kinds,
                today=today,
                budget_tokens=_WHOLE,
            ).text
            return Response(
                text, media_type="text/markdown", headers={"Cache-Control": "no-store"}
            )
        # The birth tells a document from an earlier one of its name that was forgotten.
        etag = f'"{found.revision}-{found.born}"' if found.revision else '"0"'
        headers = {"ETag": etag, "Cache-Control": "private, no-cache"}
        if if_none_match is not None and etag in (
            one.strip() for one in if_none_match.split(",")
        ):
            return Response(status_code=304, headers=headers)
        return Response(
            json_bytes(found.body), media_type="application/json", headers=headers
        )


def _add_history(router: APIRouter, reader: DocumentReader) -> None:
    @router.get(
        "/{user}/history",
        operation_id="memory_history",
        summary="List the edits of a user's documents",
        responses=answers(),
    )
    async def history(
        user: ReadBy, before: Before = None, limit: Limit = 20
    ) -> PlanPage:
        return await _read_page(
            reader, user=user, resource=None, before=before, limit=limit
        )

    @router.get(
        "/{user}/documents/{resource}/history",
        operation_id="memory_document_history",
        summary="List the edits of a document",
        responses=answers(404),
    )
    async def history_of_one(
        user: ReadBy, resource: Resource, before: Before = None, limit: Limit = 20
    ) -> PlanPage:
        found = _demand_document(
            (await reader.snapshot(user, [resource])).documents, resource
        )
        return await _read_page(
            reader, user=user, resource=found.resource_id, before=before, limit=limit
        )


def _add_undo(router: APIRouter, parts: ApiParts, reader: DocumentReader) -> None:
    async def take_back(
        user: str, resource: str | None, body: Undo, caller: By, chosen: str | None
    ) -> Response:
        known = {
            record.plan_id
            for record in await reader.history(user, resource, KEEP_REVISIONS)
        }
        if body.plan_id not in known:
            raise not_found(
                f"there is no plan {body.plan_id!r} in this history; GET .../history lists those there are"
            )
        task = MemoryTask("undo", {"plan_id": body.plan_id}, user, chosen)
        return await carry_out(
            Undone, parts=parts, caller=caller, task=task, wait_s=body.wait_seconds
        )

    @router.post(
        "/{user}/undo",
        operation_id="memory_undo",
        summary="Take an edit back",
        response_model=Undone,
        responses={**LATER, **answers(404)},
    )
    async def undo(
        user: AskedBy, body: Undo, caller: By, idempotency_key: IdempotencyKey = None
    ) -> Response:
        return await take_back(
            user, resource=None, body=body, caller=caller, chosen=idempotency_key
        )

    @router.post(
        "/{user}/documents/{resource}/undo",
        operation_id="memory_document_undo",
        summary="Take an edit of a document back, in every document that it touched",
        response_model=Undone,
        responses={**LATER, **answers(404)},
    )
    async def undo_in_one(
        user: AskedBy,
        resource: Resource,
        body: Undo,
        caller: By,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        return await take_back(
            user,
            resource=resource_of(resource),
            body=body,
            caller=caller,
            chosen=idempotency_key,
        )


def _demand_document(documents: Mapping[str, Document], resource: str) -> Document:
    found = documents.get(resource_of(resource))
    if found is None:
        raise not_found(
            f"there is no document {resource!r}; GET /v1/memory/{{user}} lists those there are"
        )
    return found


async def _read_page(
    reader: DocumentReader,
    user: str,
    resource: str | None,
    before: int | None,
    limit: int,
) -> PlanPage:
    """Return up to *limit* plans before the number *before*, None for the newest; of *resource* alone when given.

    Whatever is edited meanwhile, going on with `next` shows every plan once.
    """
    # One more tells whether there is another page.
    count = limit + 1
    records = await reader.history(user, resource, count)
    if before is not None and records:
        # Numbers grow by one with each plan of the user, so that at most so many are newer.
        newer = max(0, records[0].number - before + 1)
        records = await reader.history(user, resource, newer + count)
        records = tuple(record for record in records if record.number < before)
    shown = records[:limit]
    return PlanPage(
        plans=tuple(map(_view_plan, shown)),
        next=shown[-1].number if len(records) > limit else None,
    )


def _view_plan(record: PlanRecord) -> PlanTold:
    origin = record.origin
    return PlanTold(
        plan_id=record.plan_id,
        number=record.number,
        kind=record.kind,
        at=origin.at,
        by=origin.by,
        reasoning=origin.reasoning,
        fact=origin.fact_text,
        evidence=origin.evidence,
        undoes=record.undoes,
        undone_by=record.undone_by,
        revisions=dict(record.revisions),
        changes={
            name: tuple(map(_view_change, changes))
            for name, changes in record.changes.items()
        },
    )


def _view_change(change: Change) -> Changed:
    had = change.before is not ABSENT
    has = change.after is not ABSENT
    before = change.before if had else None
    after = change.after if has else None
    return Changed(path=str(change.path), had=had, before=before, has=has, after=after)
