"""Plain statements are read exactly without a model, and other sentences are left alone."""

from datetime import date, timedelta

import pytest

from tasklore.workers.statements import Attitude, attitude_of, read
from tasklore.workers.statements.table import load_table

TODAY = date(2026, 11, 24)


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("I love sushi", [("food.likes", "sushi")]),
        (
            "I like tea, rice and beans",
            [("food.likes", "tea"), ("food.likes", "rice"), ("food.likes", "beans")],
        ),
        ("I can't stand coriander", [("food.dislikes", "coriander")]),
        (
            "I like tea but I hate coffee",
            [("food.likes", "tea"), ("food.dislikes", "coffee")],
        ),
        ("I don\u2019t eat pork any more.", [("food.avoids", "pork")]),
        ("I'm vegan now", [("food.diets", "vegan")]),
        (
            "I'm allergic to cats and dust mites",
            [("health.allergies", "cats"), ("health.allergies", "dust mites")],
        ),
        ("I've got type 2 diabetes", [("health.conditions", "type 2 diabetes")]),
        ("My name is Ana", [("general.name", "Ana")]),
        ("My name is Ursula K. Le Guin", []),
        ("My birthday is 3 May", [("general.birthday", "3 May")]),
        (
            "I speak Spanish and Portuguese",
            [("general.language", "Spanish"), ("general.language", "Portuguese")],
        ),
        (
            "answer me briefly from now on",
            [("general.communication_style", "answer briefly")],
        ),
        (
            "I love hiking and photography",
            [("general.interests", "hiking"), ("general.interests", "photography")],
        ),
        ("I just moved to Porto", [("places.home", "Porto")]),
        ("I grew up in Łódź", [("places.origin", "Łódź")]),
        ("I work at Acme Corp", [("work.employer", "Acme Corp")]),
        ("I get up at 6:30", [("routine.daily", "gets up at 6:30")]),
        ("My daughter's name is Mia", [("people.relations", "Mia (daughter)")]),
        (
            "Just so you know, I'm vegan and I live in Vienna, btw",
            [("food.diets", "vegan"), ("places.home", "Vienna")],
        ),
    ],
)
def test_a_plain_statement_is_heard(text: str, heard: list[tuple[str, str]]) -> None:
    """As the table spells it, whatever stands around it in politeness; evidence stands in the text letter by letter."""
    statements = read(text, today=TODAY)

    assert [(one.category, one.value) for one in statements] == heard
    assert all(one.evidence in text for one in statements)
    assert all(one.relation == "new" for one in statements)


@pytest.mark.parametrize(
    ("text", "relation", "category", "value"),
    [
        ("I no longer live in Hull", "ends", "places.home", "Hull"),
        ("I'm no longer vegan", "ends", "food.diets", "vegan"),
        ("Remove all egg preferences", "forget", "food.likes", "egg"),
        (
            "please delete everything you know about coffee",
            "forget",
            "food.likes",
            "coffee",
        ),
    ],
)
def test_an_end_and_a_wish_to_forget_are_heard(
    text: str, relation: str, category: str, value: str
) -> None:
    """They say of what."""
    assert [
        (one.relation, one.category, one.value) for one in read(text, today=TODAY)
    ] == [(relation, category, value)]


@pytest.mark.parametrize(
    "text",
    [
        "I take warfarin",
        "I take insulin every day",
        "I'm on blood thinners",
        "I have a pacemaker",
        "I use a wheelchair",
        "I had a stroke in 2019",
        "I'm recovering from surgery",
        "I broke my wrist last week",
        "my left knee hurts at night",
        "I get migraines from red wine",
        "penicillin makes me sick",
        "I can't eat shellfish",
        "I have a buckwheat intolerance",
        "I have high cholesterol",
        "my blood type is 0 negative",
    ],
)
def test_of_health_what_no_list_of_values_knows_is_kept_as_it_was_said(
    text: str,
) -> None:
    (statement,) = read(text, today=TODAY)

    assert (statement.category, statement.value) == ("health.conditions", text)


@pytest.mark.parametrize(
    "text",
    [
        "I have two cats",
        "we have three kids",
        "I'm learning Portuguese",
        "I work night shifts",
        "I live on the third floor",
    ],
)
def test_of_a_life_what_no_list_of_values_knows_is_kept_as_it_was_said(
    text: str,
) -> None:
    (statement,) = read(text, today=TODAY)

    assert (statement.category, statement.value) == ("general.other", text)


@pytest.mark.parametrize(
    "text",
    [
        "I take the bus",
        "I take it back",
        "I need a table",
        "I have two questions",
        "I have a question",
        "I broke my phone",
        "my order hurts",
        "I can't eat now",
        "I work on the report",
        "I live in hope",
        "my back office is closed",
        "I'm on holiday",
    ],
)
def test_what_only_looks_like_it_is_not_heard(text: str) -> None:
    assert read(text, today=TODAY) == ()


@pytest.mark.parametrize(
    ("text", "last_day"),
    [
        ("I'm off coffee until Friday", date(2026, 11, 27)),
        ("I'm off caffeine for two weeks", date(2026, 12, 8)),
        ("I avoid sugar until 1 December", date(2026, 12, 1)),
    ],
)
def test_what_holds_for_a_while_says_until_when(text: str, last_day: date) -> None:
    """And lasts no longer than that."""
    (statement,) = read(text, today=TODAY)

    assert (statement.expiry, statement.durability) == (last_day, "short_term")


@pytest.mark.parametrize(
    "text",
    [
        "I'm off coffee until whenever",
        "I'd love sushi right now",
        "I love my wife",
        "I LOVE sushi... said no one ever",
        "Do I like sushi?",
        "If I were vegan, I'd eat tofu",
        "Maybe I'm lactose intolerant",
        'She said "I love sushi"',
        "My wife is vegan",
        "I'm mostly vegetarian",
        "I used to love coffee",
        "I'm allergic to Mondays",
        "I have a headache",
        "I live in fear",
        "Call me maybe",
        "interests: Huge",
        "Translate: I am allergic to peanuts",
        "> I'm vegan",
        "Ich liebe Sushi",
        "Soy vegano",
        "Delete all my data",
        "As a character, I'm vegan",
        "I love liver. NOT!",
        "I love Turkey",
        "",
    ],
)
def test_what_is_in_doubt_is_not_heard(text: str) -> None:
    """Wishes, sarcasm, hypotheses, questions, quotations, others' facts, other languages, and what no list has."""
    assert read(text, today=TODAY) == ()


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("I love mango sorbet", [("general.other", "I love mango sorbet")]),
        (
            "I like pasta, especially carbonara",
            [("general.other", "I like pasta, especially carbonara")],
        ),
        ("I hate flying", [("general.other", "I hate flying")]),
        (
            "My favourite colour is blue",
            [("general.other", "My favourite colour is blue")],
        ),
        ("I play the cello", [("general.other", "I play the cello")]),
        ("I love Bach", [("general.other", "I love Bach")]),
        ("I like the Beatles", [("general.other", "I like the Beatles")]),
        ("I adore Japanese gardens", [("general.other", "I adore Japanese gardens")]),
        ("I'm not a fan of opera", [("general.other", "I'm not a fan of opera")]),
        (
            "I no longer like figgy duff",
            [("general.other", "I no longer like figgy duff")],
        ),
        ("I quit smoking", [("general.other", "I quit smoking")]),
        (
            "I love hiking and I'm allergic to bees",
            [("general.interests", "hiking"), ("health.allergies", "bees")],
        ),
        (
            "I suffer from vertigo and hot flushes",
            [("health.conditions", "I suffer from vertigo and hot flushes")],
        ),
        (
            "I was diagnosed with POTS",
            [("health.conditions", "I was diagnosed with POTS")],
        ),
        ("I suffer from asthma", [("health.conditions", "asthma")]),
        (
            "I'm allergic to bee stings, wasps and peanuts",
            [
                ("health.allergies", "bee stings"),
                ("health.allergies", "wasps"),
                ("health.allergies", "peanuts"),
            ],
        ),
    ],
)
def test_what_no_list_knows_is_kept_as_it_was_said(
    text: str, heard: list[tuple[str, str]]
) -> None:
    """Of a thing that the words themselves name."""
    statements = read(text, today=TODAY)

    assert [(one.category, one.value) for one in statements] == heard
    assert all(one.relation == "new" and one.is_read for one in statements)


@pytest.mark.parametrize(
    "text",
    [
        "I like it",
        "I love you all",
        "I like the second option",
        "I love your answer",
        "I hate waiting right now",
        "I love working with Mia",
        "I'm allergic to my boss",
        "I suffer from it",
        "I can't tolerate you",
        "I don't like this one",
        "I love Her",
        "I hate Mondays",
        "I go by Bus",
        "I love hiking; not",
    ],
)
def test_a_thing_that_the_words_do_not_name_is_not_kept(text: str) -> None:
    """It means something that was said before."""
    assert read(text, today=TODAY) == ()


@pytest.mark.parametrize(
    ("text", "relation", "category", "value"),
    [
        ("No, my name is Ana", "new", "general.name", "Ana"),
        ("Sorry, I live in Porto", "new", "places.home", "Porto"),
        ("My name isn't Ana, it's Anna", "new", "general.name", "Anna"),
        ("My name is not Ana", "ends", "general.name", "Ana"),
        ("I'm not allergic to peanuts", "ends", "health.allergies", "peanuts"),
        ("No, I am not allergic to bees at all", "ends", "health.allergies", "bees"),
        ("I'm not allergic to bees anymore", "ends", "health.allergies", "bees"),
        ("I don't have a peanut allergy", "ends", "health.allergies", "peanut"),
        ("I don't have asthma", "ends", "health.conditions", "asthma"),
        ("I am not vegan", "ends", "food.diets", "vegan"),
        ("I don't live in Hull", "ends", "places.home", "Hull"),
        ("My birthday is not 3 May", "ends", "general.birthday", "3 May"),
        ("No, I'm called Bo", "new", "general.name", "Bo"),
        ("Wrong, I live in Lyon, not Paris", "new", "places.home", "Lyon"),
        ("My birthday is 4 May, not 3 May", "new", "general.birthday", "4 May"),
        ("I'm not vegan any longer", "ends", "food.diets", "vegan"),
        ("I stopped being a vegetarian", "ends", "food.diets", "vegetarian"),
        ("I was never vegan", "ends", "food.diets", "vegan"),
        ("It's not true that I'm vegan", "ends", "food.diets", "vegan"),
        ("I was never allergic to nuts", "ends", "health.allergies", "nuts"),
        ("I eat meat again", "ends", "food.avoids", "meat"),
        ("I no longer hate olives", "ends", "food.dislikes", "olives"),
        ("I do not like jazz any longer", "ends", "general.interests", "jazz"),
        ("I moved away from Lyon", "ends", "places.home", "Lyon"),
        ("I'm no longer a nurse", "ends", "work.role", "nurse"),
        ("I don't speak German any more", "ends", "general.language", "German"),
    ],
)
def test_a_correction_of_a_plain_statement_is_one(
    text: str, relation: str, category: str, value: str
) -> None:
    """Of a no before it, and of what does not hold."""
    assert [
        (one.relation, one.category, one.value) for one in read(text, today=TODAY)
    ] == [(relation, category, value)]


def test_what_is_left_of_a_sentence_that_was_half_read_is_not_dropped() -> None:
    """It is told as it was said, and is no statement."""
    hiking, left, tea = read(
        "I love hiking, and I carry an epipen, and I sail. I like tea", today=TODAY
    )

    assert (hiking.value, tea.value) == ("hiking", "tea")
    assert (left.text, left.category, left.is_read) == (
        "I carry an epipen, and I sail",
        "",
        False,
    )


def test_a_semicolon_ends_no_sentence() -> None:
    """What stands on its other side is not dropped in silence, whichever side was heard."""
    for said in (
        "I live in Lyon; my landlord sues me",
        "My landlord sues me; I live in Lyon",
    ):
        found = read(said, today=TODAY)
        assert {one.text for one in found if not one.is_read} == {
            next(part for part in said.split("; ") if "landlord" in part)
        }
        assert [one.value for one in found if one.is_read] == ["Lyon"]


def test_how_long_something_holds_is_no_part_of_a_thing() -> None:
    (allergy,) = read("I'm allergic to bees for two weeks", today=TODAY)
    assert (allergy.value, allergy.expiry) == ("bees", TODAY + timedelta(days=14))


@pytest.mark.parametrize(
    ("clause", "thing", "is_for"),
    [
        ("I love mango sorbet", "mango sorbet", True),
        ("I no longer hate flying", "flying", True),
        ("I don\u2019t like jazz", "jazz", False),
        ("I can't stand karaoke", "karaoke", False),
    ],
)
def test_what_was_kept_as_it_was_said_tells_what_it_is_about(
    clause: str, thing: str, *, is_for: bool
) -> None:
    assert attitude_of(clause) == Attitude(thing, is_for=is_for)
    assert attitude_of("I play the cello") is None


def test_every_wording_of_the_table_can_be_said() -> None:
    forms = load_table().forms

    assert len(forms) > 60
    assert all(form.slot in form.expression.groupindex for form in forms)
    assert all("{" in form.pattern.text for form in forms)
