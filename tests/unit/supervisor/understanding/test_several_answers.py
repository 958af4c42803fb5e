"""Answers while several questions are open."""

from collections.abc import Sequence
from typing import Any

import pytest

from tasklore.contracts.messages import ChatTurn
from tasklore.contracts.parameters.model import Field, Parameters
from tasklore.supervisor.catalogue import Catalogue
from tasklore.supervisor.understanding import Interpretation, Understood
from tasklore.supervisor.understanding.outcome import Clarification, Several, Single
from tests.understanding_cases import EVERYBODY, card_for, said, understand


class Weather(Parameters):
    """One text."""

    place: str = Field(cues=("in",))


class Events(Parameters):
    """The same text for somebody else."""

    place: str = Field(cues=("in",))


WEATHER = card_for(
    "WeatherAgent",
    "tell_weather",
    Weather,
    "Tell the weather of a place.",
    ("weather",),
)
EVENTS = card_for(
    "EventsAgent", "list_events", Events, "List the concerts of a place.", ("concerts",)
)
ALL = Catalogue([*EVERYBODY.cards.values(), WEATHER, EVENTS])
NUMBERS = "check my budget, limit 70k; and share a trip, hotel 500"
PLACES = "what is the weather and which concerts are there?"
MIXED = "check my budget, limit 70k, and tell me the weather"
ASKED = "asked"

#: An agent with the value it was asked for, or `ASKED`.
Parts = list[tuple[str, Any]]


def answers(first: str, *later: str) -> Interpretation:
    """Return what the last of *later* comes to, each said after the answer to the one before."""
    previous: list[ChatTurn] = []
    found = understand(first, previous, ALL)
    for number, text in enumerate(later):
        previous += [said("person", first), *turns_of(found, f"r{number}")]
        found = understand(text, previous, ALL)
    return found


def turns_of(found: Interpretation, request_id: str) -> list[ChatTurn]:
    """Return the turns that answer *found*, as the service keeps them: what asks back last."""
    turns: list[ChatTurn] = []
    for part in sorted(
        parts_of(found), key=lambda part: isinstance(part, Clarification)
    ):
        text = part.question if isinstance(part, Clarification) else "Done."
        call = (
            part.task if isinstance(part, Understood) else getattr(part, "call", None)
        )
        turn = said("assistant", text, call, getattr(part, "agent_id", None))
        turns.append(
            turn.model_copy(
                update={
                    "request_id": request_id,
                    "turn_id": f"{request_id}-{len(turns)}",
                }
            )
        )
    return turns


def parts_of(found: Interpretation) -> Sequence[Single]:
    return found.parts if isinstance(found, Several) else (found,)


def told(found: Interpretation) -> Parts:
    """Return of each part the agent and the value that was open, the last of its parameters."""
    return [
        (str(getattr(part, "agent_id", None)), [*part.task.parameters.values()][-1])
        if isinstance(part, Understood)
        else (str(getattr(part, "agent_id", None)), ASKED)
        for part in parts_of(found)
    ]


@pytest.mark.parametrize(
    "answer",
    [
        "50k and 4",
        "50k\n4",
        "4 travellers, 50k",
    ],
)
def test_one_answer_completes_all_questions(answer: str) -> None:
    assert told(answers(NUMBERS, answer)) == [
        ("BudgetTrackerAgent", 50_000),
        ("TripAgent", 4),
    ]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("spent 50k", [("BudgetTrackerAgent", 50_000), ("TripAgent", ASKED)]),
        ("4 travellers", [("BudgetTrackerAgent", ASKED), ("TripAgent", 4)]),
        (
            "limit 90k, spent 20k",
            [("BudgetTrackerAgent", 20_000), ("TripAgent", ASKED)],
        ),
    ],
)
def test_open_questions_are_asked_again(answer: str, expected: Parts) -> None:
    found = answers(NUMBERS, answer)
    assert told(found) == expected
    [again] = [part for part in parts_of(found) if isinstance(part, Clarification)]
    before = {
        part.agent_id: part
        for part in parts_of(answers(NUMBERS))
        if isinstance(part, Clarification)
    }
    assert (again.question, again.known, again.missing) == (
        before[again.agent_id].question,
        before[again.agent_id].known,
        before[again.agent_id].missing,
    )
    assert told(answers(NUMBERS, answer, "7")) == [(again.agent_id, 7)]


def test_an_ambiguous_answer_starts_nothing() -> None:
    found = answers(NUMBERS, "50k")
    assert (
        told(found)
        == told(answers(NUMBERS, "50k", "50k"))
        == [("BudgetTrackerAgent", ASKED), ("TripAgent", ASKED)]
    )
    first = parts_of(answers(NUMBERS, "50k", "50k"))[0]
    assert isinstance(first, Clarification)
    assert (
        first.question
        == "What is the spent amount? (I cannot tell which of these questions that answers.)"
    )
    assert told(answers(NUMBERS, "50k", "50k and 4")) == [
        ("BudgetTrackerAgent", 50_000),
        ("TripAgent", 4),
    ]


def test_an_answer_may_come_with_another_task() -> None:
    found = answers(NUMBERS, "spent 50k; greet Bob")
    assert told(found) == [
        ("BudgetTrackerAgent", 50_000),
        ("TripAgent", ASKED),
        ("GreeterAgent", "Bob"),
    ]
    unplaced = answers(NUMBERS, "50k; greet Bob")
    assert told(unplaced) == [
        ("BudgetTrackerAgent", ASKED),
        ("TripAgent", ASKED),
        ("GreeterAgent", "Bob"),
    ]


@pytest.mark.parametrize(
    "answer", ["greet Bob", "never mind", "tell me the weather in Lima"]
)
def test_a_sentence_about_something_else_ends_the_questions(answer: str) -> None:
    assert ASKED not in [
        value
        for agent_id, value in told(answers(NUMBERS, answer))
        if agent_id != "None"
    ]


@pytest.mark.parametrize(
    "answer",
    ["cancel both", "forget it, thanks", "neither", "no thanks"],
)
@pytest.mark.parametrize(
    "questions", [NUMBERS, PLACES, MIXED, "check my budget, limit 70k"]
)
def test_all_questions_can_be_left(questions: str, answer: str) -> None:
    assert told(answers(questions, answer)) == [("None", ASKED)]


@pytest.mark.parametrize(
    "answer",
    [
        "forget the first",
        "skip the second, 50k for the first",
        "4 travellers, forget the budget",
        "drop the second",
    ],
)
def test_leaving_one_question_asks_all_again(answer: str) -> None:
    assert told(answers(NUMBERS, answer)) == [
        ("BudgetTrackerAgent", ASKED),
        ("TripAgent", ASKED),
    ]
    assert ASKED in [value for _, value in told(answers(PLACES, "forget the first"))]


@pytest.mark.parametrize("questions", [NUMBERS, PLACES, "check my budget, limit 70k"])
@pytest.mark.parametrize(
    "answer", ["never mind, greet Bob", "Never mind. Please greet Bob"]
)
def test_another_task_instead_starts(questions: str, answer: str) -> None:
    assert told(answers(questions, answer)) == [("GreeterAgent", "Bob")]


@pytest.mark.parametrize(
    "answer", ["between 40k and 50k", "50k or 60k", "50.000 und 4 Personen"]
)
@pytest.mark.parametrize("questions", [NUMBERS, MIXED])
def test_a_text_field_takes_no_value_of_another_question(
    questions: str, answer: str
) -> None:
    assert [value for _, value in told(answers(questions, answer))] == [ASKED, ASKED]


@pytest.mark.parametrize(
    "answer",
    [
        "50k and 4 and 9",
        "the third is 4",
        "x" * 5000,
    ],
)
def test_an_answer_without_order_starts_nothing(answer: str) -> None:
    assert not [
        part
        for part in parts_of(answers(NUMBERS, answer))
        if isinstance(part, Understood)
    ]
