"""Entries: what stands in a user's documents, one by one, each with the place it is kept at and a lasting reference.

A reference is `RESOURCE_ID:lasting name`, as `resource_user_food_prefs:food.likes.sushi`; it outlives that others come
and go beside it. Pure.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date

from pydantic import JsonValue

from tasklore.memory.documents.items import (
    Body,
    Item,
    lasting_name,
    leaf_text,
    leaf_values,
    slug,
)
from tasklore.memory.documents.kinds import Kinds, Place
from tasklore.memory.documents.paths import Path

#: Where facts about somebody else are kept, whatever they are about.
OTHERS = "people.facts"


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentEntry:
    """One leaf of a document; *item* is None for a plain text or number, *place* where no kind knows its list."""

    resource_id: str
    path: Path
    value: JsonValue
    item: Item | None
    place: Place | None

    @property
    def reference(self) -> str:
        """Its lasting name."""
        return f"{self.resource_id}:{lasting_name(self.path, self.value)}"

    @property
    def text(self) -> str:
        """What a reader sees of it."""
        return leaf_text(self.value)

    @property
    def subject(self) -> str:
        """The name of the person it is about, "" for the user."""
        return (self.item.subject or "") if self.item is not None else ""

    @property
    def category(self) -> str:
        """The path of the place that its content belongs to."""
        if self.item is not None and self.item.category:
            return self.item.category
        return str(self.place.path if self.place is not None else self.path.parent)

    @property
    def is_protected(self) -> bool:
        """Whether it is taken back by the person's own quoted words alone."""
        return self.place is not None and self.place.protected

    def is_live(self, today: date) -> bool:
        """Tell whether it holds on *today*, or will again, or only later."""
        return self.item is None or self.item.state(today) not in ("past", "expired")


def entries_of(resource_id: str, body: Body, kinds: Kinds) -> Iterator[DocumentEntry]:
    """Yield what stands in one document, in its order."""
    kind = kinds.get(resource_id)
    for path, value in leaf_values(body):
        place = kind.place_at(path) if kind is not None else None
        yield DocumentEntry(
            resource_id=resource_id,
            path=path,
            value=value,
            item=Item.read(value),
            place=place,
        )


def live_entries(
    bodies: Mapping[str, Body], kinds: Kinds, today: date
) -> list[DocumentEntry]:
    """Return all that holds on *today*, or will again, in *bodies* by resource id."""
    found = (
        entry
        for name, body in bodies.items()
        for entry in entries_of(name, body, kinds)
    )
    return [entry for entry in found if entry.is_live(today)]


def place_of(category: str, kinds: Kinds) -> Place | None:
    """Return the place whose path is *category*, None when no kind has one."""
    places = (place for kind in kinds.by_id.values() for place in kind.places)
    return next((place for place in places if str(place.path) == category), None)


def home_of(category: str, subject: str | None, kinds: Kinds) -> Place | None:
    """Return where a fact of *category* about *subject* is kept: about another person, with other people.

    None when no kind has such a category.
    """
    own = place_of(category, kinds)
    others = place_of(OTHERS, kinds)
    if (
        own is None
        or not subject
        or others is None
        or own.resource_id == others.resource_id
    ):
        return own
    return others


def reference_of(place: Place, display: str) -> str:
    """Return the reference that an item with that *display* has at *place*."""
    return f"{place.resource_id}:{place.path / slug(display)}"
