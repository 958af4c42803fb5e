"""Where in a user's documents a fact belongs: what a finder found, checked, and carried along as documents change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pydantic import JsonValue

from contracts.edits import Delete
from contracts.errors import EditRefused, InvalidPath
from memory.documents.edits import ABSENT, Change
from memory.documents.items import leaf_text
from memory.documents.paths import Path, exists, lookup, parse
from memory.documents.rebase import rebase_edits

#: Characters of what a model said that the history keeps of each text.
MAX_SAID = 300


@dataclass(frozen=True, slots=True)
class Place:
    """A leaf of a document, or a list in it, of which *relevance* says why it matters for the fact.

    *value* is what stands there, read from the document and never taken from a model.
    """

    resource_id: str
    path: Path
    value: JsonValue
    relevance: str = ""

    @property
    def text(self) -> str:
        """What a reader sees of it."""
        return leaf_text(self.value)

    def dump(self) -> JsonValue:
        """Return it as the history shows it."""
        return {
            "file": self.resource_id,
            "path": str(self.path),
            "current_value": self.text[:MAX_SAID],
            "relevance": self.relevance[:MAX_SAID],
        }


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found for one fact in one or more documents.

    `inserts` are lists to which it could be added. `refused` counts the paths that a model named and nobody showed it.
    """

    locations: tuple[Place, ...] = ()
    inserts: tuple[tuple[str, Path], ...] = ()
    reasoning: str = ""
    refused: int = 0

    def joined(self, other: "Finding") -> "Finding":
        """Return both together, each place once."""
        known = {(place.resource_id, place.path) for place in self.locations}
        return Finding(
            (*self.locations, *(place for place in other.locations if (place.resource_id, place.path) not in known)),
            tuple(dict.fromkeys((*self.inserts, *other.inserts))),
            " ".join(filter(None, (self.reasoning, other.reasoning))),
            self.refused + other.refused,
        )

    def dump(self, by: Mapping[str, JsonValue]) -> JsonValue:
        """Return it as the history keeps it, *by* whom."""
        inserts = [f"{resource_id}:{path}" for resource_id, path in self.inserts]
        return {
            **by,
            "locations": [place.dump() for place in self.locations],
            "suggested_insert_path": inserts[0] if len(inserts) == 1 else list(inserts) or None,
            "reasoning": self.reasoning[: 4 * MAX_SAID],
            "refused": self.refused,
        }

    def after(self, resource_id: str, changes: Sequence[Change], body: JsonValue) -> "Finding":
        """Return the same places after *changes* made *body* of one document; what they touched is shown as it is now.

        New items are added to the locations: nobody looked at them when the finder was asked.
        """
        kept: list[Place] = []
        for place in self.locations:
            if place.resource_id != resource_id:
                kept.append(place)
            elif (path := _moved(place.path, changes)) is not None:
                kept.append(replace(place, path=path))
        seen = {place.path for place in kept if place.resource_id == resource_id}
        fresh = [path for path in _touched(changes, body) if path not in seen]
        kept += [Place(resource_id, path, lookup(body, path), "changed just now") for path in dict.fromkeys(fresh)]
        return replace(self, locations=tuple(kept))


def read_path(text: str) -> Path | None:
    """Return the path that a model wrote, None when it is none."""
    try:
        return parse(text.strip())
    except InvalidPath:
        return None


def _moved(path: Path, changes: Sequence[Change]) -> Path | None:
    """Return where *path* is after *changes*, None when they touched it."""
    try:
        (edit,) = rebase_edits([Delete(path=str(path))], changes)
    except EditRefused:
        return None
    return parse(edit.path)


def _touched(changes: Sequence[Change], body: JsonValue) -> list[Path]:
    """Return where what *changes* put into the document stands in *body* now."""
    found: list[Path] = []
    for number, change in enumerate(changes):
        path = change.path
        if change.after is ABSENT and isinstance(path.last, int):
            continue
        # A field of an item: the item is what a reader sees.
        while path.steps and not isinstance(path.last, int):
            path = path.parent
        moved = _moved(path, changes[number + 1 :]) if path.steps else None
        if moved is not None and exists(body, moved):
            found.append(moved)
    return found
