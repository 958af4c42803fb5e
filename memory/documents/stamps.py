"""What the store itself writes into a document: revision and day in its metadata, and when an item was added."""

from datetime import date

from pydantic import JsonValue

from tasklore.contracts.edits import Edit, Insert, Update
from tasklore.contracts.errors import InvalidPath
from tasklore.memory.documents.items import METADATA, Body, is_item
from tasklore.memory.documents.paths import find, parse

_REVISION = "revision"
_UPDATED = "last_updated"
_STAMPED = frozenset((_REVISION, _UPDATED))


def stamp(
    body: Body, resource_id: str, revision: int, day: date
) -> tuple[Body, JsonValue]:
    """Return *body* as *revision* of *day*, and the overwritten values, for `unstamp`: None without metadata."""
    metadata = body.get(METADATA)
    written: Body = {_UPDATED: day.isoformat(), _REVISION: revision}
    if not isinstance(metadata, dict):
        return {METADATA: {"resource_id": resource_id, **written}, **body}, None
    before: Body = {name: metadata[name] for name in written if name in metadata}
    return {**body, METADATA: {**metadata, **written}}, before


def unstamp(body: Body, before: JsonValue) -> Body:
    """Return *body* as it was before `stamp` said *before*."""
    metadata = body.get(METADATA)
    if not isinstance(before, dict) or not isinstance(metadata, dict):
        return {name: value for name, value in body.items() if name != METADATA}
    # What stood there keeps its place; what did not was put at the end.
    kept = {name: before.get(name, value) for name, value in metadata.items()}
    return {
        **body,
        METADATA: {
            name: kept[name] for name in kept if name not in _STAMPED or name in before
        },
    }


def with_stamp_of(body: Body, former: Body) -> Body:
    """Return *body*, as of a file, with the metadata that *former* has been stamped with in the place of its own.

    Without metadata of its own it gets all of *former*'s.
    """
    own = body.get(METADATA)
    stamped = former.get(METADATA)
    known: Body = stamped if isinstance(stamped, dict) else {}
    if not isinstance(own, dict):
        return {METADATA: known, **body} if known else body
    kept: Body = {
        name: value
        for name, value in own.items()
        if name not in _STAMPED or name in known
    }
    return {
        **body,
        METADATA: {
            **kept,
            **{name: known[name] for name in (_UPDATED, _REVISION) if name in known},
        },
    }


def with_days(edit: Edit, day: date, body: JsonValue) -> Edit:
    """Return *edit* with an `added` in each item that lacks one: that of the item it replaces, else *day*."""
    if not isinstance(edit, Insert | Update):
        return edit
    former = _day_added(body, edit.path) if isinstance(edit, Update) else None
    value = _with_date(edit.new_value, former or day.isoformat())
    return (
        edit
        if value is edit.new_value
        else edit.model_copy(update={"new_value": value})
    )


def _day_added(body: JsonValue, text: str) -> str | None:
    """Return when the item at *text* was added, None when there is none or it is unknown."""
    try:
        path = parse(text)
    except InvalidPath:
        return None
    item = find(body, path)
    added = item.get("added") if isinstance(item, dict) else None
    return added if isinstance(added, str) else None


def _with_date(value: JsonValue, day: str) -> JsonValue:
    if isinstance(value, list):
        dated = [_with_date(item, day) for item in value]
        return (
            value
            if all(one is other for one, other in zip(dated, value, strict=True))
            else dated
        )
    if not isinstance(value, dict) or not is_item(value) or "added" in value:
        return value
    first: Body = {name: value[name] for name in ("item", "display") if name in value}
    return {
        **first,
        "added": day,
        **{name: other for name, other in value.items() if name not in first},
    }
