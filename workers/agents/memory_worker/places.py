"""Places that a document does not have yet: one that was imported need not have all places of its kind."""

from collections.abc import Callable, Iterable

from pydantic import JsonValue

from tasklore.contracts.edits import Edit, Insert
from tasklore.memory.documents.items import Body, is_item
from tasklore.memory.documents.paths import Path, exists, parse


def with_missing_places(
    edits: Iterable[Edit], body_of: Callable[[str], Body]
) -> tuple[Edit, ...]:
    """Return *edits* with additions to a missing list joined into one edit that makes that list.

    *body_of* gives the body of a document by its resource id.
    """
    kept: list[Edit] = []
    added: dict[tuple[str, str], tuple[Path, list[Insert]]] = {}
    for edit in edits:
        # An inserted value that is no item is a field of one, such as the mark of a conflict.
        if (
            isinstance(edit, Insert)
            and edit.file is not None
            and is_item(edit.new_value)
        ):
            path = parse(edit.path)
            place = path if isinstance(path.last, str) else path.parent
            if place.steps and not exists(body_of(edit.file), place):
                added.setdefault((edit.file, str(place)), (place, []))[1].append(edit)
                continue
        kept.append(edit)
    for (resource_id, _), (place, inserts) in sorted(
        added.items(), key=lambda pair: pair[0]
    ):
        body = body_of(resource_id)
        value: JsonValue = [insert.new_value for insert in inserts]
        while place.parent.steps and not exists(body, place.parent):
            value = {str(place.last): value}
            place = place.parent
        kept.append(
            Insert(
                path=str(place),
                new_value=value,
                reason=inserts[0].reason,
                file=resource_id,
            )
        )
    return tuple(kept)
