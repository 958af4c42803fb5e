"""Entries of a memory that deserve a look: those that contradict others, and how good the whole is."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from pydantic import JsonValue

from tasklore.contracts.callers import Caller
from tasklore.contracts.extensions import Embedder
from tasklore.memory.documents import review
from tasklore.memory.documents.draft import Origin
from tasklore.memory.documents.items import Item, leaf_values
from tasklore.memory.documents.paths import Path
from tasklore.memory.documents.plans import Document
from tasklore.memory.documents.review import LeafConflict, Spot
from tasklore.memory.long_term.likeness import alike
from tasklore.supervisor.operations.forms import View
from tasklore.supervisor.operations.memory.services import (
    MemoryLooks,
    OneDocument,
    Owner,
    OwnerScope,
    demand_owner,
    find_resources,
    read_documents,
)
from tasklore.supervisor.operations.table import Operations, Shows, operation

Bodies = Mapping[str, Mapping[str, JsonValue]]

#: Plans among which the other side of a conflict is looked for.
_PLANS = 1_000
#: Entries of one list that are compared with each other: their pairs take less than a second.
_MOST_COMPARED = 300


class ReviewedEntry(View):
    """One entry: its document, its place, and its text."""

    resource: str
    path: str
    text: str


class ShownConflict(View):
    """Entries that cannot all hold.

    `why` is `opposite` (their places are contrary), `single` (only one may be there) or `marked` (said with the same
    right). `against` is the other side of a lone entry.
    """

    why: str
    entries: tuple[ReviewedEntry, ...]
    against: tuple[str, ...] = ()


class Conflicts(View):
    """Contradictions in one memory; the next words about it decide."""

    user: str
    conflicts: tuple[ShownConflict, ...]


class ChangedProtected(View):
    """A plan that changed something protected within 30 days: the fact, and the words that say it."""

    plan_id: str
    fact: str
    words: str


class Audit(View):
    """How good a memory is: the share of each finding, null where it is not known, and where they are.

    `alike` are pairs of one list that may say the same, as embeddings propose; null without a model for them. Of a list
    300 entries are compared. Nothing is merged.
    """

    user: str
    entries: int
    documents: int
    rates: dict[str, float | None]
    duplicates: tuple[tuple[ReviewedEntry, ...], ...]
    conflicts: tuple[ShownConflict, ...]
    stale: tuple[ReviewedEntry, ...]
    never_read: tuple[ReviewedEntry, ...] | None
    orphans: tuple[ReviewedEntry, ...]
    unreadable: tuple[ReviewedEntry, ...]
    changed_protected: tuple[ChangedProtected, ...]
    alike: tuple[tuple[ReviewedEntry, ...], ...] | None


@operation(
    "memory",
    "conflicts",
    "GET /v1/memory/{user}/conflicts",
    roles=("read",),
    problems=(404,),
    shows=Shows(picture="memory_conflicts", example="memory conflicts ana"),
)
async def list_conflicts(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    *,
    scope: OwnerScope = "user",
    resource: OneDocument = None,
) -> Conflicts:
    """List the entries of a memory that contradict others."""
    owner = demand_owner(caller, user, scope)
    documents = await read_documents(services, owner)
    wanted = find_resources(resource, services.kinds, documents)
    # The other side of a conflict may stand in another document.
    found = [
        one
        for one in review.conflicts(
            _bodies(documents, documents),
            services.kinds,
            today=datetime.now(UTC).date(),
        )
        if any(spot.resource_id in wanted for spot in one.spots)
    ]
    is_lone = any(map(_is_lone, found))
    plans = await services.reader.history(owner, limit=_PLANS) if is_lone else ()
    by_id = {plan.plan_id: plan.origin for plan in plans}
    shown = [
        _view_conflict(
            one,
            _against(by_id[one.mark]) if _is_lone(one) and one.mark in by_id else (),
        )
        for one in found
    ]
    return Conflicts(user=owner, conflicts=tuple(shown))


@operation(
    "memory",
    "audit",
    "GET /v1/memory/{user}/audit",
    roles=("read",),
    problems=(404,),
    waits=True,
    shows=Shows(picture="memory_audit", example="memory audit ana"),
)
async def audit_memory(
    services: MemoryLooks,
    caller: Caller,
    user: Owner,
    *,
    scope: OwnerScope = "user",
    resource: OneDocument = None,
) -> Audit:
    """Report the quality of a user's memory.

    Shows the shares of duplicate, stale, unread, conflicting and misplaced entries,
    with their locations.
    """
    owner = demand_owner(caller, user, scope)
    documents = await read_documents(services, owner)
    wanted = find_resources(resource, services.kinds, documents)
    bodies = _bodies(documents, wanted)
    now = datetime.now(UTC)
    reads = await services.reader.reads(owner)
    changed = review.find_changed_protected(await services.reader.history(owner), now)
    found = review.review(bodies, services.kinds, today=now.date(), reads=reads)
    pairs = None
    if found.leaves:
        # A model, and pairs of pairs: what else is asked for meanwhile is not to wait for it.
        pairs = await asyncio.to_thread(_find_alike, bodies, services.embedder)
    return Audit(
        user=owner,
        entries=found.leaves,
        documents=len(bodies),
        rates=dict(found.rates),
        duplicates=tuple(map(_view_spots, found.duplicates)),
        conflicts=tuple(map(_view_conflict, found.conflicts)),
        stale=_view_spots(found.stale),
        never_read=None if found.never_read is None else _view_spots(found.never_read),
        orphans=_view_spots(found.orphans),
        unreadable=_view_spots(found.unreadable),
        changed_protected=tuple(
            ChangedProtected(
                plan_id=one.plan_id,
                fact=one.origin.fact_text,
                words=one.origin.evidence,
            )
            for one in changed
        ),
        alike=None if pairs is None else tuple(map(_view_spots, pairs)),
    )


OPERATOR_OPERATIONS: Operations[MemoryLooks] = (list_conflicts, audit_memory)


def _bodies(documents: Mapping[str, Document], wanted: Iterable[str]) -> Bodies:
    return {name: documents[name].body for name in wanted}


def _is_lone(conflict: LeafConflict) -> bool:
    return conflict.why == "marked" and len(conflict.spots) == 1


def _against(origin: Origin) -> tuple[str, ...]:
    """Return the other side of a lone entry: the fact of its plan, or the entries beside which that was stored."""
    met = origin.finder.get("locations") if isinstance(origin.finder, dict) else None
    places = met if _is_stored(origin) and isinstance(met, list) else ()
    texts = tuple(
        str(place["current_value"])
        for place in places
        if isinstance(place, dict) and place.get("current_value") not in (None, "")
    )
    return texts or (origin.fact_text,)


def _is_stored(origin: Origin) -> bool:
    """Return whether the plan stored its fact as an item."""
    steps = origin.editor.get("edits") if isinstance(origin.editor, dict) else None
    return any(
        isinstance(step, dict) and step.get("operation") in ("insert", "renew")
        for step in (steps if isinstance(steps, list) else ())
    )


def _find_alike(
    bodies: Bodies, load: Callable[[], Embedder | None]
) -> list[tuple[Spot, Spot]] | None:
    """Return the items of one list that may say the same; in two lists the same words may say the contrary."""
    embedder = load()
    if embedder is None:
        return None
    lists: dict[tuple[str, Path], list[Spot]] = {}
    for name, body in bodies.items():
        for path, value in leaf_values(body):
            item = Item.read(value)
            text = "" if item is None else item.display
            if isinstance(value, str):
                text = value
            if isinstance(path.last, int) and text:
                lists.setdefault((name, path.parent), []).append(Spot(name, path, text))
    return [
        (spots[first], spots[second])
        for spots in (whole[:_MOST_COMPARED] for whole in lists.values())
        for first, second in alike([spot.text for spot in spots], embedder)
    ]


def _view_spots(spots: Sequence[Spot]) -> tuple[ReviewedEntry, ...]:
    return tuple(
        ReviewedEntry(resource=spot.resource_id, path=str(spot.path), text=spot.text)
        for spot in spots
    )


def _view_conflict(
    conflict: LeafConflict, against: tuple[str, ...] = ()
) -> ShownConflict:
    return ShownConflict(
        why=conflict.why, entries=_view_spots(conflict.spots), against=against
    )
