"""Questions are sentences that a person would say, and are answered as they were asked."""

from datetime import date, time
from typing import Any, Literal

import pytest

from tasklore.contracts.messages import ChatTurn
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount, Duration
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding.outcome import (
    Clarification,
    Understood,
    Unfitting,
)
from tasklore.supervisor.understanding.questions import ask_for, slots_asked
from tasklore.supervisor.understanding.rules import RuleInterpreter
from tasklore.supervisor.understanding.schema import task_schema
from tests.understanding.agents import EVERYDAY, NOW, card_of_tasks, task_of
from tests.understanding.strangers import STRANGERS


class Asked(Parameters):
    """Fields with names of every sort."""

    days: int
    age: int
    status: int
    monthly: Amount
    speed: Amount
    pickup_day: date
    start: time
    until: date
    every: Duration = Field(description="How often.")
    insured_for: Amount
    how_long: Duration
    your_name: str
    size: Literal["small", "large"]
    toppings: tuple[str, ...]
    is_urgent: bool


class Open(Parameters):
    """Fields that may be left open."""

    days: int | None = None
    monthly: Amount | None = Field(None, description="What it may cost.")
    toppings: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("field", "question"),
    [
        ("days", "How many days?"),
        ("age", "What is the age?"),
        ("status", "What is the status?"),
        ("monthly", "What is the monthly amount?"),
        ("speed", "What is the speed?"),
        ("pickup_day", "When is the pickup day?"),
        ("start", "When is the start?"),
        ("until", "Until when?"),
        ("every", "How often?"),
        ("insured_for", "Insured for how much?"),
        ("how_long", "How long?"),
        ("your_name", "What is your name?"),
        ("size", "Which size? One of: small, large."),
        ("toppings", "Which toppings?"),
        ("is_urgent", "Is urgent: yes or no?"),
    ],
)
def test_a_field_is_asked_for_by_its_name_and_kind(field: str, question: str) -> None:
    task = task_of("ask_all", Asked, "Ask for all.", (), ())
    slot = task_schema(task).slot(field)
    assert slot is not None
    assert ask_for([slot]) == question


def _talk(catalogue: Catalogue, *says: str) -> Any:
    previous: list[ChatTurn] = []
    found: Any = None
    for number, text in enumerate(says):
        found = RuleInterpreter().understand(
            text, catalogue=catalogue, previous=previous, now=NOW
        )
        person = ChatTurn(
            turn_id=f"p{number}",
            conversation_id="c",
            speaker="person",
            text=text,
            at=NOW,
        )
        previous.append(person)
        if isinstance(found, Clarification):
            answered = {"text": found.question, "agent_id": found.agent_id}
            previous.append(
                person.model_copy(
                    update={
                        **answered,
                        "turn_id": f"a{number}",
                        "speaker": "assistant",
                        "task": found.call,
                    }
                )
            )
    return found


def test_two_values_without_a_field_are_one_question_which_names_both() -> None:
    found = _talk(EVERYDAY.catalogue, "I can save 5000 and 200")
    assert isinstance(found, Clarification)
    assert found.question == (
        "I cannot tell which of '5000' and '200' is which. What are the goal and the"
        " monthly amount?"
    )


@pytest.mark.parametrize(
    "answer",
    ["5000 and 200", "goal 5000, monthly 200", "200 a month, and the goal is 5000"],
)
def test_the_answer_settles_both(answer: str) -> None:
    found = _talk(EVERYDAY.catalogue, "I can save 5000 and 200", answer)
    assert isinstance(found, Understood), found
    assert {"goal": 5000, "monthly": 200}.items() <= found.task.parameters.items()


def test_words_that_are_told_to_be_left_out_stand_once_and_never_as_an_article_alone() -> (
    None
):
    found = _talk(
        STRANGERS.catalogue,
        "quote from Antwerp to Turin for 3 pallets every Monday, 950 kg",
    )
    assert isinstance(found, Clarification)
    assert found.question == (
        "Shall I quote a price for pallets (origin: Antwerp; destination: Turin; pallets: 3; weight: 950 kg)?"
        " I cannot take 'every Monday' into account."
    )


def test_what_is_shown_for_a_yes_says_what_is_done_and_in_which_unit() -> None:
    found = _talk(
        STRANGERS.catalogue, "quote 3 pallets from Antwerp to Turin and back, 950 kg"
    )
    assert isinstance(found, Clarification)
    assert found.question.startswith(
        "Shall I quote a price for pallets (origin: Antwerp; destination: Turin;"
        " pallets: 3; weight: 950 kg)?"
    )


@pytest.mark.parametrize("text", ["never mind", "Oh, nevermind!", "no thanks"])
def test_who_leaves_it_at_that_is_told_that_nothing_was_started(text: str) -> None:
    found = _talk(STRANGERS.catalogue, text)
    assert isinstance(found, Unfitting)
    assert found.text == "All right: nothing was started."


def test_a_task_is_offered_by_what_it_does_and_found_by_that() -> None:
    """Two that do the same are offered by their names."""
    both = Catalogue(
        [
            card_of_tasks(
                name,
                "Counts.",
                ("count",),
                task_of(f"count_{what}", Asked, does, ("count them",), ("count",)),
            )
            for name, what, does in (
                ("SheepAgent", "sheep", "Count the sheep."),
                ("GoatAgent", "goats", "Goats are counted."),
            )
        ]
    )
    found = _talk(both, "count")
    assert isinstance(found, Clarification)
    assert found.question == (
        "Do you mean count goats (GoatAgent) or to count the sheep (SheepAgent)?"
    )
    for answer, agent in (("the second", "SheepAgent"), ("goats", "GoatAgent")):
        chosen = _talk(both, "count", answer)
        assert isinstance(chosen, Clarification)
        assert chosen.agent_id == agent


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What is days?", "days"),
        ("What is days, at least 1? You wrote '0'.", "days"),
        ("What is days in all? You wrote '3' beside yourself.", "days"),
        ("What is monthly (what it may cost)?", "monthly"),
        ("Which toppings? For example: ham.", "toppings"),
        ("Is monthly 1 or 1000? You wrote '1.000'.", "monthly"),
    ],
)
def test_a_question_of_0_2_is_read(question: str, name: str) -> None:
    """Its turns are kept, and the next sentence answers it; none of these fields has to be given."""
    schema = task_schema(task_of("ask_all", Open, "Ask for all.", (), ()))
    asked = ChatTurn(
        turn_id="a0",
        conversation_id="c",
        speaker="assistant",
        text=question,
        at=NOW,
        request_id="0",
    )
    assert [slot.name for slot in slots_asked(asked, schema)] == [name]
