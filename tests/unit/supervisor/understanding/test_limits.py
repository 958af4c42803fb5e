"""Long and odd texts are read in linear time."""

from functools import partial

import pytest

from tasklore.supervisor.understanding import RuleInterpreter, Understood
from tasklore.supervisor.understanding.outcome import Several
from tests.steps import steps
from tests.understanding_cases import EVERYBODY, budget_turn, understand

#: Calls for twice the text, in those for once: a quadratic reading takes four times as many.
MOST_TIMES = 2.6


PARTS = (
    *(
        "limit 50k, spent 42,000 and ",
        "the quick brown fox ",
        "1",
        "1 2 3 ",
        "[",
        '"a" ',
        "'a ",
        "Ada Bob ",
        ", ",
    ),
    *(
        ". a ",
        "greet Ada and ",
        '{"agent":',
        "2026-11-23 at 9 ",
        "1.",
        "limit ",
        "double the limit by 10 % more ",
    ),
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
)


@pytest.mark.parametrize("length", [1_000, pytest.param(4_000, marks=pytest.mark.long)])
@pytest.mark.parametrize("part", PARTS)
def test_a_long_text_is_read_in_linear_time(part: str, length: int) -> None:
    """By itself, as an answer, and after a task."""
    text = part * (2 * length)
    for previous in (
        [],
        budget_turn("What are budget limit and spent?"),
        budget_turn(budget_limit=5, spent=3),
    ):
        read = partial(understand, previous=previous)
        once = steps(read, text[:length])
        twice = steps(read, text[: 2 * length])
        assert twice <= MOST_TIMES * once + 5_000


def test_the_longest_text_starts_few_tasks() -> None:
    found = understand(("greet Ada and " * 20_000)[:20_000])
    assert not isinstance(found, Several) or len(found.parts) <= 8


def test_a_catalogue_is_indexed_once() -> None:
    rules = RuleInterpreter()
    assert rules.router(EVERYBODY) is rules.router(EVERYBODY)
    assert rules.router(EVERYBODY.without("TripAgent")) is not rules.router(EVERYBODY)


async def test_a_text_read_in_a_thread_gives_the_same() -> None:
    text = "Check my budget: limit 50k, spent 42k. " + "Thank you. " * 40
    found = await RuleInterpreter().interpret(text, catalogue=EVERYBODY, previous=[])
    assert found == understand(text)


def test_numbers_of_list_items_are_no_values() -> None:
    found = understand("1. greet Ada\n2. check my budget, limit 900, spent 350")
    assert isinstance(found, Several)
    assert [
        part.task.parameters for part in found.parts if isinstance(part, Understood)
    ] == [
        {"name": "Ada"},
        {"budget_limit": 900, "spent": 350},
    ]
