"""What a person says in a chat is in their documents: a real stream, a real store, and one worker for both agents."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from pydantic import JsonValue

from contracts.identifiers import new_id
from tests.acceptance.talk import FOOD, ROUTINE, Remembering, Talk, remembering, talk_in
from tests.llm_double import Asked, ScriptedLlm

#: A document as people wrote it before: a pasta under its own name, what is neither egg nor pasta, and eggs unnamed.
SEED = """{
  "_metadata": {"resource_id": "resource_user_food_prefs", "tags": ["food"], "last_updated": "2025-12-28"},
  "food": {
    "likes": [
      {"item": "pasta_carbonara", "display": "Pasta (especially carbonara)", "added": "2025-12-28", "expiry": null},
      {"item": "mushroom_risotto", "display": "Mushroom risotto", "added": "2025-12-28", "expiry": null},
      {"item": "scrambled_eggs_with_lox", "display": "Scrambled eggs with lox", "added": "2025-12-28", "expiry": null}
    ],
    "dislikes": [
      {"item": "olives", "display": "Olives", "added": "2025-12-28", "expiry": null}
    ]
  }
}
"""
PASTA, RISOTTO, EGGS = "Pasta (especially carbonara)", "Mushroom risotto", "Scrambled eggs with lox"

#: Five things, each said in three ways.
SAID = {
    "Sushi": ("I love sushi", "Sushi is my favourite food", "I really enjoy sushi"),
    "Peanuts": ("I'm allergic to peanuts", "I have a peanut allergy", "I am allergic to peanuts."),
    "Olives": ("I hate olives", "I can't stand olives", "I don't like olives"),
    "Asthma": ("I have asthma", "I suffer from asthma", "I've got asthma"),
    "Astronomy": ("I'm interested in astronomy", "Astronomy is my hobby", "I have a passion for astronomy"),
}

FINDER = {"model": "gpt-6-luna", "temperature": None}
EDITOR = {"model": "gpt-6.1-terra", "temperature": None}


@pytest.fixture(scope="module")
def by_rules(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Remembering]:
    """Run a worker that has no model."""
    with remembering(tmp_path_factory.mktemp("by_rules")) as running:
        yield running


@pytest.fixture(scope="module")
def scripted() -> Iterator[ScriptedLlm]:
    """Run a model for all tests of this module; each says what it answers."""
    with ScriptedLlm() as model:
        yield model


@pytest.fixture(scope="module")
def by_model(tmp_path_factory: pytest.TempPathFactory, scripted: ScriptedLlm) -> Iterator[Remembering]:
    """Run a worker that asks the scripted model."""
    with remembering(tmp_path_factory.mktemp("by_model"), llm_base_url=scripted.base_url) as running:
        yield running


@pytest.fixture
async def talk(by_rules: Remembering) -> AsyncIterator[Talk]:
    """Talk to the worker that has no model."""
    async with talk_in(by_rules.house) as talk:
        yield talk
    assert by_rules.worker.is_running


@pytest.fixture
async def talk_to_model(by_model: Remembering, scripted: ScriptedLlm) -> AsyncIterator[Talk]:
    """Talk to the worker that asks the scripted model, which was asked nothing yet."""
    scripted.respond = None
    scripted.requests.clear()
    async with talk_in(by_model.house) as talk:
        yield talk
    assert by_model.worker.is_running


@pytest.fixture
def user() -> str:
    """Name somebody whom no other test knows."""
    return f"ann-{new_id(0)[-8:]}"


# -- by rules ----------------------------------------------------------------------------------------------------------


async def test_what_is_liked_is_added_at_the_end(talk: Talk, user: str) -> None:
    """To what was imported, which stays as it is; the history tells who said so, in which words."""
    await talk.imported(user, SEED.encode())

    (fact,) = await talk.tell(user, "I like omelettes")

    assert fact.state == "done"
    assert await talk.kept(user) == {"food.likes": [PASTA, RISOTTO, EGGS, "Omelettes"], "food.dislikes": ["Olives"]}
    (record,) = await talk.reader.explain(user, FOOD, "food.likes[3]")
    assert (record.origin.by, record.origin.evidence) == ("rules", "I like omelettes")
    assert (record.origin.finder, record.origin.editor) == (None, None)


async def test_what_is_to_go_goes_whatever_it_is_called(talk: Talk, user: str) -> None:
    """Omelettes are eggs; a carbonara, which has some in it, is no preference for eggs."""
    await talk.imported(user, SEED.encode())
    await talk.tell(user, "I like omelettes")

    (fact,) = await talk.tell(user, "Remove all egg preferences")

    assert fact.state == "done"
    assert await talk.kept(user) == {"food.likes": [PASTA, RISOTTO], "food.dislikes": ["Olives"]}
    assert {one.operation for one in await talk.last_edits(user)} == {"delete"}


async def test_what_is_known_is_refused_and_says_so(talk: Talk, user: str) -> None:
    """The fact names the entry that says it already, and the document has no new revision."""
    await talk.imported(user, SEED.encode())

    (fact,) = await talk.tell(user, "I like pasta")

    assert (fact.state, fact.plan_id) == ("done", None)
    assert fact.reason.startswith("known: ")
    assert PASTA in fact.reason
    assert (await talk.reader.snapshot(user)).documents[FOOD].revision == 1


async def test_a_diet_touches_every_place_it_must_and_is_one_undo(talk: Talk, user: str) -> None:
    """Over two documents, and nothing beside them; afterwards both are what they were, letter by letter."""
    await talk.imported(user, SEED.encode())
    await talk.given(user, ROUTINE, routine__daily=["Yoga at 7", "Steak for dinner on Fridays"])
    before = await talk.bodies(user)

    (fact,) = await talk.tell(user, "I'm vegan")

    assert fact.state == "done"
    assert await talk.kept(user) == {
        "food.likes": [RISOTTO],
        "food.dislikes": ["Olives"],
        "food.diets": ["Vegan"],
        "routine.daily": ["Yoga at 7"],
    }
    (plan,) = await talk.reader.history(user, limit=1)
    assert set(plan.revisions) == {FOOD, ROUTINE}
    await talk.undo(user)
    assert await talk.bodies(user) == before


async def test_all_of_one_topic_goes_at_a_word(talk: Talk, user: str) -> None:
    """Likes and dislikes, in one plan, and of no other document."""
    await talk.imported(user, SEED.encode())
    await talk.given(user, ROUTINE, routine__daily=["Yoga at 7"])

    (fact,) = await talk.tell(user, "delete all my food preferences")

    assert fact.state == "done"
    assert await talk.kept(user) == {"routine.daily": ["Yoga at 7"]}
    assert len(await talk.last_edits(user)) == 4


async def test_five_things_said_in_three_ways_are_five_entries(talk: Talk, user: str) -> None:
    """Said in fifteen turns, in rounds; every one of them is dealt with, and ten are known."""
    turns = [await talk.say(user, text) for texts in zip(*SAID.values(), strict=True) for text in texts]

    facts = [fact for turn_id in turns for fact in await talk.settled(user, turn_id)]

    assert [fact.plan_id is not None for fact in facts] == [True] * 5 + [False] * 10
    assert all(fact.reason.startswith("known: ") for fact in facts[5:])
    assert sorted(entry for entries in (await talk.kept(user)).values() for entry in entries) == sorted(SAID)


async def test_two_people_who_talk_at_once_stay_apart(talk: Talk, user: str) -> None:
    """Each is told about themselves alone: in documents, history and facts; a diet of one sweeps nobody else."""
    other = f"bob-of-{user}"
    said = {
        user: ["I like steak", "I like salmon", "I like tofu", "I'm vegan"],
        other: ["I like ham", "I like cheese", "I like beans", "I hate olives"],
    }

    rounds = zip(*said.values(), strict=True)
    turns = [
        await asyncio.gather(*(talk.say(one, text) for one, text in zip(said, texts, strict=True))) for texts in rounds
    ]
    for pair in turns:
        for one, turn_id in zip(said, pair, strict=True):
            (fact,) = await talk.settled(one, turn_id)
            assert fact.state == "done", fact.reason

    assert await talk.kept(user) == {"food.likes": ["Tofu"], "food.diets": ["Vegan"]}
    assert await talk.kept(other) == {"food.likes": ["Ham", "Cheese", "Beans"], "food.dislikes": ["Olives"]}
    for one, stranger in ((user, other), (other, user)):
        seen = repr(await talk.reader.history(one)) + repr(await talk.facts(one))
        assert not [text for text in said[stranger] if text in seen]


# -- with a model ------------------------------------------------------------------------------------------------------


def heard(text: str, evidence: str, polarity: str = "positive") -> dict[str, Any]:
    """Return the answer of a switchboard's model that hears one fact."""
    fact = {"text": text, "evidence": evidence, "tags": ["food"], "polarity": polarity}
    sure = {"durability": "long_term", "confidence": 0.9, "inferred": False}
    return {"reasoning": "it is said so", "facts": [{**fact, **sure}]}


def found(asked: Asked, *words: str) -> dict[str, Any]:
    """Answer as a finder that names each line which has one of *words*, by the paths that it is shown."""
    _, _, document = asked.user.partition("\ndocument\n")
    locations, heading = [], ""
    for line in document.splitlines():
        item = re.match(r"(\d+): (.*)", line)
        heading = heading if item else line
        if item and any(word in item[2].casefold() for word in words):
            locations.append({"fact": 1, "path": f"{heading}[{item[1]}]", "relevance": "is about it"})
    return {"reasoning": "read every line", "locations": locations, "suggested_insert_path": ["food.likes"]}


def proposed(*edits: tuple[str, str, str], decision: str = "proceed") -> dict[str, Any]:
    """Return the answer of an editor: operation, path and text of each edit."""
    names = ("operation", "path", "display")
    return {
        "reasoning": "the fact says so",
        "decision": decision,
        "edits": [dict(zip(names, edit, strict=True)) for edit in edits],
    }


def deleting(asked: Asked) -> list[tuple[str, str, str]]:
    """Return the deletion of each place that an editor is shown."""
    lines = asked.user.splitlines()
    shown = lines[2 : lines.index("insert at")] if "insert at" in lines else lines[2:]
    return [("delete", line.rsplit(": ", 1)[0], "") for line in shown]


def chain(
    hears: Mapping[str, Any], finds: Sequence[str], edits: Callable[[Asked], Mapping[str, Any]]
) -> Callable[[Asked], Mapping[str, Any]]:
    """Return a script for all three models, told apart by the schema that they are asked with."""

    def respond(asked: Asked) -> Mapping[str, Any]:
        if asked.schema_name == "Heard":
            return hears
        return found(asked, *finds) if asked.schema_name == "Found" else edits(asked)

    return respond


def who_answered(said: JsonValue) -> dict[str, JsonValue]:
    """Return model and temperature of what the history keeps of a finder or an editor."""
    assert isinstance(said, dict)
    return {name: said[name] for name in ("model", "temperature")}


def asked_whom(scripted: ScriptedLlm) -> list[str]:
    """Return who was asked, in order, each once."""
    return list(dict.fromkeys(asked.schema_name for asked in scripted.requests))


async def test_a_model_adds_what_no_rule_reads(talk_to_model: Talk, scripted: ScriptedLlm, user: str) -> None:
    """Switchboard, finder and editor are asked; the entry explains itself with both models and their temperatures."""
    talk = talk_to_model
    await talk.imported(user, SEED.encode())
    said = "I could eat omelettes all day long"
    scripted.respond = chain(
        heard("User could eat omelettes all day long", said),
        ("egg",),
        lambda _asked: proposed(("insert", "food.likes", "Omelettes")),
    )

    (fact,) = await talk.tell(user, said)

    assert fact.state == "done", fact.reason
    assert asked_whom(scripted) == ["Heard", "Found", "Proposed"]
    assert (await talk.kept(user))["food.likes"] == [PASTA, RISOTTO, EGGS, "Omelettes"]
    (record,) = await talk.reader.explain(user, FOOD, "food.likes[3]")
    assert (record.origin.by, record.origin.evidence) == ("gpt-6.1-terra", said)
    assert who_answered(record.origin.finder) == FINDER
    assert who_answered(record.origin.editor) == EDITOR
    finder, editor = scripted.requests[1:3]
    assert [(one.model, one.body.get("temperature")) for one in (finder, editor)] == [
        (FINDER["model"], FINDER["temperature"]),
        (EDITOR["model"], EDITOR["temperature"]),
    ]


async def test_a_model_finds_what_is_to_go(talk_to_model: Talk, scripted: ScriptedLlm, user: str) -> None:
    """Eggs of every name, and nothing else; the deletions explain themselves in the history."""
    talk = talk_to_model
    await talk.imported(user, SEED.encode())
    await talk.tell(user, "I like omelettes")
    assert scripted.requests == []
    said = "I have had it with eggs, drop them"
    hears = heard("User has had it with eggs, drop them", said, "negative")
    scripted.respond = chain(hears, ("egg", "omelette"), lambda asked: proposed(*deleting(asked)))

    (fact,) = await talk.tell(user, said)

    assert fact.state == "done", fact.reason
    assert asked_whom(scripted) == ["Heard", "Found", "Proposed"]
    assert await talk.kept(user) == {"food.likes": [PASTA, RISOTTO], "food.dislikes": ["Olives"]}
    (record,) = await talk.reader.history(user, limit=1)
    assert {edit.operation for edit in record.edits} == {"delete"}
    assert who_answered(record.origin.finder) == FINDER


async def test_what_a_model_calls_known_is_refused(talk_to_model: Talk, scripted: ScriptedLlm, user: str) -> None:
    """With its own words as the reason; nothing is written."""
    talk = talk_to_model
    await talk.imported(user, SEED.encode())
    said = "I could live on pasta alone"
    reject = {**proposed(decision="reject"), "reasoning": "pasta is there"}
    scripted.respond = chain(heard("User could live on pasta alone", said), ("pasta",), lambda _asked: reject)

    (fact,) = await talk.tell(user, said)

    assert (fact.state, fact.plan_id, fact.reason) == ("done", None, "known: pasta is there")
    assert asked_whom(scripted) == ["Heard", "Found", "Proposed"]
    assert (await talk.reader.snapshot(user)).documents[FOOD].revision == 1


async def test_a_diet_that_rules_cannot_carry_out_is_one_plan_of_a_model(
    talk_to_model: Talk, scripted: ScriptedLlm, user: str
) -> None:
    """Nobody but a model knows what grandma puts in; both documents change at once, and are one undo."""
    talk = talk_to_model
    await talk.imported(user, SEED.replace(RISOTTO, "Grandma's special").encode())
    await talk.given(user, ROUTINE, routine__daily=["Yoga at 7", "Steak night on Fridays with friends"])
    before = await talk.bodies(user)
    said = "I'm vegan, and it happened over the winter"

    def edits(asked: Asked) -> dict[str, Any]:
        return proposed(*deleting(asked), ("insert", f"{FOOD}:food.diets", "Vegan"))

    finds = ("special", "steak", "carbonara", "lox")
    scripted.respond = chain(heard("User is vegan", "I'm vegan"), finds, edits)

    (fact,) = await talk.tell(user, said)

    assert fact.state == "done", fact.reason
    assert asked_whom(scripted) == ["Heard", "Found", "Proposed"]
    kept = {"food.dislikes": ["Olives"], "food.diets": ["Vegan"], "routine.daily": ["Yoga at 7"]}
    assert await talk.kept(user) == kept
    (record,) = await talk.reader.explain(user, FOOD, "food.diets[0]")
    assert set(record.revisions) == {FOOD, ROUTINE}
    assert (who_answered(record.origin.finder), who_answered(record.origin.editor)) == (FINDER, EDITOR)
    await talk.undo(user)
    assert await talk.bodies(user) == before


async def test_a_model_clears_what_the_fact_says(talk_to_model: Talk, scripted: ScriptedLlm, user: str) -> None:
    """All of the food document, when the words that were heard are of a wish that rules read in part."""
    talk = talk_to_model
    await talk.imported(user, SEED.encode())
    await talk.given(user, ROUTINE, routine__daily=["Yoga at 7"])
    said = "Delete all my food preferences, maybe I would keep a new list"
    text = "User wants to delete all food preferences, maybe keep a new list"
    scripted.respond = chain(heard(text, said, "neutral"), ("",), lambda asked: proposed(*deleting(asked)))

    (fact,) = await talk.tell(user, said)

    assert fact.state == "done", fact.reason
    assert asked_whom(scripted) == ["Heard", "Found", "Proposed"]
    assert await talk.kept(user) == {"routine.daily": ["Yoga at 7"]}


async def test_no_question_to_a_model_is_about_two_people(
    talk_to_model: Talk, scripted: ScriptedLlm, user: str
) -> None:
    """Who talk at the same time: whatever is asked holds the words and the documents of one of them."""
    talk = talk_to_model
    other = f"bob-of-{user}"
    own = {user: "dumplings", other: "gazpacho"}
    for one, word in own.items():
        await talk.given(one, FOOD, food__likes=[f"Cold {word}"])

    def respond(asked: Asked) -> dict[str, Any]:
        (word,) = [word for word in own.values() if word in asked.user.casefold()]
        said = f"I could eat {word} all day long"
        if asked.schema_name == "Heard":
            return heard(f"User could eat {word} all day long", said)
        if asked.schema_name == "Found":
            return found(asked, word)
        return proposed(("insert", "food.likes", word.capitalize()))

    scripted.respond = respond
    turns = {one: await talk.say(one, f"I could eat {word} all day long") for one, word in own.items()}

    for one, turn_id in turns.items():
        (fact,) = await talk.settled(one, turn_id)
        assert fact.state == "done", fact.reason
        assert await talk.kept(one) == {"food.likes": [f"Cold {own[one]}", own[one].capitalize()]}
    assert len(scripted.requests) == 6
    assert not [asked for asked in scripted.requests if all(word in repr(asked.body) for word in own.values())]
