"""Days that no calendar has, times that no clock shows and zones that nobody knows: asked about, never another time."""

from datetime import UTC, date, datetime, time
from typing import Any

import pytest

from contracts.parameters import Field, Parameters
from quantities.amounts import Moment
from quantities.times.impossible import impossible_times
from supervisor.catalogue import Catalogue
from supervisor.interpretation import Interpretation, RuleInterpreter
from supervisor.understanding.outcome import Ambiguous, Several
from tests.interpretation_cases import card_for, parameters_of

#: A Monday.
NOW = datetime(2026, 11, 23, 10, tzinfo=UTC)


class Meeting(Parameters):
    """A moment."""

    when: Moment


class Visit(Parameters):
    """A day and a time of day."""

    day: date
    hour: time | None = None


class Forecast(Parameters):
    """A place and a day."""

    city: str = Field(cues=("in", "for"))
    day: date | None = None


class Reminder(Parameters):
    """A message and a moment."""

    text: str = Field(cues=("to", "that"))
    when: Moment


def read(text: str, parameters: type[Parameters] = Meeting) -> Interpretation:
    """Return what a house with one agent that plans makes of *text*."""
    house = Catalogue([card_for("Planner", "plan", parameters, "Plan something.", ("plan",))])
    return RuleInterpreter().understand(text, catalogue=house, now=NOW)


def each(found: Interpretation) -> list[dict[str, Any]]:
    """Return the parameters of each task of *found*."""
    return [parameters_of(one) for one in (found.parts if isinstance(found, Several) else (found,))]


@pytest.mark.parametrize(
    "text",
    ["on {Nov 31} at 9am", "{30 February}", "the {31st of June}", "{31/11/2026}", "{2027-02-29}T", "{2027-02-29T10:00}",
     "on {the 32nd}", "on {45 March}", "{29 Feb 2027}", "{April 31, 2027}", "at {25:00} tomorrow", "tomorrow at {9:75}",
     "at {13pm}", "at {0pm}", "at {14:30 am}", "at {24:30}", "at {25 o'clock}", "by {Nov 31} please"],
)  # fmt: skip
def test_what_no_calendar_has_and_no_clock_shows_is_told(text: str) -> None:
    """With its place; the time beside it is another's affair."""
    whole = text.replace("{", "").replace("}", "").removesuffix("T")
    assert [whole[one.start : one.end] for one in impossible_times(whole)] == [
        text[text.index("{") + 1 : text.index("}")]
    ]


@pytest.mark.parametrize(
    "text",
    ["on 29 Feb", "29 Feb 2028", "Nov 30 at 9am", "at 24:00", "at 14:30 pm", "12am", "may 50 people come",
     "June 40 units",
     "in June 45 and in July 50", "on the 45th floor", "John 3:75", "rent of 30 pm", "1.50.30", "won 45:62",
     "45 march hares", "10-12-2026"],
)  # fmt: skip
def test_numbers_that_only_look_like_it_are_left_alone(text: str) -> None:
    """Amounts, floors, verses and scores."""
    assert impossible_times(text) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plan it on Nov 31 at 9am", "'Nov 31 at 9am'"), ("plan it on Nov 31", "'Nov 31'"),
        ("plan it at 25:00 tomorrow", "'25:00 tomorrow'"), ("plan it on Friday at 15am", "'Friday at 15am'"),
        ("plan it on Nov 30 and Nov 31", "'Nov 31'"), ("plan it on Nov 31 or Dec 1", "'Nov 31'"),
        ("plan it on Nov 30 and 31", "'31'"), ("plan it Nov 31, Dec 3", "'Nov 31'"),
    ],
)  # fmt: skip
def test_an_impossible_day_or_time_is_asked_about_whole(text: str, said: str) -> None:
    """Nine o'clock of another day, or the day without its hour, would be somebody else's wish."""
    found = read(text)
    assert isinstance(found, Ambiguous)
    assert found.question == f"There is no such day or time: {said}. What is when?"


@pytest.mark.parametrize(
    ("parameters", "text", "known"),
    [
        (Visit, "plan it on Nov 31 at 9am", {"hour": "09:00:00"}),
        (Visit, "plan it at 25:00 tomorrow", {"day": "2026-11-24"}),
        (Forecast, "plan for Lima on Nov 31", {"city": "Lima"}), (Forecast, "plan for Lima in May", {"city": "Lima"}),
        (Reminder, "plan to ring Ida on Nov 31 at 9am", {"text": "ring Ida"}),
    ],
)  # fmt: skip
def test_what_was_said_well_is_kept_beside_it(parameters: type[Parameters], text: str, known: dict[str, Any]) -> None:
    """Only the field that it was meant for is asked for, and no name and no message keeps it."""
    found = read(text, parameters)
    assert isinstance(found, Ambiguous)
    assert found.known == known


@pytest.mark.parametrize("zone", ["Gotham time", "her time", "Springfield time"])
def test_a_zone_that_nobody_knows_is_asked_about(zone: str) -> None:
    """It is not taken for the time of here."""
    found = read(f"plan it tomorrow at 9am {zone}")
    assert isinstance(found, Ambiguous)
    assert found.question == f"The time zone is not known: 'tomorrow at 9am {zone}'. What is when?"


def test_days_that_share_a_month_are_a_task_each() -> None:
    """However many there are, and whichever month it is; a time behind the last is that of all."""
    days = [{"city": "Lima", "day": f"2027-01-0{day}"} for day in (3, 4, 5)]
    assert each(read("plan for Lima on the 3rd and 4th of January", Forecast)) == days[:2]
    assert each(read("plan for Lima on the 3rd, 4th and 5th of January", Forecast)) == days
    assert each(read("plan for Lima January 3 and 4", Forecast)) == days[:2]
    assert each(read("plan it on the 3rd and 4th of January at 9am")) == [
        {"when": "2027-01-03T09:00:00"}, {"when": "2027-01-04T09:00:00"},
    ]  # fmt: skip


@pytest.mark.parametrize("behind", ["the day after", "the next day", "the following day", "the day after tomorrow"])
def test_the_day_after_is_that_of_the_day_before_it(behind: str) -> None:
    """It has no name of its own."""
    found = each(read(f"plan for Lima tomorrow and {behind}", Forecast))
    assert [one["day"] for one in found] == ["2026-11-24", "2026-11-25"]
