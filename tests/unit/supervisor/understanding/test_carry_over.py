"""What a sentence leaves to the conversation."""

from typing import Any

import pytest

from contracts.messages import ChatTurn, TaskCall
from supervisor.catalogue import Catalogue
from supervisor.understanding import Clarification, Interpretation, Understood, Unfitting
from tests.understanding_cases import BUDGET, EVERYBODY, budget_turn, parameters_of, said, understand

FOUR = [5000, 7000, 8000, 6000]
BEFORE = budget_turn(budget_limit=50000, spent=42000, history=FOUR)
ASKED = budget_turn("What is spent?", budget_limit=50000)


def as_turn(found: Interpretation) -> ChatTurn:
    """Return the assistant's turn that asks what *found* asks."""
    assert isinstance(found, Clarification)
    return said("assistant", found.question, found.call, found.agent_id)


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("again", {}),
        ("and with a limit of 60k?", {"budget_limit": 60000}),
        ("same limit and history, spent 10k", {"spent": 10000}),
    ],
)
def test_what_the_sentence_leaves_out_comes_from_the_last_task(text: str, changed: dict[str, Any]) -> None:
    """What it says itself goes first."""
    expected = {"budget_limit": 50000, "spent": 42000, "history": FOUR, **changed}
    assert parameters_of(understand(text, BEFORE)) == expected


def test_a_sentence_that_stands_alone_takes_nothing_from_the_conversation() -> None:
    """Another history would make it another question."""
    assert parameters_of(understand("Check my budget: limit 60000, spent 100", BEFORE)) == {
        "budget_limit": 60000,
        "spent": 100,
    }


def test_a_value_from_the_conversation_points_to_the_words_that_ask_for_it() -> None:
    """And to the turn whose task held it."""
    found = understand("limit 60k, spent 10k, same history", BEFORE)
    assert isinstance(found, Understood)
    assert [(span.text, span.turn_id) for span in found.spans if span.field == "history"] == [
        ("same history", "turn-assistant")
    ]


def test_a_reference_to_nothing_is_asked_about() -> None:
    """Taking the default would answer another question than the one that was asked."""
    found = understand("Check my budget again: 50000 limit, 42000 spent, same history")
    assert isinstance(found, Clarification)
    assert found.missing == ("history",)
    answered = understand("5k, 7k", [said("person", "x"), as_turn(found)])
    assert parameters_of(answered) == {"budget_limit": 50000, "spent": 42000, "history": [5000, 7000]}


@pytest.mark.parametrize("text", ["tell me that joke again", "sing it again", "again", "same as before"])
def test_again_without_a_task_before_it_fits_nothing(text: str) -> None:
    """Nor does a song, whatever was asked before."""
    previous = BEFORE if "joke" in text or "sing" in text else ()
    assert isinstance(understand(text, previous), Unfitting)


def test_a_retired_agents_task_is_not_repeated() -> None:
    """Nobody could do it."""
    assert isinstance(understand("again", BEFORE, EVERYBODY.without(BUDGET.agent_id)), Unfitting)


@pytest.mark.parametrize(
    "text", ["42000", "42k, I think", "about forty-two thousand", "spent 42000", "It was $42,000."]
)
def test_a_plain_answer_completes_the_question(text: str) -> None:
    """What was said before is kept."""
    assert parameters_of(understand(text, ASKED)) == {"budget_limit": 50000, "spent": 42000}


def test_no_answer_repeats_the_question_and_never_mind_ends_it() -> None:
    """Nothing is invented in the meantime."""
    found = understand("I don't know", ASKED)
    assert isinstance(found, Clarification)
    assert (found.question, dict(found.known)) == ("What is spent?", {"budget_limit": 50000})
    assert isinstance(understand("Never mind", ASKED), Unfitting)


def test_the_task_that_is_chosen_gets_the_words_said_before() -> None:
    """Nobody has to repeat them."""
    catalogue = Catalogue([BUDGET, BUDGET.model_copy(update={"agent_id": "HouseholdAgent"})])
    text = "Check my budget: limit 50k, spent 42k"
    asked = understand(text, catalogue=catalogue)
    found = understand("the HouseholdAgent", [said("person", text), as_turn(asked)], catalogue)
    assert isinstance(found, Understood)
    assert found.agent_id == "HouseholdAgent"
    assert parameters_of(found) == {"budget_limit": 50000, "spent": 42000}


def test_a_task_put_as_a_question_is_started_by_yes_alone() -> None:
    """Anything else is read as a sentence of its own."""
    call = TaskCall(name="share_trip", parameters={"hotel": 1200, "travellers": 4})
    asked = [said("assistant", "Do you mean share trip with hotel 1200, travellers 4?", call, "TripAgent")]
    assert parameters_of(understand("Yes, please.".replace(",", ""), asked)) == {"hotel": 1200, "travellers": 4}
    assert isinstance(understand("no", asked), Unfitting)
