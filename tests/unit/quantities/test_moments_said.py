"""Days and times as people say them at length: weekdays of weeks and months, a day counted to, two of a kind."""

from datetime import datetime

import pytest

from quantities.amounts.moment import iso_text
from quantities.times import find_durations, find_moments

#: A Wednesday.
NOW = datetime.fromisoformat("2026-11-18T16:40")


def moments(text: str) -> list[str]:
    """Return the readings of each moment of *text*, joined by a bar."""
    return ["|".join(map(iso_text, found.readings)) for found in find_moments(text, NOW)]


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("let us meet friday next week", "2026-11-27"), ("the call of thursday last week", "2026-11-12"),
        ("send it on monday of next week", "2026-11-23"), ("next week on saturday", "2026-11-28"),
        ("this week friday", "2026-11-20"), ("friday week", "2026-11-27"), ("on monday fortnight", "2026-12-07"),
        ("a week today", "2026-11-25"), ("see you a week on sunday", "2026-11-29"), ("tomorrow week", "2026-11-26"),
        ("the tuesday after next", "2026-12-01"), ("this coming monday", "2026-11-23"),
        ("coming wednesday", "2026-11-25"),
        ("the third of next month", "2026-12-03"), ("due on the 1st of the month", "2026-12-01"),
        ("7-Dec-2026", "2026-12-07"), ("the 20th", "2026-11-20"), ("the 20th.", "2026-11-20"),
        ("book it for a week on friday", "2026-11-20"), ("twice a week on friday", "2026-11-20"),
        ("friday week 3", "2026-11-20"),
    ],
)  # fmt: skip
def test_a_day_is_the_one_of_its_week_or_month(text: str, day: str) -> None:
    """Not the next one of that name, and what says how long or how often moves no day."""
    assert moments(text) == [day]


@pytest.mark.parametrize(
    "text",
    ["every second tuesday", "the first monday", "every first monday of the month", "the first of many",
     "the third of the books", "the first of this month's bills", "the 3rd floor", "the 3rd at the bar",
     "christmas cards", "a new day", "boxing match", "the eve of battle", "half seven people came", "at half price",
     "an hour before the meeting", "open at night", "31-Feb-2027", "the sun is out", "we sat at 3 tables"],
)  # fmt: skip
def test_what_only_looks_like_a_day_is_none(text: str) -> None:
    """A weekday that is counted needs its month, an ordinal its date."""
    assert moments(text) == []


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("tonight at half past nine", "2026-11-18T21:30:00"), ("half past nine tonight", "2026-11-18T21:30:00"),
        ("7 o'clock tomorrow evening", "2026-11-19T19:00:00"), ("at 9 tomorrow morning", "2026-11-19T09:00:00"),
        ("8:15 tomorrow evening", "2026-11-19T20:15:00"), ("8:15 tomorrow morning", "2026-11-19T08:15:00"),
        ("quarter to six this evening", "2026-11-18T17:45:00"), ("ten at night", "2026-11-18T22:00:00"),
        ("2 at night", "2026-11-19T02:00:00"), ("at 1530 hours", "2026-11-19T15:30:00"),
        ("0845 hours tomorrow", "2026-11-19T08:45:00"), ("the 25th at 6 pm", "2026-11-25T18:00:00"),
        ("in 3 days at 5 pm", "2026-11-21T17:00:00"), ("two weeks ago at noon", "2026-11-04T12:00:00"),
        ("an hour before noon tomorrow", "2026-11-19T11:00:00"), ("10 minutes before 5 pm", "2026-11-18T16:50:00"),
        ("half an hour after midnight", "2026-11-19T00:30:00"),
        ("in 2 or 3 days", "2026-11-20|2026-11-21"), ("in an hour or two", "2026-11-18T17:40:00|2026-11-18T18:40:00"),
        ("2 to 3 days before 5 May", "2027-05-03|2027-05-02"),
    ],
)  # fmt: skip
def test_a_time_is_told_with_its_day_and_the_part_of_it(text: str, moment: str) -> None:
    """Before or after the day; what says two of a kind has two readings."""
    assert moments(text) == [moment]


@pytest.mark.parametrize(
    ("text", "days"),
    [
        ("from 3 May to 10 June 2025", ["2025-05-03", "2025-06-10"]),
        ("30 December and 2 January 2028", ["2027-12-30", "2028-01-02"]),
        ("March 3 or April 4, 2029", ["2029-03-03", "2029-04-04"]),
    ],
)
def test_a_year_that_is_said_once_is_that_of_both_days(text: str, days: list[str]) -> None:
    """And of the year before, where the first month is a later one."""
    assert moments(text) == days


@pytest.mark.parametrize(
    ("text", "lengths"),
    [
        ("for 2 to 3 hours", "7200 10800"), ("between two and four minutes", "120 240"), ("1-2 hours", "3600 7200"),
        ("rated 3 to 5 stars", ""), ("2 hours 15", "8100"), ("2 hours 15 people", "7200"), ("1:30 hours", "5400"),
        ("at 1:30", ""), ("at 1400 hours", ""), ("1400 hours of work", "5040000"), ("half a dozen hours", "21600"),
        ("two dozen hours", "86400"), ("a quarter hour", "900"), ("an hour-long call", "3600"),
        ("a day-long trip", "86400"), ("a long day", ""), ("the 60s", ""), ("60s", "60"),
    ],
)  # fmt: skip
def test_two_lengths_share_their_unit_and_words_of_amount_count(text: str, lengths: str) -> None:
    """A clock before its unit is a length, one of four digits before "hours" a time of day."""
    assert " ".join(str(found.length.seconds) for found in find_durations(text)) == lengths
