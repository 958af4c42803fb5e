"""`tasklore memory conflicts|audit`: what a person should look at in what is remembered."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from pydantic import JsonValue

from memory.documents import review
from memory.documents.items import Item, leaf_values
from memory.documents.paths import Path
from memory.documents.review import Conflict, Review, Spot
from memory.episodes.minilm import load_minilm
from memory.long_term.likeness import Embedder, alike
from tasklore.memory.lines import one_line
from tasklore.memory.stores import UserMemory, meant_resource, user_memory
from tasklore.render.screen import print_json, print_table, printable, styled

_WHY = {
    "opposite": "these say the contrary of each other",
    "single": "only one of these can hold",
    "marked": "said with the same right, and not both can hold",
}


async def print_conflicts(user: str, resource: str | None, *, as_json: bool) -> None:
    """Print what contradicts something else."""
    async with user_memory() as memory:
        bodies = await _bodies(memory, user, resource)
        found = review.conflicts(bodies, memory.kinds, today=_today())
    if as_json:
        print_json([_conflict_document(one) for one in found])
        return
    for one in found:
        print(styled(_WHY.get(one.why, one.why), "bold"))
        for spot in one.spots:
            print(f"  {_spot_line(spot)}")
    if not found:
        print("Nothing contradicts anything else.")
    else:
        print("\nWhat you say next decides: `tasklore memory tell`. An edit is taken back by `tasklore memory undo`.")


async def print_audit(
    user: str, resource: str | None, *, as_json: bool, load: Callable[[], Embedder | None] = load_minilm
) -> None:
    """Print which share of what is remembered is a duplicate, stale, never read, in conflict or out of place.

    What may be the same in other words is printed too when *load* returns a model that can tell.
    """
    async with user_memory() as memory:
        bodies = await _bodies(memory, user, resource)
        reads = await memory.documents.reads(user)
        changed = review.changed_protected(await memory.documents.history(user), datetime.now(UTC))
        found = review.review(bodies, memory.kinds, today=_today(), reads=reads)
    embedder = load() if found.leaves else None
    pairs = None if embedder is None else _alike(bodies, embedder)
    if as_json:
        told = {} if pairs is None else {"alike": [[_spot_document(spot) for spot in pair] for pair in pairs]}
        flagged = [
            {"plan_id": one.plan_id, "fact": one.origin.fact_text, "words": one.origin.evidence} for one in changed
        ]
        print_json(_review_document(found) | {"changed_protected": flagged} | told)
        return
    if not found.leaves:
        print(f"Nothing is remembered of {printable(user)} yet.")
        return
    print(f"{_counted(found.leaves, 'entry', 'entries')} in {_counted(len(bodies), 'document', 'documents')}")
    rows = [
        (name.replace("_", " "), "not known" if rate is None else f"{rate:.1%}") for name, rate in found.rates.items()
    ]
    print_table(("FINDING", "SHARE"), rows, right=("SHARE",))
    for name, spots in _findings(found):
        print(styled(f"\n{name}", "bold"))
        for spot in spots:
            print(f"  {_spot_line(spot)}")
    if changed:
        print(styled("\nprotected, and changed within 30 days: `tasklore memory undo` takes one back", "bold"))
    for one in changed:
        print(
            f"  {styled(one.plan_id[-12:], 'dim')} {one_line(one.origin.fact_text)} ({one_line(one.origin.evidence)})"
        )
    if pairs:
        print(styled("\nperhaps the same (proposed by embeddings; nothing is merged)", "bold"))
    for first, second in pairs or ():
        print(f"  {_spot_line(first)}\n    and {_spot_line(second)}")


async def _bodies(memory: UserMemory, user: str, resource: str | None) -> Mapping[str, Mapping[str, JsonValue]]:
    documents = (await memory.documents.snapshot(user)).documents
    wanted = documents if resource is None else [meant_resource(resource, memory.kinds, documents)]
    return {name: documents[name].body for name in wanted}


def _alike(bodies: Mapping[str, Mapping[str, JsonValue]], embedder: Embedder) -> list[tuple[Spot, Spot]]:
    """Return which items of one list may say the same; of two lists the same words may say the contrary."""
    lists: dict[tuple[str, Path], list[Spot]] = {}
    for name, body in bodies.items():
        for path, value in leaf_values(body):
            item = Item.read(value)
            text = value if isinstance(value, str) else "" if item is None else item.display
            if isinstance(path.last, int) and text:
                lists.setdefault((name, path.parent), []).append(Spot(name, path, text))
    return [
        (spots[first], spots[second])
        for spots in lists.values()
        for first, second in alike([spot.text for spot in spots], embedder)
    ]


def _findings(found: Review) -> Iterator[tuple[str, Sequence[Spot]]]:
    """Yield what there is to look at, one group after the other; what nobody read is only counted."""
    groups: Sequence[tuple[str, Sequence[Spot]]] = (
        *(("said more than once", group) for group in found.duplicates),
        *((_WHY.get(one.why, one.why), one.spots) for one in found.conflicts),
        ("stale: past their last day, or so old that they should be asked for again", found.stale),
        ("out of place: no rule finds them there", found.orphans),
        ("with a date that cannot be read", found.unreadable),
    )
    return ((name, spots) for name, spots in groups if spots)


def _spot_line(spot: Spot) -> str:
    return f"{styled(f'{spot.resource_id} {spot.path}', 'dim')}: {one_line(spot.text)}"


def _spot_document(spot: Spot) -> dict[str, str]:
    return {"resource": spot.resource_id, "path": str(spot.path), "text": spot.text}


def _conflict_document(conflict: Conflict) -> dict[str, Any]:
    return {"why": conflict.why, "entries": [_spot_document(spot) for spot in conflict.spots]}


def _review_document(found: Review) -> dict[str, Any]:
    return {
        "entries": found.leaves,
        "rates": found.rates,
        "duplicates": [[_spot_document(spot) for spot in group] for group in found.duplicates],
        "conflicts": [_conflict_document(one) for one in found.conflicts],
        "stale": [_spot_document(spot) for spot in found.stale],
        "never_read": None if found.never_read is None else [_spot_document(spot) for spot in found.never_read],
        "orphans": [_spot_document(spot) for spot in found.orphans],
        "unreadable": [_spot_document(spot) for spot in found.unreadable],
    }


def _counted(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}"


def _today() -> date:
    return datetime.now(UTC).date()
