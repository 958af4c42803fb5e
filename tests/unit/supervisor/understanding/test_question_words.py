"""How a missing value is asked for, and that a question of 0.2, which a conversation keeps, is still read."""

from datetime import UTC, datetime

import pytest

from tasklore.contracts.messages import ChatTurn
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.contracts.quantities.amounts import Amount
from tasklore.supervisor.understanding.questions import (
    ask_for,
    ask_value,
    slots_asked,
)
from tasklore.supervisor.understanding.schema import task_schema
from tests.understanding_cases import card_for


class Party(Parameters):
    """A party, of which everything may be left open."""

    people: int | None = Field(None, ge=1)
    number_of_tables: int | None = None
    status: int | None = None
    budget: Amount | None = Field(None, description="What it may cost.")
    hours: Amount | None = None
    dishes: tuple[str, ...] = ()


[CARD] = card_for("PartyAgent", "plan_party", Party).tasks
SCHEMA = task_schema(CARD)


def asked_in(text: str) -> ChatTurn:
    """Return a turn of ours that says *text*."""
    return ChatTurn(
        turn_id="a0",
        conversation_id="c",
        speaker="assistant",
        text=text,
        at=datetime(2026, 11, 23, tzinfo=UTC),
        request_id="0",
    )


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("people", "How many people?"),
        ("number_of_tables", "What should number of tables be?"),
        ("status", "What should status be?"),
        ("budget", "What should budget be (what it may cost)?"),
        ("hours", "What should hours be?"),
        ("dishes", "Which dishes?"),
    ],
)
def test_a_value_is_asked_for_as_a_person_would(name: str, question: str) -> None:
    """Whole numbers of a plural are counted; and the question is known again as that for its slot."""
    slot = SCHEMA.slot(name)
    assert slot is not None
    assert ask_for([slot]) == question
    for asked in (question, ask_value(slot, ", at least 1"), f"Party. {question}"):
        assert slots_asked(asked_in(asked), SCHEMA) == (slot,)


@pytest.mark.parametrize(
    ("question", "name"),
    [
        ("What is people?", "people"),
        ("What is people, at least 1? You wrote '0'.", "people"),
        ("What is people in all? You wrote '3' beside yourself.", "people"),
        ("What is budget (what it may cost)?", "budget"),
        ("Which dishes? For example: soup.", "dishes"),
        ("Is budget 1 or 1000? You wrote '1.000'.", "budget"),
    ],
)
def test_a_question_of_0_2_is_read(question: str, name: str) -> None:
    """Its turns are kept, and the next sentence answers it."""
    assert [slot.name for slot in slots_asked(asked_in(question), SCHEMA)] == [name]


def test_several_values_are_asked_for_in_one_question() -> None:
    """As before, it waits for those that are required alone."""
    slots = [slot for slot in SCHEMA.slots if slot.name in ("people", "budget")]
    question = ask_for(slots)
    assert question == "What should people and budget be?"
    assert slots_asked(asked_in(question), SCHEMA) == ()
