"""Sentences as hurried people type them: what is only added is no value, and no wish is dropped without a word."""

from datetime import UTC, date, datetime, time
from typing import Any

import pytest

from contracts.messages import ChatTurn
from contracts.parameters import Field, Parameters
from quantities.amounts import Amount, Moment
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
from tests.understanding_cases import GREETER, card_for, parameters_of, said

#: A Wednesday.
NOW = datetime(2026, 11, 18, 16, 40, tzinfo=UTC)


class Weather(Parameters):
    """A name, and a number that follows it."""

    city: str = Field(cues=("in", "for"))
    days: int = Field(1, ge=1, cues=("{} days", "next"))


class Transfer(Parameters):
    """A cue that is also the "to" of verbs."""

    amount: Amount = Field(unit="EUR", cues=("send",))
    to: str = Field(cues=("to",))


class Table(Parameters):
    """People, a day and a time of day."""

    restaurant: str = Field(cues=("at",))
    people: int = Field(ge=1, counts="people")
    day: date
    hour: time | None = None


class Reminder(Parameters):
    """A message, and when it is wanted."""

    text: str = Field(cues=("to", "that"))
    when: Moment


class Rating(Parameters):
    """A text without any cue."""

    title: str
    rating: int = Field(cues=("{} stars",))


class Shopping(Parameters):
    """Several texts."""

    items: tuple[str, ...] = Field(cues=("add", "buy"))


class Nothing(Parameters):
    """No values at all."""


ALL = Catalogue(
    [
        GREETER,
        card_for("WeatherAgent", "tell_weather", Weather, "Tell the weather.", ("weather",)),
        card_for("MoneyAgent", "send_money", Transfer, "Send money.", ("send", "money")),
        card_for("TableAgent", "book_table", Table, "Book a table.", ("book", "table")),
        card_for("ReminderAgent", "remind", Reminder, "Remind of something.", ("remind", "reminder")),
        card_for("RatingAgent", "rate", Rating, "Rate a film.", ("rate", "stars")),
        card_for("ShoppingAgent", "add_items", Shopping, "Put things on the shopping list.", ("shopping list",)),
        card_for("JokeAgent", "tell_joke", Nothing, "Tell a joke.", ("joke",)),
    ]
)


def read(*texts: str) -> Interpretation:
    """Return what the last of *texts* comes to, each said after the answer to the one before."""
    previous: list[ChatTurn] = []
    found: Interpretation = Unfitting("")
    for text in texts:
        found = RuleInterpreter().understand(text, catalogue=ALL, previous=previous, now=NOW)
        if text is not texts[-1]:
            assert not isinstance(found, Several | Unfitting)
            answer = "Done." if isinstance(found, Understood) else found.question
            call = found.task if isinstance(found, Understood) else found.call
            previous += [said("person", text), said("assistant", answer, call, found.agent_id)]
    return found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("weather in lima pls", {"city": "lima"}),
        ("gimme the weather in Cape Town thx", {"city": "Cape Town"}),
        ("weather in Rome right now, if you can", {"city": "Rome"}),
        ("greet Bob \U0001f44b\U0001f642", {"name": "Bob"}),
        ("greet Bob :)", {"name": "Bob"}),
        ("say hello to Anna for me", {"name": "Anna"}),
        ("greet Maria when you have a sec", {"name": "Maria"}),
        ("greet Jean-Luc kindly", {"name": "Jean-Luc"}),
        ("weather in Lima for my trip next week", {"city": "Lima"}),
        ("weather in New York set for Tuesday", {"city": "New York"}),
        ("weather in Lima if I go there in May", {"city": "Lima"}),
        ("weather for new york for the next 3 days", {"city": "new york", "days": 3}),
        ("For Rome I need a 7-day weather forecast", {"city": "Rome", "days": 7}),
        ("send 5 to Acme GmbH asap", {"amount": 5, "to": "Acme GmbH"}),
        ("I want to send Anna 20 euros for lunch", {"amount": 20, "to": "Anna"}),
        ("greet New Kids on the Block", {"name": "New Kids on the Block"}),
        ("rate Requiem for a Dream 4 stars", {"title": "Requiem for a Dream", "rating": 4}),
        ("rate When Harry Met Sally 5 stars", {"title": "When Harry Met Sally", "rating": 5}),
        ("rate Apocalypse Now 4 stars", {"title": "Apocalypse Now", "rating": 4}),
        ("rate Now You See Me 3 stars", {"title": "Now You See Me", "rating": 3}),
    ],
)
def test_what_is_only_added_is_no_part_of_a_name(text: str, expected: dict[str, Any]) -> None:
    """Politeness, faces, reasons and the words of the next value; a title keeps its own small words."""
    assert parameters_of(read(text)) == expected


@pytest.mark.parametrize("text", ["greet him", "greet someone", "greet them please"])
def test_a_pronoun_is_no_name(text: str) -> None:
    """Who is meant is asked."""
    found = read(text)
    assert isinstance(found, Missing)
    assert found.missing == ("name",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("weather in Oslo? no wait Bergen", {"city": "Bergen"}),
        ("greet Bob... actually, make that Rob", {"name": "Rob"}),
        ("send 50 to Anna, no wait, 60", {"amount": 60, "to": "Anna"}),
    ],
)
def test_what_is_taken_back_is_the_name_or_the_amount(text: str, expected: dict[str, Any]) -> None:
    """An amount never takes the place of a name."""
    assert parameters_of(read(text)) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("table for 2 at The Ivy on Friday at 7pm",
         {"restaurant": "The Ivy", "people": 2, "day": "2026-11-20", "hour": "19:00:00"}),
        ("table for two at Chez Marie tomorrow 20:00 please",
         {"restaurant": "Chez Marie", "people": 2, "day": "2026-11-19", "hour": "20:00:00"}),
        ("remind me to call mum tomorrow at 9am", {"text": "call mum", "when": "2026-11-19T09:00:00"}),
        ("remind me to buy tickets for Friday", {"text": "buy tickets for Friday", "when": "2026-11-20"}),
        ("don't forget to remind me to call Ana tomorrow", {"text": "call Ana", "when": "2026-11-19"}),
        ("remind me to greet Ann and call Bob tomorrow", {"text": "greet Ann and call Bob", "when": "2026-11-19"}),
        ("I need to call Bob, remind me tomorrow", {"text": "call Bob", "when": "2026-11-19"}),
    ],
)  # fmt: skip
def test_a_day_and_a_time_go_to_the_fields_that_hold_them(text: str, expected: dict[str, Any]) -> None:
    """One moment tells both, and is no end of a message."""
    assert parameters_of(read(text)) == expected


@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("add milk, eggs and bread to the shopping list", ["milk", "eggs", "bread"]),
        ("shopping list: buy apples", ["apples"]),
        ("add 2 bottles of wine, mac and cheese, and napkins to my list",
         ["2 bottles of wine", "mac and cheese", "napkins"]),
        ("add to the shopping list: milk, honey", ["milk", "honey"]),
        ("add:\n- milk\n- the eggs", ["milk", "eggs"]),
        ('add "milk" and "eggs" to my shopping list', ["milk", "eggs"]),
    ],
)  # fmt: skip
def test_texts_of_a_list_need_no_quotation_marks(text: str, items: list[str]) -> None:
    """Commas, bullets and the last "and" tell them apart."""
    found = read(text) if "list" in text else read("show my shopping list", text)
    assert parameters_of(found) == {"items": items}


def test_a_list_is_an_answer_and_what_is_taken_back_of_it_is_asked_about() -> None:
    """Nothing is put on a list that may not be meant."""
    assert parameters_of(read("show my shopping list", "milk and eggs pls")) == {"items": ["milk", "eggs"]}
    assert isinstance(read("add milk but no eggs to the shopping list"), Missing)


@pytest.mark.parametrize(
    "text",
    [
        "before you tell me a joke, greet Bob",
        "after greeting Bob, tell me a joke",
        "greet Bob before telling me a joke",
        "greet Bob as well as a joke plz",
    ],
)
def test_before_and_after_tell_only_the_turn_of_two_wishes(text: str) -> None:
    """Neither is dropped."""
    found = read(text)
    assert isinstance(found, Several)
    assert {one.agent_id for one in found.parts if isinstance(one, Understood)} == {"GreeterAgent", "JokeAgent"}


def test_a_name_behind_everything_else_is_asked_about() -> None:
    """It may be wanted as well, and "each" says so."""
    found = read("weather in Lima, 2 days, and Oslo")
    assert isinstance(found, Ambiguous)
    assert '"Lima" and "Oslo"' in found.question
    each = read("weather in Lima, 2 days, and Oslo", "each")
    assert isinstance(each, Several)
    assert len(each.parts) == 2


def test_a_name_that_was_not_read_is_asked_for() -> None:
    """The last place is not asked about again in the place of the one that was said; thanks are no place."""
    found = read("weather in Lima", "and Rome for 2 days")
    assert isinstance(found, Missing)
    assert found.missing == ("city",)
    assert parameters_of(read("Hi! What's the weather in Porto? Thanks so much, Lena")) == {"city": "Porto"}


def test_what_was_done_is_no_wish() -> None:
    """Nothing is sent a second time; another order behind it is one."""
    assert isinstance(read("I sent 50 to Anna yesterday"), Unfitting)
    assert isinstance(read("We've already booked a table at Nobu for 4 tomorrow"), Unfitting)
    assert parameters_of(read("I sent 50 to Bob, now send 20 to Anna")) == {"amount": 20, "to": "Anna"}


def test_just_my_partner_is_no_number_of_people() -> None:
    """Whoever speaks comes too, or does not."""
    assert isinstance(read("book a table at Nobu tomorrow", "just my partner"), Missing | Ambiguous)
    assert parameters_of(read("book a table at Nobu tomorrow", "just my partner and me"))["people"] == 2


@pytest.mark.parametrize(
    ("first", "then", "changed"),
    [
        ("weather in Lima", "for 3 days", {"days": 3}),
        ("weather in Lima", "make it 5 days", {"days": 5}),
        ("send 50 to Anna", "make it 5", {"amount": 5}),
        ("send 50 to Anna", "60 instead", {"amount": 60}),
        ("send 50 to Anna", "same for Bob", {"to": "Bob"}),
        ("book a table for 4 at Nobu on Friday", "no, Saturday", {"day": "2026-11-21"}),
        ("book a table for 4 at Nobu on Friday", "actually we are 5", {"people": 5}),
        ("book a table for 4 at Nobu on Friday", "at 8pm please", {"hour": "20:00:00"}),
        ("remind me to call mum tomorrow", "make it Friday", {"when": "2026-11-20"}),
    ],
)
def test_a_few_words_change_the_last_task(first: str, then: str, changed: dict[str, Any]) -> None:
    """All the other values stay as they were."""
    before = parameters_of(read(first))
    assert parameters_of(read(first, then)) == {**before, **changed}


@pytest.mark.parametrize("text", ["no, Saturday", "thanks, 5", "5", "no", "is it 5 days", "5 is a nice number"])
def test_what_says_no_value_of_the_last_task_starts_nothing(text: str) -> None:
    """A day where it has none, thanks and remarks."""
    assert not isinstance(read("weather in Lima", text), Understood | Several)
