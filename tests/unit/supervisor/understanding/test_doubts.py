"""What is asked about before anything starts, because the card does not know it or it is no request."""

import asyncio

import pytest

from supervisor.understanding import Clarification, Interpretation, RuleInterpreter, Understood
from tests.understanding.agents import CATALOGUE, NOW


def read(text: str) -> Interpretation:
    """Return what *text* is, said to the agents of the corpora."""
    return asyncio.run(RuleInterpreter().interpret(text, catalogue=CATALOGUE, previous=[], now=NOW))


@pytest.mark.parametrize(
    ("text", "stranger"),
    [
        ("book a table for 4 people on Friday at 7 pm", "table"),
        ("open a ticket: printer is broken, medium priority", "medium"),
        ("save up 20 % of my 5,000 euros with 100 a month", "20 %"),
    ],
)
def test_words_that_the_card_does_not_know_are_asked_about(text: str, stranger: str) -> None:
    """A thing, a quality, who did it, or what is done to it."""
    found = read(text)
    assert isinstance(found, Clarification)
    assert f"'{stranger}'" in found.question


@pytest.mark.parametrize(
    "text",
    [
        "I did not drive 40 km today",
        "order a lemon cake without gluten for 10 people on Friday",
        "is it cheaper to ship 2 kg to Norway or Sweden",
    ],
)
def test_talk_about_a_task_starts_none(text: str) -> None:
    """Denied, imagined, asked about or impossible."""
    assert not isinstance(read(text), Understood)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("I did 3 sets of 15 squats", {"exercise": "squats", "repetitions": 15, "sets": 3}),
        ("recipe with rice but no leeks and no onions", {"ingredients": ["rice"], "avoid": ["leeks", "onions"]}),
        ("hey, I'd love a carrot cake for my team, 16 people, ready on Tuesday", None),
    ],
)
def test_what_the_examples_do_as_well_is_no_doubt(text: str, values: dict[str, object] | None) -> None:
    """And what is for somebody is known to be."""
    found = read(text)
    assert isinstance(found, Understood)
    assert values is None or found.task.parameters == values
