"""What a sentence takes from the conversation before it."""

from typing import Any

import pytest

from tasklore.contracts.messages import ChatTurn
from tasklore.supervisor.understanding import (
    Clarification,
    Interpretation,
    Understood,
    Unfitting,
)
from tests.understanding_cases import (
    BUDGET,
    EVERYBODY,
    budget_turn,
    parameters_of,
    said,
    understand,
)

FOUR = [5000, 7000, 8000, 6000]
BEFORE = budget_turn(budget_limit=50000, spent=42000, history=FOUR)


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
def test_missing_values_come_from_the_last_task(
    text: str, changed: dict[str, Any]
) -> None:
    expected = {"budget_limit": 50000, "spent": 42000, "history": FOUR, **changed}
    assert parameters_of(understand(text, BEFORE)) == expected


def test_a_complete_sentence_takes_nothing_from_the_conversation() -> None:
    assert parameters_of(
        understand("Check my budget: limit 60000, spent 100", BEFORE)
    ) == {
        "budget_limit": 60000,
        "spent": 100,
    }


def test_a_carried_value_points_to_its_words_and_turn() -> None:
    found = understand("limit 60k, spent 10k, same history", BEFORE)
    assert isinstance(found, Understood)
    assert [
        (span.text, span.turn_id) for span in found.spans if span.field == "history"
    ] == [("same history", "turn-assistant")]


def test_a_reference_to_nothing_is_asked_about() -> None:
    found = understand("Check my budget again: 50000 limit, 42000 spent, same history")
    assert isinstance(found, Clarification)
    assert found.missing == ("history",)
    answered = understand("5k, 7k", [said("person", "x"), as_turn(found)])
    assert parameters_of(answered) == {
        "budget_limit": 50000,
        "spent": 42000,
        "history": [5000, 7000],
    }


@pytest.mark.parametrize(
    "text", ["tell me that joke again", "sing it again", "again", "same as before"]
)
def test_again_without_an_earlier_task_fits_nothing(text: str) -> None:
    previous = BEFORE if "joke" in text or "sing" in text else ()
    assert isinstance(understand(text, previous), Unfitting)


def test_a_task_of_a_retired_agent_is_not_repeated() -> None:
    assert isinstance(
        understand("again", BEFORE, EVERYBODY.without(BUDGET.agent_id)), Unfitting
    )
