"""Items whose last day has passed, as the edits that delete them."""

from collections.abc import Collection
from datetime import date

from contracts.edits import MAX_EDITS, MAX_PATH, Delete
from memory.documents.items import is_expired, leaves
from memory.documents.plans import Snapshot
from memory.documents.storage.history import json_bytes


def find_expired(snapshot: Snapshot, today: date, kept: Collection[tuple[str, bytes]] = ()) -> tuple[Delete, ...]:
    """Return an edit for each item that no longer holds on *today*, as many as one plan may have.

    *kept* are resources and items, as JSON, that stay whatever their expiry says.
    """
    found = (
        Delete(path=str(path), file=resource_id, reason="its last day has passed")
        for resource_id, document in snapshot.documents.items()
        for path, _, value in leaves(document.body)
        if is_expired(value, today) and len(str(path)) <= MAX_PATH and (resource_id, json_bytes(value)) not in kept
    )
    return tuple(found)[:MAX_EDITS]
