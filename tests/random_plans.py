"""Random plans over documents of one user, for tests that apply many; the same seed gives the same plans."""

from collections.abc import Iterator, Mapping
from random import Random
from typing import Any, cast

from pydantic import JsonValue

from tasklore.contracts.edits import Delete, Edit, Insert, Update
from tasklore.contracts.errors import EditRefused
from tasklore.memory.documents.draft import Draft
from tasklore.memory.documents.guard import LIMITS
from tasklore.memory.documents.items import METADATA, Body
from tasklore.memory.documents.paths import Path
from tasklore.memory.documents.storage.store import DocumentStore
from tests.integration.documents import FOOD, GENERAL, NOW, USER, content, plan

#: Plans a history is long; each leads to a revision of one document or two.
LENGTH = 12


class RandomPlans:
    """Draws edits that mostly fit; every item it makes has a display of its own."""

    def __init__(self, random: Random, label: str = "n") -> None:
        self._random = random
        self._label = label
        self._made = 0

    def edits(self, bodies: Mapping[str, Body], most: int = 3) -> tuple[Edit, ...]:
        """Return one to *most* edits of *bodies*, by resource id."""
        return tuple(self._edit(bodies) for _ in range(self._random.randint(1, most)))

    def _edit(self, bodies: Mapping[str, Body]) -> Edit:
        resource_id = self._random.choice(sorted(bodies))
        path, held = self._random.choice(list(_lists(bodies[resource_id])))
        kind = self._random.random()
        if kind < 0.45 or not held:
            index = self._random.choice(
                ["", "[-]", f"[{self._random.randint(0, len(held))}]"]
            )
            return Insert(
                path=f"{path}{index}", new_value=self._item(), file=resource_id
            )
        place = self._random.randrange(len(held))
        spelled = (
            f"{path}[{place if self._random.random() < 0.8 else place - len(held)}]"
        )
        if kind < 0.7:
            return Delete(path=spelled, file=resource_id)
        value = held[place]
        changed = (
            {**value, "confidence": self._number()}
            if isinstance(value, dict)
            else self._item()
        )
        return Update(path=spelled, new_value=changed, file=resource_id)

    def _item(self) -> JsonValue:
        self._made += 1
        return {
            "item": "x",
            "display": f"{self._label}{self._made}.",
            "confidence": self._number(),
        }

    def _number(self) -> float:
        return self._random.choice([0.0, 0.5, 1.0, 0.25, 1e-7])


def _lists(body: Body) -> Iterator[tuple[Path, list[JsonValue]]]:
    for name, section in body.items():
        if name != METADATA:
            for inner, held in cast("dict[str, Any]", section).items():
                if isinstance(held, list):
                    yield Path((name, inner)), held


async def contents(store: DocumentStore) -> dict[str, bytes]:
    """Return both documents to the byte, apart from their stamps."""
    found = (await store.snapshot(USER, [FOOD, GENERAL])).documents
    return {
        resource_id: content(document.body) for resource_id, document in found.items()
    }


async def grow(
    store: DocumentStore, random: Random, length: int = LENGTH, label: str = "p"
) -> list[dict[str, bytes]]:
    """Apply *length* random plans and return what the documents were before, after the first, and so on."""
    plans = RandomPlans(random, label)
    seen = [await contents(store)]
    for number in range(length):
        draft = Draft(await store.snapshot(USER, [FOOD, GENERAL]), LIMITS, NOW)
        bodies = {
            resource_id: document.body
            for resource_id, document in draft.documents.items()
        }
        try:
            applied = draft.apply(plan(f"{label}{number}", *plans.edits(bodies)))
        except EditRefused:
            continue
        await store.commit(draft)
        if applied.steps:
            seen.append(await contents(store))
    return seen


async def back_and_forth(
    store: DocumentStore, random: Random, length: int = LENGTH
) -> int:
    """Take back all of a random history and apply it again, comparing every step; return how many plans it had."""
    seen = await grow(store, random, length)
    for expected in reversed(seen[:-1]):
        await store.undo(USER, at=NOW)
        assert await contents(store) == expected
    for expected in seen[1:]:
        await store.redo(USER, at=NOW)
        assert await contents(store) == expected
    return len(seen) - 1
