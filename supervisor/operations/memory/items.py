"""Items of a memory: read, add, change and delete them; whether turns are kept; and forgetting all that was learned.

A change is a task of the memory agent: under an `Idempotency-Key` it is done once, and its plan can be undone.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Annotated, Literal

from pydantic import Field

from tasklore.contracts.callers import Caller
from tasklore.memory.documents.entries import DocumentEntry, entries_of
from tasklore.supervisor.operations.forms import SPAN, Form, View
from tasklore.supervisor.operations.idempotency import IdempotencyKey
from tasklore.supervisor.operations.memory.services import (
    MemoryLooks,
    MemoryServices,
    MemoryTask,
    Owner,
    OwnerScope,
    demand_owner,
    read_documents,
)
from tasklore.supervisor.operations.memory.tasks import Started, carry_out
from tasklore.supervisor.operations.refusals import Refused, not_found
from tasklore.supervisor.operations.table import (
    Operations,
    Shows,
    Unfinished,
    operation,
)

State = Literal["current", "past", "paused", "planned", "expired"]
Reference = Annotated[
    str,
    Field(
        max_length=1_000,
        description="`reference` of an item, from a search or the list.",
    ),
]
_Words = Annotated[
    str, Field(min_length=1, max_length=2_000, description="The text of the item.")
]


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

    subject: Annotated[
        str,
        Field(max_length=200, description="The person it is about, if not the user."),
    ] = ""
    since: Annotated[
        date | None, Field(description="The first day on which it is valid.")
    ] = None
    until: Annotated[
        date | None, Field(description="The last day on which it is valid.")
    ] = None
    wait_seconds: Annotated[
        float, Field(ge=0, le=300, description="How long to wait for the answer."), SPAN
    ] = 30.0


class NewItem(_ItemChange):
    """An item to add; its `category` is the path of a list, as `food.likes`."""

    category: Annotated[
        str,
        Field(
            min_length=1,
            max_length=200,
            description="The list to add it to, such as food.likes.",
        ),
    ]
    value: _Words


class ChangedItem(_ItemChange):
    """The new values of an item; fields that are left out stay."""

    value: Annotated[
        str, Field(max_length=2_000, description="The text of the item.")
    ] = ""


class ItemChanged(Started):
    """The result of a change: the plan, by which it can be undone, and the revision of each document it led to."""

    plan_id: str | None = None
    revisions: dict[str, int] = Field(default_factory=dict)


class KeptTurns(Form):
    """Whether turns are kept word for word, and for how many days; null leaves that to the deployment."""

    is_on: Annotated[
        bool,
        Field(
            description="Whether turns are kept word for word from now on.",
            json_schema_extra={"x-cli": {"option": "--keep-turns"}},
        ),
    ] = True
    days: Annotated[
        int | None,
        Field(ge=1, le=36_500, description="Days to keep turns."),
    ] = None


class Settled(Started):
    """The settings from now on."""

    is_on: bool = True
    days: int | None = None


class MemoryBack(Started):
    """A memory that is back: so many later `turns` and `items` are added to it again."""

    turns: int | None = None
    items: int | None = None


class ForgottenMemory(Started):
    """The numbers of removed and remaining records, by kind; `elsewhere` says where more may lie out of reach."""

    removed: dict[str, int] = Field(default_factory=dict)
    left: dict[str, int] = Field(default_factory=dict)
    elsewhere: str = ""


@operation(
    "memory",
    "items",
    "GET /v1/memory/{user}/items",
    roles=("read",),
    shows=Shows(
        rows="items",
        columns=("reference", "text", "subject", "state", "since", "until"),
        example="memory items ana --category food",
    ),
)
async def list_items(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    *,
    scope: OwnerScope = "user",
    category: Annotated[
        str, Field(max_length=200, description="Only items at this path or below it.")
    ] = "",
    state: Annotated[
        State | None, Field(description="Only items in this state; default: all.")
    ] = None,
) -> Items:
    """List the items of a memory."""
    owner = demand_owner(caller, user, scope)
    prefix = f"{category}." if category else ""
    found = [
        item
        for item in map(_view_item, await _read_entries(services, owner))
        if state in (None, item.state) and f"{item.category}.".startswith(prefix)
    ]
    return Items(user=owner, items=tuple(found))


@operation(
    "memory",
    "add-item",
    "POST /v1/memory/{user}/items",
    roles=("ask",),
    problems=(409,),
    shows=Shows(
        arguments=("category", "value"),
        example='memory add-item ana food.likes "scrambled eggs"',
    ),
)
async def add_item(
    services: MemoryServices,
    caller: Caller,
    user: Owner,
    new: NewItem,
    *,
    scope: OwnerScope = "user",
    idempotency_key: IdempotencyKey = None,
) -> ItemChanged | Unfinished[ItemChanged]:
    """Add an item."""
    owner = demand_owner(caller, user, scope)
    task = _make_change(owner, {"operation": "add"}, new, idempotency_key)
    return await carry_out(ItemChanged, services, caller, task, wait_s=new.wait_seconds)


@operation(
    "memory",
    "change-item",
    "PATCH /v1/memory/{user}/items/{reference}",
    roles=("ask",),
    problems=(404, 409),
    shows=Shows(
        arguments=("value",),
        example='memory change-item ana resource_user_food_prefs:food.likes.eggs "Omelettes"',
    ),
)
async def change_item(
    services: MemoryServices,
    caller: Caller,
    user: Owner,
    reference: Reference,
    changed: ChangedItem,
    *,
    scope: OwnerScope = "user",
    idempotency_key: IdempotencyKey = None,
) -> ItemChanged | Unfinished[ItemChanged]:
    """Change an item."""
    owner = demand_owner(caller, user, scope)
    _demand_item(await _read_entries(services, owner), reference)
    asked = {"operation": "change", "reference": reference}
    task = _make_change(owner, asked, changed, idempotency_key)
    return await carry_out(
        ItemChanged, services, caller, task, wait_s=changed.wait_seconds
    )


@operation(
    "memory",
    "delete-item",
    "DELETE /v1/memory/{user}/items/{reference}",
    roles=("ask",),
    problems=(404, 409),
    shows=Shows(
        example="memory delete-item ana resource_user_food_prefs:food.likes.eggs"
    ),
)
async def delete_item(
    services: MemoryServices,
    caller: Caller,
    user: Owner,
    reference: Reference,
    *,
    scope: OwnerScope = "user",
    idempotency_key: IdempotencyKey = None,
) -> ItemChanged | Unfinished[ItemChanged]:
    """Delete an item."""
    owner = demand_owner(caller, user, scope)
    _demand_item(await _read_entries(services, owner), reference)
    asked = {"operation": "delete", "reference": reference}
    task = _make_change(owner, asked, _ItemChange(), idempotency_key)
    return await carry_out(ItemChanged, services, caller, task)


@operation(
    "memory",
    "settings",
    "GET /v1/memory/{user}/settings",
    roles=("read",),
    shows=Shows(example="memory settings ana"),
)
async def show_settings(
    services: MemoryLooks, caller: Caller, user: Owner, *, scope: OwnerScope = "user"
) -> KeptTurns:
    """Show whether turns are kept word for word, and for how long."""
    owner = demand_owner(caller, user, scope)
    is_on, days = await services.episodes.settings(owner)
    return KeptTurns(is_on=is_on, days=days)


@operation(
    "memory",
    "change-settings",
    "PUT /v1/memory/{user}/settings",
    roles=("ask",),
    problems=(409,),
    shows=Shows(example="memory change-settings ana --days 30"),
)
async def change_settings(
    services: MemoryServices,
    caller: Caller,
    user: Owner,
    kept: KeptTurns,
    *,
    scope: OwnerScope = "user",
    idempotency_key: IdempotencyKey = None,
) -> Settled | Unfinished[Settled]:
    """Set whether turns are kept, and for how long; omitted fields are reset to their defaults."""
    owner = demand_owner(caller, user, scope)
    task = MemoryTask(
        name="keep_turns",
        parameters=kept.model_dump(),
        owner=owner,
        chosen=idempotency_key,
    )
    return await carry_out(Settled, services, caller, task)


@operation(
    "memory",
    "clear",
    "DELETE /v1/memory/{user}",
    roles=("ask",),
    problems=(409,),
    shows=Shows(example="memory clear ana --confirm forget"),
)
async def clear_memory(
    services: MemoryServices,
    caller: Caller,
    user: Owner,
    *,
    confirm: Annotated[
        Literal["forget"], Field(description="`forget`: it cannot be undone.")
    ],
    scope: OwnerScope = "user",
    idempotency_key: IdempotencyKey = None,
) -> ForgottenMemory | Unfinished[ForgottenMemory]:
    """Delete turns, facts, documents and conversations; `elsewhere` names data that the memory worker cannot delete."""
    assert confirm  # noqa: S101 - its one value is checked before
    owner = demand_owner(caller, user, scope)
    task = MemoryTask(
        name="forget_me", parameters={}, owner=owner, chosen=idempotency_key
    )
    return await carry_out(ForgottenMemory, services, caller, task)


@operation(
    "memory",
    "bring-back",
    "POST /v1/memory/{user}/bring-back",
    roles=("ask",),
    problems=(409,),
    shows=Shows(example="memory bring-back ana"),
)
async def bring_memory_back(
    services: MemoryServices,
    caller: Caller,
    user: Owner,
    *,
    scope: OwnerScope = "user",
    idempotency_key: IdempotencyKey = None,
) -> MemoryBack | Unfinished[MemoryBack]:
    """Bring back what a person had forgotten from a chat within the last day.

    Words since then are added to it again: turns as they were said, and items as facts, which are ruled on like others.
    """
    owner = demand_owner(caller, user, scope)
    task = MemoryTask(
        name="bring_back", parameters={}, owner=owner, chosen=idempotency_key
    )
    return await carry_out(MemoryBack, services, caller, task)


OPERATOR_OPERATIONS: Operations[MemoryLooks] = (list_items, show_settings)
CHANGES: Operations[MemoryServices] = (
    add_item,
    change_item,
    delete_item,
    change_settings,
    clear_memory,
    bring_memory_back,
)


async def _read_entries(services: MemoryLooks, owner: str) -> list[DocumentEntry]:
    documents = await read_documents(services, owner)
    return [
        entry
        for name, one in documents.items()
        for entry in entries_of(name, one.body, services.kinds)
    ]


def _demand_item(entries: Sequence[DocumentEntry], reference: str) -> None:
    count = sum(entry.reference == reference for entry in entries)
    if not count:
        raise not_found(
            f"there is no item {reference!r}; GET /v1/memory/{{user}}/items lists them"
        )
    if count > 1:
        raise Refused(
            409,
            "ambiguous",
            f"{count} items are called {reference!r}; change the document's others first",
        )


def _make_change(
    owner: str, asked: Mapping[str, str], body: _ItemChange, chosen: str | None
) -> MemoryTask:
    fields = body.model_dump(
        mode="json", exclude={"wait_seconds"}, exclude_defaults=True
    )
    return MemoryTask(
        name="change_item",
        parameters={**fields, **asked},
        owner=owner,
        chosen=chosen,
        adds=asked["operation"] != "delete",
    )


def _view_item(entry: DocumentEntry) -> KeptItem:
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
