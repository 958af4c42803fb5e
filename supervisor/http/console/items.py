"""Items of a person's memory, by hand: one added, one changed in its place, one removed once it was said so.

Each is a task of the memory agent, as the commands send it, and an edit that the history takes back.
"""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from tasklore.contracts.errors import InvalidInput
from tasklore.contracts.identifiers import new_id
from tasklore.supervisor.http.console.agents import read_faults, read_options
from tasklore.supervisor.http.console.pages import (
    ConsolePage,
    FormAction,
    Notice,
    RenderedPage,
    Visit,
    address,
    ask_first,
)
from tasklore.supervisor.http.console.people import (
    EDIT_S,
    demand_form_user,
    demand_user,
)
from tasklore.supervisor.operations.memory.items import (
    ChangedItem,
    ItemChanged,
    KeptItem,
    NewItem,
    add_item,
    change_item,
    delete_item,
    list_items,
)
from tasklore.supervisor.operations.refusals import Refused, not_found
from tasklore.supervisor.operations.table import Unfinished

#: Fields of the form of an item. An empty one leaves what stands.
_CHANGES = ("value", "subject", "since", "until")
_ADDS = ("category", *_CHANGES)


async def show_form(visit: Visit) -> RenderedPage:
    """Return the form of one item, or of a new one.

    Raises:
        Refused: 404, there is no such item.
    """
    user = demand_user(visit)
    reference = visit.query.get("reference", "")
    items = (await visit.call(list_items, user)).items
    if reference:
        return _make_form(user, _read_item(_demand_item(items, reference)), reference)
    return _make_form(user, {}, "", categories=_categories_of(items))


def _demand_item(items: Sequence[KeptItem], reference: str) -> KeptItem:
    """Return the item called *reference*.

    Raises:
        Refused: 404, there is none.
    """
    for one in items:
        if one.reference == reference:
            return one
    raise not_found(f"there is no item {reference!r}; it was changed or removed")


def _categories_of(items: Sequence[KeptItem]) -> tuple[str, ...]:
    """Return the lists that hold *items*, which the form offers."""
    return tuple(sorted({one.category for one in items}))


def _read_item(item: KeptItem) -> dict[str, str]:
    """Return the fields of the form of *item*."""
    return {
        "category": item.category,
        "value": item.text,
        "subject": item.subject or "",
        "since": f"{item.since or ''}",
        "until": f"{item.until or ''}",
    }


def _make_form(
    user: str,
    given: Mapping[str, str],
    reference: str,
    *,
    faults: Sequence[str] = (),
    categories: Sequence[str] = (),
) -> RenderedPage:
    return RenderedPage(
        title=f"An item of {user}" if reference else f"New item of {user}",
        template="item_form.html",
        values={
            "user": user,
            "reference": reference,
            "given": {name: given.get(name, "") for name in _ADDS},
            "faults": faults,
            "categories": categories,
            "back": _list_of(user),
            # The same form sent twice adds one item.
            "key": new_id(time.time_ns() // 1_000_000),
        },
    )


def _list_of(user: str) -> str:
    return address("people", user=user, view="items")


async def add(visit: Visit) -> Notice | RenderedPage:
    """Add an item; where the form does not fit, it is shown again with its faults."""
    user = demand_form_user(visit)
    given = read_options(visit, _ADDS)
    key = visit.one("key") or None
    try:
        new = NewItem.model_validate({**given, "wait_seconds": EDIT_S})
        done = await visit.call(add_item, user, new, idempotency_key=key)
    except (ValidationError, InvalidInput, Refused) as error:
        return await _show_again(visit, user, given, error)
    return _tell(done, user, "It is stored.", "It is being stored")


async def change(visit: Visit) -> Notice | RenderedPage:
    """Change an item in its place; where the form does not fit, it is shown again with its faults."""
    user = demand_form_user(visit)
    given = read_options(visit, _CHANGES)
    reference = visit.one("reference")
    if not given:
        text = "Nothing was changed: each field was empty."
        return Notice(to=_list_of(user), text=text, tone="bad")
    try:
        changed = ChangedItem.model_validate({**given, "wait_seconds": EDIT_S})
        done = await visit.call(change_item, user, reference, changed)
    except (ValidationError, InvalidInput, Refused) as error:
        return await _show_again(visit, user, given, error)
    return _tell(done, user, "It is changed.", "It is being changed")


async def remove(visit: Visit) -> Notice | RenderedPage:
    """Remove an item, once it was said so.

    Raises:
        Refused: 404, there is no such item.
    """
    user = demand_form_user(visit)
    reference = visit.one("reference")
    back = _list_of(user)
    if visit.one("sure") != "yes":
        items = (await visit.call(list_items, user)).items
        item = _demand_item(items, reference)
        return ask_first(
            question="Remove this item?",
            explained="It will be removed. The history keeps it, and can undo the "
            "removal.",
            concerns=1,
            lines=[f"{item.category}: {item.text}"],
            to="people/delete-item",
            verb="Remove it",
            kept=[("user", user), ("reference", reference)],
            back=back,
            is_grave=True,
        )
    try:
        done = await visit.call(delete_item, user, reference)
    except (Refused, InvalidInput) as refused:
        return Notice(to=back, text=f"It stays: {refused}.", tone="bad")
    return _tell(done, user, "It is removed.", "It is being removed")


def _tell(
    done: ItemChanged | Unfinished[ItemChanged], user: str, told: str, begun: str
) -> Notice:
    """Return the notice of a change that was made, or only *begun*."""
    is_late = isinstance(done, Unfinished)
    text = f"{begun}: check again in a moment." if is_late else told
    return Notice(to=_list_of(user), text=text)


async def _show_again(
    visit: Visit,
    user: str,
    given: Mapping[str, Any],
    error: ValidationError | InvalidInput | Refused,
) -> RenderedPage:
    """Return the form as it was sent, with the faults in *error*.

    Raises:
        Refused: the fault is not in the form.
    """
    faults, _fields = read_faults(error, ())
    reference = visit.one("reference")
    shown = {**given, "category": given.get("category") or visit.one("category")}
    categories: tuple[str, ...] = ()
    if not reference:
        categories = _categories_of((await visit.call(list_items, user)).items)
    return _make_form(user, shown, reference, faults=faults, categories=categories)


PAGE = ConsolePage(
    path="people/item",
    title="An item of a memory",
    operation=change_item,
    show=show_form,
    template="item_form.html",
    actions=(
        FormAction(path="people/add-item", operation=add_item, run=add),
        FormAction(path="people/change-item", operation=change_item, run=change),
        FormAction(path="people/delete-item", operation=delete_item, run=remove),
    ),
)
