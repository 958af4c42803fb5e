"""An answer beside a wish, several days where a task has room for one, and names that are told by whose they are."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest

from contracts.messages import ChatTurn
from contracts.parameters import Field, Parameters
from quantities.amounts import Amount
from supervisor.catalogue import Catalogue
from supervisor.understanding import (
    Ambiguous,
    Interpretation,
    Missing,
    RuleInterpreter,
    Several,
    Understood,
    Unfitting,
)
from tests.understanding_cases import GREETER, card_for, said

#: A Monday.
NOW = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)
TOMORROW, FRIDAY, SATURDAY, SUNDAY = "2026-11-24", "2026-11-27", "2026-11-28", "2026-11-29"


class _Weather(Parameters):
    city: str = Field(cues=("in", "for"), examples=("Lima",))
    day: date | None = Field(None, cues=("on",))


class _Budget(Parameters):
    limit: Amount = Field(cues=("limit", "budget of"))
    spent: Amount = Field(cues=("spent",))


class _Table(Parameters):
    restaurant: str = Field(cues=("at",), examples=("Marks and Spencer",))
    people: int = Field(cues=("people", "for"), counts="people")
    day: date = Field(cues=("on",))


class _Message(Parameters):
    to: str = Field(cues=("to",))
    text: str = Field(cues=("saying",))


class _Shopping(Parameters):
    items: tuple[str, ...] = Field(cues=("add", "buy"))


CARDS = Catalogue(
    [
        card_for("WeatherAgent", "tell_weather", _Weather, "Tells the weather.", ("weather",)),
        card_for("BudgetAgent", "check_budget", _Budget, "Checks a budget.", ("budget", "limit", "spent")),
        card_for("TableAgent", "book_table", _Table, "Books a table.", ("table", "dinner")),
        card_for("MessageAgent", "send_message", _Message, "Sends a message.", ("message",)),
        card_for("ListAgent", "add_items", _Shopping, "Puts things on the list.", ("shopping", "list")),
        GREETER,
    ]
)


def read(*sentences: str) -> Interpretation:
    """Return what the last of *sentences* comes to, after the others were answered or asked back about."""
    turns: list[ChatTurn] = []
    for number, text in enumerate(sentences):
        found = RuleInterpreter().understand(text, catalogue=CARDS, previous=turns, now=NOW)
        turns.append(said("person", text))
        for part in _parts(found) if number + 1 < len(sentences) else ():
            assert not isinstance(part, Unfitting)
            call = part.task if isinstance(part, Understood) else part.call
            words = "Done." if isinstance(part, Understood) else part.question
            turn = said("assistant", words, call, part.agent_id)
            turns.append(turn.model_copy(update={"request_id": f"r{number}", "turn_id": f"t{len(turns)}"}))
    return found


def values(found: Interpretation) -> list[Any]:
    """Return the values of each part of *found*, for a part that asks its question."""
    return [
        list(part.task.parameters.values())
        if isinstance(part, Understood)
        else part.question
        if isinstance(part, Ambiguous | Missing)
        else None
        for part in _parts(found)
    ]


def _parts(found: Interpretation) -> Sequence[Any]:
    return found.parts if isinstance(found, Several) else (found,)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("What's the weather in Lima? 50k", [["Lima"], [50_000, 42_000]]),
        ("50k. And what's the weather in Lima?", [[50_000, 42_000], ["Lima"]]),
        ("weather in Lima, 50k", [["Lima"], [50_000, 42_000]]),
        ("weather in Lima and the limit is 50k", [["Lima"], [50_000, 42_000]]),
        ("also tell me the weather in Lima. the limit is 50k", [["Lima"], [50_000, 42_000]]),
        ("hmm, first the weather in Lima. then 50k", [["Lima"], [50_000, 42_000]]),
        ("send a message to Ann saying hi. 50k", [["Ann", "hi"], [50_000, 42_000]]),
        # A wish alone, or with what is its own, is no answer.
        ("What's the weather in Lima?", [["Lima"]]),
        ("book a dinner at Nobu on friday, 4 people", [["Nobu", 4, FRIDAY]]),
        ("forget that. what's the weather in Lima?", [["Lima"]]),
        # What may be an answer and may be none: the question comes again.
        ("what's the weather in Lima? 3 apples", [["Lima"], "What is limit?"]),
        ("weather in Lima. between 50k and 60k", [["Lima"], "What is limit?"]),
    ],
)
def test_a_wish_beside_an_answer_is_served_and_the_answer_completes_the_question(text: str, expected: Any) -> None:
    """The limit was asked for: neither of the two is lost, in whatever order they are said."""
    assert values(read("check my budget, spent 42k", text)) == expected


def test_a_message_that_was_asked_for_is_asked_for_again_beside_a_wish() -> None:
    """Anything may be a message: "hang on" must not be sent as one, nor what was meant be dropped."""
    found = read("send a message to Anna", "hang on, what's the weather in Lima?")
    assert values(found) == ["What is text?", ["Lima"]]


def test_a_name_answers_beside_a_wish_with_what_was_said_before() -> None:
    """The day of the first sentence is kept."""
    found = read("the weather tomorrow", "add tea to the shopping list. Leeds")
    assert values(found) == [[["tea"]], ["Leeds", TOMORROW]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the weather in Lima on Friday and Saturday", [["Lima", FRIDAY], ["Lima", SATURDAY]]),
        ("weather in oslo friday & saturday", [["oslo", FRIDAY], ["oslo", SATURDAY]]),
        ("weather in Lima friday, saturday and sunday", [["Lima", FRIDAY], ["Lima", SATURDAY], ["Lima", SUNDAY]]),
        ("weather in Lima on the 27th and the 28th", [["Lima", FRIDAY], ["Lima", SATURDAY]]),
        ("weather in Lima on 27 and 28 november", [["Lima", FRIDAY], ["Lima", SATURDAY]]),
        ("book a table at Nobu for 4 on friday and saturday", [["Nobu", 4, FRIDAY], ["Nobu", 4, SATURDAY]]),
        ("weather in Lima between friday and sunday", [f"Is day {FRIDAY} or {SUNDAY}?"]),
        ("book a table at Nobu for 4 on friday and back on sunday", [f"Is day {FRIDAY} or {SUNDAY}?"]),
        ("weather in Lima not on friday but on saturday", [["Lima", SATURDAY]]),
        ("weather in new york city this friday", [["new york city", FRIDAY]]),
        (
            "send a message to Ann saying see you friday and saturday",
            [["Ann", "see you friday and saturday"]],
        ),
    ],
)
def test_each_of_several_days_is_a_task_or_is_asked_about(text: str, expected: Any) -> None:
    """None of them is dropped, and none of them is a part of a name."""
    assert values(read(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sky over Lima on 27 and 28 november", [["Lima", FRIDAY], ["Lima", SATURDAY]]),
        ("sky over District 9 and 28 november", [["District 9", SATURDAY]]),
    ],
)
def test_days_before_the_month_they_share_are_no_part_of_a_name(text: str, expected: Any) -> None:
    """Also where no word announces the field for the day; a number without an "on" stays with its name."""

    class Sky(Parameters):
        place: str = Field(cues=("over",))
        day: date

    house = Catalogue([card_for("SkyAgent", "tell_sky", Sky, "Tells what the sky is like.", ("sky",))])
    assert values(RuleInterpreter().understand(text, catalogue=house, now=NOW)) == expected


def test_what_lacks_for_several_days_is_said_once() -> None:
    """The same question for two days has one answer."""
    found = read("book a table at Nobu on friday and saturday", "4")
    assert values(found) == [["Nobu", 4, FRIDAY], ["Nobu", 4, SATURDAY]]


@pytest.mark.parametrize("follow_up", ["the same on saturday", "and on saturday?", "what about saturday"])
def test_another_day_alone_asks_for_the_last_task_then(follow_up: str) -> None:
    """All else stays as it was."""
    assert values(read("weather in Lima on friday", follow_up)) == [["Lima", SATURDAY]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("send a message to my brother saying the heating is broken", [["my brother", "the heating is broken"]]),
        ("weather in my village", [["my village"]]),
        ("send a message to my friend Ada saying hi", [["friend Ada", "hi"]]),
        ("send a message to him saying hi", ["What is to?"]),
        # A field that is called a name takes none.
        ("greet my brother", ["What is name?"]),
        ("greet my brother Bob", [["brother Bob"]]),
    ],
)
def test_whose_somebody_is_stays_with_the_word_for_them(text: str, expected: Any) -> None:
    """A brother is no name: a text says whose he is, and a name is asked for."""
    assert values(read(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("book a table at Marks and Spencer for 3 on friday", [["Marks and Spencer", 3, FRIDAY]]),
        (
            "book a table at Nobu and Zuma for 3 on friday",
            ['Is restaurant "Nobu and Zuma" as one, or each of "Nobu" and "Zuma"?'],
        ),
        ("add mac and cheese to the shopping list", [[["mac and cheese"]]]),
        ("add tea, coffee and half and half to the list", [[["tea", "coffee", "half and half"]]]),
        ("add black and white paint to the list", [[["black and white paint"]]]),
        ("add milk and eggs to the list", [[["milk", "eggs"]]]),
    ],
)
def test_a_name_that_a_card_or_everybody_knows_is_one(text: str, expected: Any) -> None:
    """An example with an "and" makes that name one, and no other."""
    assert values(read(text)) == expected


@pytest.mark.parametrize("answer", ["her", "somebody"])
def test_an_answer_that_names_nobody_is_asked_again(answer: str) -> None:
    """Nobody is called "her"."""
    assert values(read("send a message saying hi", answer)) == ["What is to?"]
