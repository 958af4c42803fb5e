"""What people say of themselves is read, and what they do not say is not; over cases that were written beforehand."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from contracts.errors import ConfigurationError
from workers.statements.dates import load_dates
from workers.statements.normal import same
from workers.statements.patterns import wordings
from workers.statements.reading import MOST_MATCHES, Reading, load_reader, read, read_statements
from workers.statements.statement import Statement
from workers.statements.wording import statement_text

CASES = json.loads((Path(__file__).parents[1] / "statements_cases.json").read_text("utf-8"))
TODAY = date.fromisoformat(CASES["today"])

#: The share of plain statements that must be read without a model.
ASKED_SHARE = 0.6


def told(text: str) -> tuple[Statement, ...]:
    """Return the statements of *text*, said on the day of the cases."""
    return read_statements(text, today=TODAY)


def the_one(text: str) -> Statement:
    """Return the only statement of *text*."""
    (statement,) = told(text)
    return statement


def _is_as_asked(statement: Statement, asked: dict[str, Any]) -> bool:
    expiry = None if statement.expiry is None else statement.expiry.isoformat()
    if statement.kind != asked["kind"] or expiry != asked.get("expiry"):
        return False
    if asked.get("relation") != statement.relation or ("tag" in asked and statement.tags != (asked["tag"],)):
        return False
    return same(statement.object, asked["object"])


def _read_share(group: str) -> float:
    cases = [case for case in CASES["statements"] if case["group"] == group]
    right = 0
    for case in cases:
        found = told(case["text"])
        right += len(found) == len(case["told"]) and all(map(_is_as_asked, found, case["told"]))
    return right / len(cases)


@pytest.mark.parametrize("group", ["first", "held_out", "later"])
def test_most_plain_statements_need_no_model(group: str) -> None:
    """Kind, relation, object and expiry right, all statements of a text and no other."""
    assert _read_share(group) >= ASKED_SHARE


def test_nothing_is_read_where_nothing_is_said() -> None:
    """Greetings, questions, wishes, tasks, what others say, quotes, orders to the assistant: none of 800 texts."""
    assert len(CASES["nothing"]) > 800
    assert {text: told(text) for text in CASES["nothing"] if told(text)} == {}


def test_every_statement_points_at_words_of_the_text() -> None:
    """Its evidence stands there letter by letter."""
    for case in CASES["statements"]:
        for statement in told(case["text"]):
            assert statement.evidence
            assert statement.evidence in case["text"]


def test_every_statement_comes_back_from_its_text() -> None:
    """What is written about the user is read as the statement it was written from."""
    for case in CASES["statements"]:
        for statement in told(case["text"]):
            text = statement_text(statement)
            assert [replace(one, evidence="") for one in told(text)] == [replace(statement, evidence="")], text


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("I like omelettes", "User likes omelettes"),
        ("I'm vegan now", "User is vegan"),
        ("I can't stand coriander", "User dislikes coriander"),
        ("I don't eat pork any more", "User avoids pork"),
        ("I'm on a low-carb diet", "User follows the low-carb diet"),
        ("I'm allergic to peanuts", "User is allergic to peanuts"),
        ("I have asthma", "User has asthma"),
        ("I'm diabetic", "User is diabetic"),
        ("I get up at 6:30", "User gets up at 6:30"),
        ("Until Friday I'm on call", "User is on call until 2025-12-05"),
        ("My name is Ana", "User's name is Ana"),
        ("Call me Ana", "User wants to be called Ana"),
        ("I'm into chess", "User is interested in chess"),
        ("Please keep answers short", "User's communication style: keep answers short"),
        ("No meetings before 10am", "User's timing rule: no meetings before 10am"),
        ("Forget that I like pasta", "User no longer likes pasta"),
        ("Remove all egg preferences", "User wants to remove egg preferences"),
        ("Delete all my food preferences", "User wants to remove all their food preferences"),
        ("Remove coffee from my likes", "User wants to remove coffee from their likes"),
        ("Delete everything you know about me", "User wants to remove everything about them"),
        ("Delete all my likes", "User wants to remove all their likes"),
    ],
)
def test_a_statement_is_written_about_the_user(text: str, sentence: str) -> None:
    """As a plain sentence in the third person."""
    assert statement_text(the_one(text)) == sentence


def test_a_list_is_as_many_statements() -> None:
    """Each with the whole sentence as its evidence; what is one dish stays one."""
    assert [one.object for one in told("I like pizza, mac and cheese and rice")] == ["pizza", "mac and cheese", "rice"]
    assert [one.object for one in told("I like pasta, especially carbonara")] == ["pasta, especially carbonara"]
    assert [one.relation for one in told("I love hiking and omelettes")] == ["interest", "like"]


def test_two_clauses_are_two_statements() -> None:
    """With a subject each, or one for both; the first one holds when the second is not understood."""
    assert [(one.relation, one.object) for one in told("I like tea but hate coffee")] == [
        ("like", "tea"),
        ("dislike", "coffee"),
    ]
    assert [one.relation for one in told("I'm vegan and allergic to soy")] == ["diet", "allergy"]
    assert [one.object for one in told("I'm vegan and I think about moving")] == ["vegan"]
    assert told("I like big nights and I cannot lie") == ()


def test_what_is_asked_behind_a_statement_does_not_take_it_back() -> None:
    """The question begins with its own word; an echo is no question of its own."""
    assert the_one("I'm allergic to nuts, what can I cook tonight?").object == "nuts"
    assert told("I like eggs, do I?") == ()
    assert told("I'm vegan... not!") == ()


def test_what_others_wrote_is_not_read() -> None:
    """Quoted, answered, pasted, or after somebody's name."""
    assert told('He wrote "I love eggs" and left') == ()
    assert told("> I love eggs\nI hate olives")[0].object == "olives"
    assert told('"I love eggs."') == ()
    assert told("\u201cI love eggs.\u201d It was on a poster.") == ()
    assert told("`I love eggs.`") == ()
    assert told("Ana: I love eggs") == ()
    assert told("She sent me this:\nI love eggs. I am vegan.") == ()
    assert told("Dear Sir,\nI am vegan.\nKind regards, Bob") == ()
    assert told("```\nI love eggs\n```") == ()
    assert told("Translate this into French. I love eggs.") == ()
    assert the_one("I love eggs. Write me a recipe.").object == "eggs"
    assert told("Write a poem. I love eggs.") == ()


def test_a_statement_tells_what_it_concerns() -> None:
    """Documents by their tags; an allergy to a food concerns food too, and an unknown topic nothing yet."""
    assert the_one("I'm allergic to peanuts").tags == ("health", "food")
    assert the_one("I'm allergic to cats").tags == ("health",)
    assert the_one("I like omelettes").tags == ("food",)
    assert the_one("I like blorpwave").tags == ()
    assert the_one("I get up at 6:30").tags == ("routine",)


def test_how_long_it_holds() -> None:
    """A date, a while, or for good; what passes by nature does not last either."""
    until = the_one("I'm off sugar until 3 December")
    assert (until.expiry, until.durability) == (date(2025, 12, 3), "short_term")
    now = the_one("I'm on call right now")
    assert (now.expiry, now.durability) == (None, "momentary")
    assert the_one("I have a sore throat").durability == "short_term"
    assert the_one("I'm allergic to nuts").durability == "permanent"
    assert the_one("I've been vegan for two years").expiry is None
    assert told("I'm vegan until my birthday") == ()


@pytest.mark.parametrize(
    ("end", "last"),
    [
        ("until friday", "2025-12-05"),
        ("until monday", "2025-12-08"),
        ("for two weeks", "2025-12-15"),
        ("for a month", "2026-01-01"),
        ("this week", "2025-12-07"),
        ("until 3 december", "2025-12-03"),
        ("until january 5th", "2026-01-05"),
        ("until 2026-02-28", "2026-02-28"),
        ("until the end of the month", "2025-12-31"),
        ("until next month", "2026-01-01"),
        ("until the 15th", "2025-12-15"),
        ("until christmas", "2025-12-25"),
        ("for the rest of the year", "2025-12-31"),
        ("until february 29", "2028-02-29"),
        ("today", "2025-12-01"),
    ],
)
def test_an_end_is_a_day(end: str, last: str) -> None:
    """The last one on which it holds, counted from the day it was said on."""
    found = load_dates().end_of(["x", *end.split()], TODAY)

    assert found is not None
    assert found.expiry == date.fromisoformat(last)


@pytest.mark.parametrize(
    "end", ["until 5", "until 5 pm", "until my birthday", "for 30 minutes", "until 2020-01-01", "soon"]
)
def test_what_names_no_day_is_no_end(end: str) -> None:
    """A time of the day, an unknown day, a day that is over."""
    assert load_dates().end_of(["x", *end.split()], TODAY) is None


def test_a_model_is_wanted_only_for_what_was_not_understood() -> None:
    """A sentence about the writer that no pattern reads; not for greetings, questions and tasks."""
    assert read("I like omelettes", today=TODAY).is_whole
    assert read("Hello! Book a hotel in Rome. What is on TV?", today=TODAY).is_whole
    assert not read("My stomach and cheese are no friends", today=TODAY).is_whole
    assert not read("I like omelettes. My stomach and cheese are no friends", today=TODAY).is_whole


@pytest.mark.parametrize(
    ("text", "relation", "object_"),
    [
        ("I love fish", "like", "fish"),
        ("I like eating fish", "like", "fish"),
        ("User likes fish", "like", "fish"),
        ("I like to fish", "interest", "fishing"),
        ("I love skate", "like", "skate"),
        ("I like grill", "like", "grill"),
        ("I love to grill", "interest", "grilling"),
    ],
)
def test_what_is_eaten_is_no_hobby(text: str, relation: str, object_: str) -> None:
    """A verb is one behind "to" alone."""
    assert [(one.relation, one.object) for one in told(text)] == [(relation, object_)]


@pytest.mark.parametrize(
    "text",
    [
        "I don't only eat fish",
        "I don't just like coffee, I love it",
        "I don't just eat vegan food",
        "I do not only like tea but also coffee",
        "I'm not only vegan but also gluten-free",
        "I'm no longer just vegan",
        "I'm not just vegan any more",
        "I'm not severely allergic to nuts",
        "I don't usually like cheese",
        "Usually I don't eat meat",
        "I don't always eat breakfast",
        "I don't eat meat much",
        "I only like coffee in the morning",
    ],
)
def test_a_word_beside_a_not_may_say_the_opposite(text: str) -> None:
    """Nothing is read, and a model is wanted."""
    assert read(text, today=TODAY) == Reading((), is_whole=False)


def test_what_only_strengthens_a_not_stays_out() -> None:
    """A dislike is one, however politely it is told."""
    polite = ["I don't really like", "I really don't like", "I just don't like", "I don't particularly like"]
    for text in (*(f"{one} cheese" for one in polite), "I don't like cheese much", "I don't like cheese that much"):
        assert [(one.relation, one.object) for one in told(text)] == [("dislike", "cheese")], text


def test_a_denied_half_turns_the_second_thing_and_not_the_first() -> None:
    """In both ways to tell it; how something is to be is no other thing."""
    for text in ("I like coffee but not tea", "I like coffee, not tea", "I like coffee and not tea"):
        assert [(one.relation, one.object) for one in told(text)] == [("like", "coffee"), ("dislike", "tea")], text
    assert [(one.relation, one.object) for one in told("I like meat but never eat pork")] == [
        ("like", "meat"),
        ("avoid", "pork"),
    ]
    assert [(one.kind, one.object) for one in told("I'm vegan but not gluten-free")] == [
        ("tells", "vegan"),
        ("retracts", "gluten-free"),
    ]
    assert told("I like coffee but not sweet") == ()
    assert told("I like cheese but not with fish") == ()


def test_what_is_preferred_is_liked() -> None:
    """And nothing is said of the other one; a diet's version of a food is a food."""
    assert (the_one("I prefer tea to coffee").object, the_one("I prefer tea to coffee").tags) == ("tea", ("food",))
    assert the_one("I prefer coffee to tea").object == "coffee"
    assert (the_one("I hate vegan cheese").relation, the_one("I hate vegan cheese").tags) == ("dislike", ("food",))


def test_all_preferences_are_tastes() -> None:
    """Each relation by itself, so that a name, an illness or a routine stays; all there is, is all there is."""
    tastes = ["like", "dislike", "diet", "avoid", "style", "interest"]
    for text in ("Delete all my preferences", "forget my preferences", "User wants to remove all their preferences"):
        assert [(one.kind, one.relation, one.object) for one in told(text)] == [
            ("clears", relation, "") for relation in tastes
        ], text
    assert (the_one("Delete all my data").relation, the_one("Delete all my data").object) == (None, "")


@pytest.mark.parametrize(
    "text",
    [
        "delete all meat",
        "remove nuts",
        "Could you please remove all nuts?",
        "forget everything",
        "delete all food preferences, but keep steak",
        "delete all food preferences, but my steak should stay",
        "Delete all food preferences. Keep steak.",
        "Delete all food preferences. But not the steak.",
        "Keep steak but delete all food preferences",
        "Except for steak, delete all food preferences",
        "Delete some of my food preferences",
        "Delete all my data but keep my name",
    ],
)
def test_an_order_that_is_not_understood_whole_is_not_obeyed(text: str) -> None:
    """What is to stay must not go: nothing is read, and a model is wanted."""
    assert read(text, today=TODAY) == Reading((), is_whole=False)


def _hostile() -> Iterator[str]:
    """Texts of 20,000 letters that a careless reader would walk through again and again."""
    pieces = [
        "I like eggs and ", "I like tea and hate ", "i like ", "and i like x ", "I am vegan and vegan ", "a, ",
        "i do do do ", "forget that ", "until friday ", "'a ", '"', "`", "(", ". ", "\n", "x is my favourite ",
        "I no longer like ", "> a\n", "please ", "user likes ", "1,", "6:30 ", "a: ", "\u0130", "a\u0301", "\ufdfa",
        "\x00", "I like eggs. ",
    ]  # fmt: skip
    for piece in pieces:
        yield (piece * (20_000 // len(piece) + 1))[:20_000]
        yield ((piece * 12 + ". ") * (20_000 // (12 * len(piece)) + 1))[:20_000]


def test_a_hostile_text_costs_no_more_than_a_long_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """The patterns are walked so often and not oftener, however the text is made; and it does not fail."""
    reader = load_reader()
    walked = 0
    find = reader._grammar.patterns.find

    def counted(words: Any) -> Any:
        nonlocal walked
        walked += 1
        return find(words)

    monkeypatch.setattr(reader._grammar.patterns, "find", counted)
    for text in _hostile():
        walked = 0
        reader.read(text, today=TODAY)
        assert walked <= MOST_MATCHES, text[:40]


def test_a_folder_replaces_the_grammar(tmp_path: Path) -> None:
    """Whoever speaks otherwise writes other patterns; a new food needs no more than a line."""
    (tmp_path / "mine.toml").write_text('root = "food"\ntag = "food"\n[is_a]\nfood = ["blorp"]\n')

    statements = load_reader(tmp_path).read("I like blorps", today=TODAY).statements

    assert [(one.relation, one.tags) for one in statements] == [("like", ("food",))]
    assert the_one("I like blorps").tags == ()


@pytest.mark.parametrize("pattern", ["i like <thing", "i (like <thing>", "i " + "(a|b|c|d) " * 8])
def test_a_wrong_pattern_is_named(pattern: str) -> None:
    """An open bracket, or more wordings than anybody means."""
    with pytest.raises(ConfigurationError, match="pattern"):
        wordings(pattern)
