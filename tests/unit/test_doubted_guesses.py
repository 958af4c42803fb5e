"""What is left over is guessed at where it can only be for one field, and never against the words beside it."""

import pytest

from supervisor.interpretation.outcome import Ambiguous, Missing
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
