"""Answers to every kind of question that is asked back."""

from datetime import UTC, datetime
from typing import Any

import pytest

from tasklore.contracts.messages import ChatTurn
from tasklore.contracts.parameters.model import Parameters
from tasklore.contracts.quantities.amounts import Moment
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import (
    Interpretation,
    RuleInterpreter,
    Understood,
)
from tasklore.supervisor.understanding.outcome import Clarification, Several, Unfitting
from tests.understanding_cases import BUDGET, TRIP, card_for

NOW = datetime(2026, 11, 23, 10, 0, tzinfo=UTC)


class Meeting(Parameters):
    """A day and time, and nothing else."""

    when: Moment


class Dinner(Parameters):
    """A day and time, and how many come."""

    evening: Moment
    guests: int


MEETING = card_for("MeetAgent", "book_meeting", Meeting, "Book a meeting.", ("book",))
DINNER = card_for("TableAgent", "book_table", Dinner, "Book a table.", ("book",))
HOUSE = Catalogue([BUDGET, TRIP, MEETING, DINNER])

WHICH_TASK = ("budget limit trip hotel",)
ONE_TASK = ("book",)
WHICH_FIELD = ("analyze my budget", "50k")
WHICH_NUMBER = ("budget limit 50k, spent 1.500",)
MISSING = ("budget limit 50k",)

NO_SPENT = {"budget_limit": 50000}


def talk(*sentences: str) -> Interpretation:
    """Return what the last of *sentences* comes to after the others, each answered as it was read."""
    rules = RuleInterpreter()
    turns = list[ChatTurn]()
    for number, text in enumerate(sentences):
        found = rules.understand(text, catalogue=HOUSE, previous=turns, now=NOW)
        turns.append(_turn(f"p{number}", "person", text))
        for part in found.parts if isinstance(found, Several) else (found,):
            turns.append(_answered(f"a{number}", part))
    return found


def _turn(turn_id: str, speaker: Any, text: str, **more: Any) -> ChatTurn:
    return ChatTurn(
        turn_id=turn_id,
        conversation_id="c",
        speaker=speaker,
        text=text,
        at=NOW,
        request_id=turn_id[1:],
        **more,
    )


def _answered(turn_id: str, part: Any) -> ChatTurn:
    if isinstance(part, Understood):
        return _turn(
            turn_id, "assistant", "Done.", agent_id=part.agent_id, task=part.task
        )
    if isinstance(part, Unfitting):
        return _turn(turn_id, "assistant", part.text)
    return _turn(
        turn_id, "assistant", part.question, agent_id=part.agent_id, task=part.call
    )


def shown(found: Interpretation) -> object:
    """Return the parameters of what was understood, the question of what was not, the first words of a refusal."""
    if isinstance(found, Several):
        return [shown(part) for part in found.parts]
    if isinstance(found, Understood):
        return found.task.parameters
    return (
        found.question
        if isinstance(found, Clarification)
        else found.text.partition(".")[0]
    )


LEFT = "OK, I will not start it"
BUDGET_ASKS = "What are the budget limit and the spent amount?"
TRIP_ASKS = "What are the hotel and the number of travellers?"


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("the first one", BUDGET_ASKS),
        ("both", [BUDGET_ASKS, TRIP_ASKS]),
        ("no", LEFT),
    ],
)
def test_answers_to_which_task(answer: str, wanted: object) -> None:
    assert shown(talk(*WHICH_TASK, answer)) == wanted


@pytest.mark.parametrize(
    "answer",
    ["yes", "yes please", "right", "ok", "that's right", "yes, the first", "meeting"],
)
def test_answers_that_agree_to_the_only_task(answer: str) -> None:
    assert shown(talk(*ONE_TASK)) == "Do you mean to book a meeting (MeetAgent)?"
    assert shown(talk(*ONE_TASK, answer)) == "When?"


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        *(
            (answer, "What is the spent amount?")
            for answer in ("the limit", "budget limit", "it's the limit", "the first")
        ),
        ("neither", LEFT),
        ("yes", "What is '50k': the budget limit or the spent amount?"),
    ],
)
def test_answers_to_which_field(answer: str, wanted: object) -> None:
    assert (
        shown(talk(*WHICH_FIELD))
        == "What is '50k': the budget limit or the spent amount?"
    )
    assert shown(talk(*WHICH_FIELD, answer)) == wanted


@pytest.mark.parametrize(
    ("answer", "spent"),
    [
        *(
            (answer, 1500)
            for answer in ("the second", "1500", "the 1500 one", "option 2")
        ),
        *(
            (answer, 1.5)
            for answer in (
                "the first one",
                "1.5",
                "it's 1.5",
                "not the second",
                "former",
            )
        ),
        ("1700", 1700),
    ],
)
def test_answers_to_which_number(answer: str, spent: object) -> None:
    assert shown(talk(*WHICH_NUMBER, answer)) == NO_SPENT | {"spent": spent}


@pytest.mark.parametrize(
    ("answer", "wanted"),
    [
        ("40k", NO_SPENT | {"spent": 40000}),
        *(
            (answer, "What is the spent amount?")
            for answer in ("yes", "no", "the first", "both", "spent", "the limit")
        ),
        ("never mind", LEFT),
    ],
)
def test_a_missing_value_is_asked_for_until_given(answer: str, wanted: object) -> None:
    assert shown(talk(*MISSING, answer)) == wanted
    if wanted == "What is the spent amount?":
        assert shown(talk(*MISSING, answer, "40k")) == NO_SPENT | {"spent": 40000}


@pytest.mark.parametrize(
    "after",
    [
        ("never mind", "40k"),
        ("trip with hotel 900", "3", "thanks!"),
        ("40k", "trip with hotel 900", "3", "41k"),
    ],
)
def test_an_answer_to_an_earlier_question_starts_nothing(
    after: tuple[str, ...],
) -> None:
    assert isinstance(talk(*MISSING, *after), Unfitting)
