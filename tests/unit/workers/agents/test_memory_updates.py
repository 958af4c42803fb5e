"""How facts change documents, by relation and kind, and which of them the arbiter refuses."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest
from pydantic import JsonValue

from tasklore.contracts.errors import LlmTimeout
from tasklore.memory.documents.entries import home_of, live_entries
from tasklore.memory.documents.items import Item, slug
from tasklore.workers.agents.memory_worker.runner import PROTECTED, edit
from tasklore.workers.agents.switchboard.facts import from_statement
from tasklore.workers.listening.values import PendingFact, Ruling
from tasklore.workers.statements import read
from tests.memory_bench import (
    FOOD,
    GENERAL,
    HEALTH,
    KINDS,
    NOW,
    BenchContext,
    Respond,
    batch,
    context_over,
    documents,
    fact,
    item,
    shown,
)

TODAY = NOW.date()
WORK = "resource_user_work"
PEOPLE = "resource_user_people"
PLANS = "resource_user_plans"
PLACES = "resource_user_places"


def fact_of(
    category: str, value: str, fact_id: str = "f1", *, text: str = "", **fields: Any
) -> PendingFact:
    """Return a stated fact of that category."""
    return fact(
        text or f"You: {value}",
        fact_id,
        tags=(),
        category=category,
        value=value,
        **fields,
    )


async def ruled(
    bodies: Mapping[str, Any], *facts: PendingFact, respond: Respond | None = None
) -> tuple[BenchContext, Sequence[Ruling]]:
    """Return the context after *facts* were ruled on over *bodies*, and the rulings."""
    context = context_over(bodies, respond)
    return context, await edit(batch(*facts), context)


def states(
    context: BenchContext, resource_id: str, path: str, day: date = TODAY
) -> dict[str, str]:
    """Return the state of each item of one list on *day*, by display."""
    value: JsonValue = context.draft.documents[resource_id].body
    for step in path.split("."):
        assert isinstance(value, dict)
        value = value[step]
    assert isinstance(value, list)
    items = [Item.read(one) for one in value]
    return {one.display: one.state(day) for one in items if one is not None}


def item_at(
    context: BenchContext, resource_id: str, path: str, index: int
) -> dict[str, Any]:
    """Return one item as it is stored."""
    value: Any = context.draft.documents[resource_id].body
    for step in path.split("."):
        value = value[step]
    found: dict[str, Any] = value[index]
    return found


async def test_a_fact_of_somebody_else_ends_nothing_of_the_person() -> None:
    context, _ = await ruled(
        documents(work__employer=["Acme"]),
        fact_of("work.employer", "Beta", subject="Mia"),
        fact_of(
            "work.employer",
            "Gamma",
            "f2",
            relation="updates",
            subject="Mia",
            turn_id="t2",
        ),
        fact_of("work.employer", "Delta", "f3", subject="Bob"),
    )
    assert states(context, WORK, "work.employer") == {"Acme": "current"}
    assert states(context, PEOPLE, "people.facts") == {
        "Beta": "past",
        "Gamma": "current",
        "Delta": "current",
    }
    first = item_at(context, PEOPLE, "people.facts", 0)
    assert (first["subject"], first["category"]) == ("Mia", "work.employer")


async def test_an_update_ends_what_it_names_alone() -> None:
    """In a list of many."""
    switched = fact_of(
        "work.tools",
        "Neovim",
        relation="updates",
        related=(f"{WORK}:work.tools.vs_code",),
        valid_from=date(2026, 2, 1),
    )
    context, (ruling,) = await ruled(
        documents(work__tools=["Git", "VS Code"]), switched
    )
    assert states(context, WORK, "work.tools") == {
        "Git": "current",
        "VS Code": "past",
        "Neovim": "current",
    }
    assert item_at(context, WORK, "work.tools", 1)["until"] == "2026-02-01"
    assert item_at(context, WORK, "work.tools", 2)["since"] == "2026-02-01"
    assert ruling.notices == ("no longer: VS Code", "You: Neovim")


async def test_the_contrary_of_the_same_thing_ends_it_unnamed() -> None:
    """Which place says the contrary is data of the kind."""
    context, _ = await ruled(
        documents(food__likes=["Olives", "Figs"]),
        fact_of("food.dislikes", "olives", relation="updates"),
    )
    assert states(context, FOOD, "food.likes") == {"Olives": "past", "Figs": "current"}


@pytest.mark.parametrize("relation", ["new", "adds_to"])
@pytest.mark.parametrize(
    ("place", "held", "category", "value"),
    [
        ("places.home", "Porto", "places.home", "Hull"),
        ("food.likes", "Olives", "food.dislikes", "olives"),
        ("general.other", "I love flying", "general.other", "I hate flying"),
        ("general.birthday", "3 May", "general.birthday", "4 May"),
    ],
)
async def test_what_does_not_say_that_it_takes_something_away_takes_nothing_away(
    relation: str, place: str, held: str, category: str, value: str
) -> None:
    """Both stand, each marked with the conflict, and the person reads of it."""
    context, (ruling,) = await ruled(
        documents(**{place.replace(".", "__"): [held]}),
        fact_of(category, value, relation=relation),
    )
    home = home_of(place, None, KINDS)
    assert home is not None
    resource_id = home.resource_id
    assert states(context, resource_id, place)[held] == "current"
    assert item_at(context, resource_id, place, 0)["conflict"] == "f1"
    assert ruling.outcome == "conflict"
    assert f"this contradicts: {held}" in ruling.notices
    assert context.refusals == ["unsaid"]


async def test_an_end_inserts_nothing() -> None:
    gone = fact_of(
        "work.employer", "", relation="ends", related=(f"{WORK}:work.employer.acme",)
    )
    context, (ruling,) = await ruled(documents(work__employer=["Acme"]), gone)
    assert states(context, WORK, "work.employer") == {"Acme": "past"}
    assert ruling.notices == ("no longer: Acme",)


@pytest.mark.parametrize(
    ("relation", "category", "value", "is_named"),
    [
        ("updates", "food.dislikes", "coffee", False),
        ("ends", "food.likes", "", True),
        ("updates", "food.likes", "tea", True),
    ],
)
async def test_what_is_temporary_hides_and_comes_back(
    relation: str, category: str, value: str, *, is_named: bool
) -> None:
    """By itself, on the day after."""
    until = TODAY + timedelta(days=5)
    context, _ = await ruled(
        documents(food__likes=["Coffee"]),
        fact_of(
            category,
            value,
            relation=relation,
            related=(f"{FOOD}:food.likes.coffee",) if is_named else (),
            expiry=until,
            durability="short_term",
        ),
    )
    coffee = Item.read(item_at(context, FOOD, "food.likes", 0))
    assert coffee is not None
    assert [
        coffee.state(TODAY),
        coffee.state(until),
        coffee.state(until + timedelta(days=1)),
    ] == [
        "paused",
        "paused",
        "current",
    ]


async def test_forgetting_deletes_and_undo_is_there() -> None:
    """Nothing is kept as the past."""
    reference = f"{FOOD}:food.likes.eggs"
    wish = fact_of("", "", relation="forget", related=(reference,), text="forget eggs")
    context, (ruling,) = await ruled(documents(food__likes=["Eggs", "Figs"]), wish)
    assert shown(context, FOOD, "food.likes") == ["Figs"]
    assert ruling.notices == ("forgotten: Eggs",)


@pytest.mark.parametrize(
    "said",
    [
        "delete my last order",
        "forget it",
        "delete my account",
        "forget about the pizza",
        "lösche meine letzte Bestellung",
        "vergiss es",
        "lösche mein Konto",
        "vergiss die Pizza",
        "borra mi último pedido",
        "olvídalo",
        "borra mi cuenta",
        "olvida lo de la pizza",
        "最後の注文を削除して",
        "忘れて",
        "アカウントを削除して",
        "ピザのことは忘れて",
    ],
)
@pytest.mark.parametrize("way", ["named", "all of a topic", "all", "found"])
async def test_words_that_name_nothing_that_is_kept_forget_nothing(
    said: str, way: str
) -> None:
    """Whatever a hostile model takes them for: an item, a whole topic, everything, or what it finds that they mean."""
    reference = f"{FOOD}:food.likes.eggs"
    wish = {
        "named": fact_of("", "", relation="forget", related=(reference,), text=said),
        "all of a topic": fact_of("food", "", relation="forget", text=said),
        "all": fact_of("", "", relation="forget", text=said),
        "found": fact_of("", "that thing", relation="forget", text=said),
    }[way]
    respond = finding((1, f"{FOOD}:food.likes"), (1, f"{HEALTH}:health.allergies"))
    bodies = documents(food__likes=["Eggs"], health__allergies=["Peanuts"])
    context, (ruling,) = await ruled(bodies, wish, respond=respond)
    assert shown(context, FOOD, "food.likes") == ["Eggs"]
    assert shown(context, HEALTH, "health.allergies") == ["Peanuts"]
    assert ruling.outcome in ("conflict", "known")
    assert ruling.plan is None or not ruling.notices


async def test_what_is_said_again_is_renewed_and_never_doubled() -> None:
    """Its day and its source; said twice on one day nothing changes."""
    guessed = item("Sushi", source="inferred:t0", confidence=0.7)
    again = fact_of(
        "food.likes", "sushi", relation="same", related=(f"{FOOD}:food.likes.sushi",)
    )
    context, (first, second) = await ruled(
        documents(food__likes=[guessed]), again, fact_of("food.likes", "SUSHI", "f2")
    )
    assert shown(context, FOOD, "food.likes") == ["Sushi"]
    renewed = item_at(context, FOOD, "food.likes", 0)
    assert (renewed["added"], renewed["confidence"], renewed["source"]) == (
        TODAY.isoformat(),
        1.0,
        "stated:t1",
    )
    assert (first.outcome, second.outcome) == ("applied", "known")


async def test_what_was_past_and_is_said_again_is_current() -> None:
    """It stands once."""
    old = item("Acme", until="2026-01-15")
    context, _ = await ruled(
        documents(work__employer=[old, "Beta"]),
        fact_of("work.employer", "Acme", relation="updates"),
    )
    assert states(context, WORK, "work.employer") == {"Acme": "current", "Beta": "past"}


async def test_what_was_only_inferred_overrules_nothing_that_was_said() -> None:
    """Both stand, and both say so."""
    context, (ruling,) = await ruled(
        documents(work__employer=["Acme"]),
        fact_of(
            "work.employer", "Beta", relation="updates", inferred=True, confidence=0.7
        ),
    )
    assert ruling.outcome == "conflict"
    assert states(context, WORK, "work.employer") == {
        "Acme": "current",
        "Beta": "current",
    }
    assert [
        item_at(context, WORK, "work.employer", at)["conflict"] for at in (0, 1)
    ] == ["f1", "f1"]
    assert context.refusals == ["rank"]


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"inferred": True}, "guarded"),
        ({"subject": "Mia"}, "protected"),
        ({"evidence": ""}, "protected"),
    ],
)
async def test_an_allergy_ends_by_the_persons_own_quoted_words_alone(
    fields: dict[str, Any], why: str
) -> None:
    """Else it stays, and the contradiction is listed."""
    named = (f"{HEALTH}:health.allergies.peanuts",)
    gone = fact_of(
        "health.allergies",
        "",
        relation="ends",
        related=named,
        text="Your allergy is gone",
    )
    gone = PendingFact(fact=gone.fact.model_copy(update=fields), turn_id="t1")
    context, (ruling,) = await ruled(documents(health__allergies=["Peanuts"]), gone)
    assert ruling.outcome == "conflict"
    assert states(context, HEALTH, "health.allergies") == {"Peanuts": "current"}
    assert context.refusals == [why]


async def test_an_allergy_that_the_person_says_is_gone_is_past_and_flagged() -> None:
    gone = fact_of(
        "health.allergies",
        "",
        relation="ends",
        related=(f"{HEALTH}:health.allergies.peanuts",),
        text="It is gone",
    )
    context, (ruling,) = await ruled(documents(health__allergies=["Peanuts"]), gone)
    assert states(context, HEALTH, "health.allergies") == {"Peanuts": "past"}
    assert ruling.plan is not None
    assert ruling.plan.origin.reasoning.startswith(PROTECTED)
    assert ruling.notices == ("no longer: Peanuts",)


async def test_what_was_said_before_what_is_kept_becomes_the_past() -> None:
    """However late it comes."""
    late = fact_of("work.employer", "Acme")
    late = PendingFact(
        fact=late.fact, turn_id="t1", said=datetime(2025, 6, 1, tzinfo=UTC)
    )
    context, (ruling,) = await ruled(documents(work__employer=["Beta"]), late)
    assert ruling.outcome == "applied"
    assert states(context, WORK, "work.employer") == {"Beta": "current", "Acme": "past"}
    assert item_at(context, WORK, "work.employer", 1)["until"] == "2026-01-01"


async def test_a_late_end_ends_nothing_newer() -> None:
    """It was said of something else."""
    late = fact_of(
        "work.employer", "", relation="ends", related=(f"{WORK}:work.employer.beta",)
    )
    late = PendingFact(
        fact=late.fact, turn_id="t1", said=datetime(2025, 6, 1, tzinfo=UTC)
    )
    context, _ = await ruled(documents(work__employer=["Beta"]), late)
    assert states(context, WORK, "work.employer") == {"Beta": "current"}


async def test_what_is_over_tomorrow_is_no_item() -> None:
    context, (ruling,) = await ruled(
        documents(), fact_of("food.likes", "This soup", durability="momentary")
    )
    assert ruling.outcome == "rejected"
    assert context.draft.applied == ()


def finding(*locations: tuple[int, str]) -> Respond:
    """Return a finder that names these lines."""
    found = [
        {"fact": number, "path": path, "relevance": "it has meat"}
        for number, path in locations
    ]
    return lambda _role, _user: {"reasoning": "read all lines", "locations": found}


async def test_a_diet_ends_what_a_model_finds_in_its_document() -> None:
    respond = finding((1, f"{FOOD}:food.likes[0]"), (1, f"{FOOD}:food.likes[9]"))
    context, (ruling, _) = await ruled(
        documents(food__likes=["Carbonara", "Figs"]),
        fact_of("food.diets", "Vegan"),
        fact_of("food.likes", "Lentils", "f2"),
        respond=respond,
    )
    assert states(context, FOOD, "food.likes") == {
        "Carbonara": "past",
        "Figs": "current",
        "Lentils": "current",
    }
    ((role, _, asked),) = context.model.asked
    assert role == "finder"
    assert '1: "You: Vegan" (new)' in asked
    assert f"{FOOD}:food.likes\n0: Carbonara\n1: Figs" in asked
    assert context.refusals == ["path"]
    assert ruling.plan is not None
    finder: Any = ruling.plan.origin.finder
    assert finder["model"] == context.model.role("finder").model
    assert finder["locations"][0]["relevance"] == "it has meat"
    editor: Any = ruling.plan.origin.editor
    assert [(one["operation"], one["display"]) for one in editor["edits"]] == [
        ("end", "Carbonara"),
        ("insert", "Vegan"),
    ]


async def test_a_sweep_ends_nothing_that_is_protected() -> None:
    """A model's opinion is not enough for that."""
    respond = finding((1, f"{FOOD}:food.diets[0]"))
    context, (ruling,) = await ruled(
        documents(food__diets=["Halal"]),
        fact_of("food.diets", "Vegan"),
        respond=respond,
    )
    assert states(context, FOOD, "food.diets") == {
        "Halal": "current",
        "Vegan": "current",
    }
    assert ruling.outcome == "applied"


async def test_forgetting_what_nobody_named_is_found_by_a_model() -> None:
    """In all documents where the fact says no category; a list stands for all that is in it, which is named."""
    respond = finding((1, f"{FOOD}:food.likes"))
    wish = fact_of(
        "",
        "breakfast things",
        relation="forget",
        text="forget what I like for breakfast",
    )
    context, (ruling,) = await ruled(
        documents(food__likes=["Eggs", "Toast"]), wish, respond=respond
    )
    assert shown(context, FOOD, "food.likes") == []
    assert ruling.outcome == "applied"


async def test_forgetting_waits_for_a_model_where_none_is_configured() -> None:
    """And words do not point to anything."""
    wish = fact_of("", "breakfast things", relation="forget")
    _, (ruling,) = await ruled(documents(food__likes=["Eggs"]), wish)
    assert ruling.outcome == "needs_model"


async def test_a_diet_is_noted_without_a_model_too() -> None:
    """Nothing is swept then, and the reason says so."""
    context, (ruling,) = await ruled(
        documents(food__likes=["Carbonara"]), fact_of("food.diets", "Vegan")
    )
    assert states(context, FOOD, "food.diets") == {"Vegan": "current"}
    assert states(context, FOOD, "food.likes") == {"Carbonara": "current"}
    assert "no model is configured" in ruling.reasoning


async def test_facts_wait_for_a_model_that_is_away() -> None:
    with pytest.raises(LlmTimeout):
        await ruled(
            documents(food__likes=["Eel"]),
            fact_of("food.diets", "Vegan"),
            respond=lambda *_: LlmTimeout("late"),
        )


async def test_a_whole_category_is_forgotten_at_a_word() -> None:
    """Or all of a topic; nothing beside it."""
    bodies = documents(
        food__likes=["Eggs", "Figs"], food__dislikes=["Olives"], routine__daily=["Yoga"]
    )
    context, _ = await ruled(
        bodies,
        fact_of("food.likes", "", relation="forget", text="forget what I like to eat"),
    )
    assert (
        shown(context, FOOD, "food.likes"),
        shown(context, FOOD, "food.dislikes"),
    ) == ([], ["Olives"])
    context, _ = await ruled(
        bodies, fact_of("food", "", relation="forget", text="forget what I eat")
    )
    assert (
        shown(context, FOOD, "food.likes"),
        shown(context, FOOD, "food.dislikes"),
    ) == ([], [])
    assert shown(context, "resource_user_routine", "routine.daily") == ["Yoga"]


@pytest.mark.parametrize(
    ("said", "left"), [("I love pizza", ["Peanuts"]), ("forget my allergies", [])]
)
async def test_what_is_protected_is_deleted_where_the_words_point_to_it_alone(
    said: str, left: list[str]
) -> None:
    """By its own name, or that of its place."""
    wish = fact_of("health.allergies", "", relation="forget", text=said)
    context, _ = await ruled(documents(health__allergies=["Peanuts"]), wish)
    assert shown(context, HEALTH, "health.allergies") == left


@pytest.mark.parametrize("relation", ["adds_to", "new"])
@pytest.mark.parametrize(
    ("place", "kept", "value"),
    [
        ("health__allergies", "Peanuts", "cashews"),
        ("health__conditions", "Asthma", "hay fever"),
        ("food__diets", "Halal", "dairy-free"),
        ("food__likes", "Ramen", "udon"),
    ],
)
async def test_what_stands_beside_an_item_takes_nothing_away(
    relation: str, place: str, kept: str, value: str
) -> None:
    """Naming an item retires it by the relations that say so alone."""
    category = place.replace("__", ".")
    bodies = documents(**{place: [kept]})
    resource_id = next(name for name, body in bodies.items() if category[:4] in name)
    added = fact_of(
        category,
        value,
        relation=relation,
        related=(f"{resource_id}:{category}.{slug(kept)}",),
    )
    context, (ruling,) = await ruled(bodies, added)
    display = value[:1].upper() + value[1:]
    assert states(context, resource_id, category) == {
        kept: "current",
        display: "current",
    }
    assert ruling.notices == (f"You: {value}",)


async def test_what_adds_to_the_one_item_of_a_place_stands_beside_it() -> None:
    """Words about a new home do not end its address."""
    bodies = documents(places__home=["Porto"])
    beside = fact_of(
        "places.home",
        "two rooms",
        relation="adds_to",
        related=(f"{PLACES}:places.home.porto",),
    )
    context, _ = await ruled(bodies, beside)
    assert states(context, PLACES, "places.home") == {
        "Porto": "current",
        "Two rooms": "current",
    }


async def test_a_sweep_leaves_what_the_fact_adds_to() -> None:
    """Whatever a model finds besides."""
    named = f"{FOOD}:food.avoids.pork"
    context, _ = await ruled(
        documents(food__avoids=["Pork"], food__likes=["Lox"]),
        fact_of("food.diets", "kosher", relation="adds_to", related=(named,)),
        respond=lambda _role, _user: {
            "reasoning": "",
            "locations": [
                {"path": "food.avoids[0]"},
                {"path": "food.likes[0]"},
            ],
        },
    )
    assert states(context, FOOD, "food.avoids") == {"Pork": "current"}
    assert states(context, FOOD, "food.likes") == {"Lox": "past"}


async def test_the_same_in_other_words_is_renewed() -> None:
    """At whichever place the item that the fact names stands."""
    lox = f"{FOOD}:food.likes.scrambled_eggs_with_lox"
    context, (ruling,) = await ruled(
        documents(food__likes=["Scrambled eggs with lox", "Ramen"]),
        fact_of(
            "general.interests",
            "Eggs with smoked salmon",
            relation="same",
            related=(lox,),
        ),
    )
    assert states(context, FOOD, "food.likes") == {
        "Scrambled eggs with lox": "current",
        "Ramen": "current",
    }
    assert shown(context, GENERAL, "general.interests") == []
    renewed = item_at(context, FOOD, "food.likes", 0)
    assert (renewed["added"], "category" in renewed) == (TODAY.isoformat(), False)
    assert ruling.outcome == "applied"


async def test_the_same_without_a_value_is_no_item_of_its_own() -> None:
    context, _ = await ruled(
        documents(food__likes=["Ramen"]),
        fact_of(
            "food.likes", "", relation="same", related=(f"{FOOD}:food.likes.ramen",)
        ),
    )
    assert shown(context, FOOD, "food.likes") == ["Ramen"]


@pytest.mark.parametrize(
    ("value", "kept"),
    [
        ("cashews", ["Peanuts", "Cashews"]),
        ("peanut allergy", ["Peanuts"]),
    ],
)
async def test_another_allergy_is_not_lost_as_the_same(
    value: str, kept: list[str]
) -> None:
    """A slip of the model costs a duplicate at most."""
    same = fact_of(
        "health.allergies",
        value,
        relation="same",
        related=(f"{HEALTH}:health.allergies.peanuts",),
    )
    context, _ = await ruled(documents(health__allergies=["Peanuts"]), same)
    assert shown(context, HEALTH, "health.allergies") == kept


@pytest.mark.parametrize(
    ("tags", "resource_id", "path"),
    [
        (["food"], FOOD, "food.other"),
        (["Health"], HEALTH, "health.other"),
        (["work", "nothing"], WORK, "work.other"),
        (["nothing"], GENERAL, "general.other"),
        ([], GENERAL, "general.other"),
    ],
)
async def test_a_fact_without_a_category_goes_to_the_document_of_its_tags(
    tags: list[str], resource_id: str, path: str
) -> None:
    """As a whole statement; said again it is renewed there, and nothing is doubled."""
    told = fact("User shares the fridge", tags=tags, value="the fridge")
    again = fact("User shares the fridge", "f2", tags=tags, turn_id="t2")
    context, rulings = await ruled(documents(), told, again)
    assert [one.outcome for one in rulings] == ["applied", "known"]
    assert shown(context, resource_id, path) == ["User shares the fridge"]
    entries = live_entries(
        {name: one.body for name, one in context.draft.documents.items()},
        KINDS,
        TODAY,
    )
    assert [str(entry.place.path) for entry in entries if entry.place] == [path]
    assert entries[0].is_protected is (resource_id == HEALTH)


@pytest.mark.parametrize("again", ["3 May", "May 3rd", "the 3rd of May"])
async def test_a_day_said_without_its_year_ends_nothing(again: str) -> None:
    """The item that knows the year stays, and is renewed."""
    context, _ = await ruled(
        documents(general__birthday=["3 May 1990"]),
        fact_of("general.birthday", again),
    )
    assert states(context, GENERAL, "general.birthday") == {"3 May 1990": "current"}
    context, _ = await ruled(
        documents(general__birthday=["3 May"]),
        fact_of("general.birthday", "3 May 1990"),
    )
    assert states(context, GENERAL, "general.birthday") == {"3 May 1990": "current"}
    context, _ = await ruled(
        documents(general__birthday=["3 May 1990"]),
        fact_of("general.birthday", "4 May", relation="updates"),
    )
    assert states(context, GENERAL, "general.birthday")["3 May 1990"] == "past"


async def test_an_allergy_of_one_sign_is_forgotten_by_name() -> None:
    """Though it stands among other signs without a blank."""
    said = "忘记我对虾过敏"
    forget = fact_of(
        "health.allergies",
        "虾",
        text=said,
        relation="forget",
        related=(f"{HEALTH}:health.allergies.虾",),
    )
    context, (ruling,) = await ruled(documents(health__allergies=["虾"]), forget)
    assert (ruling.outcome, shown(context, HEALTH, "health.allergies")) == (
        "applied",
        [],
    )


@pytest.mark.parametrize("relation", ["updates", "contradicts"])
@pytest.mark.parametrize("moved_to", [date(2026, 3, 5), date(2026, 3, 20)])
@pytest.mark.parametrize("is_bounded", [True, False])
async def test_an_appointment_that_is_moved_does_not_come_back(
    relation: str, moved_to: date, *, is_bounded: bool
) -> None:
    """To an earlier day or to a later one, and with or without a last day of its own."""
    old = item(
        "Dentist on 10 March",
        expiry="2026-03-10" if is_bounded else None,
        since="2026-03-10",
    )
    moved = fact_of(
        "plans.upcoming",
        f"dentist on {moved_to.day} March",
        relation=relation,
        related=(f"{PLANS}:plans.upcoming.dentist_on_10_march",),
        valid_from=moved_to,
        expiry=moved_to,
    )
    context, _ = await ruled(documents(plans__upcoming=[old]), moved)
    for later in range(30):
        day = TODAY + timedelta(days=later)
        first, second = states(context, PLANS, "plans.upcoming", day).values()
        assert first == "past"
        assert second == (
            "planned" if day < moved_to else "current" if day == moved_to else "expired"
        )


async def test_what_lasts_a_while_is_replaced_by_what_takes_its_place() -> None:
    """A shorter while hides what lasts, and ends what was to end itself."""
    soon, later = TODAY + timedelta(days=5), TODAY + timedelta(days=20)
    context, _ = await ruled(
        documents(work__projects=[item("Draft by the 21st", expiry=later.isoformat())]),
        fact_of(
            "work.projects",
            "draft by the 6th",
            relation="updates",
            related=(f"{WORK}:work.projects.draft_by_the_21st",),
            expiry=soon,
        ),
    )
    after = soon + timedelta(days=1)
    assert states(context, WORK, "work.projects", after) == {
        "Draft by the 21st": "past",
        "Draft by the 6th": "expired",
    }


@pytest.mark.parametrize(
    ("kept", "left"),
    [
        ("Peanuts", "past"),
        ("Peanuts (severe)", "past"),
        ("Peanuts and shellfish", "current"),
    ],
)
async def test_an_allergy_that_is_denied_ends_where_it_says_nothing_else(
    kept: str, left: str
) -> None:
    """The other half of it may hold on."""
    denied = fact_of(
        "health.allergies",
        "peanuts",
        text="I'm not allergic to peanuts",
        relation="ends",
    )
    context, _ = await ruled(documents(health__allergies=[kept]), denied)
    assert states(context, HEALTH, "health.allergies") == {kept: left}


async def test_words_that_were_not_understood_are_told_beside_what_was() -> None:
    """The person sees what to say again."""
    aside = fact("I carry an epipen", confidence=0.0, extracted_by="rules")
    _, (ruling,) = await ruled(documents(), aside)
    assert ruling.outcome == "rejected"
    assert ruling.notices == ('not understood: "I carry an epipen"',)


ALLERGY = f"{HEALTH}:health.allergies.peanuts"


@pytest.mark.parametrize("relation", ["new", "same", "adds_to"])
@pytest.mark.parametrize(
    "days",
    [
        {"expiry": TODAY + timedelta(days=4), "durability": "short_term"},
        {"expiry": date(2025, 1, 1)},
        {"valid_from": date(2027, 1, 1)},
    ],
)
async def test_what_is_said_again_holds_no_shorter(
    relation: str, days: dict[str, Any]
) -> None:
    """An allergy that is told for a week, of the past or for next year is the allergy that it was."""
    again = fact_of(
        "health.allergies", "peanuts", relation=relation, related=(ALLERGY,), **days
    )
    context, _ = await ruled(documents(health__allergies=["Peanuts"]), again)
    for later in (0, 4, 5, 400):
        day = TODAY + timedelta(days=later)
        entries = live_entries(
            {name: one.body for name, one in context.draft.documents.items()},
            KINDS,
            day,
        )
        assert "Peanuts" in [
            entry.text
            for entry in entries
            if entry.item is not None and entry.item.state(day) == "current"
        ]


@pytest.mark.parametrize(
    ("held", "said", "kept"), [(1, 2, "Paris"), (2, 1, "Lyon"), (1, 1, "Paris")]
)
async def test_of_two_turns_of_a_day_the_later_one_holds(
    held: int, said: int, kept: str
) -> None:
    """Facts may come in another order than they were said in: a turn's id tells when that was."""
    first, second = (f"018f0000-000{at}-7000-8000-000000000001" for at in (held, said))
    home = item("Lyon", added=TODAY, source=f"stated:{first}")
    moved = fact_of(
        "places.home",
        "Paris",
        relation="updates",
        related=(f"{PLACES}:places.home.lyon",),
        turn_id=second,
    )
    context, _ = await ruled(documents(places__home=[home]), moved)
    found = states(context, PLACES, "places.home")
    assert [name for name, state in found.items() if state == "current"] == [kept]


async def test_what_is_said_again_is_no_less_lasting() -> None:
    """A birthday stays one for good, whatever a model makes of the second time."""
    held = item("Peanuts", durability="permanent")
    again = fact_of("health.allergies", "peanuts", durability="long_term")
    context, _ = await ruled(documents(health__allergies=[held]), again)
    [kept] = context.draft.body(HEALTH)["health"]["allergies"]
    assert (kept["durability"], kept["source"]) == ("permanent", "stated:t1")


@pytest.mark.parametrize(
    ("held", "category", "value", "named", "kept"),
    [
        (
            {"food__likes": ["Fish"]},
            "health.allergies",
            "fish",
            f"{FOOD}:food.likes.fish",
            {"food.likes.fish", "health.allergies.fish"},
        ),
        (
            {"food__dislikes": ["Olives"]},
            "food.likes",
            "olives",
            f"{FOOD}:food.dislikes.olives",
            {"food.dislikes.olives", "food.likes.olives"},
        ),
        (
            {"health__allergies": ["Nuts"]},
            "health.allergies",
            "tree nuts",
            f"{HEALTH}:health.allergies.nuts",
            {"health.allergies.nuts", "health.allergies.tree_nuts"},
        ),
        (
            {"places__home": ["Lyon"]},
            "places.home",
            "Paris",
            f"{PLACES}:places.home.lyon",
            {"places.home.lyon", "places.home.paris"},
        ),
    ],
)
async def test_what_is_called_the_same_and_is_not_is_kept_beside_it(
    held: dict[str, Any], category: str, value: str, named: str, kept: set[str]
) -> None:
    """Of something protected, of a contrary, and of the one item of a place."""
    slip = fact_of(category, value, relation="same", related=(named,))
    context, _ = await ruled(documents(**held), slip)
    entries = live_entries(
        {name: one.body for name, one in context.draft.documents.items()}, KINDS, TODAY
    )
    assert {entry.reference.partition(":")[2] for entry in entries} == kept


async def test_the_same_in_more_words_is_not_cut_short() -> None:
    """The item says the more from then on, under its name; in other words the reply says how it is kept."""
    ana = f"{PEOPLE}:people.relations.ana_sister"
    more = fact_of(
        "people.relations",
        "Ana (sister) in Porto",
        relation="same",
        related=(ana,),
    )
    other = fact_of(
        "people.relations",
        "Ana, the oldest",
        "f2",
        turn_id="t2",
        relation="same",
        related=(ana,),
    )
    bodies = documents(people__relations=["Ana (sister)"])
    context, (ruling,) = await ruled(bodies, more)
    assert shown(context, PEOPLE, "people.relations") == ["Ana (sister) in Porto"]
    assert ruling.notices == ("You: Ana (sister) in Porto",)
    context, (ruling,) = await ruled(bodies, other)
    assert shown(context, PEOPLE, "people.relations") == ["Ana (sister)"]
    assert ruling.notices == ("You: Ana, the oldest (kept as: Ana (sister))",)


@pytest.mark.parametrize("moved_to", [date(2026, 3, 3), date(2026, 3, 20)])
async def test_an_event_of_one_name_on_another_day_is_another_one(
    moved_to: date,
) -> None:
    """Two visits to a dentist; the one that a fact names to change it is moved."""
    held = documents(plans__upcoming=[item("Dentist", expiry="2026-03-10")])
    second = fact_of("plans.upcoming", "dentist", expiry=moved_to)
    context, _ = await ruled(held, second)
    assert len(shown(context, PLANS, "plans.upcoming")) == 2
    moved = fact_of(
        "plans.upcoming",
        "dentist",
        expiry=moved_to,
        relation="updates",
        related=(f"{PLANS}:plans.upcoming.dentist",),
    )
    context, _ = await ruled(held, moved)
    assert shown(context, PLANS, "plans.upcoming") == ["Dentist"]
    kept = item_at(context, PLANS, "plans.upcoming", 0)
    assert kept["expiry"] == moved_to.isoformat()


@pytest.mark.parametrize(
    ("tags", "path"),
    [
        (["Foods"], "food.other"),
        (["#food"], "food.other"),
        (["Food preferences"], "food.other"),
        (["routines"], "routine.other"),
        (["Place"], "places.other"),
        (["food", "health"], "health.other"),
        (["food, health"], "health.other"),
        (["Essen"], "general.other"),
    ],
)
async def test_a_tag_in_other_letters_leads_to_the_same_document(
    tags: list[str], path: str
) -> None:
    """As plural, with `#`, by a name of its kind, several in one; where health is among them, there."""
    context, _ = await ruled(
        documents(), fact("User shares the fridge", tags=tags, value="the fridge")
    )
    entries = live_entries(
        {name: one.body for name, one in context.draft.documents.items()}, KINDS, TODAY
    )
    assert [str(entry.place.path) for entry in entries if entry.place] == [path]


async def test_an_end_by_words_alone_stays_in_its_document() -> None:
    """No longer Java among the tools says nothing of an island."""
    context, _ = await ruled(
        documents(work__tools=["Java"], places__visited=["Java island"]),
        fact_of("work.skills", "Java", relation="ends"),
    )
    assert states(context, WORK, "work.tools") == {"Java": "past"}
    assert states(context, PLACES, "places.visited") == {"Java island": "current"}


async def test_what_is_forgotten_by_words_alone_stands_in_its_document() -> None:
    """Whoever likes pizza no more may work at Pizza Hut."""
    context, _ = await ruled(
        documents(food__dislikes=["Pizza"], work__employer=["Pizza Hut"]),
        fact_of("food.likes", "pizza", relation="forget"),
    )
    assert shown(context, FOOD, "food.dislikes") == []
    assert states(context, WORK, "work.employer") == {"Pizza Hut": "current"}


async def test_another_person_moving_ends_no_home() -> None:
    """Though a fact names it."""
    context, (ruling,) = await ruled(
        documents(places__home=["Lyon"]),
        fact_of(
            "places.home",
            "Nice",
            subject="Mia",
            relation="updates",
            related=(f"{PLACES}:places.home.lyon",),
        ),
    )
    assert states(context, PLACES, "places.home") == {"Lyon": "current"}
    assert ruling.outcome == "conflict"


@pytest.mark.parametrize(
    ("place", "held", "said"),
    [
        ("general__other", "I love mango sorbet", "I no longer like mango sorbet"),
        ("general__other", "I love Mango sorbet", "I hate mango sorbet"),
        ("general__other", "I hate flying", "I no longer hate flying"),
        ("general__interests", "Jazz", "I don't like jazz"),
        ("food__likes", "Figgy duff", "I can't stand figgy duff"),
    ],
)
async def test_a_like_that_was_kept_as_it_was_said_ends_by_its_contrary(
    place: str, held: str, said: str
) -> None:
    """Of the same thing, wherever that stands; a list that has it beside others stays."""
    kept = "I love mango sorbet and flying"
    bodies = documents(**{"general__other": [kept], place: [kept, held]})
    (read_as,) = read(said, today=TODAY)
    against = PendingFact(fact=from_statement("f1", read_as, KINDS), turn_id="t1")
    context, _ = await ruled(bodies, against)
    entries = live_entries(
        {name: one.body for name, one in context.draft.documents.items()}, KINDS, TODAY
    )
    assert {entry.text for entry in entries} == {kept, said}


@pytest.mark.parametrize("relation", ["updates", "contradicts"])
@pytest.mark.parametrize(
    ("place", "held", "comes_back"),
    [
        ("general__other", "Dentist on 10 March", False),
        ("plans__goals", "Marathon on 10.03.2026", False),
        ("routine__daily", "Yoga on Tuesday", True),
    ],
)
async def test_what_has_a_day_of_the_calendar_is_moved_for_good_wherever_it_stands(
    relation: str, place: str, held: str, *, comes_back: bool
) -> None:
    """What comes each week is replaced for a while by what lasts for a while."""
    category = place.replace("__", ".")
    bodies = documents(**{place: [held]})
    resource_id = next(
        name for name, body in bodies.items() if category.partition(".")[0] in body
    )
    moved = fact_of(
        category,
        "at noon",
        relation=relation,
        related=(f"{resource_id}:{category}.{slug(held)}",),
        expiry=date(2026, 3, 4),
    )
    context, _ = await ruled(bodies, moved)
    found = states(context, resource_id, category, date(2026, 3, 12))
    assert (found[held] == "current") is comes_back
