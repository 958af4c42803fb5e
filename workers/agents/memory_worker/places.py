"""Places that a document does not have yet: one that was imported need not have all that its kind has."""

from collections.abc import Callable, Iterable
from itertools import groupby

from pydantic import JsonValue

from contracts.edits import Edit, Insert
from memory.documents.items import Body, is_item
from memory.documents.paths import Path, exists, parse

BodyOf = Callable[[str], Body]


def with_missing_places(edits: Iterable[Edit], body_of: BodyOf) -> tuple[Edit, ...]:
    """Return *edits* such that what is added to a list that is not there makes that list.

    *body_of* gives the body of a document by its resource id. Several additions to one such list become one.
    """
    made = [(edit, _missing(edit, body_of)) for edit in edits]
    kept = [edit for edit, place in made if place is None]
    missing = sorted(((edit, place) for edit, place in made if place is not None), key=lambda pair: _turn(*pair))
    for _, group in groupby(missing, key=lambda pair: _turn(*pair)):
        added = list(group)
        kept.append(_making([edit for edit, _ in added], added[0][1], body_of))
    return tuple(kept)


def _turn(edit: Edit, place: Path) -> tuple[str, str]:
    return edit.file or "", str(place)


def _missing(edit: Edit, body_of: BodyOf) -> Path | None:
    """Return the list that *edit* adds to when it is not there; None for any other edit."""
    # What is no item is a field of one, such as the mark of a conflict.
    if not isinstance(edit, Insert) or edit.file is None or not is_item(edit.new_value):
        return None
    path = parse(edit.path)
    place = path if isinstance(path.last, str) else path.parent
    return place if place.steps and not exists(body_of(edit.file), place) else None


def _making(added: list[Edit], place: Path, body_of: BodyOf) -> Insert:
    """Return the edit that makes the list *place*, and what is above it, with all that is *added* to it."""
    first = added[0]
    body = body_of(first.file or "")
    value: JsonValue = [edit.new_value for edit in added if isinstance(edit, Insert)]
    while place.parent.steps and not exists(body, place.parent):
        value = {str(place.last): value}
        place = place.parent
    return Insert(path=str(place), new_value=value, reason=first.reason, file=first.file)
