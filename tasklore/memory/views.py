"""`tasklore memory show`: what is remembered of a person."""

from collections.abc import Iterator
from datetime import UTC, date, datetime

from pydantic import JsonValue

from contracts.errors import InvalidInput
from memory.documents.decay import confidence_now
from memory.documents.items import Item, leaf_values
from memory.documents.plans import Document
from memory.documents.storage.writer import KEEP_REVISIONS
from memory.rendering.documents import render
from tasklore.memory.lines import value_line
from tasklore.memory.stores import UserMemory, meant_resource, user_memory
from tasklore.render.screen import print_json, printable, styled


async def print_documents(
    user: str, resource: str | None, *, at: int | date | None, as_prompt: bool, as_json: bool
) -> None:
    """Print the documents of *user*, as they were on the day *at*, or one of them as it was at that revision.

    Raises:
        InvalidInput: *user* names nobody, *resource* no document, or there is no such revision.
        Unreachable: Redis does not answer.
    """
    if isinstance(at, int) and resource is None:
        raise InvalidInput("--at with a revision needs --resource: every document counts its own; or say a date")
    async with user_memory() as memory:
        documents = await _documents(memory, user, resource, at)
        kinds = memory.kinds
    today = at if isinstance(at, date) else datetime.now(UTC).date()
    if as_json:
        print_json({document.resource_id: document.body for document in documents})
    elif as_prompt:
        rendered = render({one.resource_id: one.body for one in documents}, kinds, today=today)
        print(rendered.text or "Nothing is remembered.")
    elif resource is None and not any(document.revision for document in documents):
        print(f"Nothing is remembered of {printable(user)} yet; `tasklore memory tell` says something about a person.")
    else:
        for document in documents:
            _print_document(document, today)


async def _documents(memory: UserMemory, user: str, resource: str | None, at: int | date | None) -> list[Document]:
    documents = (await memory.documents.snapshot(user)).documents
    wanted = list(documents) if resource is None else [meant_resource(resource, memory.kinds, documents)]
    if at is None:
        return [documents[name] for name in wanted]
    revisions = dict.fromkeys(wanted, at) if isinstance(at, int) else await _revisions_on(memory, user, wanted, at)
    return [await memory.documents.at(user, name, revision) for name, revision in revisions.items()]


async def _revisions_on(memory: UserMemory, user: str, resources: list[str], day: date) -> dict[str, int]:
    """Return the revision that each of *resources* had at the end of *day*; 0 for what was not there yet."""
    revisions = dict.fromkeys(resources, 0)
    for record in await memory.documents.history(user, None, KEEP_REVISIONS):
        for name, revision in record.revisions.items():
            if name in revisions and record.origin.at.date() <= day:
                revisions[name] = max(revisions[name], revision)
    return revisions


def _print_document(document: Document, today: date) -> None:
    found = list(leaf_values(document.body))
    about = f"revision {document.revision}" if found else f"revision {document.revision}, holds nothing"
    print(f"{styled(document.resource_id, 'bold')}  {styled(about, 'dim')}")
    for path, value in found:
        notes = ", ".join(_notes(value, today))
        print(
            f"  {styled(printable(str(path)), 'dim')}: {value_line(value)}"
            + (f"  {styled(f'({notes})', 'yellow')}" if notes else "")
        )


def _notes(value: JsonValue, today: date) -> Iterator[str]:
    """Yield what is worth knowing of an item beside its text."""
    item = Item.read(value)
    if item is None:
        return
    if item.subject:
        yield f"about {item.subject}"
    if item.since is not None:
        yield f"since {item.since.isoformat()}"
    yield from _end_of(item, today)
    sure = confidence_now(item, today)
    if sure < 1:
        yield f"{sure:.0%} sure"
    if item.is_inferred:
        yield "inferred"
    if "conflict" in item.others:
        yield "in conflict"


def _end_of(item: Item, today: date) -> Iterator[str]:
    """Yield until when *item* holds, or that it does not."""
    state = item.state(today)
    if state == "past":
        yield f"no longer since {item.until}"
    elif state == "paused":
        yield f"hidden until {item.paused_until}"
    elif state == "expired":
        yield "past its last day"
    elif item.expiry is not None:
        yield f"until {item.expiry.isoformat()}"
