"""Documents of a memory: their entries now or on a day, each as it is stored, a difference, and all as files."""

from collections.abc import AsyncIterator, Iterator, Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field, JsonValue, RootModel

from tasklore.contracts.callers import Caller
from tasklore.memory.documents.change_lines import body_lines, value_line
from tasklore.memory.documents.decay import confidence_now
from tasklore.memory.documents.differences import differences
from tasklore.memory.documents.files import json_files
from tasklore.memory.documents.items import METADATA, Item, leaf_values
from tasklore.memory.documents.plans import Document
from tasklore.memory.documents.storage.writer import KEEP_REVISIONS
from tasklore.memory.rendering.documents import render
from tasklore.supervisor.operations.forms import Tagged, Text, View
from tasklore.supervisor.operations.memory.plans import (
    Changed,
    ShownChange,
    show_change,
    view_change,
)
from tasklore.supervisor.operations.memory.services import (
    DocumentWord,
    MemoryLooks,
    OneDocument,
    Owner,
    OwnerScope,
    demand_owner,
    find_resource,
    find_resources,
    read_documents,
)
from tasklore.supervisor.operations.refusals import Fault, unusable
from tasklore.supervisor.operations.table import Operations, Shows, operation

#: Tokens of a rendered document: all of it, as one holds at most a few thousand items.
_WHOLE = 1_000_000
_MARKDOWN = "text/markdown"
#: Digits of a revision, of which there are fewer than of a date without its dashes.
_LONGEST_REVISION = 7

Form = Annotated[
    Literal["json", "markdown"],
    Field(alias="format", description="Markdown is for prompts."),
]
Revision = Annotated[int | None, Field(ge=0, le=2**53)]


class Listed(View):
    """One document: `revision` counts its edits, 0 is the empty one that everybody begins with."""

    resource: str
    revision: int
    tags: tuple[str, ...] = ()


class Listing(View):
    """The documents of one user, all as they were at one moment."""

    user: str
    documents: tuple[Listed, ...]


class ShownEntry(View):
    """One entry for people: its place, its text, and what else is known of it, such as its subject and its days."""

    path: str
    text: str
    notes: tuple[str, ...]


class ShownDocument(View):
    """One document as it is stored, and its entries for people."""

    resource: str
    revision: int
    entries: tuple[ShownEntry, ...]
    body: dict[str, JsonValue]


class ShownMemory(View):
    """The documents of one memory as they were at one moment."""

    user: str
    documents: tuple[ShownDocument, ...]


class MemoryDocument(RootModel[dict[str, JsonValue]]):
    """A document as it is stored; `_metadata` is about itself, its other fields depend on its kind."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)


class Difference(View):
    """The changes from one revision of a document to another, metadata left out; `lines` are for people."""

    user: str
    resource: str
    since: int
    until: int
    changes: tuple[Changed, ...]
    lines: tuple[ShownChange, ...]


class MemoryFile(View):
    """A document as a file: an imported one comes back to the byte while nothing edits it."""

    resource: str
    revision: int
    content: str


@operation(
    "memory",
    "list",
    "GET /v1/memory/{user}",
    roles=("read",),
    shows=Shows(
        rows="documents",
        columns=("resource", "revision", "tags"),
        example="memory list ana",
    ),
)
async def list_documents(
    services: MemoryLooks, caller: Caller, user: Owner, *, scope: OwnerScope = "user"
) -> Listing:
    """List the documents of a memory."""
    owner = demand_owner(caller, user, scope)
    found = (await read_documents(services, owner)).values()
    kinds = {one.resource_id: services.kinds.get(one.resource_id) for one in found}
    tags = {
        name: tuple(kind.tags) if kind is not None else ()
        for name, kind in kinds.items()
    }
    listed = [
        Listed(
            resource=one.resource_id, revision=one.revision, tags=tags[one.resource_id]
        )
        for one in found
    ]
    return Listing(user=owner, documents=tuple(listed))


@operation(
    "memory",
    "show",
    "GET /v1/memory/{user}/documents",
    roles=("read",),
    problems=(404,),
    shows=Shows(picture="memory_documents", example="memory show ana --resource food"),
)
async def show_memory(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    *,
    scope: OwnerScope = "user",
    resource: OneDocument = None,
    at: Annotated[
        str | None,
        Field(
            max_length=32,
            description="As it was on that day, such as 2026-05-01; or, with `resource`, a revision.",
        ),
    ] = None,
    form: Form = "json",
) -> ShownMemory | Text:
    """Show the documents of a memory, entry by entry."""
    owner = demand_owner(caller, user, scope)
    moment = _read_moment(at, resource)
    found = await read_documents(services, owner)
    wanted = find_resources(resource, services.kinds, found)
    documents = await _documents_at(services, owner, found, wanted, moment=moment)
    today = moment if isinstance(moment, date) else datetime.now(UTC).date()
    if form == "markdown":
        bodies = {one.resource_id: one.body for one in documents}
        text = render(bodies, services.kinds, today=today).text
        return Text(text=text, media_type=_MARKDOWN)
    shown = tuple(_show_document(one, today) for one in documents)
    return ShownMemory(user=owner, documents=shown)


@operation(
    "memory",
    "document",
    "GET /v1/memory/{user}/documents/{resource}",
    roles=("read",),
    problems=(404,),
    shows=Shows(example="memory document ana food --format markdown"),
)
async def read_document(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    resource: DocumentWord,
    *,
    scope: OwnerScope = "user",
    form: Form = "json",
) -> Tagged[MemoryDocument] | Text:
    """Read a document as it is stored; its `ETag` begins with its revision."""
    owner = demand_owner(caller, user, scope)
    found = await _demand_document(services, owner, resource)
    if form == "markdown":
        # It changes with the day, too: what has expired is left out.
        today = datetime.now(UTC).date()
        bodies = {found.resource_id: found.body}
        text = render(bodies, services.kinds, today=today, budget_tokens=_WHOLE).text
        return Text(text=text, media_type=_MARKDOWN)
    # The birth tells a document from an earlier one of its name that was forgotten.
    etag = f'"{found.revision}-{found.born}"' if found.revision else '"0"'
    return Tagged(view=MemoryDocument(found.body), etag=etag)


@operation(
    "memory",
    "diff",
    "GET /v1/memory/{user}/documents/{resource}/diff",
    roles=("read",),
    problems=(404,),
    shows=Shows(picture="memory_difference", example="memory diff ana food --from 3"),
)
async def show_difference(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    resource: DocumentWord,
    *,
    scope: OwnerScope = "user",
    since: Annotated[
        Revision, Field(alias="from", description="Default: the revision before.")
    ] = None,
    until: Annotated[
        Revision, Field(alias="to", description="Default: the current revision.")
    ] = None,
) -> Difference:
    """Show the changes between two revisions of a document."""
    owner = demand_owner(caller, user, scope)
    found = await _demand_document(services, owner, resource)
    last = found.revision if until is None else until
    first = max(0, last - 1) if since is None else since
    before, after = [
        await services.reader.at(owner, found.resource_id, revision)
        for revision in (first, last)
    ]
    changes = [
        view_change(change)
        for change in differences(before.body, after.body)
        if change.path.steps[0] != METADATA
    ]
    return Difference(
        user=owner,
        resource=found.resource_id,
        since=first,
        until=last,
        changes=tuple(changes),
        lines=tuple(map(show_change, body_lines(before.body, after.body))),
    )


@operation(
    "memory",
    "export",
    "GET /v1/memory/{user}/export",
    roles=("read",),
    problems=(404,),
    shows=Shows(example="memory export ana"),
)
async def export_files(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    *,
    scope: OwnerScope = "user",
    resource: OneDocument = None,
) -> AsyncIterator[MemoryFile]:
    """Return each document as a JSON file; documents that were never edited are omitted unless you name one."""
    owner = demand_owner(caller, user, scope)
    found = await read_documents(services, owner)
    wanted = find_resources(resource, services.kinds, found)

    async def files() -> AsyncIterator[MemoryFile]:
        for name in wanted:
            document = found[name]
            if document.revision or resource is not None:
                content = json_files.write(document.body, document.form)
                yield MemoryFile(
                    resource=name,
                    revision=document.revision,
                    content=content.decode(),
                )

    return files()


OPERATOR_OPERATIONS: Operations[MemoryLooks] = (
    list_documents,
    show_memory,
    read_document,
    show_difference,
    export_files,
)


def _read_moment(at: str | None, resource: str | None) -> int | date | None:
    """Return the revision or the day that *at* names.

    Raises:
        Refused: 422, it is neither, or a revision of which no document is named.
    """
    if at is None:
        return None
    if not at.isdecimal() or len(at) > _LONGEST_REVISION:
        try:
            return date.fromisoformat(at)
        except ValueError:
            complaint = f"{at!r} is neither a day, such as 2026-05-01, nor a revision"
            raise unusable([Fault(where="at", message=complaint)]) from None
    if resource is None:
        complaint = (
            "a revision needs `resource`: every document counts its own; or say a date"
        )
        raise unusable([Fault(where="at", message=complaint)])
    return int(at)


async def _documents_at(
    services: MemoryLooks,
    owner: str,
    found: Mapping[str, Document],
    wanted: tuple[str, ...],
    *,
    moment: int | date | None,
) -> list[Document]:
    """Return the *wanted* documents as they were at *moment*: a revision, the end of a day, or now."""
    if moment is None:
        return [found[name] for name in wanted]
    revisions = dict.fromkeys(wanted, 0)
    if isinstance(moment, int):
        revisions = dict.fromkeys(wanted, moment)
    else:
        for record in await services.reader.history(owner, None, KEEP_REVISIONS):
            for name, revision in record.revisions.items():
                if name in revisions and record.origin.at.date() <= moment:
                    revisions[name] = max(revisions[name], revision)
    return [
        await services.reader.at(owner, name, number)
        for name, number in revisions.items()
    ]


async def _demand_document(services: MemoryLooks, owner: str, word: str) -> Document:
    """Return the document of *owner* that *word* means.

    Raises:
        Refused: as `find_resource`.
    """
    documents = await read_documents(services, owner)
    return documents[find_resource(word, services.kinds, documents)]


def _show_document(document: Document, today: date) -> ShownDocument:
    entries = [
        ShownEntry(
            path=str(path), text=value_line(value), notes=tuple(_notes(value, today))
        )
        for path, value in leaf_values(document.body)
    ]
    body: dict[str, Any] = dict(document.body)
    return ShownDocument(
        resource=document.resource_id,
        revision=document.revision,
        entries=tuple(entries),
        body=body,
    )


def _notes(value: JsonValue, today: date) -> Iterator[str]:
    """Yield the facts of an item beside its text: its subject, its days, how sure it is."""
    item = Item.read(value)
    if item is None:
        return
    if item.subject:
        yield f"about {item.subject}"
    if item.since is not None:
        yield f"since {item.since.isoformat()}"
    ends = {
        "past": f"no longer since {item.until}",
        "paused": f"hidden until {item.paused_until}",
        "expired": "past its last day",
    }
    end = ends.get(item.state(today)) or (
        item.expiry and f"until {item.expiry.isoformat()}"
    )
    if end:
        yield end
    confidence = confidence_now(item, today)
    if confidence < 1:
        yield f"{confidence:.0%} sure"
    if item.is_inferred:
        yield "inferred"
    if "conflict" in item.others:
        yield "in conflict"
