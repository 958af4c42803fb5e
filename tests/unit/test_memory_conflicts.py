"""What contradicts something that no word of the person overrules by itself: both stay, and are marked."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from memory.documents.items import CONFLICT, Body
from tests.memory_bench import FOOD, HEALTH, batch, context_over, documents, fact, shown
from workers.agents.memory_worker.runner import edit
from workers.listening.context import ListenContext
from workers.listening.values import PendingFact, Ruling


async def ruled(bodies: Mapping[str, Body], *facts: PendingFact) -> tuple[ListenContext, list[Ruling]]:
    """Return the context after *facts* were ruled on, and the rulings."""
    context = context_over(bodies)
    return context, list(await edit(batch(*facts), context))


async def one(text: str, tags: Sequence[str] = ("food",), /, **places: Any) -> tuple[ListenContext, Ruling]:
    """Return what becomes of one fact over documents with *places*."""
    context, (ruling,) = await ruled(documents(**places), fact(text, tags=tags))
    return context, ruling


async def test_what_a_diet_leaves_out_and_a_body_needs_is_for_the_person_to_decide() -> None:
    """Both stay and are marked: nothing about health is retired by a conclusion."""
    context, ruling = await one("I'm vegan", health__needs=["Fish oil"])

    assert ruling.outcome == "conflict"
    (need,) = context.draft.body(HEALTH)["health"]["needs"]  # type: ignore[index,call-overload]
    (diet,) = context.draft.body(FOOD)["food"]["diets"]  # type: ignore[index,call-overload]
    assert (need["display"], need[CONFLICT], diet[CONFLICT]) == ("Fish oil", "f1", "f1")


async def test_to_like_what_ones_diet_leaves_out_is_marked() -> None:
    """The diet is not given up by liking something."""
    context, ruling = await one("User likes steak", food__diets=["Vegan"])

    assert ruling.outcome == "conflict"
    assert shown(context, FOOD, "food.diets") == ["Vegan"]
    assert shown(context, FOOD, "food.likes") == ["Steak"]


@pytest.mark.parametrize("liked", ["nuts", "peanut butter"])
async def test_to_like_what_one_is_allergic_to_is_marked(liked: str) -> None:
    """Both stay: nothing about health goes because of a taste, and nobody knows which is right; nor said twice."""
    bodies = documents(health__allergies=["Nuts"])

    context, rulings = await ruled(
        bodies, fact(f"User likes {liked}", "f1"), fact(f"User likes {liked}", "f2", turn_id="t2")
    )

    assert [ruling.outcome for ruling in rulings] == ["conflict", "known"]
    (allergy,) = context.draft.body(HEALTH)["health"]["allergies"]  # type: ignore[index,call-overload]
    (like,) = context.draft.body(FOOD)["food"]["likes"]  # type: ignore[index,call-overload]
    assert (allergy["display"], allergy[CONFLICT], like[CONFLICT]) == ("Nuts", "f1", "f1")
