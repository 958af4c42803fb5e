"""However long or odd a text is, it is answered soon, and a card is prepared once."""

from functools import partial

import pytest

from supervisor.understanding import Interpretation, RuleInterpreter, Understood
from supervisor.understanding.outcome import Several
from tests.steps import steps
from tests.understanding_cases import EVERYBODY, budget_turn, understand

#: Calls for twice the text, in those for once: a quadratic reading takes four times as many.
MOST_TIMES = 2.6


@pytest.mark.parametrize(
    "part",
    [
        *("limit 50k, spent 42,000 and ", "the quick brown fox ", "1", "1 2 3 ", "[", '"a" ', "'a ", "Ada Bob ", ", "),
        *(". a ", "greet Ada and ", '{"agent":', "2026-11-23 at 9 ", "1.", "limit ", "double the limit by 10 % more "),
        *(
            "or 5 ",
            "same history as before ",
            "never mind ",
            "5 % of ",
            "\n",
            "(e.g. 5) ",
            "limit_",
            "a         ",
            "1) ",
        ),
    ],
)
def test_a_long_text_is_read_in_time_proportional_to_its_length(part: str) -> None:
    """By itself, as an answer, and after a task; and none of it starts more than was said."""
    text = (part * 20_000)[:20_000]
    for previous in ([], budget_turn("What are budget limit and spent?"), budget_turn(budget_limit=5, spent=3)):
        found: Interpretation = understand(text, previous)
        assert not isinstance(found, Several) or len(found.parts) <= 8
        read = partial(understand, previous=previous)
        once, twice = steps(read, text[:4_000]), steps(read, text[:8_000])
        assert twice <= MOST_TIMES * once + 5_000


def test_a_catalogue_is_prepared_once() -> None:
    """Until it changes."""
    rules = RuleInterpreter()
    assert rules.router(EVERYBODY) is rules.router(EVERYBODY)
    assert rules.router(EVERYBODY.without("TripAgent")) is not rules.router(EVERYBODY)


async def test_a_text_that_is_read_in_a_thread_comes_to_the_same() -> None:
    """The event loop goes on meanwhile."""
    text = "Check my budget: limit 50k, spent 42k. " + "Thank you. " * 40
    found = await RuleInterpreter().interpret(text, catalogue=EVERYBODY, previous=[])
    assert found == understand(text)


def test_numbers_before_the_lines_of_a_list_count_nothing() -> None:
    """They are marks."""
    found = understand("1. greet Ada\n2. check my budget, limit 900, spent 350")
    assert isinstance(found, Several)
    assert [part.task.parameters for part in found.parts if isinstance(part, Understood)] == [
        {"name": "Ada"},
        {"budget_limit": 900, "spent": 350},
    ]
