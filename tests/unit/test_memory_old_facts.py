"""A fact that waited for a model, when what was said after it is done already: the newest statement wins."""

import pytest

from tests.memory_bench import FOOD, GENERAL, batch, context_over, documents, fact, item, shown
from workers.agents.memory_worker.runner import edit
from workers.listening.values import PendingFact, Ruling


async def resumed(
    old: str, *later: str, places: dict[str, list[object]], tags: tuple[str, ...] = ("food",)
) -> tuple[Ruling, dict[str, list[str]]]:
    """Return the ruling on *old* after the *later* ones are done, and what is kept."""
    done = tuple(fact(text, f"n{number}", turn_id=f"n{number}", tags=()) for number, text in enumerate(later))
    told = fact(old, "old", tags=tags, turn_id="old")
    context = context_over(documents(**places))  # type: ignore[arg-type]
    (ruling,) = await edit(batch(PendingFact(told.fact, told.turn_id, later=done)), context)
    lists = ("likes", "dislikes", "diets", "avoids")
    kept = {name: shown(context, FOOD, f"food.{name}") for name in lists}
    return ruling, {**kept, "about": shown(context, GENERAL, "general.about")}


@pytest.mark.parametrize(
    ("old", "newer"),
    [
        ("User is vegan", "User no longer is vegan"),
        ("User is vegan", "User wants to remove all their diets"),
        ("User likes steak", "User dislikes steak"),
        ("User dislikes steak", "User likes steak"),
        ("User likes steak", "User is vegetarian"),
        ("User likes omelettes", "User wants to remove egg preferences"),
        ("User likes omelettes", "User wants to remove everything about them"),
        ("User lives in Rome", "User lives in Milan"),
        ("User's idea of a good morning is an omelette", "User no longer likes omelettes"),
        ("User's idea of a good morning is an omelette", "User wants to remove everything about them"),
    ],
)
async def test_what_was_taken_back_meanwhile_is_not_brought_back(old: str, newer: str) -> None:
    """Whether or not the newer one left a trace in the documents."""
    ruling, kept = await resumed(old, newer, places={"food__likes": ["Steak tartare"]})

    assert ruling.outcome == "rejected"
    assert ruling.reasoning == f"older: superseded by n0: {newer}"
    assert kept == {"likes": ["Steak tartare"], "dislikes": [], "diets": [], "avoids": [], "about": []}


@pytest.mark.parametrize(
    "newer",
    ["User no longer is gluten-free", "User likes tofu", "User dislikes tripe", "User wants to remove all their likes"],
)
async def test_what_is_about_something_else_ends_nothing(newer: str) -> None:
    """The old fact is as good as new."""
    ruling, kept = await resumed("User is vegan", newer, places={"food__likes": ["Steak"]})

    assert ruling.outcome == "applied"
    assert (kept["diets"], kept["likes"]) == (["Vegan"], [])


async def test_what_somebody_concluded_later_ends_nothing_that_was_said() -> None:
    """A guess is no statement."""
    guess = fact("User no longer is vegan", "n", inferred=True)
    told = fact("User is vegan", "old", turn_id="old")
    context = context_over(documents())

    (ruling,) = await edit(batch(PendingFact(told.fact, told.turn_id, later=(guess,))), context)

    assert ruling.outcome == "applied"


@pytest.mark.parametrize("kept", [item("Sushi", source="stated:n0"), "Sushi"])
async def test_an_old_clearing_leaves_what_was_said_after_it(kept: object) -> None:
    """For the first time or once more; what else it was about goes."""
    ruling, kept = await resumed(
        "User wants to remove all their likes",
        "User likes sushi",
        places={"food__likes": ["Steak", kept]},
    )

    assert (ruling.outcome, kept["likes"]) == ("applied", ["Sushi"])
