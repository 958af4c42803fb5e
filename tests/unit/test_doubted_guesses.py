"""What is left over is guessed at where it can only be for one field, and never against the words beside it."""

import pytest

from supervisor.understanding.outcome import Ambiguous, Missing
from tests.interpretation_cases import parameters_of, understand


@pytest.mark.parametrize(
    "text",
    [
        "check my budget, limit 70k; and check another budget, limit 60k",
        "budget check: limit 70k. The limit is 60k",
    ],
)
def test_an_amount_that_the_words_give_to_another_field_is_no_guess(text: str) -> None:
    """Which of both it is the person is asked; nothing is started."""
    found = understand(text)
    assert isinstance(found, Missing | Ambiguous)
    assert "Is limit 70k or 60k?" in found.question.replace("budget limit", "limit")


@pytest.mark.parametrize(
    "text",
    [
        "check my budget: 42k, limit 50k",
        "budget check, 42k with a limit of 50k",
        "check my budget: 42k, and the limit is 50k",
    ],
)
def test_the_one_amount_that_is_left_is_still_for_the_one_field_that_is_open(text: str) -> None:
    """Nobody is asked what is plain."""
    assert parameters_of(understand(text)) == {"budget_limit": 50_000, "spent": 42_000}


@pytest.mark.parametrize(
    "text",
    [
        "budget limit 900, the room is 1200",
        "my budget limit is 900 and my new flat is 1200",
        "budget limit 900, and the corner room: 1200",
    ],
)
def test_an_amount_of_something_else_is_no_guess_where_another_field_could_hold_it(text: str) -> None:
    """A limit is as much money as what was spent; that a room is the spending, nobody said."""
    found = understand(text)
    assert isinstance(found, Missing | Ambiguous)
    assert found.call is not None
    assert found.call.parameters == {"budget_limit": 900}
    assert found.missing == ("spent",)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("budget limit 900 and it is 1200", {"budget_limit": 900, "spent": 1200}),
        ("budget limit 900, the amount is 1200", {"budget_limit": 900, "spent": 1200}),
        ("share the trip with 2 travellers, the room is 1200", {"hotel": 1200, "travellers": 2}),
    ],
)
def test_what_only_one_field_can_hold_may_be_called_anything(text: str, expected: dict[str, int]) -> None:
    """Nobody counts travellers by the thousand; "it" is nothing else."""
    assert parameters_of(understand(text)) == expected
