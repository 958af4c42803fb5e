"""What is ordered and what is not: refusals, names that end, corrections of the last task, times of a turn."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import Any

import pytest
from supervisor.interpretation.values.amounts import strangeness
from supervisor.interpretation.values.filling import Filled, fill
from supervisor.interpretation.values.scene import scene_of
from supervisor.interpretation.wishes.routing import Router

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
from tests.understanding_cases import AT, BUDGET, budget_turn, card_for, said


class _Gift(Parameters):
    amount: Amount = Field(unit="EUR", cues=("send", "pay", "gift of"))
    to: str = Field(cues=("to",))


class _Tide(Parameters):
    harbour: str = Field(cues=("in", "tide in"))


class _Coin(Parameters):
    pass


class _Mark(Parameters):
    rating_value: int = Field(cues=("rating of {}", "{} points"))
    best_rating: int | None = Field(None, cues=("of {}", "out of {}"))


class _Shelf(Parameters):
    jars: int


class _Visit(Parameters):
    day: date


class _Call(Parameters):
    nickname: str = Field(cues=("call me",))


GIFT = card_for("GiftAgent", "send_gift", _Gift, "Sends a gift of money.", ("gift", "send"))
TIDE = card_for("TideAgent", "tell_tide", _Tide, "Tells the tide.", ("tide",))
COIN = card_for("CoinAgent", "flip_coin", _Coin, "Flips a coin.", ("coin", "flip", "heads"))
EVERYBODY = Catalogue([BUDGET, GIFT, TIDE, COIN])


def understand(text: str, previous: Sequence[ChatTurn] = (), catalogue: Catalogue = EVERYBODY) -> Interpretation:
    """Return what *text* comes to."""
    return RuleInterpreter().understand(text, catalogue=catalogue, previous=previous)


def values(found: Interpretation) -> dict[str, Any]:
    """Return the values of *found*, which is understood."""
    assert isinstance(found, Understood), found
    return dict(found.task.parameters)


def filled(text: str, parameters: type[Parameters]) -> Filled:
    """Return what *text* fills of *parameters*."""
    card = card_for("SomeAgent", "some_task", parameters)
    task = Router(Catalogue([card])).find("SomeAgent", "some_task")
    assert task is not None
    return fill(scene_of(text), task)


@pytest.mark.parametrize(
    "text",
    [
        "don't send 40 euros to Ines",
        "never send 40 euros to Ines",
        "don't pay 40 euros to Ines as a gift",
        "you shouldn't send 40 euros to Ines",
        "I'd rather not send 40 euros to Ines",
        "avoid sending 40 euros to Ines",
        "I changed my mind, don't send 40 euros to Ines",
        "do not send more than 40 euros to Ines",
        "did you send 40 euros to Ines?",
        "have you already sent 40 euros to Ines?",
    ],
)
def test_what_shall_not_be_done_is_not_done(text: str) -> None:
    """Also when the verb announces an amount, and when the sentence asks what was done."""
    assert isinstance(understand(text), Unfitting)


@pytest.mark.parametrize(
    ("text", "amount", "to"),
    [
        ("don't forget to send 40 euros to Ines", 40, "Ines"),
        ("why don't you send 40 euros to Ines", 40, "Ines"),
        ("don't send 40 euros to Ines, send 30 euros to Omar", 30, "Omar"),
        ("don't send 40 euros to Ines - send 30 euros to Omar", 30, "Omar"),
    ],
)
def test_what_follows_a_refusal_is_done(text: str, amount: int, to: str) -> None:
    """A comma or a dash is enough between them."""
    assert values(understand(text)) == {"amount": amount, "to": to}


def test_a_name_that_is_refused_gives_way_to_the_one_that_is_wished() -> None:
    """The sentence goes on behind a dash."""
    catalogue = Catalogue([BUDGET, card_for("NameAgent", "call_user", _Call, keywords=("call",))])
    assert values(understand("don't call me Lex any more - call me Sascha", (), catalogue)) == {"nickname": "Sascha"}


def test_a_bound_is_no_refusal() -> None:
    """Where the verb is no word of what the task is called."""
    found = understand("don't spend more than 9k of my budget, spent 4k so far")
    assert not isinstance(found, Unfitting)


@pytest.mark.parametrize("text", ["budget of 900, I haven't spent 350", "limit 900, I did not spend 350, check budget"])
def test_an_amount_behind_a_denied_verb_is_asked_for(text: str) -> None:
    """What was not spent is not spent."""
    found = understand(text)
    assert isinstance(found, Missing)
    assert found.missing == ("spent",)


@pytest.mark.parametrize(
    ("text", "harbour"),
    [
        ("what's the tide in Cardiff and is it rising?", "Cardiff"),
        ("tide in Cardiff and do I need boots", "Cardiff"),
        ("tell me the tide in Brighton and Hove", "Brighton and Hove"),
        ("tide in Cardiff too", "Cardiff"),
        ("tide in Cardiff tomorrow", "Cardiff"),
        ("tide in Cardiff on Friday", "Cardiff"),
        ("tide in Friday Harbor", "Friday Harbor"),
        ("tide in Cardiff and not Swansea", "Cardiff"),
        ("not the tide in Cardiff but in Swansea", "Swansea"),
        ("tide in Cardiff and tell her so", "Cardiff"),
    ],
)
def test_a_name_ends_where_something_else_begins(text: str, harbour: str) -> None:
    """A question, an order, a time or another name; an "and" alone does not end it."""
    assert values(understand(text)) == {"harbour": harbour}


def test_a_name_holds_no_amount_of_another_field() -> None:
    """And an amount alone is no name: it is asked for, and the answer is taken."""
    assert values(understand("send to Ines 40 euros")) == {"amount": 40, "to": "Ines"}
    asked = understand("send 40 euros")
    assert isinstance(asked, Missing)
    assert asked.missing == ("to",)
    turn = said("assistant", asked.question, asked.call, "GiftAgent")
    assert values(understand("Ines", [turn])) == {"amount": 40, "to": "Ines"}
    assert isinstance(understand("I don't know", [turn]), Missing)


def test_the_same_task_is_wished_twice_when_its_verb_comes_again() -> None:
    """Although the verb also announces an amount."""
    found = understand("send 40 euros to Ines and send 30 euros to Omar")
    assert isinstance(found, Several)
    assert [values(part) for part in found.parts] == [{"amount": 40, "to": "Ines"}, {"amount": 30, "to": "Omar"}]


def test_a_task_without_values_is_wished_once() -> None:
    """What says what shall come of it is no second wish."""
    assert values(understand("flip a coin and tell me if it comes up heads")) == {}


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("no, I spent 450", {"spent": 450}),
        ("sorry, the limit was 800", {"budget_limit": 800}),
        ("I meant 450 spent", {"spent": 450}),
        ("wrong limit, should be 800", {"budget_limit": 800}),
        ("not 900 but 800", {"budget_limit": 800}),
        ("the limit isn't 900, it's 800", {"budget_limit": 800}),
    ],
)
def test_a_correction_keeps_the_rest_of_the_last_task(text: str, changed: dict[str, Any]) -> None:
    """Nobody has to say it again."""
    before = {"budget_limit": 900, "spent": 350}
    assert values(understand(text, budget_turn(**before))) == before | changed


@pytest.mark.parametrize("text", ["no", "no, thanks", "sorry to bother you", "actually it's fine"])
def test_words_of_correction_alone_repeat_nothing(text: str) -> None:
    """A task is not run again by a polite word."""
    assert isinstance(understand(text, budget_turn(budget_limit=900, spent=350)), Unfitting)


@pytest.mark.parametrize("text", ["set both limit and spent to 700", "again with past: 10/20/30"])
def test_a_field_that_is_named_is_never_silently_left_as_it_was(text: str) -> None:
    """Its value cannot be told, so it is asked for."""
    found = understand(text, budget_turn(budget_limit=900, spent=350, history=[5]))
    assert isinstance(found, Missing | Ambiguous), found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a rating value of 3 and a best rating of 6", {"rating_value": 3, "best_rating": 6}),
        ("3 points for The House of Nine", {"rating_value": 3}),
        ("3 of 6", {"rating_value": 3, "best_rating": 6}),
    ],
)
def test_a_mere_of_takes_no_amount_from_another_field(text: str, expected: dict[str, int]) -> None:
    """It joins what stands before it to the amount; in a title it joins nothing."""
    assert filled(text, _Mark).values == expected


def test_a_thing_that_is_counted_is_a_plain_number() -> None:
    """Cups are a measure too, and no stranger to a number than jars."""
    card = card_for("SomeAgent", "some_task", _Shelf)
    task = Router(Catalogue([card])).find("SomeAgent", "some_task")
    assert task is not None
    scene = scene_of("jars: 3 cups and 4 km")
    assert [strangeness(item, task.shape.fields[0], scene) > 0 for item in scene.items] == [False, True]


def test_a_change_of_a_task_without_numbers_changes_nothing() -> None:
    """There is nothing that could be raised: no amount is asked for, and nothing breaks."""
    catalogue = Catalogue([card_for("LimitAgent", "raise_limit", _Coin, keywords=("credit", "limit", "increased"))])
    found = understand("can my credit limit be increased by 500 dollars", (), catalogue)
    assert values(found) == {}


@pytest.mark.parametrize(
    ("text", "jars"),
    [
        ("jars: 3 sisters and me", None),
        ("jars for my 3 little sisters and my wife", None),
        ("jars for 3 friends and I will pay", 3),
        ("jars for 3 friends and my name is Bob", 3),
    ],
)
def test_a_number_to_which_somebody_is_added_is_asked_for(text: str, jars: int | None) -> None:
    """Where the field does not add people up itself."""
    found = filled(text, _Shelf)
    assert found.values.get("jars") == jars
    assert bool(found.doubts) == (jars is None)


def test_tomorrow_is_the_day_after_the_turn() -> None:
    """Not after the moment when the words are read."""
    catalogue = Catalogue([card_for("VisitAgent", "plan_visit", _Visit, keywords=("visit",))])
    found = RuleInterpreter().understand("plan a visit tomorrow", catalogue=catalogue, now=AT)
    assert values(found) == {"day": "2026-11-22"}
    later = datetime(2027, 3, 1, 9, 0, tzinfo=UTC)
    found = RuleInterpreter().understand("plan a visit tomorrow", catalogue=catalogue, now=later)
    assert values(found) == {"day": "2027-03-02"}
