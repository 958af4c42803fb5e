"""`tasklore memory conflicts|audit`: entries of a person's memory that deserve a look."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import JsonValue

from tasklore.commands.memory.lines import one_line
from tasklore.commands.memory.stores import UserMemory, find_resource, user_memory
from tasklore.commands.render.screen import print_json, print_table, printable, styled
from tasklore.memory.documents import review
from tasklore.memory.documents.draft import Origin
from tasklore.memory.documents.items import Item, leaf_values
from tasklore.memory.documents.paths import Path
from tasklore.memory.documents.review import Conflict, Review, Spot
from tasklore.memory.episodes.minilm import load_minilm
from tasklore.memory.long_term.likeness import Embedder, alike

#: Plans among which the other side of a conflict is looked for.
_PLANS = 1_000

_WHY = {
    "opposite": "these say the contrary of each other",
    "single": "only one of these can hold",
    "marked": "said with the same right, and not both can hold",
}


async def print_conflicts(user: str, resource: str | None, *, as_json: bool) -> None:
    """Print the entries that contradict each other."""
    async with user_memory() as memory:
        # The other side of a conflict may stand in another document.
        wanted = await _bodies(memory, user, resource)
        bodies = await _bodies(memory, user, None)
        found = [
            one
            for one in review.conflicts(
                bodies, memory.kinds, today=datetime.now(UTC).date()
            )
            if any(spot.resource_id in wanted for spot in one.spots)
        ]
        is_lone = any(_is_lone(one) for one in found)
        plans = await memory.documents.history(user, limit=_PLANS) if is_lone else ()
    against = {
        one.mark: _against(plan.origin)
        for one in found
        for plan in plans
        if _is_lone(one) and plan.plan_id == one.mark
    }
    if as_json:
        print_json(
            [
                _conflict_document(one) | {"against": list(against.get(one.mark, ()))}
                for one in found
            ]
        )
        return
    for one in found:
        _print_spots(_WHY.get(one.why, one.why), one.spots)
        for text in against.get(one.mark, ()):
            print(f"  {styled('against', 'dim')}: {one_line(text)}")
    if not found:
        print("Nothing contradicts anything else.")
    else:
        print(
            "\nWhat you say next decides: `tasklore memory tell`. An edit is taken back by `tasklore memory undo`."
        )


async def print_audit(
    user: str,
    resource: str | None,
    *,
    as_json: bool,
    load: Callable[[], Embedder | None] = load_minilm,
) -> None:
    """Print which share of the memory is a duplicate, stale, never read, in conflict or out of place.

    Entries that may be the same in other words are printed too when *load* returns a model that can tell.
    """
    async with user_memory() as memory:
        bodies = await _bodies(memory, user, resource)
        reads = await memory.documents.reads(user)
        changed = review.find_changed_protected(
            await memory.documents.history(user), datetime.now(UTC)
        )
        found = review.review(
            bodies, memory.kinds, today=datetime.now(UTC).date(), reads=reads
        )
    embedder = load() if found.leaves else None
    pairs = None if embedder is None else _find_alike(bodies, embedder)
    if as_json:
        likes = (
            {}
            if pairs is None
            else {"alike": [_spot_documents(pair) for pair in pairs]}
        )
        flagged = [
            {
                "plan_id": one.plan_id,
                "fact": one.origin.fact_text,
                "words": one.origin.evidence,
            }
            for one in changed
        ]
        print_json(_review_document(found) | {"changed_protected": flagged} | likes)
        return
    if not found.leaves:
        print(f"Nothing is remembered of {printable(user)} yet.")
        return
    entries = f"{found.leaves:,} {'entry' if found.leaves == 1 else 'entries'}"
    print(
        f"{entries} in {len(bodies):,} {'document' if len(bodies) == 1 else 'documents'}"
    )
    rows = [
        (name.replace("_", " "), "not known" if rate is None else f"{rate:.1%}")
        for name, rate in found.rates.items()
    ]
    print_table(("FINDING", "SHARE"), rows, right=("SHARE",))
    # Entries that were never read are only counted.
    groups: Sequence[tuple[str, Sequence[Spot]]] = (
        *(("said more than once", group) for group in found.duplicates),
        *((_WHY.get(one.why, one.why), one.spots) for one in found.conflicts),
        (
            "stale: past their last day, or so old that they should be asked for again",
            found.stale,
        ),
        ("out of place: no rule finds them there", found.orphans),
        ("with a date that cannot be read", found.unreadable),
    )
    for name, spots in groups:
        if spots:
            _print_spots(f"\n{name}", spots)
    if changed:
        print(
            styled(
                "\nprotected, and changed within 30 days: `tasklore memory undo` takes one back",
                "bold",
            )
        )
    for one in changed:
        reason = f"{one_line(one.origin.fact_text)} ({one_line(one.origin.evidence)})"
        print(f"  {styled(one.plan_id[-12:], 'dim')} {reason}")
    if pairs:
        print(
            styled(
                "\nperhaps the same (proposed by embeddings; nothing is merged)", "bold"
            )
        )
    for first, second in pairs or ():
        print(f"  {_spot_line(first)}\n    and {_spot_line(second)}")


async def _bodies(
    memory: UserMemory, user: str, resource: str | None
) -> Mapping[str, Mapping[str, JsonValue]]:
    documents = (await memory.documents.snapshot(user)).documents
    wanted = (
        documents
        if resource is None
        else [find_resource(resource, memory.kinds, documents)]
    )
    return {name: documents[name].body for name in wanted}


def _is_lone(conflict: Conflict) -> bool:
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
    bodies: Mapping[str, Mapping[str, JsonValue]], embedder: Embedder
) -> list[tuple[Spot, Spot]]:
    """Return the items of one list that may say the same; in two lists the same words may say the contrary."""
    lists: dict[tuple[str, Path], list[Spot]] = {}
    for name, body in bodies.items():
        for path, value in leaf_values(body):
            item = Item.read(value)
            text = (
                value
                if isinstance(value, str)
                else ""
                if item is None
                else item.display
            )
            if isinstance(path.last, int) and text:
                lists.setdefault((name, path.parent), []).append(Spot(name, path, text))
    return [
        (spots[first], spots[second])
        for spots in lists.values()
        for first, second in alike([spot.text for spot in spots], embedder)
    ]


def _print_spots(title: str, spots: Sequence[Spot]) -> None:
    print(styled(title, "bold"))
    for spot in spots:
        print(f"  {_spot_line(spot)}")


def _spot_line(spot: Spot) -> str:
    return f"{styled(f'{spot.resource_id} {spot.path}', 'dim')}: {one_line(spot.text)}"


def _spot_documents(spots: Sequence[Spot]) -> list[dict[str, str]]:
    return [
        {"resource": spot.resource_id, "path": str(spot.path), "text": spot.text}
        for spot in spots
    ]


def _conflict_document(conflict: Conflict) -> dict[str, Any]:
    return {"why": conflict.why, "entries": _spot_documents(conflict.spots)}


def _review_document(found: Review) -> dict[str, Any]:
    return {
        "entries": found.leaves,
        "rates": found.rates,
        "duplicates": [_spot_documents(group) for group in found.duplicates],
        "conflicts": [_conflict_document(one) for one in found.conflicts],
        "stale": _spot_documents(found.stale),
        "never_read": None
        if found.never_read is None
        else _spot_documents(found.never_read),
        "orphans": _spot_documents(found.orphans),
        "unreadable": _spot_documents(found.unreadable),
    }
