"""The routes of items: read, add, change and delete them; the waiting rows; and forgetting a whole memory.

A change is a task of the memory agent: under an `Idempotency-Key` it is done once, and its plan can be undone.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Path, Query
from pydantic import Field
from starlette.responses import Response

from tasklore.memory.documents.entries import Entry, entries_of
from tasklore.memory.documents.storage.reader import DocumentReader
from tasklore.memory.episodes.store import Episodes
from tasklore.memory.queues.queue import PersonalQueue
from tasklore.memory.queues.waiting_rows import rows_waiting
from tasklore.supervisor.http.admission.keys import Caller
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
from tasklore.supervisor.operations.refusals import Refused, not_found

State = Literal["current", "past", "paused", "planned", "expired"]
Reference = Annotated[
    str,
    Path(
        max_length=1_000,
        description="`reference` of an item, as a search or the list gives it.",
    ),
]
Text = Annotated[str, Field(min_length=1, max_length=2_000)]


class KeptItem(View):
    """One item; `added` is the day on which it was said, `state` its state today."""

    reference: str
    category: str
    text: str
    subject: str | None = None
    added: date | None = None
    since: date | None = None
    until: date | None = None
    paused_until: date | None = None
    state: State = "current"


class Items(View):
    """The items of one memory."""

    user: str
    items: tuple[KeptItem, ...]


class _ItemChange(Form):
    """The fields of every change: its subject, its time, and how long the answer may take."""

    subject: Annotated[str, Field(max_length=200)] = ""
    since: date | None = None
    until: date | None = None
    wait_seconds: Annotated[float, Field(ge=0, le=300)] = 30.0


class NewItem(_ItemChange):
    """An item to add; its `category` is the path of a list, as `food.likes`."""

    category: Annotated[str, Field(min_length=1, max_length=200)]
    value: Text


class ChangedItem(_ItemChange):
    """The new values of an item; fields that are left out stay."""

    value: Annotated[str, Field(max_length=2_000)] = ""


class ItemChanged(Started):
    """The result of a change: the plan, by which it can be undone, and the revision of each document it led to."""

    plan_id: str | None = None
    revisions: dict[str, int] = Field(default_factory=dict)


class Waiting(View):
    """A turn or a fact that is not learned yet, or could not be, with the reason and the cure."""

    kind: Literal["turn", "fact"]
    row_id: str
    state: str
    reason: str
    cure: str
    attempts: int


class WaitingRows(View):
    """The waiting rows of one memory, turns first."""

    user: str
    rows: tuple[Waiting, ...]


class KeptTurns(Form):
    """Whether turns are kept word for word, and for how many days; null leaves that to the deployment."""

    is_on: bool = True
    days: Annotated[int | None, Field(ge=1, le=36_500)] = None


class Settled(Started):
    """The settings from now on."""

    is_on: bool = True
    days: int | None = None


class ForgottenMemory(Started):
    """The numbers of removed and remaining records, by kind; `elsewhere` says where more may lie out of reach."""

    removed: dict[str, int] = Field(default_factory=dict)
    left: dict[str, int] = Field(default_factory=dict)
    elsewhere: str = ""


def add_items(router: APIRouter, parts: ApiParts, reader: DocumentReader) -> None:
    """Add the routes of items to *router*."""

    @router.get(
        "/{user}/items",
        operation_id="memory_items",
        summary="List what is remembered, item by item",
        responses=answers(),
    )
    async def items(
        user: ReadBy,
        category: Annotated[
            str, Query(max_length=200, description="Of this path, or below it.")
        ] = "",
        state: Annotated[
            State | None, Query(description="As it stands today; all, when left out.")
        ] = None,
    ) -> Items:
        prefix = f"{category}." if category else ""
        found = [
            item
            for item in map(_view_item, await _read_entries(parts, reader, user))
            if state in (None, item.state) and f"{item.category}.".startswith(prefix)
        ]
        return Items(user=user, items=tuple(found))

    @router.post(
        "/{user}/items",
        operation_id="memory_add_item",
        summary="Add an item",
        response_model=ItemChanged,
        responses=LATER,
    )
    async def add(
        user: AskedBy, body: NewItem, caller: By, idempotency_key: IdempotencyKey = None
    ) -> Response:
        return await _change_item(
            parts,
            caller=caller,
            owner=user,
            operation={"operation": "add"},
            body=body,
            chosen=idempotency_key,
        )

    @router.patch(
        "/{user}/items/{reference}",
        operation_id="memory_change_item",
        summary="Change an item in its place",
        response_model=ItemChanged,
        responses={**LATER, **answers(404)},
    )
    async def change(
        user: AskedBy,
        reference: Reference,
        body: ChangedItem,
        caller: By,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        _demand_item(await _read_entries(parts, reader, user), reference)
        operation = {"operation": "change", "reference": reference}
        return await _change_item(
            parts,
            caller=caller,
            owner=user,
            operation=operation,
            body=body,
            chosen=idempotency_key,
        )

    @router.delete(
        "/{user}/items/{reference}",
        operation_id="memory_delete_item",
        summary="Delete an item",
        response_model=ItemChanged,
        responses={**LATER, **answers(404)},
    )
    async def delete(
        user: AskedBy,
        reference: Reference,
        caller: By,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        _demand_item(await _read_entries(parts, reader, user), reference)
        operation = {"operation": "delete", "reference": reference}
        return await _change_item(
            parts,
            caller=caller,
            owner=user,
            operation=operation,
            body=_ItemChange(),
            chosen=idempotency_key,
        )


def add_rest(router: APIRouter, parts: ApiParts) -> None:
    """Add the routes of waiting rows, settings and forgetting to *router*."""
    turns = PersonalQueue(parts.redis, "turns")
    facts = PersonalQueue(parts.redis, "facts")

    @router.get(
        "/{user}/waiting",
        operation_id="memory_waiting",
        summary="List what is not learned yet, and why",
        responses=answers(),
    )
    async def waiting(user: ReadBy) -> WaitingRows:
        found = await rows_waiting(user, turns, facts)
        return WaitingRows(user=user, rows=tuple(map(Waiting.model_validate, found)))

    @router.get(
        "/{user}/settings",
        operation_id="memory_settings",
        summary="See whether turns are kept",
        responses=answers(),
    )
    async def settings(user: ReadBy) -> KeptTurns:
        is_on, days = await Episodes(parts.redis).settings(user)
        return KeptTurns(is_on=is_on, days=days)

    @router.put(
        "/{user}/settings",
        operation_id="memory_change_settings",
        summary="Say whether turns are kept",
        response_model=Settled,
        responses=LATER,
    )
    async def settle(
        user: AskedBy,
        body: KeptTurns,
        caller: By,
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        task = MemoryTask("keep_turns", body.model_dump(), user, idempotency_key)
        return await carry_out(Settled, parts, caller, task)

    @router.delete(
        "/{user}",
        operation_id="memory_forget",
        summary="Forget all of it",
        response_model=ForgottenMemory,
        responses=LATER,
    )
    async def forget(
        user: AskedBy,
        caller: By,
        confirm: Annotated[
            Literal["forget"], Query(description="`forget`: it cannot be undone.")
        ],
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        assert confirm  # noqa: S101 - its one value is checked before
        return await carry_out(
            ForgottenMemory,
            parts,
            caller,
            MemoryTask("forget_me", {}, user, idempotency_key),
        )


async def _read_entries(
    parts: ApiParts, reader: DocumentReader, owner: str
) -> list[Entry]:
    documents = (await reader.snapshot(owner)).documents
    return [
        entry
        for name, one in documents.items()
        for entry in entries_of(name, one.body, parts.kinds)
    ]


def _demand_item(entries: Sequence[Entry], reference: str) -> None:
    count = sum(entry.reference == reference for entry in entries)
    if not count:
        raise not_found(
            f"there is no item {reference!r}; GET .../items lists those there are"
        )
    if count > 1:
        raise Refused(
            409,
            "ambiguous",
            f"{count} items are called {reference!r}; change the document's others first",
        )


async def _change_item(
    parts: ApiParts,
    caller: Caller,
    owner: str,
    operation: Mapping[str, str],
    body: _ItemChange,
    chosen: str | None,
) -> Response:
    fields = body.model_dump(
        mode="json", exclude={"wait_seconds"}, exclude_defaults=True
    )
    adds = operation["operation"] != "delete"
    parameters = {**fields, **operation}
    task = MemoryTask("change_item", parameters, owner, chosen=chosen, adds=adds)
    return await carry_out(
        ItemChanged, parts=parts, caller=caller, task=task, wait_s=body.wait_seconds
    )


def _view_item(entry: Entry) -> KeptItem:
    item = entry.item
    view = KeptItem(
        reference=entry.reference,
        category=entry.category,
        text=entry.text,
        subject=entry.subject or None,
    )
    if item is None:
        return view
    names = ("added", "since", "until", "paused_until")
    days = {name: getattr(item, name) for name in names}
    return view.model_copy(
        update={**days, "state": item.state(datetime.now(UTC).date())}
    )
