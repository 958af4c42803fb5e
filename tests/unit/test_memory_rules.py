"""Facts ruled on without a model: what the words say is done, and what they do not say for sure waits."""

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import pytest

from memory.documents.draft import Draft
from memory.documents.items import Body, leaves
from tests.memory_bench import (
    FOOD,
    GENERAL,
    HEALTH,
    KINDS,
    NOW,
    ROUTINE,
    USER,
    batch,
    context_over,
    documents,
    fact,
    item,
    shown,
)
from workers.agents.memory_worker.runner import edit
from workers.listening.context import ListenContext
from workers.listening.values import PendingFact, Ruling

ALLERGIES = ("peanuts", "shrimp", "latex", "penicillin", "mustard")
SEED = ("Pasta (especially carbonara)", "Sushi", "Scrambled eggs with lox")


async def ruled(bodies: Mapping[str, Body], *facts: PendingFact) -> tuple[ListenContext, list[Ruling]]:
    """Return the context after *facts* were ruled on, and the rulings."""
    context = context_over(bodies)
    return context, list(await edit(batch(*facts), context))


async def one(text: str, tags: Sequence[str] = ("food",), /, **places: Any) -> tuple[ListenContext, Ruling]:
    """Return what becomes of one fact over documents with *places*."""
    context, (ruling,) = await ruled(documents(**places), fact(text, tags=tags))
    return context, ruling


async def test_what_is_new_is_added_with_what_is_known_of_it() -> None:
    """The item says who said it and when, how sure it is, and how long it holds."""
    told = fact("User likes omelettes", confidence=0.9, durability="long_term", turn_id="t7")

    context, (ruling,) = await ruled(documents(food__likes=SEED), told)

    assert ruling.outcome == "applied"
    assert ruling.plan is not None
    assert (ruling.plan.plan_id, ruling.plan.origin.by, ruling.plan.origin.fact_text) == ("f1", "rules", told.fact.text)
    (edit_,) = ruling.plan.edits
    assert (edit_.operation, edit_.file, edit_.path) == ("insert", FOOD, "food.likes")
    added = context.draft.body(FOOD)["food"]["likes"][-1]  # type: ignore[index,call-overload]
    assert added == {
        "item": "omelettes",
        "display": "Omelettes",
        "added": "2026-03-01",
        "expiry": None,
        "confidence": 0.9,
        "durability": "long_term",
        "source": "stated:t7",
    }


@pytest.mark.parametrize(
    "text",
    ["User likes pasta", "User loves Pasta", "I like pasta", "User likes pasta (especially carbonara)"],
)
async def test_what_is_kept_already_is_known(text: str) -> None:
    """In any wording; nothing is changed and no plan is made."""
    context, ruling = await one(text, food__likes=SEED)

    assert (ruling.outcome, ruling.plan) == ("known", None)
    assert "Pasta (especially carbonara)" in ruling.reasoning
    assert context.draft.applied == ()


async def test_the_newest_statement_moves_an_item_to_the_contrary_list() -> None:
    """In one plan: it never stands in both, and never in none."""
    context, ruling = await one("User hates sushi", food__likes=SEED, food__dislikes=["Liver"])

    assert ruling.outcome == "applied"
    assert shown(context, FOOD, "food.likes") == ["Pasta (especially carbonara)", "Scrambled eggs with lox"]
    assert shown(context, FOOD, "food.dislikes") == ["Liver", "Sushi"]
    assert len(context.draft.applied) == 1


async def test_a_mention_takes_nothing_back() -> None:
    """Who dislikes salmon may go on liking what has other words, or more of them."""
    context, ruling = await one("User dislikes lox", food__likes=SEED)

    assert ruling.outcome == "applied"
    assert shown(context, FOOD, "food.likes") == list(SEED)


async def test_what_is_taken_back_by_name_goes() -> None:
    """And nothing comes in its place: not to like it any more is no dislike."""
    context, ruling = await one("User no longer likes sushi", food__likes=SEED)

    assert ruling.outcome == "applied"
    assert shown(context, FOOD, "food.likes") == ["Pasta (especially carbonara)", "Scrambled eggs with lox"]
    assert shown(context, FOOD, "food.dislikes") == []


async def test_what_may_be_meant_by_what_is_taken_back_is_not_guessed() -> None:
    """Eggs are in one of them, but perhaps it is liked all the same."""
    context, ruling = await one("User no longer likes eggs", food__likes=SEED)

    assert ruling.outcome == "needs_model"
    assert "'Scrambled eggs with lox'" in ruling.reasoning
    assert context.draft.applied == ()


async def test_to_take_back_what_nobody_kept_changes_nothing() -> None:
    """It is known not to be so."""
    _, ruling = await one("User no longer likes broccoli", food__likes=SEED)

    assert (ruling.outcome, ruling.plan) == ("known", None)


async def test_a_vegan_is_served_nothing_of_animals_in_any_document() -> None:
    """One plan over all documents, which is undone as one; what needs no animal stays."""
    context, ruling = await one(
        "I'm vegan",
        food__likes=["Steak", "Scrambled eggs with lox", "Spinach", "Honey", "Vegan cheese"],
        food__dislikes=["Liver"],
        routine__daily=["Steak dinner every Friday", "Gets up at 6:30", "Walks the dog"],
        general__interests=["Fishing", "Cattle farming"],
        health__needs=["Iron supplements"],
    )

    assert ruling.outcome == "applied"
    assert shown(context, FOOD, "food.diets") == ["Vegan"]
    assert shown(context, FOOD, "food.likes") == ["Spinach", "Vegan cheese"]
    assert shown(context, FOOD, "food.dislikes") == ["Liver"]
    assert shown(context, ROUTINE, "routine.daily") == ["Gets up at 6:30", "Walks the dog"]
    assert shown(context, GENERAL, "general.interests") == ["Fishing", "Cattle farming"]
    (applied,) = context.draft.applied
    assert set(applied.changes) == {FOOD, ROUTINE}
    assert ruling.plan is not None
    assert all(edit_.file in (FOOD, ROUTINE) for edit_ in ruling.plan.edits)


@pytest.mark.parametrize(
    ("places", "doubtful"),
    [
        ({"food__likes": ["Steak", "Grandma's special"]}, "Grandma's special"),
        ({"food__likes": ["Steak"], "routine__daily": ["Walks past the fish market"]}, "fish market"),
    ],
)
async def test_a_diet_with_a_doubt_changes_nothing_at_all(places: dict[str, list[str]], doubtful: str) -> None:
    """Half a diet would be worse than none: all of it waits for a model."""
    context, ruling = await one("I'm vegan", **places)

    assert ruling.outcome == "needs_model"
    assert doubtful in ruling.reasoning
    assert context.draft.applied == ()


async def test_a_diet_that_nobody_described_waits_only_where_something_is_liked() -> None:
    """A diet that forbids nothing by itself is kept; what no data file has heard of no rule reads."""
    context, ruling = await one("User follows the mediterranean diet", food__likes=["Steak"])
    _, unknown = await one("User follows the zorgon diet", food__likes=["Steak"])

    assert ruling.outcome == "applied"
    assert shown(context, FOOD, "food.likes") == ["Steak"]
    assert unknown.outcome == "needs_model"


async def test_a_place_that_an_imported_document_lacks_is_made() -> None:
    """With what is above it, where that is missing too."""
    bodies = documents()
    bodies[FOOD] = {"_metadata": {"tags": ["food"]}, "food": {"likes": ["Sushi"]}}
    bodies[ROUTINE] = {"_metadata": {"tags": ["routine"]}}

    context, rulings = await ruled(
        bodies, fact("User avoids gluten", "f1"), fact("User gets up at 6:30", "f2", tags=("routine",))
    )

    assert [ruling.outcome for ruling in rulings] == ["applied", "applied"], rulings
    assert shown(context, FOOD, "food.avoids") == ["Gluten"]
    assert shown(context, ROUTINE, "routine.daily") == ["Gets up at 6:30"]


@pytest.mark.parametrize(
    ("text", "tags", "resource_id", "path", "display"),
    [
        ("User is allergic to peanuts", ("food",), HEALTH, "health.allergies", "Peanuts"),
        ("User gets up at 6:30", ("routine",), ROUTINE, "routine.daily", "Gets up at 6:30"),
        ("User lives in Berlin", (), GENERAL, "general.about", "Lives in Berlin"),
        ("User likes hiking", ("hobby",), GENERAL, "general.interests", "Hiking"),
        ("User dislikes crowds", ("general",), GENERAL, "general.other", "User dislikes crowds"),
        ("User prefers short answers", (), GENERAL, "general.communication_style", "Short answers"),
    ],
)
async def test_a_statement_goes_to_the_place_of_its_kind(
    text: str, tags: tuple[str, ...], resource_id: str, path: str, display: str
) -> None:
    """Where no place is for such a thing, the whole statement is kept with what belongs nowhere else."""
    context, ruling = await one(text, tags)

    assert ruling.outcome == "applied", ruling.reasoning
    assert shown(context, resource_id, path) == [display]


async def test_whole_statements_are_known_and_taken_back_too() -> None:
    """In other words than those they were kept in."""
    bodies = documents(general__other=["User dislikes crowds", "User dislikes queues"])

    context, (again, back) = await ruled(
        bodies,
        fact("User hates crowds", "f1", tags=("general",)),
        fact("User no longer dislikes crowds", "f2", tags=("general",)),
    )

    assert (again.outcome, back.outcome) == ("known", "applied")
    assert shown(context, GENERAL, "general.other") == ["User dislikes queues"]


async def test_what_is_said_to_the_contrary_is_found_where_no_list_is_for_it() -> None:
    """Both ways: among whole statements, and among interests."""
    bodies = documents(general__other=["User dislikes crowds"], general__interests=["Chess"])

    context, rulings = await ruled(
        bodies,
        fact("User likes crowds", "f1", tags=("general",), turn_id="t1"),
        fact("User hates chess", "f2", tags=("general",), turn_id="t2"),
    )

    assert [ruling.outcome for ruling in rulings] == ["applied", "applied"]
    assert shown(context, GENERAL, "general.interests") == ["Crowds"]
    assert shown(context, GENERAL, "general.other") == ["User dislikes chess"]


async def test_told_again_nothing_grows() -> None:
    """Sixty facts, five times over, in other turns."""
    things = ("tea", "rice", "grapes", "kale", "ramen", "cheddar", "tofu", "lentils", "figs", "plums")
    said = [f"User likes {thing}" for thing in things] + [f"User is allergic to {thing}" for thing in ALLERGIES]
    said += [f"User gets up at {hour}:30" for hour in (6,)] + [f"User dislikes cold {thing}" for thing in things]
    bodies = documents()

    for turn in range(5):
        facts = [fact(text, f"f{turn}-{n}", tags=(), turn_id=f"t{turn}") for n, text in enumerate(said)]
        context, rulings = await ruled(bodies, *facts)
        bodies = {name: document.body for name, document in context.draft.documents.items()}
        assert sum(len(_displays(body)) for body in bodies.values()) == len(said)
        assert turn == 0 or {ruling.outcome for ruling in rulings} == {"known"}


async def test_what_is_one_at_a_time_takes_the_place_of_the_former() -> None:
    """To live elsewhere is to live there no more; to know two people is not."""
    context, ruling = await one("User lives in Lisbon", (), general__about=["Lives in Berlin", "Has a cat"])

    assert ruling.outcome == "applied"
    assert shown(context, GENERAL, "general.about") == ["Has a cat", "Lives in Lisbon"]


@pytest.mark.parametrize(
    ("kept", "text", "tags", "resource_id", "path"),
    [
        ("Takes 50 mg of aspirin", "User takes 500 mg of aspirin", ("health",), HEALTH, "health.needs"),
        ("Coffee without sugar", "User likes coffee with sugar", ("food",), FOOD, "food.likes"),
        ("Walks the dog in the morning", "User walks the dog in the evening", ("routine",), ROUTINE, "routine.daily"),
        ("Dr. Weber", "User likes Dr. Wagner", ("food",), FOOD, "food.likes"),
    ],
)
async def test_what_differs_in_a_number_a_no_a_name_or_a_time_is_kept_twice(
    kept: str, text: str, tags: tuple[str, ...], resource_id: str, path: str
) -> None:
    """Or waits: it is never taken for the same."""
    name = path.replace(".", "__")

    context, ruling = await one(text, tags, **{name: [kept]})

    assert ruling.outcome in ("applied", "needs_model")
    assert kept in shown(context, resource_id, path)
    assert ruling.outcome == "needs_model" or any(kept not in entry for entry in shown(context, resource_id, path))


async def test_what_holds_for_a_time_says_until_when() -> None:
    """Told again with another end, it takes that."""
    bodies = documents(food__avoids=[item("Gluten", expiry="2026-03-02", durability="short_term")])

    context, (ruling,) = await ruled(bodies, fact("User avoids gluten until Friday"))

    assert ruling.outcome == "applied"
    (kept,) = context.draft.body(FOOD)["food"]["avoids"]  # type: ignore[index,call-overload]
    assert (kept["expiry"], kept["durability"]) == ("2026-03-06", "short_term")


async def test_what_had_expired_is_fresh_when_it_is_said_again() -> None:
    """In its old place."""
    bodies = documents(food__likes=[item("Sushi", expiry="2026-01-31"), "Tea"])

    context, (ruling,) = await ruled(bodies, fact("User likes sushi"))

    assert ruling.outcome == "applied"
    first = context.draft.body(FOOD)["food"]["likes"][0]  # type: ignore[index,call-overload]
    assert (first["display"], first["expiry"], first["source"]) == ("Sushi", None, "stated:t1")


async def test_a_fact_that_no_pattern_reads_waits_for_a_model() -> None:
    """With the reason; nothing is applied."""
    context, ruling = await one("User's taste runs to the unusual", food__likes=SEED)

    assert (ruling.outcome, ruling.reasoning, ruling.plan) == ("needs_model", "no rule reads it", None)
    assert context.draft.applied == ()


async def test_facts_of_a_batch_see_what_those_before_them_did() -> None:
    """The last word about sushi counts, whoever of the batch had it."""
    context, rulings = await ruled(
        documents(),
        fact("User likes sushi", "f1", turn_id="t1"),
        fact("User likes sushi", "f2", turn_id="t2"),
        fact("User hates sushi", "f3", turn_id="t3"),
    )

    assert [ruling.outcome for ruling in rulings] == ["applied", "known", "applied"]
    assert shown(context, FOOD, "food.likes") == []
    assert shown(context, FOOD, "food.dislikes") == ["Sushi"]


FIVE_FACTS = [
    ("I like omelettes", "User loves omelettes", "User enjoys an omelette"),
    ("I'm allergic to peanuts", "User is allergic to peanuts", "User has a peanut allergy"),
    ("I live in Berlin", "User lives in Berlin", "The user lives in Berlin"),
    ("I get up at 6:30", "User gets up at 6:30", "The user gets up at 6:30."),
    ("I hate cilantro", "User dislikes cilantro", "User can't stand cilantro"),
]


async def test_five_facts_in_three_wordings_are_five_items() -> None:
    """Told one after the other, and all over again."""
    facts = [
        fact(wording, f"f{turn}{number}{time}", tags=(), turn_id=f"t{turn}{time}")
        for time in range(2)
        for turn in range(3)
        for number, wordings in enumerate(FIVE_FACTS)
        for wording in [wordings[turn]]
    ]

    context, rulings = await ruled(documents(), *facts)

    kept = [leaf for body in context.draft.documents.values() for leaf in _displays(body.body)]
    assert len(kept) == 5, kept
    assert {ruling.outcome for ruling in rulings} == {"applied", "known"}


def _displays(body: Body) -> list[str]:
    return [text for _, text, _ in leaves(body)]


async def test_three_of_five_plain_statements_need_no_model() -> None:
    """Of what people say of themselves, most is said plainly."""
    said = [
        "User likes green tea",
        "User doesn't like olives",
        "User is vegetarian",
        "User is lactose intolerant",
        "User has asthma",
        "User goes to bed at 11 pm",
        "User's birthday is on 3 May",
        "User works as a nurse",
        "User has two kids",
        "User prefers bullet points",
        "User is interested in astronomy",
        "User no longer eats meat",
        "User avoids caffeine after noon",
        "User takes ibuprofen",
        "User plays the piano",
        "User's coffee order is weird",
        "User needs a break every two hours",
        "User speaks German and French",
        "User drinks water before meals",
        "User is left-handed",
    ]
    facts = [fact(text, f"f{number}", tags=(), turn_id=f"t{number}") for number, text in enumerate(said)]

    _, rulings = await ruled(documents(), *facts)

    decided = [ruling for ruling in rulings if ruling.outcome != "needs_model"]
    assert len(decided) >= 0.6 * len(said), [r.fact_id for r in rulings if r.outcome == "needs_model"]


def test_dates_of_these_tests_agree() -> None:
    """The bench's now is the first of March 2026, a Sunday; and the draft is that of its user."""
    assert NOW.date() == date(2026, 3, 1)
    assert isinstance(context_over(documents()).draft, Draft)
    assert context_over(documents()).user_id == USER
    assert FOOD in KINDS.ids
