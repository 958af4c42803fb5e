"""Which documents a fact is for, by its tags."""

from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.items import METADATA
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.plans import Document, Snapshot


def targets(
    tags: Iterable[str], snapshot: Snapshot | Draft, kinds: Kinds
) -> tuple[str, ...]:
    """Return the ids of the documents that facts with *tags* are for, each once, in the order of the kinds.

    A document is known by the tags of its kind and by those in its own `_metadata.tags`. When no tag is known to any of
    them, the kind that takes everything is meant; beside a known tag an unknown one adds nothing.
    """
    wanted = {tag_form(tag) for tag in tags}
    stored = snapshot.documents
    ids = [*kinds.ids, *sorted(set(stored) - set(kinds.ids))]
    found = tuple(
        resource_id
        for resource_id in ids
        if wanted & tags_of(resource_id, stored, kinds)
    )
    return found or (kinds.general,)


def tags_of(
    resource_id: str, stored: Mapping[str, Document], kinds: Kinds
) -> frozenset[str]:
    """Return the tags of one document as they are compared: of its kind and its stored body; none when unknown."""
    kind = kinds.get(resource_id)
    tags: list[JsonValue] = list(kind.tags) if kind is not None else []
    if resource_id in stored:
        metadata = stored[resource_id].body.get(METADATA)
        own = metadata.get("tags") if isinstance(metadata, dict) else None
        tags += own if isinstance(own, list) else [own]
    return frozenset(
        form for tag in tags if isinstance(tag, str) and (form := tag_form(tag))
    )


def tag_form(tag: str) -> str:
    """Return *tag* as it is compared: small letters, words joined by one `_`."""
    return "_".join(tag.casefold().replace("-", " ").replace("_", " ").split())
