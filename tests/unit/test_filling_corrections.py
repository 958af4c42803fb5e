"""What a sentence takes back, leaves open, says roughly, or says to be nothing or a part of something."""

from typing import Any

import pytest

from supervisor.understanding import Ambiguous, Missing, Understood
from tests.understanding_cases import parameters_of, understand


def budget(limit: object, spent: object) -> dict[str, Any]:
    """Return the parameters of a budget."""
    return {"budget_limit": limit, "spent": spent}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("my limit is not 70k but 75k, spent 9k", budget(75000, 9000)),
        ("limit 70k, no wait, 75k, and spent 9k", budget(75000, 9000)),
        ("limit 70k, I meant 75k, spent 9k", budget(75000, 9000)),
        ("limit is 70k is wrong, it's 75k, spent 9k", budget(75000, 9000)),
        ("limit 70k \u2014 no, 75k \u2014, spent 9k", budget(75000, 9000)),
        ("limit 70k. Scratch that, 75k. Spent 9k", budget(75000, 9000)),
        ("instead of 70k use 75k as the limit, spent 9k", budget(75000, 9000)),
        ("a limit of 75k rather than 70k, spent 9k", budget(75000, 9000)),
        ("limit: ~~70k~~ 75k, spent 9k", budget(75000, 9000)),
        ("limit 70k, spent 9k, sorry, the limit is 75k", budget(75000, 9000)),
        ("the limit isn't 70k, it's 75k, spent 9k", budget(75000, 9000)),
        ("raise my limit from 70k to 75k, spent 9k", budget(75000, 9000)),
        ("my limit was 70k but now it's 75k, spent 9k", budget(75000, 9000)),
        ("limit 75k, I spent 9k, not 8k", budget(75000, 9000)),
        ("limit 75k, could you make that 80k, spent 9k", budget(80000, 9000)),
    ],
)
def test_a_corrected_amount_counts_and_the_first_is_gone(text: str, expected: dict[str, Any]) -> None:
    """And a model is asked where there is one, as what is taken back is easily misread."""
    found = understand(text)
    assert parameters_of(found) == expected
    assert isinstance(found, Understood)
    assert not found.is_certain


def test_an_apology_between_two_fields_takes_nothing_back() -> None:
    """Each amount keeps its own field."""
    assert parameters_of(understand("limit 75k, sorry, spent 9k")) == budget(75000, 9000)
    assert parameters_of(understand("limit 75k, spent 9k, that's 12 %")) == budget(75000, 9000)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("limit 70k or 75k, spent 9k", "Is budget limit 70k or 75k?"),
        ("limit 70k, make that 75, spent 9k", "Is budget limit 75 or 75k?"),
        ("limit 70k to 75k, spent 9k", "Is budget limit 70k or 75k?"),
        ("limit 75k, spent 9k, history 5k or 6k", "Is history 5k or 6k?"),
        (
            "limit 75k, spent a couple of hundred",
            "What is spent exactly? You wrote 'a couple of hundred'.",
        ),
    ],
)
def test_what_was_left_open_is_asked(text: str, question: str) -> None:
    """Neither reading is taken."""
    found = understand(text)
    assert isinstance(found, Ambiguous)
    assert found.question == question


@pytest.mark.parametrize("about", ["about", "roughly", "~", "around", "nearly", "up to", "at least"])
def test_a_rough_amount_is_taken_but_not_for_certain(about: str) -> None:
    """The number is the one that was said."""
    found = understand(f"limit 75k, spent {about} 9k")
    assert parameters_of(found) == budget(75000, 9000)
    assert isinstance(found, Understood)
    assert not found.is_certain


@pytest.mark.parametrize(
    "text",
    [
        "limit 75k and nothing spent",
        "limit 75k, spent nothing so far",
        "limit 75k, I haven't spent anything",
        "limit 75k and we did not spend a single cent",
        "limit 75k, zero spent",
    ],
)
def test_nothing_spent_is_zero(text: str) -> None:
    """It points to the words that say so."""
    found = understand(text)
    assert parameters_of(found) == budget(75000, 0)
    assert isinstance(found, Understood)
    assert [text[span.start : span.end] for span in found.spans if span.field == "spent"] == [
        span.text for span in found.spans if span.field == "spent"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "no limit, spent 9k",
        "my limit is no longer 70k, spent 9k",
        "limit: none, spent 9k",
        "I don't have a 70k limit, spent 9k",
    ],
)
def test_no_limit_is_not_a_limit_of_zero(text: str) -> None:
    """It may mean the opposite, so it is asked for."""
    found = understand(f"Check my budget: {text}")
    assert isinstance(found, Missing)
    assert found.missing == ("budget_limit",)


@pytest.mark.parametrize(
    ("text", "spent", "spans"),
    [
        ("I spent half of my 80k budget", 40000, ["half", "80k"]),
        ("I spent 20 % of my 5000 budget", 1000, ["20 %", "5000"]),
        ("I spent three quarters of the 1000 limit", 750, ["three quarters", "1000"]),
        ("I spent 80 % of my limit of 50k", 40000, ["80 %", "50k"]),
        ("80 % of my limit of 50k is spent", 40000, ["80 %", "50k"]),
        ("80 % of my 50k limit is spent", 40000, ["80 %", "50k"]),
        ("80% of my budget (50k) is spent", 40000, ["80%", "50k"]),
    ],
)
def test_a_part_of_an_amount_is_reckoned_exactly(text: str, spent: int, spans: list[str]) -> None:
    """It points to both."""
    found = understand(text)
    assert isinstance(found, Understood)
    assert found.task.parameters["spent"] == spent
    assert [span.text for span in found.spans if span.field == "spent"] == spans


def test_a_part_without_an_end_of_digits_is_asked_for() -> None:
    """A third of 80k is neither 26666.67 nor 0.33."""
    found = understand("I spent a third of my 80k budget")
    assert isinstance(found, Ambiguous)
    assert found.question == "What is spent exactly? You wrote 'a third of 80k'."


@pytest.mark.parametrize("text", ["limit 75k, spent half of it", "limit 75k, spent a third of my budget"])
def test_a_part_of_what_was_not_said_beside_it_is_asked_for(text: str) -> None:
    """Never 0.5 of anything."""
    found = understand(text)
    assert isinstance(found, Missing)
    assert "spent" in found.missing
