"""No number, date, name or quoted text is dropped, and no default replaces one."""

from collections.abc import Collection
from datetime import date
from typing import Literal

import pytest

from tasklore.contracts.messages import ChatTurn
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import (
    Clarification,
    Interpretation,
    RuleInterpreter,
    Several,
    Understood,
    Unfitting,
)
from tests.understanding_cases import AT, EVERYBODY, card_for, said


class Pizza(Parameters):
    """A text with examples, a number and a choice that may be left out."""

    pizza: str = Field(examples=("margherita", "funghi"))
    quantity: int = Field(1, ge=1)
    size: Literal["small", "large"] = "small"


class Haircut(Parameters):
    """A day, and a text that may be left out."""

    day: date
    stylist: str | None = None


class Run(Parameters):
    """A measure."""

    distance: Amount = Field(unit="km")


class Show(Parameters):
    """A list of amounts."""

    tickets: tuple[Amount, ...] = ()


class Words(Parameters):
    """A text that is quoted, and a choice."""

    text: str
    language: Literal["German", "French"]


ALL = Catalogue(
    [
        card_for(
            "PizzaAgent", "order_pizza", Pizza, "Order pizzas.", ("pizza", "order")
        ),
        card_for(
            "HaircutAgent", "book_haircut", Haircut, "Book a haircut.", ("haircut",)
        ),
        card_for("RunAgent", "log_run", Run, "Log a run.", ("run",)),
        card_for(
            "ShowAgent",
            "buy_tickets",
            Show,
            "Buy tickets for a show.",
            ("tickets", "show"),
        ),
        card_for(
            "TranslateAgent", "translate", Words, "Translate a text.", ("translate",)
        ),
        *EVERYBODY.cards.values(),
    ]
)


def understand(text: str, previous: list[ChatTurn] | None = None) -> Interpretation:
    return RuleInterpreter().understand(
        text, catalogue=ALL, previous=previous or [], now=AT
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("run 10k", "Is the distance 10 km or 10000 km?"),
        ("haircut with Sam tomorrow", "'Sam'"),
        ("book a haircut on 2026-12-01 and on 2026-12-05", "2026-12-05"),
        ('order a funghi "well done"', "'well done'"),
        ("order pizza funghi for 17 Main Street", "17"),
        ("limit 50k, spent 42k, 3 kids", "'3'"),
        ('greet "Ada" and "Bob"', "'Ada' and 'Bob'"),
    ],
)
def test_a_value_that_no_field_takes_is_asked_about(text: str, words: str) -> None:
    found = understand(text)
    assert isinstance(found, Clarification), found
    assert words in found.question


@pytest.mark.parametrize(
    ("text", "question"),
    [
        (
            "check budget limit 50k spent",
            "What is '50k': the budget limit or the spent amount?",
        ),
        ("check budget 50k limit 42k", "Is the budget limit 50k or 42k?"),
    ],
)
def test_a_value_between_two_fields_and_two_values_of_one_are_asked_about(
    text: str, question: str
) -> None:
    """Neither has the better claim."""
    found = RuleInterpreter().understand(text, catalogue=EVERYBODY, now=AT)
    assert isinstance(found, Clarification), found
    assert question in found.question


@pytest.mark.parametrize(
    "text",
    [
        "budget limit not 50k but 42k, spent 10k",
        "check budget: limit is not 50k, it's 42k, spent 10k",
        "budget limit 42k instead of 50k, spent 10k",
        "check budget limit 42k, not 50k, spent 10k",
    ],
)
def test_a_value_that_is_denied_is_none(text: str) -> None:
    found = RuleInterpreter().understand(text, catalogue=EVERYBODY, now=AT)
    assert isinstance(found, Understood), found
    assert found.task.parameters == {"budget_limit": 42_000, "spent": 10_000}


class Hotel(Parameters):
    """A number that stands before its cue."""

    rating: int = Field(cues=("{} stars",))


@pytest.mark.parametrize(
    ("text", "guessed"),
    [("book a hotel, 3 stars", frozenset()), ("book a hotel, stars 3", {"rating"})],
)
def test_a_cue_behind_its_value_announces_none_behind_itself(
    text: str, guessed: Collection[str]
) -> None:
    """Such a value is taken for want of another field alone."""
    card = card_for("HotelAgent", "book", Hotel, "Book a hotel.", ("hotel",))
    found = RuleInterpreter().understand(text, catalogue=Catalogue([card]), now=AT)
    assert isinstance(found, Understood), found
    assert found.task.parameters == {"rating": 3}
    assert found.guessed == guessed


class Copies(Parameters):
    """A number within bounds."""

    copies: int = Field(ge=2, le=40)


@pytest.mark.parametrize("copies", [1, 2, 40, 41])
def test_a_number_is_taken_up_to_both_of_its_bounds(copies: int) -> None:
    """What is beyond them is asked about, with them."""
    card = card_for("PrintAgent", "print", Copies, "Print copies.", ("print",))
    found = RuleInterpreter().understand(
        f"print {copies} copies", catalogue=Catalogue([card]), now=AT
    )
    if copies in (2, 40):
        assert isinstance(found, Understood), found
        assert found.task.parameters == {"copies": copies}
    else:
        assert isinstance(found, Clarification), found
        assert "from 2 to 40" in found.question


def test_a_yes_leaves_the_value_out_and_a_no_starts_nothing() -> None:
    found = understand("haircut for 2 dogs on Friday")
    assert isinstance(found, Clarification)
    asked = [
        said("person", "x"),
        said("assistant", found.question, found.call, found.agent_id),
    ]
    agreed = understand("yes please", asked)
    assert isinstance(agreed, Understood)
    assert agreed.task.parameters == {"day": "2026-11-27"}
    assert isinstance(understand("no", asked), Unfitting)


@pytest.mark.parametrize(
    "text",
    [
        "flight to Rome on Friday",
        "book a flight to Rome on Friday",
        "je voudrais réserver une table vendredi",
        "Termin am 27.11. um 10 Uhr",
        "Tomorrow at 5pm",
        "12",
        "50 %",
    ],
)
def test_values_alone_choose_no_task(text: str) -> None:
    assert isinstance(understand(text), Unfitting)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("cancel my haircut", "nothing was cancelled"),
        ("please cancel the order", "`tasklore cancel TASK`"),
        ("thanks!", "You are welcome."),
        (
            '{"agent": "HaircutAgent", "task": "book_haircut", "parameters": {"day": "2026-12-01"}}',
            "/v1/tasks",
        ),
    ],
)
def test_a_sentence_without_a_task_gets_help(text: str, words: str) -> None:
    found = understand(text)
    assert isinstance(found, Unfitting)
    assert words in found.text
    assert "I will not start it" not in found.text


def test_a_task_that_cancels_can_be_asked_for() -> None:
    card = card_for(
        "StopAgent", "cancel_booking", Haircut, "Cancel a booking.", ("booking",)
    )
    found = RuleInterpreter().understand(
        "cancel my booking of Friday", catalogue=Catalogue([card]), now=AT
    )
    assert isinstance(found, Understood)


def test_a_question_of_one_part_does_not_hide_in_the_other() -> None:
    found = understand("order a funghi for Ada, and book a haircut on Friday")
    assert isinstance(found, Several)
    first, second = found.parts
    assert isinstance(first, Clarification)
    assert isinstance(second, Understood)
