"""What a person has removed: all that is named, nothing that is not, and nothing at all where that cannot be told."""

from typing import Any

import pytest

from contracts.messages import Fact
from tests.memory_bench import FOOD, GENERAL, HEALTH, ROUTINE, BenchContext, batch, context_over, documents, shown
from workers.agents.memory_worker.runner import edit
from workers.listening.values import PendingFact, Ruling

SEED = ("Pasta (especially carbonara)", "Sushi", "Scrambled eggs with lox")
ALL: dict[str, Any] = {
    "food__likes": ["Sushi"],
    "food__diets": ["Low salt"],
    "general__interests": ["Cooking"],
    "general__about": ["Name is Ana"],
    "routine__daily": ["Gets up at 6:30"],
    "health__allergies": ["Peanuts"],
}
SHOWN = {
    "likes": (FOOD, "food.likes"),
    "diets": (FOOD, "food.diets"),
    "interests": (GENERAL, "general.interests"),
    "about": (GENERAL, "general.about"),
    "daily": (ROUTINE, "routine.daily"),
    "allergies": (HEALTH, "health.allergies"),
}


async def cleared(text: str, evidence: str = "", /, **places: Any) -> tuple[BenchContext, Ruling]:
    """Return what becomes of one fact over *places*."""
    told = Fact(fact_id="f1", text=text, evidence=evidence or text)
    context = context_over(documents(**places))
    (ruling,) = await edit(batch(PendingFact(told, "t1")), context)
    return context, ruling


@pytest.mark.parametrize("doubtful", ["Okonomiyaki", "Grandma's secret"])
async def test_nothing_is_removed_while_one_item_cannot_be_told(doubtful: str) -> None:
    """It would be said to be done, and would not be."""
    context, ruling = await cleared("remove all egg preferences", food__likes=[doubtful, "Boiled eggs"])

    assert ruling.outcome == "needs_model"
    assert repr(doubtful) in ruling.reasoning
    assert shown(context, FOOD, "food.likes") == [doubtful, "Boiled eggs"]


async def test_what_may_have_meat_in_it_is_in_doubt_and_what_may_have_eggs_is_not() -> None:
    """Nobody calls a pizza an egg dish, whatever is on it."""
    _, eggs = await cleared("remove all egg preferences", food__likes=["Pizza", "Cake", "Boiled eggs"])
    _, meat = await cleared("remove all meat preferences", food__likes=["Pizza", "Steak"])

    assert (eggs.outcome, meat.outcome) == ("applied", "needs_model")


@pytest.mark.parametrize(
    ("text", "evidence", "stays"),
    [
        ("User wants to remove everything about them", "delete all my preferences", {"about", "daily", "allergies"}),
        ("User wants to remove everything about them", "forget everything about me", set()),
        ("User wants to remove everything about them", "delete all my data", set()),
        ("delete my health data", "", {"likes", "diets", "interests", "about", "daily"}),
        ("User wants to remove all their likes", "delete all my preferences", set(SHOWN) - {"likes"}),
    ],
)
async def test_what_nobody_named_stays(text: str, evidence: str, stays: set[str]) -> None:
    """Preferences are neither names nor days nor health; everything is all of it."""
    context, ruling = await cleared(text, evidence, **ALL)

    assert ruling.outcome == "applied"
    assert {name for name, (file, path) in SHOWN.items() if shown(context, file, path)} == stays


async def test_all_that_is_about_eggs_goes() -> None:
    """And nothing else: a carbonara has eggs in it, but nobody calls it an egg dish."""
    context, ruling = await cleared(
        "Remove all egg preferences", food__likes=SEED, food__dislikes=["Fried eggs", "Liver"]
    )

    assert ruling.outcome == "applied"
    assert shown(context, FOOD, "food.likes") == [SEED[0], "Sushi"]
    assert shown(context, FOOD, "food.dislikes") == ["Liver"]


async def test_all_food_preferences_go_when_the_person_says_so() -> None:
    """Of that document, and of no other."""
    context, ruling = await cleared(
        "delete all my food preferences",
        food__likes=SEED,
        food__diets=["Low salt"],
        food__dislikes=["Liver"],
        health__allergies=["Peanuts"],
        general__interests=["Cooking"],
    )

    assert ruling.outcome == "applied"
    assert [shown(context, FOOD, f"food.{name}") for name in ("likes", "dislikes", "diets", "avoids")] == [
        [],
        [],
        [],
        [],
    ]
    assert shown(context, HEALTH, "health.allergies") == ["Peanuts"]
    assert shown(context, GENERAL, "general.interests") == ["Cooking"]


async def test_one_list_goes_when_the_person_names_it() -> None:
    """The others stay."""
    context, ruling = await cleared(
        "User wants to remove all their dislikes", food__likes=["Sushi"], food__dislikes=["Liver", "Tripe"]
    )

    assert ruling.outcome == "applied"
    assert shown(context, FOOD, "food.dislikes") == []
    assert shown(context, FOOD, "food.likes") == ["Sushi"]


async def test_a_list_that_is_longer_than_a_plan_may_have_edits_is_cleared_at_once() -> None:
    """Clearing does not fail by being needed most."""
    context, ruling = await cleared("delete all my food preferences", food__likes=[f"Dish {n}" for n in range(900)])

    assert ruling.outcome == "applied"
    assert shown(context, FOOD, "food.likes") == []
