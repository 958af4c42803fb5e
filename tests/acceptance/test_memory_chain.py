"""What a person says in a chat is in their documents: a real stream, a real store, and one worker for both agents."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from typing import Any

import pytest
from pydantic import JsonValue

from tasklore.contracts.identifiers import new_id
from tests.acceptance.conversation import FOOD, Remembering, Talk, remembering, talk_in
from tests.llm_double import Asked, ScriptedLlm
from tests.memory_reading.oracle import agreed, heard

PASTA = "Pasta (especially carbonara)"
RISOTTO = "Mushroom risotto"

#: Five things, each said in three ways.
SAID = {
    "Sushi": ("I love sushi", "My favourite food is sushi", "I really enjoy sushi"),
    "Peanuts": (
        "I'm allergic to peanuts",
        "I have a peanut allergy",
        "I am allergic to peanuts.",
    ),
    "Olives": ("I hate olives", "I can't stand olives", "I don't like olives"),
    "Asthma": ("I have asthma", "I suffer from asthma", "I've got asthma"),
    "Ana": ("My name is Ana", "Call me Ana", "my name's Ana"),
}

#: Who answers for switchboard and finder, as their files have it.
SMALL = "gpt-6-luna"
WORK = "resource_user_work"


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
def by_model(
    tmp_path_factory: pytest.TempPathFactory, scripted: ScriptedLlm
) -> Iterator[Remembering]:
    """Run a worker that asks the scripted model."""
    with remembering(
        tmp_path_factory.mktemp("by_model"), llm_base_url=scripted.base_url
    ) as running:
        yield running


@pytest.fixture
async def talk(by_rules: Remembering) -> AsyncIterator[Talk]:
    """Talk to the worker that has no model."""
    async with talk_in(by_rules.system) as talk:
        yield talk
    assert by_rules.worker.is_running


@pytest.fixture
async def talk_to_model(
    by_model: Remembering, scripted: ScriptedLlm
) -> AsyncIterator[Talk]:
    """Talk to the worker that asks the scripted model, which was asked nothing yet."""
    scripted.respond = None
    scripted.requests.clear()
    async with talk_in(by_model.system) as talk:
        yield talk
    assert by_model.worker.is_running


@pytest.fixture
def user() -> str:
    """Name somebody whom no other test knows."""
    return f"ann-{new_id(0)[-8:]}"


# -- by rules ----------------------------------------------------------------------------------------------------------


async def test_what_is_liked_is_added_at_the_end(talk: Talk, user: str) -> None:
    """To what was imported, which stays as it is; the history tells who said so, in which words."""
    await talk.given(
        user, FOOD, food__likes=[PASTA, RISOTTO], food__dislikes=["Olives"]
    )

    (fact,) = await talk.tell(user, "I like omelettes")

    assert fact.state == "done"
    assert await talk.kept(user) == {
        "food.likes": [PASTA, RISOTTO, "Omelettes"],
        "food.dislikes": ["Olives"],
    }
    (record,) = await talk.reader.explain(user, FOOD, "food.likes[2]")
    assert (record.origin.by, record.origin.evidence) == ("rules", "I like omelettes")
    finder = record.origin.finder
    editor = record.origin.editor
    assert isinstance(finder, dict)
    assert isinstance(editor, dict)
    assert (finder["model"], editor["model"]) == ("search", "relation updates")


async def test_five_things_said_in_three_ways_are_five_entries(
    talk: Talk, user: str
) -> None:
    """Said in fifteen turns, in rounds; every one of them is dealt with, and ten are known."""
    turns = [
        await talk.say(user, text)
        for texts in zip(*SAID.values(), strict=True)
        for text in texts
    ]

    facts = [fact for turn_id in turns for fact in await talk.settled(user, turn_id)]

    assert [fact.plan_id is not None for fact in facts] == [True] * 5 + [False] * 10
    assert all(fact.reason.startswith("known: ") for fact in facts[5:])
    assert sorted(
        entry for entries in (await talk.kept(user)).values() for entry in entries
    ) == sorted(SAID)


async def test_two_people_who_talk_at_once_stay_apart(talk: Talk, user: str) -> None:
    """Each is told about themselves alone: in documents, history and facts; a dislike of one is theirs."""
    other = f"bob-of-{user}"
    said = {
        user: ["I like steak", "I like salmon", "I like tofu", "I hate cheese"],
        other: ["I like ham", "I like cheese", "I like beans", "I hate steak"],
    }

    rounds = zip(*said.values(), strict=True)
    turns = [
        await asyncio.gather(
            *(talk.say(one, text) for one, text in zip(said, texts, strict=True))
        )
        for texts in rounds
    ]
    for pair in turns:
        for one, turn_id in zip(said, pair, strict=True):
            (fact,) = await talk.settled(one, turn_id)
            assert fact.state == "done", fact.reason

    assert await talk.kept(user) == {
        "food.likes": ["Steak", "Salmon", "Tofu"],
        "food.dislikes": ["Cheese"],
    }
    assert await talk.kept(other) == {
        "food.likes": ["Ham", "Cheese", "Beans"],
        "food.dislikes": ["Steak"],
    }
    for one, stranger in ((user, other), (other, user)):
        seen = repr(await talk.reader.history(one)) + repr(await talk.facts(one))
        assert not [text for text in said[stranger] if text in seen]


# -- with a model ------------------------------------------------------------------------------------------------------


def telling(*keys: Mapping[str, Any]) -> Callable[[Asked], Mapping[str, Any]]:
    """Return a script for the model of the switchboard."""
    return lambda asked: (
        agreed(asked.user)
        if asked.schema_name == "SecondLook"
        else heard(asked.user, *keys)
    )


def liking(what: str, quotation: str, **fields: Any) -> Mapping[str, Any]:
    """Return what a right answer says of something that is liked."""
    key = {
        "statement": f"You love {what}",
        "category": "food.likes",
        "value": what,
        "quotation": quotation,
    }
    return {**key, **fields}


def model_of(said: JsonValue) -> JsonValue:
    """Return the model of what the history keeps of a finder or an editor."""
    assert isinstance(said, dict)
    return said["model"]


def asked_whom(scripted: ScriptedLlm) -> list[str]:
    """Return who was asked, in order."""
    return [asked.schema_name for asked in scripted.requests]


async def test_a_model_hears_what_no_rule_reads(
    talk_to_model: Talk, scripted: ScriptedLlm, user: str
) -> None:
    """One question is enough; the entry explains itself: who heard it, by which words, and who found where it goes."""
    talk = talk_to_model
    await talk.given(
        user, FOOD, food__likes=[PASTA, RISOTTO], food__dislikes=["Olives"]
    )
    said = "I could eat omelettes all day long"
    scripted.respond = telling(liking("omelettes", said))

    (fact,) = await talk.tell(user, said)

    assert fact.state == "done", fact.reason
    assert asked_whom(scripted) == ["Heard"]
    assert (await talk.kept(user))["food.likes"] == [PASTA, RISOTTO, "Omelettes"]
    (record,) = await talk.reader.explain(user, FOOD, "food.likes[2]")
    assert (record.origin.by, record.origin.evidence) == (SMALL, said)
    assert record.origin.reasoning == "as the key has it"
    assert (model_of(record.origin.finder), model_of(record.origin.editor)) == (
        "search",
        "relation new",
    )


async def test_an_update_ends_what_it_names(
    talk_to_model: Talk, scripted: ScriptedLlm, user: str
) -> None:
    """It is shown under a mark; the older is kept as the past, and undo brings it back."""
    talk = talk_to_model
    await talk.given(user, WORK, work__tools=["Git", "VS Code"])
    before = await talk.bodies(user)
    switch = {
        "statement": "You use Neovim",
        "category": "work.tools",
        "value": "Neovim",
        "relation": "updates",
    }
    scripted.respond = telling(
        {**switch, "quotation": "switching from VS Code to Neovim", "of": ["VS Code"]}
    )

    (fact,) = await talk.tell(user, "I'm switching from VS Code to Neovim.")

    assert fact.state == "done", fact.reason
    assert await talk.kept(user) == {"work.tools": ["Git", "Neovim"]}
    (record,) = await talk.reader.history(user, limit=1)
    assert isinstance(record.origin.finder, dict)
    assert [place["current_value"] for place in record.origin.finder["locations"]] == [
        "VS Code"
    ]  # type: ignore[index, union-attr, call-overload]
    await talk.undo(user)
    assert await talk.bodies(user) == before


async def test_no_question_to_a_model_is_about_two_people(
    talk_to_model: Talk, scripted: ScriptedLlm, user: str
) -> None:
    """Who talk at the same time: whatever is asked holds the words and the documents of one of them."""
    talk = talk_to_model
    other = f"bob-of-{user}"
    own = {user: "dumplings", other: "gazpacho"}
    for one, word in own.items():
        await talk.given(one, FOOD, food__likes=[f"Cold {word}"])

    def respond(asked: Asked) -> Mapping[str, Any]:
        (word,) = [word for word in own.values() if word in asked.user.casefold()]
        return heard(
            asked.user, liking(f"{word} all day", f"I could eat {word} all day long")
        )

    scripted.respond = respond
    turns = {
        one: await talk.say(one, f"I could eat {word} all day long")
        for one, word in own.items()
    }

    for one, turn_id in turns.items():
        (fact,) = await talk.settled(one, turn_id)
        assert fact.state == "done", fact.reason
        assert await talk.kept(one) == {
            "food.likes": [f"Cold {own[one]}", f"{own[one].capitalize()} all day"]
        }
    assert len(scripted.requests) == 2
    assert not [
        asked
        for asked in scripted.requests
        if all(word in repr(asked.body) for word in own.values())
    ]
