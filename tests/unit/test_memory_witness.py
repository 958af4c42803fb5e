"""Facts that a model put down: rules believe their text only as far as the person's own words go."""

from typing import Any

import pytest

from contracts.messages import Fact
from tests.memory_bench import FOOD, HEALTH, BenchContext, batch, context_over, documents, shown
from workers.agents.memory_worker.runner import edit
from workers.listening.values import PendingFact, Ruling


async def heard(text: str, evidence: str, by: str = "a-model", /, **places: Any) -> tuple[BenchContext, Ruling]:
    """Return what becomes of a fact that a model read in *evidence*."""
    told = Fact(fact_id="f1", text=text, evidence=evidence, extracted_by=by, tags=("food",))
    context = context_over(documents(**places))
    (ruling,) = await edit(batch(PendingFact(told, "t1")), context)
    return context, ruling


@pytest.mark.parametrize(
    ("text", "evidence"),
    [
        ("User wants to remove everything about them", "please clear the table"),
        ("User wants to remove all their likes", "I like omelettes"),
        ("User wants to remove everything about them", "Remove all my food preferences"),
        ("User no longer likes sushi", "I had sushi yesterday"),
        ("User no longer likes sushi", "I like sushi"),
        ("User is vegan", "my sister is vegan"),
        ("User is vegan", "I cook a lot"),
        ("User likes caviar", "I like sushi"),
        ("User likes 3 eggs", "I like 2 eggs"),
        ("User dislikes sushi", "I like sushi"),
        ("User likes liver", "I do not like liver"),
        ("User likes liver", "I hate liver"),
        ("User's mornings are never with sushi again", "Mornings are for sushi"),
    ],
)
async def test_what_the_person_did_not_say_changes_nothing(text: str, evidence: str) -> None:
    """However plain the model's own sentence is."""
    places = {"food__likes": ["Sushi"], "food__dislikes": ["Liver"], "health__allergies": ["Peanuts"]}

    context, ruling = await heard(text, evidence, **places)

    assert (ruling.outcome, context.refusals) == ("rejected", ["evidence"])
    assert ruling.reasoning.startswith("evidence: ")
    assert shown(context, FOOD, "food.likes") == ["Sushi"]
    assert shown(context, FOOD, "food.dislikes") == ["Liver"]
    assert shown(context, HEALTH, "health.allergies") == ["Peanuts"]


@pytest.mark.parametrize(
    ("text", "evidence", "likes"),
    [
        ("User no longer likes steak", "I don't like steak any more", []),
        ("User wants to remove all their likes", "delete all my likes", []),
        ("User is vegan", "I'm vegan", []),
        ("User likes omelettes", "I like omelettes", ["Steak", "Omelettes"]),
        ("User dislikes steak", "I hate steak", []),
    ],
)
async def test_what_the_person_said_is_done(text: str, evidence: str, likes: list[str]) -> None:
    """In the words of whoever heard it."""
    context, ruling = await heard(text, evidence, food__likes=["Steak"])

    assert ruling.outcome == "applied", ruling
    assert shown(context, FOOD, "food.likes") == likes


async def test_what_is_liked_takes_a_dislike_away_only_in_the_persons_words() -> None:
    """The evidence has the word, but nothing that patterns could read."""
    context, ruling = await heard("User likes liver", "liver, well, liver it is", food__dislikes=["Liver"])

    assert (ruling.outcome, context.refusals) == ("rejected", ["evidence"])
    assert shown(context, FOOD, "food.dislikes") == ["Liver"]


async def test_facts_of_the_patterns_are_their_own_proof() -> None:
    """Their text is made of what was read."""
    context, ruling = await heard("User no longer likes sushi", "not that any more", "rules", food__likes=["Sushi"])

    assert ruling.outcome == "applied"
    assert shown(context, FOOD, "food.likes") == []
