"""What is remembered of a user: documents, how they came to be so, and taking an edit back."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, ClassVar, Literal

from fastapi import APIRouter, Depends, Header, Path, Query
from pydantic import BaseModel, ConfigDict, Field, JsonValue
from starlette.convertors import Convertor, register_url_convertor
from starlette.responses import Response

from contracts.identifiers import NAME_PATTERN
from memory.documents.plans import Document, resource_of
from memory.documents.storage.history import json_bytes
from memory.documents.storage.reader import DocumentReader
from memory.rendering.documents import render
from supervisor.http.admission.keys import Caller, allowed
from supervisor.http.memory.history import PlanPage, page_of
from supervisor.http.memory.items import add_items, add_rest
from supervisor.http.memory.owner import AskedBy, ReadBy
from supervisor.http.memory.search import add_search, add_turns
from supervisor.http.memory.tasks import LATER
from supervisor.http.memory.undo import Undo, Undone, undone
from supervisor.http.parts import Parts
from supervisor.http.problems import answers, not_found
from supervisor.http.replies import json_response
from supervisor.http.requests.routes import IdempotencyKey

#: Tokens of a rendered document: all of it, as one holds at most a few thousand items.
_WHOLE = 1_000_000


class _Document(Convertor[str]):
    """The part of a path that names a document, and nothing else that lies beside documents."""

    regex = r"(?!(?:history|undo|search|block|turns|items|waiting|settings)$)[^/]+"

    def convert(self, value: str) -> str:
        """Return it as it stands."""
        return value

    def to_string(self, value: str) -> str:
        """Return it as it stands."""
        return value


register_url_convertor("document", _Document())

Resource = Annotated[str, Path(pattern=NAME_PATTERN, description="A document, as `GET /v1/memory/{user}` lists them.")]
Before = Annotated[int | None, Query(ge=1, le=2**53, description="Plans before this number: `next` of a page.")]
Limit = Annotated[int, Query(ge=1, le=100, description="Plans of a page.")]

_ASKING = Depends(allowed("ask"))


class Listed(BaseModel):
    """One document: `revision` counts its edits, 0 is the empty one that everybody begins with."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    resource: str
    revision: int
    tags: tuple[str, ...] = ()


class Listing(BaseModel):
    """The documents of one user, all as they were at one moment."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    user: str
    documents: tuple[Listed, ...]


class MemoryDocument(BaseModel):
    """A document as it is stored; what it holds besides is up to its kind."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow")

    metadata: dict[str, JsonValue] = Field(default_factory=dict, alias="_metadata")


def routes(parts: Parts) -> APIRouter:
    """Return the routes below `/v1/memory`."""
    router = APIRouter(prefix="/v1/memory", tags=["memory"])
    reader = DocumentReader(parts.redis, parts.kinds)
    add_search(router, parts, reader)
    add_turns(router, parts)
    add_items(router, parts, reader)
    add_rest(router, parts)
    _add_reading(router, parts, reader)
    _add_history(router, reader)
    _add_undo(router, parts, reader)
    return router


def _add_reading(router: APIRouter, parts: Parts, reader: DocumentReader) -> None:
    @router.get("/{user}", summary="List the documents of a user", responses=answers())
    async def documents(user: ReadBy) -> Listing:
        found = (await reader.snapshot(user)).documents
        listed = [
            Listed(resource=one.resource_id, revision=one.revision, tags=_tags(parts, one)) for one in found.values()
        ]
        return Listing(user=user, documents=tuple(listed))

    @router.get(
        "/{user}/{resource:document}",
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
        form: Annotated[Literal["json", "markdown"], Query(alias="format", description="Markdown is for prompts.")] = (
            "json"
        ),
        if_none_match: Annotated[str | None, Header()] = None,
    ) -> Response:
        found = _found((await reader.snapshot(user, [resource])).documents, resource)
        if form == "markdown":
            # It changes with the day, too: what has expired is left out.
            today = datetime.now(UTC).date()
            text = render({found.resource_id: found.body}, parts.kinds, today=today, budget_tokens=_WHOLE).text
            return Response(text, media_type="text/markdown", headers={"Cache-Control": "no-store"})
        headers = {"ETag": _etag(found), "Cache-Control": "private, no-cache"}
        if if_none_match is not None and headers["ETag"] in (one.strip() for one in if_none_match.split(",")):
            return Response(status_code=304, headers=headers)
        return Response(json_bytes(found.body), media_type="application/json", headers=headers)


def _add_history(router: APIRouter, reader: DocumentReader) -> None:
    @router.get("/{user}/history", summary="List the edits of a user's documents", responses=answers())
    async def history(user: ReadBy, before: Before = None, limit: Limit = 20) -> PlanPage:
        return await page_of(reader, user, None, before, limit)

    @router.get("/{user}/{resource:document}/history", summary="List the edits of a document", responses=answers(404))
    async def history_of_one(
        user: ReadBy,
        resource: Resource,
        before: Before = None,
        limit: Limit = 20,
    ) -> PlanPage:
        found = _found((await reader.snapshot(user, [resource])).documents, resource)
        return await page_of(reader, user, found.resource_id, before, limit)


def _add_undo(router: APIRouter, parts: Parts, reader: DocumentReader) -> None:
    @router.post(
        "/{user}/undo", summary="Take an edit back", response_model=Undone, responses={**LATER, **answers(404)}
    )
    async def undo(
        user: AskedBy, body: Undo, caller: Annotated[Caller, _ASKING], idempotency_key: IdempotencyKey = None
    ) -> Response:
        return _told(await undone(parts, caller, reader, user, None, body, idempotency_key))

    @router.post(
        "/{user}/{resource:document}/undo",
        summary="Take an edit of a document back, in every document that it touched",
        response_model=Undone,
        responses={**LATER, **answers(404)},
    )
    async def undo_in_one(
        user: AskedBy,
        resource: Resource,
        body: Undo,
        caller: Annotated[Caller, _ASKING],
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        return _told(await undone(parts, caller, reader, user, resource_of(resource), body, idempotency_key))


def _told(came: Undone) -> Response:
    return json_response(came, f"/v1/tasks/{came.task_id}", is_done=came.state == "done")


def _found(documents: Mapping[str, Document], resource: str) -> Document:
    found = documents.get(resource_of(resource))
    if found is None:
        raise not_found(f"there is no document {resource!r}; GET /v1/memory/{{user}} lists those there are")
    return found


def _etag(document: Document) -> str:
    """Return what tells one state of a document from another, also when it was forgotten and made again."""
    return f'"{document.revision}-{document.born}"' if document.revision else '"0"'


def _tags(parts: Parts, document: Document) -> tuple[str, ...]:
    kind = parts.kinds.get(document.resource_id)
    return tuple(kind.tags) if kind is not None else ()
