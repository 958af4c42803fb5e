"""Which documents a fact is for, by its tags."""

import re
from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.items import METADATA
from tasklore.memory.documents.kinds import Kinds
from tasklore.memory.documents.plans import Document, Snapshot

#: What stands between several tags that a model wrote as one.
_BETWEEN = re.compile(r"[,;/|]")
#: Endings of number of English words of four letters or more.
_PLURAL = re.compile(
    r"(?<=..)(?:(?P<y>ies)|(?:(?<=sh)|(?<=ch)|(?<=ss)|(?<=x))es|(?<=[^sui])s)$"
)


def targets(
    tags: Iterable[str], snapshot: Snapshot | Draft, kinds: Kinds
) -> tuple[str, ...]:
    """Return the ids of the documents that facts with *tags* are for, each once, in the order of the kinds.

    A document is known by the tags and the names of its kind, and by those in its own `_metadata.tags`. When no tag is
    known to any of them, the kind that takes everything is meant; beside a known tag an unknown one adds nothing.
    """
    wanted = {tag_form(part) for tag in tags for part in _BETWEEN.split(tag)}
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
    """Return the tags of one document as they are compared: of its kind and its stored body; none when unknown.

    The names of a kind count among its tags.
    """
    kind = kinds.get(resource_id)
    tags: list[JsonValue] = []
    if kind is not None:
        tags = [*kind.tags, kind.title, *kind.titles]
    if resource_id in stored:
        metadata = stored[resource_id].body.get(METADATA)
        own = metadata.get("tags") if isinstance(metadata, dict) else None
        tags += own if isinstance(own, list) else [own]
    return frozenset(
        form for tag in tags if isinstance(tag, str) and (form := tag_form(tag))
    )


def tag_form(tag: str) -> str:
    """Return *tag* as it is compared: small letters, words in the singular joined by one `_`, without `#`."""
    words = tag.casefold().replace("-", " ").replace("_", " ").split()
    bare = [word.removeprefix("#") for word in words]
    return "_".join(
        _PLURAL.sub(lambda found: "y" if found["y"] else "", word)
        for word in bare
        if word
    )
