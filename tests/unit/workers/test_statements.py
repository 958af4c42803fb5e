"""Plain statements are read exactly without a model, and other sentences are left alone."""

from datetime import date

import pytest

from tasklore.workers.statements import read
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


def test_every_wording_of_the_table_can_be_said() -> None:
    forms = load_table().forms

    assert len(forms) > 60
    assert all(form.slot in form.expression.groupindex for form in forms)
    assert all("{" in form.pattern.text for form in forms)
