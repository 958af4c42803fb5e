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
        ("Book a dentist appointment on Tuesday at 10 am", "dentist"),
        ("order a vanilla chocolate cake for 5 guests on Monday", "vanilla"),
        ('open a urgent ticket "wifi is down"', "urgent"),
        ("open a ticket: wifi is slow, it's urgent", "urgent"),
        ("close the ticket about the broken projector", "close"),
        ("quick recipe with lentils", "quick"),
        ("open a ticket: printer is broken, medium priority", "medium"),
        ("I earn 2000 a month and want to save 5000 euros", "earn"),
        ("my colleague drove 40 km yesterday", "colleague"),
        ("Anna has booked Cedar on Monday at 9:00", "Anna"),
        ("what's the refund for ticket 40", "ticket"),
        ("How much is it to ship 5 kg to Norway by plane", "plane"),
        ("book Aurora every Monday at 9:00", "every Monday"),
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
        "I might drive 50 km tomorrow",
        "if I drove 40 km today, would you log it",
        "no lemon cake for 10 people on Friday",
        "how much is a lemon cake for 10 people on Friday?",
        "Is my booking B-1042 confirmed?",
        "order a lemon cake without gluten for 10 people on Friday",
        "order a lemon cake for 10 people for 31 April",
        "what should I cook for dinner",
        "what does it cost to send 2 kg from Oslo",
        "anything but lemon, a cake for 8 people on Friday",
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
        ("What does shipping 900 grams to Estonia cost?", {"weight": 0.9, "destination": "Estonia"}),
        ("recipe with rice but no leeks and no onions", {"ingredients": ["rice"], "avoid": ["leeks", "onions"]}),
        ("shipping 2 kg to Bosnia and Herzegovina", {"weight": 2, "destination": "Bosnia and Herzegovina"}),
        (
            "Is Aurora free tomorrow at noon? If so book it",
            {"room": "Aurora", "day": "2026-11-22", "start": "12:00:00"},
        ),
        ("hey, I'd love a carrot cake for my team, 16 people, ready on Tuesday", None),
    ],
)
def test_what_the_examples_do_as_well_is_no_doubt(text: str, values: dict[str, object] | None) -> None:
    """And what is for somebody is known to be."""
    found = read(text)
    assert isinstance(found, Understood)
    assert values is None or found.task.parameters == values
