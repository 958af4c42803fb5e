"""Items read, added, changed and deleted over HTTP; what waits to be learned; and a whole memory forgotten.

What changes something is a task of the memory agent, which alone may: under an `Idempotency-Key` it is done once, and
its plan can be undone.
"""

from collections.abc import Mapping
from datetime import UTC, date, datetime
from typing import Annotated, Any, ClassVar, Literal

from fastapi import APIRouter, Depends, Path, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from memory.documents.entries import Entry, entries_of
from memory.documents.storage.reader import DocumentReader
from memory.episodes.store import Episodes
from memory.queues.queue import PersonalQueue
from memory.queues.waiting_rows import rows_waiting
from supervisor.http.admission.keys import Caller, allowed
from supervisor.http.memory.owner import AskedBy, ReadBy
from supervisor.http.memory.tasks import LATER, MemoryTask, Started, carry_out
from supervisor.http.parts import Parts
from supervisor.http.problems import Refused, answers, not_found
from supervisor.http.replies import json_response
from supervisor.http.requests.routes import IdempotencyKey

State = Literal["current", "past", "paused", "planned", "expired"]
Reference = Annotated[
    str, Path(max_length=1_000, description="`reference` of an item, as a search or the list gives it.")
]
Text = Annotated[str, Field(min_length=1, max_length=2_000)]
By = Annotated[Caller, Depends(allowed("ask"))]


class KeptItem(BaseModel):
    """One item; `added` is the day on which it was said, `state` how it stands today."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    reference: str
    category: str
    text: str
    subject: str | None = None
    added: date | None = None
    since: date | None = None
    until: date | None = None
    paused_until: date | None = None
    state: State


class Items(BaseModel):
    """The items of one memory."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    user: str
    items: tuple[KeptItem, ...]


class _Change(BaseModel):
    """What every change says: whom it is about, when it holds, and how long the answer may take."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    subject: Annotated[str, Field(max_length=200)] = ""
    since: date | None = None
    until: date | None = None
    wait_seconds: Annotated[float, Field(ge=0, le=300)] = 30.0


class NewItem(_Change):
    """An item to add; its `category` is the path of a list, as `food.likes`."""

    category: Annotated[str, Field(min_length=1, max_length=200)]
    value: Text


class ChangedItem(_Change):
    """What is to be different about an item; what is left out stays."""

    value: Annotated[str, Field(max_length=2_000)] = ""


class ItemChanged(Started):
    """What came of it: the plan, to be undone by, and the revision of each document it led to."""

    plan_id: str | None = None
    revisions: dict[str, int] = Field(default_factory=dict)


class Waiting(BaseModel):
    """A turn or a fact that is not learned yet, or could not be, with the reason and what helps."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, from_attributes=True)

    kind: Literal["turn", "fact"]
    row_id: str
    state: str
    reason: str
    cure: str
    attempts: int


class WaitingRows(BaseModel):
    """What of one memory waits, turns first."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True)

    user: str
    rows: tuple[Waiting, ...]


class KeptTurns(BaseModel):
    """Whether what is said is kept word for word, and for how many days; null leaves that to the deployment."""

    model_config: ClassVar[ConfigDict] = ConfigDict(frozen=True, extra="forbid")

    is_on: bool = True
    days: Annotated[int | None, Field(ge=1, le=36_500)] = None


class Settled(Started):
    """What holds from now on."""

    is_on: bool = True
    days: int | None = None


class ForgottenMemory(Started):
    """What was removed and is left, by kind; `elsewhere` says where more may lie that this cannot reach."""

    removed: dict[str, int] = Field(default_factory=dict)
    left: dict[str, int] = Field(default_factory=dict)
    elsewhere: str = ""


def add_items(router: APIRouter, parts: Parts, reader: DocumentReader) -> None:
    """Add the routes of items to *router*."""

    @router.get("/{user}/items", summary="List what is remembered, item by item", responses=answers())
    async def items(
        user: ReadBy,
        category: Annotated[str, Query(max_length=200, description="Of this path, or below it.")] = "",
        state: Annotated[State | None, Query(description="As it stands today; all, when left out.")] = None,
    ) -> Items:
        found = [_kept(entry) for entry in await _entries(parts, reader, user)]
        wanted = [
            one
            for one in found
            if state in (None, one.state) and f"{one.category}.".startswith(f"{category}." if category else "")
        ]
        return Items(user=user, items=tuple(wanted))

    @router.post("/{user}/items", summary="Add an item", response_model=ItemChanged, responses=LATER)
    async def add(user: AskedBy, body: NewItem, caller: By, idempotency_key: IdempotencyKey = None) -> Response:
        return await _changed(parts, caller, user, {"operation": "add"}, body, idempotency_key)

    @router.patch(
        "/{user}/items/{reference}",
        summary="Change an item in its place",
        response_model=ItemChanged,
        responses={**LATER, **answers(404)},
    )
    async def change(
        user: AskedBy, reference: Reference, body: ChangedItem, caller: By, idempotency_key: IdempotencyKey = None
    ) -> Response:
        _demand_one(await _entries(parts, reader, user), reference)
        asked = {"operation": "change", "reference": reference}
        return await _changed(parts, caller, user, asked, body, idempotency_key)

    @router.delete(
        "/{user}/items/{reference}",
        summary="Delete an item",
        response_model=ItemChanged,
        responses={**LATER, **answers(404)},
    )
    async def delete(
        user: AskedBy, reference: Reference, caller: By, idempotency_key: IdempotencyKey = None
    ) -> Response:
        _demand_one(await _entries(parts, reader, user), reference)
        asked = {"operation": "delete", "reference": reference}
        return await _changed(parts, caller, user, asked, _Change(), idempotency_key)


def add_rest(router: APIRouter, parts: Parts) -> None:
    """Add the routes that tell what waits, and that forget."""
    turns, facts = PersonalQueue(parts.redis, "turns"), PersonalQueue(parts.redis, "facts")

    @router.get("/{user}/waiting", summary="List what is not learned yet, and why", responses=answers())
    async def waiting(user: ReadBy) -> WaitingRows:
        found = await rows_waiting(user, turns, facts)
        return WaitingRows(user=user, rows=tuple(map(Waiting.model_validate, found)))

    @router.get("/{user}/settings", summary="See whether turns are kept", responses=answers())
    async def settings(user: ReadBy) -> KeptTurns:
        is_on, days = await Episodes(parts.redis).settings(user)
        return KeptTurns(is_on=is_on, days=days)

    @router.put("/{user}/settings", summary="Say whether turns are kept", response_model=Settled, responses=LATER)
    async def settle(user: AskedBy, body: KeptTurns, caller: By, idempotency_key: IdempotencyKey = None) -> Response:
        task = MemoryTask("keep_turns", body.model_dump(), user, idempotency_key)
        return await _answered(Settled, parts, caller, task, 30.0)

    @router.delete("/{user}", summary="Forget all of it", response_model=ForgottenMemory, responses=LATER)
    async def forget(
        user: AskedBy,
        caller: By,
        confirm: Annotated[Literal["forget"], Query(description="`forget`: it cannot be undone.")],
        idempotency_key: IdempotencyKey = None,
    ) -> Response:
        assert confirm  # noqa: S101 - its one value is checked before
        task = MemoryTask("forget_me", {}, user, idempotency_key)
        return await _answered(ForgottenMemory, parts, caller, task, 30.0)


async def _entries(parts: Parts, reader: DocumentReader, owner: str) -> list[Entry]:
    documents = (await reader.snapshot(owner)).documents
    return [entry for name, one in documents.items() for entry in entries_of(name, one.body, parts.kinds)]


def _kept(entry: Entry) -> KeptItem:
    item = entry.item
    days: Mapping[str, Any] = (
        {}
        if item is None
        else {
            "added": item.added,
            "since": item.since,
            "until": item.until,
            "paused_until": item.paused_until,
            "state": item.state(datetime.now(UTC).date()),
        }
    )
    told = {"reference": entry.reference, "category": entry.category, "text": entry.text, "state": "current", **days}
    return KeptItem.model_validate({**told, "subject": entry.subject or None})


def _demand_one(entries: list[Entry], reference: str) -> None:
    count = sum(entry.reference == reference for entry in entries)
    if not count:
        raise not_found(f"there is no item {reference!r}; GET .../items lists those there are")
    if count > 1:
        raise Refused(409, "ambiguous", f"{count} items are called {reference!r}; change the document's others first")


async def _changed(
    parts: Parts, caller: Caller, owner: str, asked: Mapping[str, str], change: _Change, chosen: str | None
) -> Response:
    fields = change.model_dump(mode="json", exclude={"wait_seconds"}, exclude_defaults=True)
    task = MemoryTask("change_item", {**fields, **asked}, owner, chosen)
    return await _answered(ItemChanged, parts, caller, task, change.wait_seconds)


async def _answered(shape: type[Started], parts: Parts, caller: Caller, task: MemoryTask, wait_s: float) -> Response:
    came = await carry_out(shape, parts, caller, task, wait_s)
    return json_response(came, f"/v1/tasks/{came.task_id}", is_done=came.state == "done")
