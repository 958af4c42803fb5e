"""What stands at the end of a name and is none of it: days by their first letters, clauses, and what takes it back."""

from datetime import UTC, date, datetime, time
from typing import Any

import pytest

from contracts.parameters import Field, Parameters
from supervisor.catalogue import Catalogue
from supervisor.understanding import Ambiguous, Interpretation, Missing, RuleInterpreter, Understood
from tests.understanding_cases import card_for, parameters_of

#: A Monday.
NOW = datetime(2026, 11, 23, 9, tzinfo=UTC)


class Tide(Parameters):
    """A harbour and a day."""

    harbour: str = Field(cues=("in", "for"))
    day: date | None = Field(None, cues=("on",))


class Seats(Parameters):
    """Places for a film."""

    film: str = Field(cues=("for",))
    seats: int = Field(cues=("seats",))


class Note(Parameters):
    """A message for somebody."""

    to: str = Field(cues=("to",))
    text: str = Field(cues=("saying",))


class Reminder(Parameters):
    """A message and a time of day."""

    text: str = Field(cues=("to", "that"))
    hour: time | None = None


HOUSE = Catalogue([
    card_for("TideAgent", "tell_tide", Tide, "Tell the tide of a harbour.", ("tide",)),
    card_for("SeatAgent", "take_seats", Seats, "Take seats for a film.", ("seats",)),
    card_for("NoteAgent", "send_note", Note, "Send a note.", ("note",)),
    card_for("ReminderAgent", "remind", Reminder, "Remind of something.", ("remind",)),
])  # fmt: skip


def read(text: str) -> Interpretation:
    """Return what the house makes of *text*."""
    return RuleInterpreter().understand(text, catalogue=HOUSE, now=NOW)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tide in dover fri", {"harbour": "dover", "day": "2026-11-27"}),
        ("tide in dover where my brother lives", {"harbour": "dover"}),
        ("tide in Midnight Sun", {"harbour": "Midnight Sun"}),
        ("tide in midnight sun on friday", {"harbour": "midnight sun", "day": "2026-11-27"}),
        ("take 2 seats for Symphony no 3", {"film": "Symphony no 3", "seats": 2}),
        ("take 2 seats for Hamlet no. 3", {"film": "Hamlet no. 3", "seats": 2}),
        ("take 2 seats for say no more", {"film": "say no more", "seats": 2}),
        ("take 2 seats for Where We Belong", {"film": "Where We Belong", "seats": 2}),
        ("send a note to bob to say hi", {"to": "bob", "text": "hi"}),
        ("remind me to get milk", {"text": "get milk"}),
        ("remind me to please get milk at 5pm", {"text": "get milk", "hour": "17:00:00"}),
        ("remind me to go to the gym", {"text": "go to the gym"}),
    ],
)
def test_a_name_ends_where_something_else_is_said(text: str, expected: dict[str, Any]) -> None:
    """Titles keep theirs."""
    assert parameters_of(read(text)) == expected


@pytest.mark.parametrize(
    ("text", "known", "missing"),
    [
        ("tide in dover fri-sun", {"harbour": "dover"}, ("day",)),
        ("tide in dover Thurs to Sat", {"harbour": "dover"}, ("day",)),
        ("tide in dover sat and sun", {"harbour": "dover"}, ("day",)),
        ("tide in dover, sun", {"harbour": "dover"}, ("day",)),
        ("tide in dover fri on sunday", {"harbour": "dover"}, ("day",)),
        ("tide where my brother lives", {}, ("harbour",)),
        ("tide in dover no calais", {}, ("harbour",)),
        ("take 2 seats for Hamlet no 3", {}, ("film", "seats")),
        ("send a note to anna to get milk", {"to": "anna"}, ("text",)),
        ("send a note to get milk", {}, ("to", "text")),
    ],
)
def test_what_may_be_two_things_is_asked_about(text: str, known: dict[str, Any], missing: tuple[str, ...]) -> None:
    """The name is kept where it is plain."""
    found = read(text)
    assert isinstance(found, Ambiguous | Missing), found
    assert (dict(found.known), found.missing) == (known, missing)


@pytest.mark.parametrize(("text", "is_certain"), [("tomorrow", False), ("", True)])
def test_a_day_that_no_field_can_hold_makes_the_time_unsure(text: str, is_certain: bool) -> None:
    """An hour alone would be that of today."""
    found = read(f"remind me {text} to call mum at 5pm")
    assert isinstance(found, Understood)
    assert found.is_certain is is_certain
