"""Plain statements without a model: what is heard, exactly, and that all else is not."""

from datetime import date

import pytest

from workers.statements import read
from workers.statements.table import load_table

TODAY = date(2026, 11, 24)


@pytest.mark.parametrize(
    ("text", "heard"),
    [
        ("I love sushi", [("food.likes", "sushi")]),
        ("i really love thai food", [("food.likes", "thai food")]),
        ("I'm into olives", [("food.likes", "olives")]),
        ("My favourite dish is carbonara", [("food.likes", "carbonara")]),
        ("I like tea, rice and beans", [("food.likes", "tea"), ("food.likes", "rice"), ("food.likes", "beans")]),
        ("I love scrambled eggs with lox", [("food.likes", "scrambled eggs with lox")]),
        ("I hate mushrooms", [("food.dislikes", "mushrooms")]),
        ("I can't stand coriander", [("food.dislikes", "coriander")]),
        ("i dont like olives or anchovies", [("food.dislikes", "olives"), ("food.dislikes", "anchovies")]),
        ("I like tea but I hate coffee", [("food.likes", "tea"), ("food.dislikes", "coffee")]),
        ("I don't eat pork", [("food.avoids", "pork")]),
        ("I never drink alcohol", [("food.avoids", "alcohol")]),
        ("I gave up sugar", [("food.avoids", "sugar")]),
        ("I don\u2019t eat pork any more.", [("food.avoids", "pork")]),
        ("I'm vegan now", [("food.diets", "vegan")]),
        ("I am a vegetarian", [("food.diets", "vegetarian")]),
        ("I've been vegan since 2019", [("food.diets", "vegan")]),
        ("I'm on a keto diet", [("food.diets", "keto")]),
        ("I'm allergic to peanuts", [("health.allergies", "peanuts")]),
        ("I have a severe nut allergy", [("health.allergies", "nut")]),
        ("I'm lactose intolerant", [("health.allergies", "lactose")]),
        ("I'm allergic to cats and dust mites", [("health.allergies", "cats"), ("health.allergies", "dust mites")]),
        ("I have asthma", [("health.conditions", "asthma")]),
        ("I've got type 2 diabetes", [("health.conditions", "type 2 diabetes")]),
        ("I was diagnosed with ADHD last year", [("health.conditions", "ADHD")]),
        ("I'm diabetic", [("health.conditions", "diabetic")]),
        ("My name is Ana", [("general.name", "Ana")]),
        ("Hi! Call me Bo.", [("general.name", "Bo")]),
        ("My name is Ursula K. Le Guin", []),
        ("My birthday is 3 May", [("general.birthday", "3 May")]),
        ("I speak Spanish and Portuguese", [("general.language", "Spanish"), ("general.language", "Portuguese")]),
        ("Please answer in German", [("general.communication_style", "answer in German")]),
        ("answer me briefly from now on", [("general.communication_style", "answer briefly")]),
        ("I love hiking and photography", [("general.interests", "hiking"), ("general.interests", "photography")]),
        ("I live in New York", [("places.home", "New York")]),
        ("I just moved to Porto", [("places.home", "Porto")]),
        ("I grew up in Łódź", [("places.origin", "Łódź")]),
        ("I work at Acme Corp", [("work.employer", "Acme Corp")]),
        ("I'm a software engineer", [("work.role", "software engineer")]),
        ("I get up at 6:30", [("routine.daily", "gets up at 6:30")]),
        ("My daughter's name is Mia", [("people.relations", "Mia (daughter)")]),
        ("I have a dog called Rex", [("people.relations", "Rex (dog)")]),
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
        ("I no longer like olives", "ends", "food.likes", "olives"),
        ("I'm no longer vegan", "ends", "food.diets", "vegan"),
        ("I don't work at Acme anymore", "ends", "work.employer", "Acme"),
        ("Forget that I like pasta", "forget", "food.likes", "pasta"),
        ("Remove all egg preferences", "forget", "food.likes", "egg"),
        ("please delete everything you know about coffee", "forget", "food.likes", "coffee"),
    ],
)
def test_an_end_and_a_wish_to_forget_are_heard(text: str, relation: str, category: str, value: str) -> None:
    """They say of what."""
    assert [(one.relation, one.category, one.value) for one in read(text, today=TODAY)] == [(relation, category, value)]


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
        "I avoid sugar until yesterday",
        "I would like sushi",
        "I'd love sushi right now",
        "I love waiting in line",
        "I love how sushi looks",
        "I love my wife",
        "I love it",
        "I LOVE sushi... said no one ever",
        "oh sure, I love sushi, not that you asked",
        "Do I like sushi?",
        "I like sushi?",
        "If I were vegan, I'd eat tofu",
        "Imagine I'm allergic to peanuts",
        "Maybe I'm lactose intolerant",
        'She said "I love sushi"',
        "She says I'm vegan",
        "My wife is vegan",
        "My daughter is allergic to nuts",
        "You love sushi",
        "Mia loves sushi",
        "I'm mostly vegetarian",
        "I'm almost vegan",
        "I used to love coffee",
        "I'm allergic to Mondays",
        "I'm allergic to nonsense and peanuts",
        "I have a headache",
        "I have a dream",
        "I'm starving",
        "I'm a mess",
        "I'm a little teapot",
        "I live in fear",
        "I live in a small flat",
        "call me later",
        "Call me maybe",
        "I work hard",
        "I work at night",
        "I get up at dawn",
        "I have a dog",
        "Favourite author is Ursula K. Le Guin",
        "interests: Huge",
        "Give them detailed answers",
        "answer me",
        "answer the second question in German",
        "check my budget: limit 50k, spent 42000",
        "Translate: I am allergic to peanuts",
        "Fix my English: I am allergic to cats",
        "> I'm vegan",
        "Ich liebe Sushi",
        "J'aime le fromage",
        "Soy vegano",
        "I want to hold your hand",
        "I like to move it, move it",
        "Delete all my data",
        "forget it",
        "I don't know",
        "They say, I'm diabetic",
        "As a character, I'm vegan",
        "My mother always claims, I love sushi",
        "Everybody thinks that and I love sushi",
        "I live in Denial",
        "I moved to Trash",
        "I work for Free",
        "Call me Tomorrow",
        "I don't have milk",
        "Forget my coffee, I'll get it later",
        "Forget about dates",
        "I love liver. NOT!",
        "I love Turkey",
        "I don't like sushi that much when it rains",
        "",
        "\U0001f600",
    ],
)
def test_what_is_in_doubt_is_not_heard(text: str) -> None:
    """Wishes, sarcasm, hypotheses, questions, quotations, others' facts, other languages, and what no list has."""
    assert read(text, today=TODAY) == ()


def test_every_wording_of_the_table_can_be_said() -> None:
    """No pattern is dead: each has a list or an open slot, and its text names what was said."""
    forms = load_table().forms

    assert len(forms) > 60
    assert all(form.slot in form.expression.groupindex for form in forms)
    assert all("{" in form.pattern.text for form in forms)
