"""What of a time at the end of a message goes to the field that holds it, and what stays in the message."""

from datetime import UTC, date, datetime, time
from typing import Any

import pytest

from contracts.parameters import Field, Parameters
from quantities.amounts import Moment
from supervisor.catalogue import Catalogue
from supervisor.understanding import Ambiguous, Interpretation, Missing, RuleInterpreter
from tests.understanding_cases import card_for, parameters_of

#: A Monday.
NOW = datetime(2026, 11, 23, 9, tzinfo=UTC)


class WithMoment(Parameters):
    """A message and a moment."""

    text: str = Field(cues=("to", "that"))
    when: Moment


class WithCue(Parameters):
    """A message and a moment with words of its own."""

    text: str = Field(cues=("to", "that"))
    start: Moment | None = Field(None, cues=("at {}", "on {}"))


class WithHour(Parameters):
    """A message and a time of day."""

    text: str = Field(cues=("to", "that"))
    hour: time | None = None


class WithDay(Parameters):
    """A message and a day."""

    text: str = Field(cues=("to", "that"))
    day: date | None = None


class WithBoth(Parameters):
    """A message, a day and a time of day."""

    text: str = Field(cues=("to", "that"))
    day: date | None = None
    hour: time | None = None


def read(text: str, parameters: type[Parameters]) -> Interpretation:
    """Return what a house with one agent makes of *text*."""
    house = Catalogue([card_for("ReminderAgent", "remind", parameters, "Remind of something.", ("remind",))])
    return RuleInterpreter().understand(text, catalogue=house, now=NOW)


@pytest.mark.parametrize(
    ("parameters", "text", "expected"),
    [
        (WithMoment, "remind me to ring Ida at 5pm", {"text": "ring Ida", "when": "2026-11-23T17:00:00"}),
        (WithMoment, "remind me at 5pm to ring Ida", {"text": "ring Ida", "when": "2026-11-23T17:00:00"}),
        (WithMoment, "remind me to ring Ida tomorrow at 5pm", {"text": "ring Ida", "when": "2026-11-24T17:00:00"}),
        (WithCue, "remind me to ring Ida tomorrow at 5pm", {"text": "ring Ida", "start": "2026-11-24T17:00:00"}),
        (WithHour, "remind me to ring Ida at 5pm", {"text": "ring Ida", "hour": "17:00:00"}),
        (WithDay, "remind me to ring Ida tomorrow", {"text": "ring Ida", "day": "2026-11-24"}),
        (WithBoth, "remind me to ring Ida tomorrow at 5pm",
         {"text": "ring Ida", "day": "2026-11-24", "hour": "17:00:00"}),
    ],
)  # fmt: skip
def test_a_time_that_other_fields_hold_is_cut_from_a_message(
    parameters: type[Parameters], text: str, expected: dict[str, Any]
) -> None:
    """Wherever it was said, the same is asked of the worker, and "tomorrow" does not stand there a day later."""
    assert parameters_of(read(text, parameters)) == expected


@pytest.mark.parametrize(
    ("parameters", "text", "expected"),
    [
        (WithDay, "remind me to ring Ida tomorrow at 5pm", {"text": "ring Ida tomorrow at 5pm", "day": "2026-11-24"}),
        (WithHour, "remind me to ring Ida tomorrow at 5pm", {"text": "ring Ida tomorrow at 5pm", "hour": "17:00:00"}),
        (WithHour, "remind me to ring Ida tomorrow", {"text": "ring Ida tomorrow"}),
        (WithDay, 'remind me tomorrow to "ring Ida tomorrow"', {"text": "ring Ida tomorrow", "day": "2026-11-24"}),
        (WithMoment, "remind me tomorrow to ring Ida at 5pm", {"text": "ring Ida at 5pm", "when": "2026-11-24"}),
        (WithMoment, "remind me to buy tickets for Friday", {"text": "buy tickets for Friday", "when": "2026-11-27"}),
        (WithCue, "remind me to meet Bob at 5 Mill Lane", {"text": "meet Bob at 5 Mill Lane"}),
    ],
)
def test_a_time_that_nobody_holds_whole_stays_in_the_message(
    parameters: type[Parameters], text: str, expected: dict[str, Any]
) -> None:
    """Nothing of what was said is lost; quotation marks keep all of it."""
    assert parameters_of(read(text, parameters)) == expected


@pytest.mark.parametrize("text", ["remind me to ring Ida at 5", "remind me to ring Ida at 5, please"])
def test_an_hour_of_the_morning_or_the_afternoon_is_asked_about(text: str) -> None:
    """It is neither dropped nor left in the message."""
    found = read(text, WithCue)
    assert isinstance(found, Ambiguous | Missing)
    assert found.question == "What is start?"


def test_a_day_and_an_hour_that_stand_apart_are_asked_about() -> None:
    """The hour may be of today, and nobody would miss the day."""
    found = read("remind me tomorrow to ring Ida at 5pm", WithCue)
    assert isinstance(found, Ambiguous)
    assert found.question == "Is start 2026-11-23T17:00:00 or 2026-11-24T17:00:00?"
